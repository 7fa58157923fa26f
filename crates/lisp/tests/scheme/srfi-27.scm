;;; SRFI 27: sources of random numbers.
(import (scheme base) (scheme write) (scheme process-context) (srfi 27))
(include "harness.scm")

(define (draws f n) (let loop ((i 0) (r '())) (if (= i n) r (loop (+ i 1) (cons (f) r)))))
(define (all? test list) (or (null? list) (and (test (car list)) (all? test (cdr list)))))
(test #t (random-source? default-random-source)) (test #t (random-source? (make-random-source))) (test #f (random-source? 5))
(test #t (all? (lambda (n) (and (exact-integer? n) (<= 0 n 5))) (draws (lambda () (random-integer 6)) 1000)))
(test '(0 1 2 3 4 5) (let ((v (make-vector 6 #f))) (for-each (lambda (n) (vector-set! v n n)) (draws (lambda () (random-integer 6)) 1000)) (vector->list v)))
(test '(0 0) (draws (lambda () (random-integer 1)) 2)) (test-error (random-integer 0)) (test-error (random-integer 1.5)) (test-error (random-integer -1))
(test #t (all? (lambda (n) (< -1 n (expt 10 40))) (draws (lambda () (random-integer (expt 10 40))) 100))) (test #t (let ((big (draws (lambda () (random-integer (expt 10 40))) 50))) (> (apply max big) (expt 10 38))))
(test #t (all? (lambda (x) (and (inexact? x) (< 0 x 1))) (draws random-real 1000)))
;; the same state yields the same numbers
(define source (make-random-source))
(define integers (random-source-make-integers source))
(define state (random-source-state-ref source))
(define ten (draws (lambda () (integers 1000000)) 10))
(random-source-state-set! source state)
(test ten (draws (lambda () (integers 1000000)) 10)) (test-error (random-source-state-set! source '(mrg32k3a 0 0 0 1 1 1))) (test-error (random-source-state-set! source 'x))
(test #t (equal? (draws (lambda () ((random-source-make-integers (make-random-source)) 1000)) 1) (draws (lambda () ((random-source-make-integers (make-random-source)) 1000)) 1)))
;; the first draws from the standard state equal those of the author's program, times m1
(test 545508589 (let ((s (make-random-source))) ((random-source-make-integers s) 4294967087)))
;; a stream far away: a power of the generator's matrix
(define (state-after i j) (let ((s (make-random-source))) (random-source-pseudo-randomize! s i j) (random-source-state-ref s)))
(test (random-source-state-ref (make-random-source)) (state-after 0 0)) (test #f (equal? (state-after 1 0) (state-after 0 1))) (test '(mrg32k3a 3692455944 1366884236 2968912127 335948734 4161675175 475798818) (state-after 1 0)) (test '(mrg32k3a 870504860 2641697727 884013853 339352413 2374306706 3651603887) (state-after 0 1)) (test-error (random-source-pseudo-randomize! source -1 0))
(test #f (let ((s (make-random-source))) (random-source-randomize! s) (equal? (random-source-state-ref s) (random-source-state-ref (make-random-source)))))
(test #t (all? (lambda (x) (and (exact? x) (< 0 x 1) (integer? (* 10 x)))) (draws (random-source-make-reals source 1/10) 100))) (test #t (all? (lambda (x) (and (inexact? x) (< 0 x 1))) (draws (random-source-make-reals source 1e-20) 100))) (test-error (random-source-make-reals source 2)) (test-error (random-source-make-reals source 1)) (test-error (random-source-make-reals source 0))

(finish)
