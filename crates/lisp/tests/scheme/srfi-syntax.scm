;;; SRFI 2, 8, 26, 31 and 16: common syntactic forms.
(import (scheme base) (scheme write) (scheme process-context)
        (srfi 2) (srfi 8) (srfi 16) (srfi 26) (srfi 31))
(include "harness.scm")

;; SRFI 2
(test 1 (and-let* () 1))
(test #t (and-let* ()))
(test 5 (let ((x 5)) (and-let* (x) x)))
(test #f (let ((x #f)) (and-let* (x) 1)))
(test '(b . 2) (and-let* ((l '((a . 1) (b . 2))) (found (assq 'b l)) ((pair? found))) found))
(test #f (and-let* ((found (assq 'z '((a . 1)))) (value (cdr found))) value))
(test 2 (and-let* ((x 1) ((positive? x)) (y (+ x 1))) y))
(test #f (and-let* ((x -1) ((positive? x)) (y (car 5))) y))
(test 3 (and-let* ((x 1) (x (+ x 1)) (x (+ x 1))) x))

;; SRFI 8
(test '(1 (2 3)) (receive (a . rest) (values 1 2 3) (list a rest)))
(test '(1 2 3) (receive all (values 1 2 3) all))
(test 3 (receive (a b) (values 1 2) (define c (+ a b)) c))

;; SRFI 16
(test '(0 1 2) (let ((f (case-lambda (() 0) ((a) a) ((a . r) (+ 1 (length r)))))) (list (f) (f 1) (f 1 2))))

;; SRFI 26
(test '() ((cut list)))
(test '(a) ((cut list <>) 'a))
(test '(1 a 3 b) ((cut list 1 <> 3 <>) 'a 'b))
(test '(1 a b c) ((cut list 1 <> <...>) 'a 'b 'c))
(test '(1 a) ((cut list 1 <...>) 'a))
(test '(1 2 3) ((cut <> 1 2 3) list))
(test '(2 4 6) (map (cut * 2 <>) '(1 2 3)))
(test '(ok) (let* ((a 'ok) (b (cut (lambda () a)))) (set! a 'ok) (list (b))))
(test '(2 1) (let* ((a 1) (f (cut list a)) (g (cute list a))) (set! a 2) (list (car (f)) (car (g)))))
(test '(3 1) (let* ((n 0) (next (lambda () (set! n (+ n 1)) n)) (f (cute list (next) <>))) (f 'x) (f 'y) (list (let ((g (cut list (next) <>))) (g 1) (car (g 1))) (car (f 'z)))))
;; slots do not capture the user's names
(test '(outer 1) (let ((x 'outer)) ((cut list x <>) 1)))

;; SRFI 31
(test 120 ((rec (fact n) (if (= n 0) 1 (* n (fact (- n 1))))) 5))
(test '(1 1 1)
  (let ((ones (rec ones (cons 1 (lambda () ones)))))
    (list (car ones) (car ((cdr ones))) (car ((cdr ((cdr ones))))))))

(finish)
