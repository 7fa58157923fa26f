;;; (kyocho control): prompts, composable continuations, shift and reset, control and prompt.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18) (kyocho control))
(include "harness.scm")

;; from the papers
(test 5 (reset 5))
(test 12 (+ 1 (reset (+ 1 (shift k (k 10))))))
(test 14 (+ 1 (reset (+ 1 (shift k (+ 1 (k (k 10))))))))
(test 5 (+ 1 (reset (* 2 (shift k 4)))))
(test '(a 1 b b c) (cons 'a (reset (cons 'b (shift k (cons 1 (k (k (cons 'c '()))))))) ))
(test '(1 2 3) (reset (let ((x (shift k (cons 1 (k 2)))) ) (list x 3))))
(test 7 (prompt (+ 2 (control k (k 5)))))
(test 5 (prompt (+ 2 (control k 5))))
(test 12 (prompt (+ 5 (prompt (+ 2 (control k1 (+ 1 (control k2 (k2 6)))))))))
(test 13 (prompt (+ 5 (prompt (+ 2 (control k1 (+ 1 (control k2 (k1 6)))))))))
(test 23 (prompt (+ 12 (prompt (+ 5 (prompt (+ 2 (control k1 (control k2 (control k3 (k3 6)))))))))))
;; shift versus control: a list is copied, or reversed
(define (copy-list l) (define (visit l) (if (null? l) '() (visit (shift k (cons (car l) (k (cdr l))))))) (reset (visit l)))
(define (turn-list l) (define (visit l) (if (null? l) '() (visit (control k (cons (car l) (k (cdr l))))))) (prompt (visit l)))
(test '(1 2 3 4 5) (copy-list '(1 2 3 4 5)))
(test '(5 4 3 2 1) (turn-list '(1 2 3 4 5)))
;; shift0 removes one prompt after the other
(test '(b a) (reset (cons 'b (reset (cons 'c (shift0 k1 (shift0 k2 (list 'b 'a))))))) )
(test '(1 2) (cons 1 (reset (reset (shift0 k (shift0 k2 '(2)))))))
(test 3 (reset (+ 1 (reset (control0 k (control0 k2 3))))))
;; with the program's own tags: a prompt with another tag does not count
(define a (make-continuation-prompt-tag 'a)) (define b (make-continuation-prompt-tag 'b))
(test '(12 5 12 5) (list (prompt-at a (+ 2 (control-at a k (k 10)))) (prompt-at a (+ 2 (control-at a k 5))) (reset-at a (+ 2 (shift-at a k (k 10)))) (reset-at a (+ 2 (shift-at a k 5)))))
(test '(1 2 3) (prompt-at a (cons 1 (prompt-at b (cons 2 (control-at a k (k '(3)))))))) (test '(x 1 2) (cons 'x (prompt-at a (prompt-at b (control-at a k (list 1 2)))))) (test '(out 1 2 3) (prompt-at a (cons 1 (prompt-at b (cons 2 (control-at a k (cons 'out (k '(3)))))))))
;; control leaves no prompt around its continuation, shift does; names that end in 0 remove the
;; prompt
(define (turn-at tag l) (define (visit l) (if (null? l) '() (visit (control-at tag k (cons (car l) (k (cdr l))))))) (prompt-at tag (visit l)))
(test '(4 3 2 1) (turn-at b '(1 2 3 4)))
(test '(2 3) (list (prompt-at a (+ 1 (prompt-at a (+ 10 (control0-at a k (control0-at a j 2)))))) (prompt-at a (+ 1 (prompt-at a (+ 10 (shift0-at a k (shift0-at a j 3)))))))) (test '(3 4) (list (prompt-at a (+ 1 (prompt-at a (+ 10 (control-at a k (control-at a j 2)))))) (prompt-at a (+ 1 (prompt-at a (+ 10 (shift-at a k (shift-at a j 3))))))))
(test '(12 112) (list (prompt-at a (+ 1 (prompt-at a (+ 10 (control0-at a k (k 1)))))) (prompt-at a (+ 1 (prompt-at a (+ 10 (shift0-at a k (+ 100 (k 1))))))))) (test '((b 2) (a 1)) (list (prompt-at a (list 'a (prompt-at b (list 'b (shift0-at a k (list 'b 2)))))) (prompt-at a (prompt-at b (list 'b (control0-at a k (list 'a 1)))))))
(test-error (control-at a k 1)) (test-error (control0-at a k 1)) (test-error (prompt-at b (shift0-at a k 1))) (test-error (prompt-at a (control0-at a k (control0-at a j 1)))) (test-error (prompt-at 5 1))
;; values
(test-values (1 2) (reset (values 1 2)))
(test-values (2 1) (call-with-values (lambda () (reset (call-with-values (lambda () (shift k (k 1 2))) (lambda (a b) (values b a))))) values))
(test '() (reset (call-with-values (lambda () (shift k (k))) list)))

;; generators
(define (generator->list run) (reset (run (lambda (x) (shift k (cons x (k #f))))) '()))
(test '(1 2 3 4) (generator->list (lambda (yield) (for-each yield '(1 2)) (vector-for-each yield '#(3 4)))))
(define (same-fringe? a b)
  (define (walk tree) (reset (let visit ((tree tree)) (cond ((null? tree) #f) ((pair? tree) (visit (car tree)) (visit (cdr tree))) (else (shift k (cons tree k))))) 'end))
  (let loop ((a (walk a)) (b (walk b)))
    (if (or (eq? a 'end) (eq? b 'end)) (eq? a b)
        (and (eqv? (car a) (car b)) (loop ((cdr a) #f) ((cdr b) #f))))))
(test #t (same-fringe? '((1 2) (3 (4))) '(1 (2 3) 4))) (test #f (same-fringe? '(1 2 3) '(1 3 2)))
;; nondeterminism
(define (choose . choices) (shift k (let loop ((rest choices)) (if (null? rest) '() (append (k (car rest)) (loop (cdr rest)))))))
(define-syntax all-of (syntax-rules () ((_ body ...) (reset (list (let () body ...))))))
(define (require truth) (if (not truth) (shift k '())))
(test '((1 a) (1 b) (2 a) (2 b)) (all-of (let* ((x (choose 1 2)) (y (choose 'a 'b))) (list x y))))
(test '((3 4 5) (6 8 10)) (all-of (let* ((a (choose 1 2 3 4 5 6)) (b (choose 4 5 6 7 8)) (c (choose 5 6 7 8 9 10))) (require (< a b c)) (require (= (+ (* a a) (* b b)) (* c c))) (list a b c))))
(define (queens n)
  (all-of (let loop ((row 0) (placed '()))
    (if (= row n) placed
        (let ((column (apply choose (let up ((i 0)) (if (= i n) '() (cons i (up (+ i 1))))))))
          (let check ((rest placed) (distance 1))
            (if (pair? rest) (begin (require (not (or (= (car rest) column) (= (abs (- (car rest) column)) distance)))) (check (cdr rest) (+ distance 1)))))
          (loop (+ row 1) (cons column placed)))))))
(test '((2 0 3 1) (1 3 0 2)) (queens 4)) (test 4 (length (queens 6)))
;; effect handlers: state as functions of the state, and deep handlers with their own tags
(define state (make-continuation-prompt-tag 'state))
(define (get) (shift-at state k (lambda (s) ((k s) s))))
(define (put new) (shift-at state k (lambda (s) ((k #f) new))))
(define (with-state s thunk) ((reset-at state (let ((x (thunk))) (lambda (s) (list x s)))) s))
(test '(3 13) (with-state 10 (lambda () (put (+ (get) 1)) (put (+ (get) 2)) (- (get) 10))))
(define output (make-continuation-prompt-tag 'output))
(define (say x) (shift-at output k (cons x (k #f))))
(test '((a b) 2) (let* ((r (with-state 0 (lambda () (reset-at output (say 'a) (put (+ (get) 1)) (say 'b) (put (+ (get) 1)) '()))))) r))
(test '(a b ((done) 2)) (reset-at output (list (let ((r (with-state 0 (lambda () (put 1) (list 'done))))) 'a) 'b (with-state 0 (lambda () (put (+ (get) 1)) (put (+ (get) 1)) '(done))))))
;; a captured continuation that contains a prompt of another tag: the prompt moves with it
(define outer (make-continuation-prompt-tag)) (define inner (make-continuation-prompt-tag))
(test '(outer (inner (x 2)) (inner (x 3)))
  (reset-at outer (list 'inner (reset-at inner (list 'x (shift-at outer k (list 'outer (k 2) (k 3))))))))
(test '((caught 1) (caught 2))
  (reset-at outer
    (call-with-continuation-prompt (lambda () (abort-to-prompt inner (shift-at outer k (list (k 1) (k 2))))) inner (lambda (x) (list 'caught x)))))
(test '(((a . 5) . b) ((a . 6) . b))
  (reset-at outer (cons (reset-at inner (cons 'a (shift-at outer k (list (k 5) (k 6))))) 'b)))
(test '(((5 . a) . b) ((6 . a) . b))
  (reset-at outer (cons (reset-at inner (cons (let ((x (shift-at outer k (list (k 5) (k 6))))) (shift-at inner j (j x))) 'a)) 'b)))

;; prompts and aborts
(test '(caught 1 2) (call-with-continuation-prompt (lambda () (+ 1 (abort-to-prompt (default-continuation-prompt-tag) 1 2))) (default-continuation-prompt-tag) (lambda args (cons 'caught args))))
(test 'inside (call-with-continuation-prompt (lambda () (abort-to-prompt (default-continuation-prompt-tag) (lambda () 'inside)))))
(test 3 (call-with-continuation-prompt (lambda () (abort-current-continuation (default-continuation-prompt-tag) (lambda () (+ 1 (abort-to-prompt (default-continuation-prompt-tag) (lambda () 3))))))))
(test '(1 11 111) (call-with-continuation-prompt (lambda () (let ((x (call-with-composable-continuation (lambda (k) (list 1 k))))) (if (pair? x) (let ((k (cadr x))) (list 1 (k 11) (k 111))) x)))))
(test 15 (+ 1 (call-with-continuation-prompt (lambda () (+ 2 (call-with-composable-continuation (lambda (k) (+ 3 (k 7)))))))))
(test #f (continuation-prompt-available?)) (test #t (reset (continuation-prompt-available?))) (test #f (reset (continuation-prompt-available? inner))) (test #t (reset-at inner (reset (continuation-prompt-available? inner))))
(test #t (continuation-prompt-tag? inner)) (test #f (continuation-prompt-tag? 'inner))
(test-error (shift k 1)) (test-error (reset (shift-at inner k 1))) (test-error (abort-to-prompt inner 1)) (test-error (abort-to-prompt 'inner 1)) (test-error (call-with-composable-continuation list)) (test-error (reset (call-with-composable-continuation 5))) (test-error (call-with-continuation-prompt 5)) (test-error (call-with-continuation-prompt list 5)) (test-error (call-with-continuation-prompt list inner 5)) (test-error (continuation-prompt-available? 5)) (test-error (reset-at 5 1))
;; a continuation that outlives its prompt can be called anywhere
(define saved #f)
(test 11 (reset (+ 1 (shift k (set! saved k) (k 10))))) (test 21 (saved 20)) (test '(31 . 32) (cons (saved 30) (reset (+ 1 (saved 30)))))
;; full continuations inside prompts
(test '(1 2 3) (call/cc (lambda (exit) (reset (list 1 (shift k (exit (k 2))) 3))) ))
(test '(again 1) (let ((k #f) (n 0)) (let ((r (reset (list (call/cc (lambda (c) (set! k c) 'first)) n)))) (set! n (+ n 1)) (if (= n 1) (k 'again) r))))
(test 'guarded (guard (e (#t e)) (reset (+ 1 (raise 'guarded))))) (test 5 (reset (+ 1 (guard (e (#t 4)) (raise 'x))))) (test '(in out) (reset (list (guard (e (#t (shift k (k 'in)))) (raise 'x)) 'out)))

;; dynamic-wind
(define log '()) (define (note! x) (set! log (cons x log))) (define (taken thunk) (set! log '()) (thunk) (reverse log))
(define (wound name thunk) (dynamic-wind (lambda () (note! (list 'in name))) thunk (lambda () (note! (list 'out name)))))
(test '((in a) 1 (out a) (in a) 2 (out a)) (taken (lambda () (reset (wound 'a (lambda () (note! 1) (shift k (k #f)) (note! 2)))))))
(test '((in a) (out a) (in a) x (out a) (in a) x (out a)) (taken (lambda () (reset (wound 'a (lambda () (shift k (k 1) (k 2)) (note! 'x)))))))
(test '((in a) (in b) (out b) (out a) (in c) (in a) (in b) x (out b) (out a) (out c)) (taken (lambda () (let ((k (reset (wound 'a (lambda () (wound 'b (lambda () (shift k k) (note! 'x)))))))) (wound 'c (lambda () (k #f)))))))
(test '((in a) (in c) x (out c) (out a)) (taken (lambda () (wound 'a (lambda () (reset (wound 'c (lambda () (call-with-composable-continuation (lambda (k) #f)) (note! 'x)))))))))
(test '((in a) (in b) (out b) caught (out a)) (taken (lambda () (wound 'a (lambda () (call-with-continuation-prompt (lambda () (wound 'b (lambda () (abort-to-prompt inner)))) inner (lambda () (note! 'caught))))))))
;; an escape from a continuation that was called elsewhere runs the after procedures of the new
;; place
(test '((in a) (out a) (in c) (in a) (out a) (out c) end) (taken (lambda () (let ((k (reset (wound 'a (lambda () ((shift k k) 'gone)))))) (call/cc (lambda (exit) (wound 'c (lambda () (k exit))))) (note! 'end)))))

;; parameterize: bindings inside the continuation come along, bindings outside are those of the
;; caller
(define p (make-parameter 'p0)) (define q (make-parameter 'q0))
(define seen (parameterize ((p 'p1)) (reset (parameterize ((q 'q1)) (shift k k) (list (p) (q))))))
(test '(p0 q0) (list (p) (q)))
(define kk (parameterize ((p 'p1)) (reset (let* ((inside (parameterize ((q 'q1)) (shift k k) (list (p) (q))))) (list inside (p) (q))))))
(test '((p2 q1) p2 q2) (parameterize ((p 'p2) (q 'q2)) (kk #f))) (test '((p0 q1) p0 q0) (kk #f)) (test '(p0 q0) (list (p) (q)))
(test '(q1 q0) (let ((k (reset (parameterize ((q 'q1)) (shift k k) (q))))) (let* ((inside (k #f))) (list inside (q)))))
;; before and after procedures see the parameters of the present place
(define where '())
(define kw (reset (parameterize ((q 'q1)) (dynamic-wind (lambda () (set! where (cons (list (p) (q)) where))) (lambda () (shift k k)) (lambda () (set! where (cons (list (p) (q)) where)))))))
(set! where '())
(test '((p3 q1) (p3 q1)) (begin (parameterize ((p 'p3)) (kw 1)) where))
;; handlers
(test '(handled 2) (let ((k (reset (with-exception-handler (lambda (e) (list 'handled e)) (lambda () (raise-continuable (shift k k))))))) (with-exception-handler (lambda (e) 'wrong) (lambda () (k 2)))))
(test '(outer 3) (let ((k (with-exception-handler (lambda (e) 'wrong) (lambda () (reset (raise-continuable (shift k k))))))) (with-exception-handler (lambda (e) (list 'outer e)) (lambda () (k 3)))))
(test '(outer 1 outer 2) (let ((k (reset (let ((first (with-exception-handler (lambda (e) (shift k k)) (lambda () (raise-continuable 0))))) (append first (raise-continuable 2)))))) (with-exception-handler (lambda (e) (list 'outer e)) (lambda () (k '(outer 1))))))
(define ask (make-continuation-prompt-tag))
(test '(1 2 3) (reset (with-exception-handler (lambda (e) (shift k (cons e (k e)))) (lambda () (raise-continuable 1) (raise-continuable 2) (list (raise-continuable 3) )  '()))))

;; many prompts, and deep ones
(test 2000 (let loop ((i 0)) (if (= i 2000) i (loop (reset (+ 1 (shift k (k i))))))))
(test 5050 (reset (let loop ((i 0)) (if (= i 100) 0 (+ (shift k (+ i 1 (k 0))) (loop (+ i 1)))))))
(test 1000 (let deep ((n 1000)) (if (= n 0) 0 (reset (+ 1 (deep (- n 1)))))))
(test 2000 (reset (let deep ((n 1000)) (if (= n 0) (shift k (+ (k 0) (k 0))) (+ 1 (deep (- n 1)))))))
(define tick #f)
(test 2000 (let loop ((i 0) (k (reset (let again ((n 0)) (again (+ n (shift k k))))))) (if (= i 2000) i (loop (+ i 1) (k 1)))))

;; threads
(test 'no-prompt (reset (thread-join! (thread-start! (make-thread (lambda () (guard (e ((error-object? e) 'no-prompt)) (shift k 1))))))))
(test "abort-to-prompt: the prompt with this tag is another thread's" (reset (thread-join! (thread-start! (make-thread (lambda () (guard (e ((error-object? e) (error-object-message e))) (abort-to-prompt (default-continuation-prompt-tag) 1))))))))
(test #f (reset (thread-join! (thread-start! (make-thread (lambda () (continuation-prompt-available?)))))))
(test 42 (let ((k (reset (+ 2 (shift k k))))) (thread-join! (thread-start! (make-thread (lambda () (k 40)))))))
(test 12 (thread-join! (thread-start! (make-thread (lambda () (reset (+ 2 (shift k (k 10)))))))))

(finish)
