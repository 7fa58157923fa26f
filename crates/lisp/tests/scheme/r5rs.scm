;;; (scheme r5rs): the names that R7RS has in other libraries or under other names, and R5RS
;;; programs in its environments.
(import (scheme base) (scheme write) (scheme process-context) (scheme eval)
        (only (scheme r5rs) exact->inexact inexact->exact null-environment scheme-report-environment))
(include "harness.scm")

(test 0.5 (exact->inexact 1/2)) (test 2.0 (exact->inexact 2)) (test 2.5 (exact->inexact 2.5))
(test 1/2 (inexact->exact 0.5)) (test 7 (inexact->exact 7.0)) (test 7 (inexact->exact 7))
(test #t (exact? (inexact->exact 1e20)))
(test-error (inexact->exact (exact->inexact (expt 10 400)))) (test-error (exact->inexact 'a))

(define r5rs (scheme-report-environment 5))
(test '(3 . 0.5) (eval '(let loop ((i 0)) (if (< i 3) (loop (+ i 1)) (cons i (exact->inexact 1/2)))) r5rs))
(test '(1 2) (eval '(let-syntax ((swap (syntax-rules () ((_ a b) (list b a))))) (swap 2 1)) r5rs))
(test 24 (eval '(call-with-current-continuation (lambda (k) (for-each (lambda (x) (if (> x 23) (k x))) '(1 24 25)))) r5rs))
(test 6 (eval '(force (delay (apply + (map abs '(-1 2 -3))))) r5rs))
(test-error (eval '(guard (e (#t 1)) (raise 'x)) r5rs))
(test-error (eval '(vector-map car '#((1))) r5rs))
;; the syntactic environment: names of procedures are unbound
(define syntax (null-environment 5))
(test 5 (eval '(let* ((x 4) (y 5)) (case x ((4) y) (else 'no))) syntax))
(test-error (eval '(car '(1)) syntax))

(finish)
