;;; R7RS §6.11: exceptions, §6.12: environments and evaluation.
(import (scheme base) (scheme write) (scheme process-context) (scheme eval) (scheme read) (scheme file))
(include "harness.scm")

(test 'k (call/cc (lambda (k) (with-exception-handler (lambda (e) (k 'k)) (lambda () (+ 1 (raise 'an-error)))))))
(test '(condition an-error)
  (call/cc (lambda (k) (with-exception-handler (lambda (e) (k (list 'condition e))) (lambda () (+ 1 (raise 'an-error)))))))
(test 65 (with-exception-handler (lambda (con) 42) (lambda () (+ (raise-continuable 'c) 23))))
(test '(should-be-a-number 65)
  (let ((seen #f))
    (let ((v (with-exception-handler
              (lambda (con) (set! seen con) 42)
              (lambda () (+ (raise-continuable 'should-be-a-number) 23)))))
      (list seen v))))
;; a handler that returns from raise causes a second error in the outer handler
(test 'secondary
  (guard (e (#t 'secondary))
    (with-exception-handler (lambda (e) 'ignored) (lambda () (raise 'oops)))))
;; nested handlers: a handler runs with the outer handlers
(test '(outer (inner 1))
  (guard (e (#t (list 'outer e)))
    (with-exception-handler (lambda (e) (raise (list 'inner e))) (lambda () (raise 1)))))
(test 3 (with-exception-handler (lambda (e) 1) (lambda () (with-exception-handler (lambda (e) (+ 1 (raise-continuable e))) (lambda () (+ 1 (raise-continuable 'x)))))))
(test 'x (guard (e ((symbol? e) e)) (raise 'x)))
(test 'y (guard (e ((string? e) 'string) ((symbol? e) e)) (raise 'y)))
(test '(reraised 5) (guard (e ((number? e) (list 'reraised e))) (guard (e ((symbol? e) 'symbol)) (raise 5))))
(test 42 (guard (e ((assq 'a e) => cdr)) (raise (list (cons 'a 42)))))
(test 'body (guard (e (#f 'never)) 'body))
(test '(a after)
  (let ((log '()))
    (let ((r (guard (e (#t (set! log (cons 'after log)) 'a))
               (dynamic-wind (lambda () #f) (lambda () (raise 'a)) (lambda () (set! log '()))))))
      (cons r log))))

;; error objects
(test #t (guard (e ((error-object? e) #t) (else #f)) (error "BOOM!" 1 2 3)))
(test "BOOM!" (guard (e ((error-object? e) (error-object-message e))) (error "BOOM!" 1 2 3)))
(test '(1 (2) "3") (guard (e ((error-object? e) (error-object-irritants e))) (error "BOOM!" 1 '(2) "3")))
(cond-expand (guile) (else (test '() (guard (e (#t (error-object-irritants e))) (error "no irritants")))))
(test #f (error-object? 5))
(test #f (error-object? 'a))
(test #f (guard (e (#t (error-object? e))) (raise 'a)))
(test #t (guard (e (#t (error-object? e))) (car 5)))
(test #t (guard (e (#t (error-object? e))) (vector-ref (vector 1 2) 2)))
(test #t (guard (e (#t (error-object? e))) (undefined-variable-of-this-test)))
(test #t (guard (e (#t (string? (error-object-message e)))) (car 5)))
(test #f (guard (e (#t (or (read-error? e) (file-error? e)))) (error "x")))
(cond-expand (guile) (else (test #t (guard (e (#t (file-error? e))) (open-input-file "/no/such/file/at/all")))))
(test #t (guard (e (#t (read-error? e))) (read (open-input-string ")"))))
(test #t (guard (e (#t (read-error? e))) (read (open-input-string "(1 . "))))
(test #f (read-error? 'x))
(test #f (file-error? 'x))

;; errors of primitives can be handled, and the program continues
(test '(e e e e e)
  (map (lambda (thunk) (guard (e (#t 'e)) (thunk)))
       (list (lambda () (car '())) (lambda () (+ 1 'a)) (lambda () (vector-ref (vector) 0))
             (lambda () ((lambda (x) x))) (lambda () (/ 1 0)))))
(define (loop-of-errors n) (if (= n 0) 'ok (begin (guard (e (#t #f)) (raise n)) (loop-of-errors (- n 1)))))
(test 'ok (loop-of-errors 10000))
;; the body of a guard is not in tail position; its clauses run with the outer handlers
(define (nested n) (if (= n 0) (raise 'bottom) (guard (e ((number? e) e)) (nested (- n 1)))))
(test 'bottom (guard (e (#t e)) (nested 500)))

;; 6.12
(test 21 (eval '(* 7 3) (environment '(scheme base))))
(test '(3 #u8(1 2 255) (#u8() a)) (let ((here (environment '(scheme base)))) (list (eval '(bytevector-length #u8(1 2 3)) here) (eval #u8(1 2 255) here) (eval ''(#u8() a) here))))
(test 20 (let ((f (eval '(lambda (f x) (f x x)) (environment '(scheme base))))) (f + 10)))
(test 1024 (eval '(expt 2 10) (environment '(only (scheme base) expt))))
(test 5 (eval '(b:+ 2 3) (environment '(prefix (scheme base) b:))))
(test-error (eval '(foo) (environment '(scheme base))))
(test-error (eval '(if) (environment '(scheme base))))
(test '(1 2) (eval '(let-syntax ((m (syntax-rules () ((_ a) (list 1 a))))) (m 2)) (environment '(scheme base))))
(test-error (environment '(no such library at all)))

;; a first argument of error that is not a string becomes the first irritant
(define (parts . arguments) (guard (e ((error-object? e) (cons (error-object-message e) (error-object-irritants e)))) (apply error arguments)))
(test '("" 5) (parts 5)) (test '("" f "said" 1) (parts 'f "said" 1)) (test '("" (a b) c) (parts '(a b) 'c)) (test '("said" 1) (parts "said" 1)) (test '("") (parts "")) (test '("" #f) (parts #f))
(define (text-of . arguments) (guard (e (#t (let ((port (open-output-string))) (write e port) (get-output-string port)))) (apply error arguments)))
(test '("#<error: 5>" "#<error: f>" "#<error>" "#<error: said>") (list (text-of 5) (text-of 'f "said") (text-of '(a b)) (text-of "said" 1)))

(finish)
