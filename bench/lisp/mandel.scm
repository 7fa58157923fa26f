;;; Floats: points of a grid that stay in the Mandelbrot set, each followed for 200 steps.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (steps cr ci most)
  (let loop ((zr 0.0) (zi 0.0) (n 0))
    (let ((rr (* zr zr)) (ii (* zi zi)))
      (if (or (= n most) (> (+ rr ii) 4.0))
          n
          (loop (+ cr (- rr ii)) (+ ci (* 2.0 zr zi)) (+ n 1))))))

;; Steps of all points together: side squared of them.
(define (grid side most)
  (let ((width (/ 3.0 (inexact side))))
    (do ((y 0 (+ y 1))
         (sum 0 (do ((x 0 (+ x 1))
                     (sum sum (+ sum (steps (- (* width (inexact x)) 2.0)
                                            (- (* width (inexact y)) 1.5) most))))
                    ((= x side) sum))))
        ((= y side) sum))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 75 200))
(define (input i) (vector-ref inputs i))
(define (work) (grid (input 0) (input 1)))
(define expected 213579)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 20 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"mandel\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
