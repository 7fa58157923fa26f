;;; (kyocho policy): the decisions of a policy, and its dismissal. system/tests/policies.rs tests
;;; policies that misbehave.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18) (kyocho policy))
(include "harness.scm")

(define (await ready?) (if (not (ready?)) (begin (thread-sleep! 0.001) (await ready?))))
(define (seat kind) (let find ((l (policies))) (if (eq? (vector-ref (car l) 0) kind) (car l) (find (cdr l)))))
(define (spawn thunk) (thread-start! (make-thread thunk)))

(test '((#f #f) (#f #f)) (map (lambda (kind) (let ((s (seat kind))) (list (vector-ref s 1) (vector-ref s 2)))) '(scheduler collector))) (test 2 (length (policies)))
(test '(#t #f) (let ((t (spawn (lambda () (thread-sleep! 0.001))))) (list (exact-integer? (thread-number t)) (= (thread-number t) (thread-number (current-thread)))))) (test-error (thread-number 'a))

;; a policy is asked, gets events of threads, and its orders are carried out
(define asked 0) (define told #f)
(define policy (install-policy! 'scheduler (lambda (events) (set! asked (+ asked 1)) (if (pair? events) (set! told (car events))) '()) 200))
(test #t (thread? policy)) (test (thread-number policy) (vector-ref (seat 'scheduler) 1))
(define stop #f) (define busy (spawn (lambda () (let loop () (if (not stop) (loop))))))
(await (lambda () (and (> asked 2) told))) (test '(#t #t #t) (list (exact-integer? (vector-ref told 0)) (string? (vector-ref told 1)) (symbol? (vector-ref told 2))))
(set! stop #t) (thread-join! busy)
;; a policy replaces another; after its removal the built-in policy decides again
(define second (install-policy! 'scheduler (lambda (events) '()) 200)) (test (list (thread-number second) #f) (let ((s (seat 'scheduler))) (list (vector-ref s 1) (vector-ref s 2)))) (test 'ended (guard (e (#t 'ended)) (thread-join! policy)))
(remove-policy! 'scheduler) (test #f (vector-ref (seat 'scheduler) 1)) (remove-policy! 'scheduler) (test #f (vector-ref (seat 'scheduler) 1))
;; a policy that answers with an invalid order is dismissed, and the reason is kept
(install-policy! 'scheduler (lambda (events) 'nonsense) 200) (define other (spawn (lambda () (thread-sleep! 0.001)))) (await (lambda () (not (vector-ref (seat 'scheduler) 1)))) (test #t (string? (vector-ref (seat 'scheduler) 2)))

(test-error (install-policy! 'scheduler 5)) (test-error (install-policy! 'none (lambda (x) '()))) (test-error (install-policy! 'scheduler (lambda (x) '()) 'long)) (test-error (install-policy! 'scheduler)) (test-error (remove-policy! 'none)) (test-error (remove-policy! "scheduler")) (test-error (policies 1))

(finish)
