; Ackermann's function, the first program of the paper's table 1.
(define (ack m n)
  (cond ((= m 0) (+ n 1))
        ((= n 0) (ack (- m 1) 1))
        (else (ack (- m 1) (ack m (- n 1))))))

; One call takes a quarter of a millisecond. Four, so that clock and processor caches settle.
(define (repeat count)
  (if (> count 1)
      (begin (ack 3 3) (repeat (- count 1)))
      (ack 3 3)))

(display (repeat 4))
(newline)
