;;; Fibonacci of 30 by double recursion: calls and small numbers.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (fib n)
  (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 30))
(define (input i) (vector-ref inputs i))
(define (work) (fib (input 0)))
(define expected 832040)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 15 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"fib\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
