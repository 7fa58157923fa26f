;;; Vectors and bytevectors of (kyocho); (srfi 133) has other argument orders for some of these
;;; names.
(import (kyocho))
(include "harness.scm")

(define (raised-by thunk) (guard (e ((error-object? e) 'error)) (thunk)))

(test '(#t #f) (map vector-empty? '(#() #(1)))) (test-error (vector-empty? '()))
(test #(0 1 4 9) (vector-tabulate (lambda (i) (* i i)) 4)) (test #(0 1 4 9) (make-initialized-vector 4 (lambda (i) (* i i)))) (test #() (vector-tabulate list 0)) (test-error (vector-tabulate list -1)) (test-error (vector-tabulate 5 1)) (test-error (make-initialized-vector 1 5)) (test-error (make-initialized-vector 'a list))
(test #(b c) (subvector #(a b c d) 1 3)) (test #() (subvector #(a) 1 1)) (test #f (let ((v (vector 1))) (eq? v (subvector v 0 1)))) (test-error (subvector #(a) 0 2)) (test-error (subvector #(a b) 2 1)) (test-error (subvector '(a) 0 1)) (test-error (subvector #(a) 0))
(test '(#(a b) #(c)) (list (vector-head #(a b c) 2) (vector-tail #(a b c) 2))) (test '(#() #()) (list (vector-head #(a) 0) (vector-tail #(a) 1))) (test-error (vector-head #(a) 2)) (test-error (vector-tail #(a) 2)) (test-error (vector-tail #(a) -1)) (test-error (vector-head 5 0)) (test-error (vector-tail "a" 0))
(test '(5 (a b)) (let* ((old (vector 'a 'b)) (new (vector-grow old 5))) (vector-set! new 0 'a) (list (vector-length new) (vector->list (vector-head new 2))))) (test '(x a) (let* ((old (vector 'a)) (new (vector-grow old 1))) (vector-set! new 0 'x) (list (vector-ref new 0) (vector-ref old 0)))) (test-error (vector-grow #(a b) 1)) (test-error (vector-grow '(a) 2)) (test-error (vector-grow #(a) 1.5))

;; in place; literals are refused
(test #(2 3) (let ((v (vector 1 2))) (vector-map! 1+ v) v)) (test-error (vector-map! 1+ #(1))) (test-error (vector-map! 1+ '(1))) (test-error (vector-map! 5 (vector 1)))
(test #(c b a) (let ((v (vector 'a 'b 'c))) (vector-swap! v 0 2) v)) (test #(a) (let ((v (vector 'a))) (vector-swap! v 0 0) v)) (test-error (vector-swap! (vector 1) 0 1)) (test-error (vector-swap! (vector 1) -1 0)) (test-error (vector-swap! #(1 2) 0 1))
(test '(#(3 2 1) #(1 3 2) #(2 1 3) #(1 2 3)) (map (lambda (range) (let ((v (vector 1 2 3))) (apply vector-reverse! v range) v)) '(() (1) (0 2) (2 2)))) (test-error (vector-reverse! (vector 1) 2)) (test-error (vector-reverse! (vector 1 2) 2 1)) (test-error (vector-reverse! #(1 2)))
(test '(#u8(7 7 7) #u8(1 7 7) #u8(1 7 3)) (map (lambda (range) (let ((b (bytevector 1 2 3))) (apply bytevector-fill! b 7 range) b)) '(() (1) (1 2)))) (test-error (bytevector-fill! (bytevector 1) 256)) (test-error (bytevector-fill! (bytevector 1) -1)) (test-error (bytevector-fill! (bytevector 1) 1 2)) (test-error (bytevector-fill! #u8(1) 1)) (test-error (bytevector-fill! (vector 1) 1)) (test-error (bytevector-fill! (bytevector 1 2) 1 2 1))

;; folds and searches
(test '(((0 a) b) c) (vector-fold list 0 #(a b c))) (test '(((0 c) b) a) (vector-fold-right list 0 #(a b c))) (test '(0 0) (list (vector-fold + 0 #()) (vector-fold-right + 0 #()))) (test-error (vector-fold + 0 '(1))) (test-error (vector-fold-right + 0 "1")) (test-error (vector-fold 5 0 #(1))) (test-error (vector-fold-right 5 0 #(1)))
(test '(2 #f #f) (list (vector-index even? #(1 3 4 6)) (vector-index even? #(1)) (vector-index even? #()))) (test '(2 0) (list (vector-count even? #(1 2 4)) (vector-count even? #()))) (test '(4 #f #f) (list (vector-any (lambda (x) (and (even? x) x)) #(1 4 6)) (vector-any even? #(1)) (vector-any even? #()))) (test '(6 #f #t) (list (vector-every (lambda (x) (and (even? x) x)) #(4 6)) (vector-every even? #(4 1 6)) (vector-every even? #())))
(for-each (lambda (f) (test 'error (raised-by (lambda () (f even? '(1))))) (test 'error (raised-by (lambda () (f 5 #(1))))) (test 'error (raised-by (lambda () (f even? #(a)))))) (list vector-index vector-count vector-any vector-every))
(test '(0 2 3 #f #f) (map (lambda (key) (vector-binary-search #(1 3 5 9) key -)) '(1 5 9 4 10))) (test #f (vector-binary-search #() 1 -)) (test-error (vector-binary-search '(1) 1 -)) (test-error (vector-binary-search #(1) 1 5)) (test '() (let ((v (vector-tabulate (lambda (i) (* 2 i)) 101))) (filter (lambda (i) (not (equal? (vector-binary-search v i -) (and (even? i) (quotient i 2))))) (iota 202))))

;; sorting: the procedure first, or last; stable
(define (by-car a b) (< (car a) (car b))) (define in-order '((0 . b) (0 . d) (1 . a) (1 . c)))
(for-each (lambda (sort-vector) (test in-order (vector->list (sort-vector by-car (vector '(1 . a) '(0 . b) '(1 . c) '(0 . d))))) (test #() (sort-vector < (vector))) (test #(1 2 3) (sort-vector (vector 3 1 2) <)) (test-error (sort-vector < '(1 2))) (test-error (sort-vector < (vector 'a 1))) (test-error (sort-vector 5 (vector 1 2))))
          (list vector-sort vector-stable-sort (lambda (a b) (vector-sort! a b) (if (vector? a) a b)) (lambda (a b) (vector-stable-sort! a b) (if (vector? a) a b))))
(test '(#(2 1) #(1 2)) (let* ((v (vector 2 1)) (sorted (vector-sort < v))) (list v sorted))) (test-error (vector-sort! < #(2 1))) (test '(#t #t #f) (map (lambda (v) (vector-sorted? < v)) '(#() #(1 1 2) #(2 1)))) (test-error (vector-sorted? < '(1)))

(finish)
