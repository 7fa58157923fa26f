;;; Strings that double by appending and cutting, after Gabriel.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (grow s)
  (let* ((s (string-append "123" s "456" s "789"))
         (half (quotient (string-length s) 2)))
    (string-append (substring s half (string-length s)) (substring s 0 (+ half 1)))))

(define (grow-beyond length s)
  (if (> (string-length s) length) (string-length s) (grow-beyond length (grow s))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 500000 "abcdef"))
(define (input i) (vector-ref inputs i))
(define (work) (grow-beyond (input 0) (input 1)))
(define expected 524278)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 200 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"string\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
