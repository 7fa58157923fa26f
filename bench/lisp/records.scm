;;; Records: particles with integer coordinates move in a box. Its walls reflect them, and each
;;; particle counts its hits.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define-record-type particle (make-particle x y dx dy hits) particle?
  (x particle-x set-particle-x!)
  (y particle-y set-particle-y!)
  (dx particle-dx set-particle-dx!)
  (dy particle-dy set-particle-dy!)
  (hits particle-hits set-particle-hits!))

(define (make-particles count side)
  (let loop ((i 0) (seed 1) (all '()))
    (if (= i count)
        all
        (let* ((a (modulo (+ (* seed 1103515245) 12345) 2147483648))
               (b (modulo (+ (* a 1103515245) 12345) 2147483648)))
          (loop (+ i 1) b
                (cons (make-particle (modulo (quotient a 65536) side) (modulo (quotient b 65536) side)
                                     (- (modulo (quotient a 1024) 7) 3) (- (modulo (quotient b 1024) 7) 3) 0)
                      all))))))

(define (hit! p) (set-particle-hits! p (+ (particle-hits p) 1)))

(define (move! p side)
  (let ((x (+ (particle-x p) (particle-dx p))) (y (+ (particle-y p) (particle-dy p))))
    (cond ((or (< x 0) (>= x side)) (set-particle-dx! p (- (particle-dx p))) (hit! p))
          (else (set-particle-x! p x)))
    (cond ((or (< y 0) (>= y side)) (set-particle-dy! p (- (particle-dy p))) (hit! p))
          (else (set-particle-y! p y)))))

(define (hits count side steps)
  (let ((particles (make-particles count side)))
    (do ((step 0 (+ step 1)))
        ((= step steps)
         (let loop ((l particles) (sum 0))
           (if (null? l) sum (loop (cdr l) (+ sum (particle-hits (car l)))))))
      (for-each (lambda (p) (move! p side)) particles))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 1000 100 100))
(define (input i) (vector-ref inputs i))
(define (work) (hits (input 0) (input 1) (input 2)))
(define expected 3443)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 20 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"records\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
