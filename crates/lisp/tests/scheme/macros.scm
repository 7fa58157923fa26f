;;; R7RS §4.3: macros and hygiene.
(import (scheme base) (scheme write) (scheme process-context))
(include "harness.scm")

;; 4.3.1
(test 'now (let-syntax ((given-that (syntax-rules () ((_ test stmt1 stmt2 ...) (if test (begin stmt1 stmt2 ...))))))
  (let ((if #t)) (given-that if (set! if 'now)) if)))
(test 'outer (let ((x 'outer)) (let-syntax ((m (syntax-rules () ((m) x)))) (let ((x 'inner)) (m)))))
(test 7
  (letrec-syntax
      ((my-or (syntax-rules ()
                ((my-or) #f)
                ((my-or e) e)
                ((my-or e1 e2 ...) (let ((temp e1)) (if temp temp (my-or e2 ...)))))))
    (let ((x #f) (y 7) (temp 8) (let odd?) (if even?))
      (my-or x (let temp) (if y) y))))
(define-syntax be-like-begin
  (syntax-rules ()
    ((be-like-begin name)
     (define-syntax name (syntax-rules () ((name expr (... ...)) (begin expr (... ...))))))))
(be-like-begin sequence)
(test 4 (sequence 1 2 3 4))
(test 'ok (let ((=> #f)) (cond (#t => 'ok))))

;; temporaries and the user's names
(define-syntax my-or2
  (syntax-rules () ((_) #f) ((_ e) e) ((_ e r ...) (let ((t e)) (if t t (my-or2 r ...))))))
(test 5 (let ((t 5)) (my-or2 #f t)))
(test 'no (let ((if list)) (my-or2 #f 'no)))
(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
(test '(2 1) (let ((tmp 1) (other 2)) (swap! tmp other) (list tmp other)))
(define-syntax while
  (syntax-rules () ((_ condition body ...) (let loop () (when condition body ... (loop))))))
(test 10 (let ((i 0) (loop 1)) (while (< i 10) (set! i (+ i loop))) i))
(define-syntax for
  (syntax-rules (in from to)
    ((_ x in list body ...) (for-each (lambda (x) body ...) list))
    ((_ x from a to b body ...) (do ((x a (+ x 1))) ((> x b)) body ...))))
(test 6 (let ((sum 0)) (for x in '(1 2 3) (set! sum (+ sum x))) sum))
(test 10 (let ((sum 0)) (for x from 1 to 4 (set! sum (+ sum x))) sum))
(define-syntax my-if
  (syntax-rules () ((_ c t e) (cond (c t) (else e)))))
(test 2 (let ((else #f)) (my-if #f 1 2)))
(test 'unbound-else (let ((else #f)) (cond (#f 1) (else 2) (#t 'unbound-else))))

;; literals
(define-syntax arrow (syntax-rules (=>) ((_ a => b) 'arrow) ((_ a b c) 'other)))
(test 'arrow (arrow 1 => 2))
(test 'other (let ((=> 0)) (arrow 1 => 2)))
(test 'other (arrow 1 -> 2))
(define-syntax lit (syntax-rules (x) ((_ x) 'literal) ((_ y) 'pattern)))
(test 'literal (lit x))
(test 'pattern (let ((x 1)) (lit x)))
(test 'pattern (lit z))

;; ellipses
(define-syntax my-let
  (syntax-rules ()
    ((_ ((name value) ...) body1 body2 ...) ((lambda (name ...) body1 body2 ...) value ...))
    ((_ tag ((name value) ...) body1 body2 ...)
     ((letrec ((tag (lambda (name ...) body1 body2 ...))) tag) value ...))))
(test 3 (my-let ((a 1) (b 2)) (+ a b)))
(test 120 (my-let loop ((n 5) (acc 1)) (if (= n 0) acc (loop (- n 1) (* acc n)))))
(define-syntax my-let*
  (syntax-rules ()
    ((_ () body ...) (let () body ...))
    ((_ ((x v) rest ...) body ...) (let ((x v)) (my-let* (rest ...) body ...)))))
(test 3 (my-let* ((a 1) (b (+ a 1))) (+ a b)))
(define-syntax nested (syntax-rules () ((_ (a b ...) ...) '((b ... a) ...))))
(test '((2 3 1) (4) (6 5)) (nested (1 2 3) (4) (5 6)))
(define-syntax flat (syntax-rules () ((_ (a ...) ...) '(a ... ...))))
(test '(1 2 3) (flat (1 2) () (3)))
(define-syntax tail (syntax-rules () ((_ a ... b c) '(c b (a ...)))))
(test '(2 1 ()) (tail 1 2))
(test '(4 3 (1 2)) (tail 1 2 3 4))
(define-syntax dotted (syntax-rules () ((_ a ... . b) '((a ...) b))))
(test '((1 2) 3) (dotted 1 2 . 3))
(test '((1 2) ()) (dotted 1 2))
(define-syntax middle (syntax-rules () ((_ (a b ... c) d) '(a c (b ...) d))))
(test '(1 4 (2 3) 5) (middle (1 2 3 4) 5))
(define-syntax vec (syntax-rules () ((_ #(a b ...) ...) '#(a ... (b ...) ...))))
(test '#(1 4 (2 3) ()) (vec #(1 2 3) #(4)))
(define-syntax pairs (syntax-rules () ((_ x y ...) '((x y) ...))))
(test '((1 2) (1 3)) (pairs 1 2 3))
(define-syntax escape (syntax-rules () ((_ a) '(a (... ...)))))
(test '(1 ...) (escape 1))
(define-syntax own-ellipsis (syntax-rules ::: () ((_ a :::) '(a ::: ...))))
(test '(1 2 ...) (own-ellipsis 1 2))
(define-syntax under (syntax-rules () ((_ _ a _) 'a)))
(test 2 (under 1 2 3))
(define-syntax strings (syntax-rules () ((_ "one" a) '(one a)) ((_ 2 a) '(two a)) ((_ #\c a) '(c a)) ((_ x a) '(any a))))
(test '((one 1) (two 1) (c 1) (any 1)) (list (strings "one" 1) (strings 2 1) (strings #\c 1) (strings "two" 1)))
(define-syntax empty (syntax-rules () ((_ ()) 'empty) ((_ (a . b)) 'pair) ((_ a) 'atom)))
(test '(empty pair atom) (list (empty ()) (empty (1)) (empty 1)))

;; macros that define
(define-syntax define-getter
  (syntax-rules () ((_ name value) (begin (define hidden value) (define (name) hidden)))))
(define hidden 'mine)
(define-getter get-one 1)
(define-getter get-two 2)
(test '(1 2 mine) (list (get-one) (get-two) hidden))
(test '(1 outer) (let ((hidden 'outer)) (define-getter get 1) (list (get) hidden)))
(define-syntax define-both (syntax-rules () ((_ a b v) (define-values (a b) v))))
(define-both q r (floor/ 17 5))
(test '(3 2) (list q r))
(define-syntax make-macro
  (syntax-rules () ((_ name x) (define-syntax name (syntax-rules () ((_ y) (list x y)))))))
(make-macro with-five 5)
(test '(5 6) (with-five 6))
(test '(8 6) (let ((x 8)) (make-macro with-x x) (let ((x 9)) (with-x 6))))
(define-syntax my-define (syntax-rules () ((_ (name . args) . body) (define name (lambda args . body)))))
(my-define (add . all) (apply + all))
(test 6 (add 1 2 3))

;; recursion: a macro that counts, and one in continuation-passing style
(define-syntax reverse-list
  (syntax-rules () ((_ () acc) 'acc) ((_ (x . rest) (acc ...)) (reverse-list rest (x acc ...)))))
(test '(3 2 1) (reverse-list (1 2 3) ()))
(define-syntax is-symbol?
  (syntax-rules ()
    ((_ (x . y) yes no) no)
    ((_ #(x ...) yes no) no)
    ((_ x yes no)
     (let-syntax ((t (syntax-rules () ((_ x y n) y) ((_ z y n) n)))) (t foo yes no)))))
(test '(yes no no no) (list (is-symbol? a 'yes 'no) (is-symbol? (a) 'yes 'no) (is-symbol? #(a) 'yes 'no) (is-symbol? 5 'yes 'no)))

;; scope
(test 1 (let-syntax ((foo (syntax-rules () ((_) 1)))) (define (bar) (foo)) (bar)))
(test 'new (let ((x 'old)) (define-syntax m (syntax-rules () ((_) x))) (set! x 'new) (m)))
(test '(1 2) (let-syntax ((a (syntax-rules () ((_) 1)))) (let-syntax ((b (syntax-rules () ((_) (list (a) 2))))) (b))))
(test 'inner
  (letrec-syntax ((m (syntax-rules () ((_) (n)))) (n (syntax-rules () ((_) 'inner)))) (m)))
(test 2 (let ((x 1)) (let-syntax ((set-x! (syntax-rules () ((_ v) (set! x v))))) (let ((x 5)) (set-x! 2)) x)))

;; the expander's tests cover syntax-error; this only tests a use that does not reach it
(define-syntax checked
  (syntax-rules () ((_ (x) body) (let ((x 1)) body)) ((_ other body) (syntax-error "no" other))))
(test 1 (checked (y) y))

(finish)
