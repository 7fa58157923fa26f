;;; First-class procedures: Takeuchi (18 12 6) in continuation-passing style, after Clinger.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (cpstak x y z)
  (define (tak x y z next)
    (if (not (< y x))
        (next z)
        (tak (- x 1) y z
             (lambda (a)
               (tak (- y 1) z x
                    (lambda (b)
                      (tak (- z 1) x y
                           (lambda (c) (tak a b c next)))))))))
  (tak x y z (lambda (a) a)))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 18 12 6))
(define (input i) (vector-ref inputs i))
(define (work) (cpstak (input 0) (input 1) (input 2)))
(define expected 7)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 200 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"cpstak\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
