;;; Ackermann (3 3), paper 4, table 1 and figure 4: for the deep-binding engine.
(define ack
  (lambda (m n)
    (cond ((= m 0) (+ n 1))
          ((= n 0) (ack (- m 1) 1))
          (else (ack (- m 1) (ack m (- n 1)))))))

(display (ack 3 3))
(newline)
