;;; SRFI 1: lists.
(import (scheme base) (scheme write) (scheme process-context) (except (srfi 1) cons*) (prefix (only (srfi 1) cons*) l:))
(include "harness.scm")

;; constructors
(test '(a b c . d) (l:cons* 'a 'b 'c 'd)) (test 'a (l:cons* 'a))
(test '(b . a) (xcons 'a 'b)) (test '(0 1 4 9) (list-tabulate 4 (lambda (x) (* x x))))
(test '(0 1 2 3 4) (iota 5)) (test '(1 3 5) (iota 3 1 2)) (test '(0.0 -0.5) (list (car (iota 2 0 -0.5)) (cadr (iota 2 0 -0.5))))
(test '(z q z) (let ((c (circular-list 'z 'q))) (list (car c) (cadr c) (caddr c))))
;; predicates
(test #t (proper-list? '(1 2))) (test #f (proper-list? '(1 . 2))) (test #t (circular-list? (circular-list 1))) (test #f (circular-list? '(1))) (test #t (dotted-list? '(1 . 2))) (test #t (dotted-list? 5)) (test #f (dotted-list? '(1)))
(test #t (not-pair? '())) (test #t (null-list? '()))
(test #t (list= eq?)) (test #t (list= eq? '(a b) '(a b))) (test #f (list= eq? '(a) '(a b))) (test #t (list= = '(1) '(1.0) '(1)))
;; selectors
(test '(1 2 3 4 5 6 7 8 9 10) (let ((l '(1 2 3 4 5 6 7 8 9 10))) (map (lambda (f) (f l)) (list first second third fourth fifth sixth seventh eighth ninth tenth))))
(test-values (1 2) (car+cdr '(1 . 2)))
(test '(a b) (take '(a b c d e) 2)) (test '(c d e) (drop '(a b c d e) 2)) (test '(1 2) (take '(1 2 3 . d) 2)) (test '(3 . d) (drop '(1 2 3 . d) 2)) (test '(d e) (take-right '(a b c d e) 2)) (test '(2 3 . d) (take-right '(1 2 3 . d) 2)) (test '(a b c) (drop-right '(a b c d e) 2)) (test '(1) (drop-right '(1 2 3 . d) 2))
(test-values ('(a b c) '(d e)) (split-at '(a b c d e) 3)) (test 'c (last '(a b c))) (test '(c) (last-pair '(a b c))) (test '(c . d) (last-pair '(b c . d)))
(test #f (length+ (circular-list 1))) (test 2 (length+ '(a b)))
;; joining
(test '(1 2 3) (concatenate '((1) (2) (3)))) (test '(c b a d e) (append-reverse '(a b c) '(d e))) (test '((one 1 odd) (two 2 even)) (zip '(one two three) '(1 2) '(odd even odd)))
(test-values ('(1 2) '(a b)) (unzip2 '((1 a) (2 b)))) (test-values ('(1) '(2) '(3) '(4)) (unzip4 '((1 2 3 4)))) (test-values ('(1) '(2) '(3) '(4) '(5)) (unzip5 '((1 2 3 4 5))))
(test 3 (count even? '(3 1 4 1 5 9 2 5 6))) (test 3 (count < '(1 2 4 8) '(2 4 6 8 10 12 14 16)))
;; folds
(test 6 (fold + 0 '(1 2 3))) (test '(3 2 1) (fold cons '() '(1 2 3))) (test '(1 2 3) (fold-right cons '() '(1 2 3))) (test '(c 3 b 2 a 1) (fold l:cons* '() '(a b c) '(1 2 3)))
;; Guile pairs lists of unequal length from their ends
(cond-expand (guile) (else (test '(a 1 b 2 c 3) (fold-right l:cons* '() '(a b c) '(1 2 3 4)))))
(test '(c b a) (pair-fold (lambda (p tail) (set-cdr! p tail) p) '() (list 'a 'b 'c))) (test '((a b c) (b c) (c)) (pair-fold-right cons '() '(a b c)))
(test 9 (reduce max 0 '(3 9 2))) (test 0 (reduce + 0 '())) (test '(1 2 3 4) (reduce-right append '() '((1) (2 3) (4))))
(test '(1 4 9) (unfold (lambda (x) (> x 3)) (lambda (x) (* x x)) (lambda (x) (+ x 1)) 1)) (test '(1 4 9) (unfold-right zero? (lambda (x) (* x x)) (lambda (x) (- x 1)) 3))
(test '(a c e) (filter-map (lambda (x) (and (symbol? x) x)) '(a 1 c 2 e))) (test '(1 -1 3 -3) (append-map (lambda (x) (list x (- x))) '(1 3))) (test '(2 3) (map-in-order (lambda (x) (+ x 1)) '(1 2)))
(test '((3) (2 3) (1 2 3)) (let ((r '())) (pair-for-each (lambda (p) (set! r (cons p r))) '(1 2 3)) r))
;; filtering
(test '(0 8 8 -4) (filter even? '(0 7 8 8 43 -4))) (test '(7 43) (remove even? '(0 7 8 8 43 -4))) (test-values ('(one four five) '(2 3 6)) (partition symbol? '(one 2 3 four five 6)))
;; searching
(test 4 (find even? '(3 1 4 1 5 9))) (test #f (find even? '(1 3))) (test '(4 1 5 9) (find-tail even? '(3 1 4 1 5 9))) (test '(2 18) (take-while even? '(2 18 3 10 22 9))) (test '(3 10 22 9) (drop-while even? '(2 18 3 10 22 9))) (test-values ('(2 18) '(3 10 22 9)) (span even? '(2 18 3 10 22 9))) (test-values ('(3 1) '(4 1 5 9)) (break even? '(3 1 4 1 5 9)))
(test #t (any integer? '(a 3 b 2.7))) (test #f (any integer? '(a 3.1 b 2.7))) (test #t (any < '(3 1 4 1 5) '(2 7 1 8 2))) (test #t (every integer? '(1 2))) (test #f (every integer? '(1 a))) (test 4 (every (lambda (x) (* x x)) '(1 2))) (test #t (every odd? '()))
(test 2 (list-index even? '(3 1 4 1 5 9))) (test 1 (list-index < '(3 1 4 1 5 9 2 5 6) '(2 7 1 8 2))) (test #f (list-index = '(3 1 4 1 5 9 2 5 6) '(2 7 1 8 2)))
(test '(1 3) (delete 2 '(1 2 3 2))) (test '(1 2) (delete 2 '(1 2 3 4) <)) (test '(a b c z) (delete-duplicates '(a b a c a b c z))) (test '((a . 3) (b . 7) (c . 1)) (delete-duplicates '((a . 3) (b . 7) (c . 1) (a . 9) (b . 11)) (lambda (x y) (eq? (car x) (car y)))))
;; association lists
(test '((a . 1) (b . 2)) (alist-cons 'a 1 '((b . 2)))) (test '((b . 2)) (alist-delete 'a '((a . 1) (b . 2) (a . 3)))) (test #t (equal? '((a . 1)) (alist-copy '((a . 1)))))
;; sets
(test #t (lset<= eq? '(a) '(a b a) '(a b c c))) (test #t (lset<= eq?)) (test #t (lset= eq? '(b e a) '(a e b) '(e e b a))) (test 4 (length (lset-adjoin eq? '(b a) 'c 'd 'a 'c))) (test 6 (length (lset-union eq? '(a b c d e) '(a e i) '()))) (test '(a e) (lset-intersection eq? '(a b c d e) '(a e i o u))) (test '(b c d) (lset-difference eq? '(a b c d e) '(a e i o u))) (test 6 (length (lset-xor eq? '(a b c d e) '(a e i o u))))
(test-values ('(b) '(a)) (lset-diff+intersection eq? '(a b) '(a)))

;; the variants that may modify their argument return the same as the pure ones
(test '(1 2 3) (append! (list 1) (list 2 3))) (test '(3 2 1) (reverse! (list 1 2 3))) (test '(2 1 3) (append-reverse! (list 1 2) '(3))) (test '(1 2) (concatenate! (list (list 1) (list 2)))) (test '(1 1 2 2) (append-map! (lambda (x) (list x x)) (list 1 2))) (test '(2 3) (map! (lambda (x) (+ x 1)) (list 1 2))) (test '(2) (filter! even? (list 1 2 3))) (test '(1 3) (remove! even? (list 1 2 3))) (test '((2) (1 3)) (let-values (((a b) (partition! even? (list 1 2 3)))) (list a b))) (test '(1) (delete! 2 (list 1 2))) (test '(1 2) (delete-duplicates! (list 1 2 1))) (test '((b . 2)) (alist-delete! 'a (list (cons 'a 1) (cons 'b 2))))
(test '(1 2) (take! (list 1 2 3) 2)) (test '(1) (drop-right! (list 1 2 3) 2)) (test '((1) (2 3)) (let-values (((a b) (split-at! (list 1 2 3) 1))) (list a b))) (test '(2 4) (take-while! even? (list 2 4 5))) (test '((2) (3 4)) (let-values (((a b) (span! even? (list 2 3 4)))) (list a b))) (test '((1) (2 3)) (let-values (((a b) (break! even? (list 1 2 3)))) (list a b)))
(test '(1) (lset-difference! eqv? (list 1 2) '(2))) (test '(2) (lset-intersection! eqv? (list 1 2) '(2))) (test '(3 1 2) (lset-union! eqv? (list 1 2) '(2 3))) (test 2 (length (lset-xor! eqv? (list 1 2) (list 2 3)))) (test '((1) (2)) (let-values (((a b) (lset-diff+intersection! eqv? (list 1 2) '(2)))) (list a b))) (test '(1 2) (unzip1 '((1 a) (2 b)))) (test '((1) (a) (x)) (let-values (((a b c) (unzip3 '((1 a x))))) (list a b c)))

