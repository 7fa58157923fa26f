;;; Ackermann (3 9): calls in deep recursion.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (ack m n)
  (cond ((= m 0) (+ n 1))
        ((= n 0) (ack (- m 1) 1))
        (else (ack (- m 1) (ack m (- n 1))))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 3 9))
(define (input i) (vector-ref inputs i))
(define (work) (ack (input 0) (input 1)))
(define expected 4093)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 5 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"ack9\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
