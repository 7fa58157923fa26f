;;; SRFI 125: hash tables, what its document names beyond SRFI 69.
(import (scheme base) (scheme write) (scheme process-context) (srfi 125))
(include "harness.scm")

(define (sorted table) (let loop ((in (hash-table->alist table)) (out '())) (if (null? in) out (loop (cdr in) (let insert ((list out)) (if (or (null? list) (< (caar in) (caar list))) (cons (car in) list) (cons (car list) (insert (cdr list)))))))))
(define (table . pairs) (alist->hash-table pairs equal?))
(test #t (hash-table-contains? (table '(1 . a)) 1)) (test #f (hash-table-contains? (table '(1 . a)) 2)) (test #t (hash-table-empty? (table))) (test #f (hash-table-empty? (table '(1 . a))))
(test '() (let ((t (table '(1 . a) '(2 . b)))) (hash-table-clear! t) (sorted t))) (test 1 (hash-table-count (lambda (k v) (> k 1)) (table '(1 . a) '(2 . b))))
(test '((2 . b)) (let ((a (table '(1 . a) '(2 . b)))) (hash-table-difference! a (table '(1 . x))) (sorted a))) (test '((1 . a)) (let ((a (table '(1 . a) '(2 . b)))) (hash-table-intersection! a (table '(1 . x))) (sorted a))) (test '((1 . a) (2 . y)) (let ((a (table '(1 . a)))) (hash-table-union! a (table '(1 . x) '(2 . y))) (sorted a))) (test '((2 . b) (3 . y)) (let ((a (table '(1 . a) '(2 . b)))) (hash-table-xor! a (table '(1 . x) '(3 . y))) (sorted a)))
(test 0 (hash-table-size (hash-table-empty-copy (table '(1 . a))))) (test '((1) (a)) (let-values (((keys values) (hash-table-entries (table '(1 . a))))) (list keys values))) (test '(2 b) (hash-table-find (lambda (k v) (and (> k 1) (list k v))) (table '(1 . a) '(2 . b)) (lambda () 'none))) (test 'none (hash-table-find (lambda (k v) #f) (table '(1 . a)) (lambda () 'none)))
(test 3 (let ((sum 0)) (hash-table-for-each (lambda (k v) (set! sum (+ sum k))) (table '(1 . a) '(2 . b))) sum)) (test '(a x x) (let* ((t (table '(1 . a))) (one (hash-table-intern! t 1 (lambda () 'x))) (two (hash-table-intern! t 2 (lambda () 'x)))) (list one two (hash-table-ref t 2))))
(test '((1 . 10) (2 . 20)) (let ((t (table '(1 . 1) '(2 . 2)))) (hash-table-map! (lambda (k v) (* 10 v)) t) (sorted t))) (test '(3) (hash-table-map->list (lambda (k v) (+ k v)) (table '(1 . 2)))) (test '((1 . a)) (let ((t (table '(1 . a) '(2 . b)))) (hash-table-prune! (lambda (k v) (> k 1)) t) (sorted t))) (test '(1 a 0) (let ((t (table '(1 . a)))) (let-values (((k v) (hash-table-pop! t))) (list k v (hash-table-size t))))) (test-error (hash-table-pop! (table))) (test #t (hash-table-mutable? (table)))
(test #t (hash-table=? eq? (table '(1 . a)) (table '(1 . a)))) (test #f (hash-table=? eq? (table '(1 . a)) (table '(1 . b))))
(test '((1 . a) (2 . b)) (sorted (hash-table equal? 1 'a 2 'b))) (test '((0 . 0) (1 . 1) (2 . 4)) (sorted (hash-table-unfold (lambda (n) (= n 3)) (lambda (n) (values n (* n n))) (lambda (n) (+ n 1)) 0 equal?))) (test '((1 . 10)) (sorted (hash-table-map (lambda (v) (* 10 v)) equal? (table '(1 . 1)))))

(finish)