;; pairs of several lists
(test '((c) (3 z) (b c) (2 3 z) (a b c) (1 2 3 z)) (pair-fold (lambda (a b acc) (cons a (cons b acc))) '() '(a b c) '(1 2 3 z))) (test '((a b c) (1 2 3) (b c) (2 3) (c) (3)) (pair-fold-right (lambda (a b acc) (cons a (cons b acc))) '() '(a b c) '(1 2 3)))
(test '((a b c) (1 2 3 z) (b c) (2 3 z) (c) (3 z)) (pair-fold-right (lambda (a b acc) (cons a (cons b acc))) '() '(a b c) '(1 2 3 z))) (test '() (pair-fold-right list '() '() '(1 2)))
(test '((b c) (a b c)) (cdr (pair-fold cons '() '(a b c)))) (test '((a b c) (b c) (c)) (pair-fold-right cons '() '(a b c)))
(test '(c b a) (pair-fold (lambda (pair tail) (set-cdr! pair tail) pair) '() (list 'a 'b 'c)))
(test '(((c) (3)) ((b c) (2 3)) ((a b c) (1 2 3))) (let ((seen '())) (pair-for-each (lambda (a b) (set! seen (cons (list a b) seen))) '(a b c) '(1 2 3)) seen)) (test '((c) (b c) (a b c)) (let ((seen '())) (pair-for-each (lambda (p) (set! seen (cons p seen))) '(a b c)) seen))
(test '(1 2 3) (let ((n 0)) (pair-for-each (lambda (a b) (set! n (+ n 1)) (set-cdr! a '()) (set-cdr! b '())) (list 1 2 3) (list 4 5 6 7)) (list 1 2 n)))
(test '(6 (2 1) (1 2)) (list (pair-fold (lambda (a b n) (+ n (car a))) 0 '(1 2 3) (circular-list 1)) (pair-fold (lambda (a b n) (cons (car a) n)) '() '(1 2) (circular-list 1)) (pair-fold-right (lambda (a b n) (cons (car a) n)) '() '(1 2) (circular-list 1))))
;; at least one list; walking backwards needs one that ends
(define (raises? thunk) (guard (e (#t (error-object? e))) (thunk) #f))
(test '(#t #t #t #t #t)
      (list (raises? (lambda () (pair-fold list 0))) (raises? (lambda () (pair-fold-right list 0)))
            (raises? (lambda () (pair-for-each list)))
            (raises? (lambda () (pair-fold-right list 0 (circular-list 1))))
            (raises? (lambda () (pair-fold-right list 0 (circular-list 1) (circular-list 1 2))))))

(finish)
