;;; Lists of (kyocho): sorting, folds from the left, MIT's association lists.
(import (kyocho))
(include "harness.scm")

(define numbers (map (lambda (i) (modulo (* i 7919) 10007)) (iota 2000)))
(define (by-car a b) (< (car a) (car b)))
(define pairs '((1 . a) (0 . b) (1 . c) (0 . d) (1 . e)))
(define in-order '((0 . b) (0 . d) (1 . a) (1 . c) (1 . e)))

;; sorting is stable, under each of its names
(for-each (lambda (sort-list) (test in-order (sort-list by-car pairs)) (test '() (sort-list < '())) (test '(5) (sort-list < '(5))) (test '(1 2 3) (sort-list < '(3 1 2))) (test '(3 2 1) (sort-list > '(3 1 2))) (test #t (list-sorted? < (sort-list < numbers))) (test (apply + numbers) (apply + (sort-list < numbers)))
            (test-error (sort-list < '(1 . 2))) (test-error (sort-list < '(1 a))) (test-error (sort-list 5 '(1 2))) (test-error (sort-list < 5)))
          (list list-sort list-stable-sort (lambda (less? l) (sort l less?)) (lambda (less? l) (stable-sort l less?)) (lambda (less? l) (list-sort! less? (list-copy l))) (lambda (less? l) (sort! (list-copy l) less?))))
(test '((3 1 2) (1 2 3)) (let* ((l (list 3 1 2)) (sorted (list-sort < l))) (list l sorted))) (test '((3 1 2) (1 2 3)) (let* ((l (list 3 1 2)) (sorted (sort l <))) (list l sorted)))
(test '(1 2 3) (sort < '(3 1 2))) (test #(1 2 3) (sort (vector 3 1 2) <)) (test #(1 2 3) (sort < (vector 3 1 2))) (test #(1 2 3) (stable-sort #(3 1 2) <)) (test #(1 2 3) (let ((v (vector 3 1 2))) (sort! v <) v)) (test '(1 2 3) (sort! < (list 3 1 2))) (test-error (sort "ba" char<?)) (test-error (sort! '(2 1) <))
;; a comparison that raises, or escapes, does not damage the list
(test '(left (3 1 2)) (let* ((l (list 3 1 2)) (out (call/cc (lambda (k) (list-sort (lambda (a b) (k 'left)) l))))) (list out l)))
(test '(#t #t #t #f #t #f) (list (list-sorted? < '()) (list-sorted? < '(1)) (list-sorted? < '(1 1 2)) (list-sorted? < '(2 1)) (list-sorted? > '(3 2 2)) (list-sorted? < '(1 2 3 2)))) (test-error (list-sorted? < 5)) (test-error (list-sorted? < '(1 . 2)))
(test '(1 2 3 4) (list-merge < '(1 3) '(2 4))) (test '((1 . a) (1 . b)) (list-merge by-car '((1 . a)) '((1 . b)))) (test '(1 2) (list-merge < '() '(1 2))) (test '(1 2) (list-merge < '(1 2) '())) (test '((1 3) (2 4)) (let ((a (list 1 3)) (b (list 2 4))) (list-merge < a b) (list a b))) (test-error (list-merge < 5 '(1)))

;; folds: the seed comes first
(test '(((() 1) 2) 3) (fold-left list '() '(1 2 3))) (test '((0 1 a) 2 b) (fold-left list 0 '(1 2) '(a b))) (test -6 (fold-left - 0 '(1 2 3))) (test 0 (fold-left + 0 '())) (test '(0 1 a) (fold-left list 0 '(1 2) '(a))) (test-error (fold-left 5 0 '(1))) (test-error (fold-left cons 0))
(test -8 (reduce-left - 0 '(1 2 3 4))) (test 0 (reduce-left - 0 '())) (test 5 (reduce-left - 0 '(5))) (test '((1 2) 3) (reduce-left list 0 '(1 2 3))) (test-error (reduce-left 5 0 '(1 2)))

;; association lists without a key; the old list is unchanged
(define table (list (cons 'a 1) (cons 2.5 2) (cons "s" 3) (cons 'a 4)))
(test '((2.5 . 2) ("s" . 3)) (del-assq 'a table)) (test '((a . 1) ("s" . 3) (a . 4)) (del-assv 2.5 table)) (test '((a . 1) (2.5 . 2) (a . 4)) (del-assoc "s" table)) (test 4 (length table)) (test table (del-assv "s" table)) (test '() (del-assq 'a '())) (test-error (del-assq 'a '(5)))

(test '(1 2 . 3) (list* 1 2 3)) (test 1 (list* 1)) (test '(1 2 3) (list* 1 2 '(3))) (test-error (list*))
(test '(a b) (list-head '(a b c) 2)) (test '() (list-head '(a) 0)) (test '(a) (list-head '(a . b) 1)) (test '(1 1 1) (list-head (circular-list 1) 3)) (test #f (let ((l (list 1 2))) (eq? l (list-head l 2)))) (test-error (list-head '(a) 2)) (test-error (list-head '(a) -1)) (test-error (list-head '(a) 'b))
(test '(0 1 4 9) (make-initialized-list 4 (lambda (i) (* i i)))) (test '() (make-initialized-list 0 car)) (test-error (make-initialized-list 2 5)) (test-error (make-initialized-list 'a list)) (test-error (make-initialized-list -1 list))

(finish)
