;;; SRFI 18: threads, mutexes, condition variables.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18))
(include "harness.scm")

(define (spawn thunk) (thread-start! (make-thread thunk)))

;; threads
(test 42 (thread-join! (spawn (lambda () 42))))
(test '(1 2 3) (map thread-join! (map (lambda (n) (spawn (lambda () n))) '(1 2 3))))
(test #t (thread? (current-thread))) (test #f (thread? 5))
(test 'name (thread-name (make-thread (lambda () 1) 'name)))
(test 'mine (let ((t (make-thread (lambda () 1)))) (thread-specific-set! t 'mine) (thread-specific t)))
(test #t (let ((t #f)) (set! t (make-thread (lambda () (eq? t (current-thread))))) (thread-start! t) (thread-join! t)))
(test 1000 (let loop ((n 0) (threads '())) (if (< n 1000) (loop (+ n 1) (cons (spawn (lambda () (thread-yield!) 1)) threads)) (apply + (map thread-join! threads)))))
(test 'timeout (thread-join! (spawn (lambda () (thread-sleep! 3600))) 0.01 'timeout))
(test #t (guard (e ((join-timeout-exception? e) #t)) (thread-join! (spawn (lambda () (thread-sleep! 3600))) 0.01)))
(test '(caught oops) (guard (e ((uncaught-exception? e) (list 'caught (uncaught-exception-reason e)))) (thread-join! (spawn (lambda () (raise 'oops))))))
(test #t (guard (e ((terminated-thread-exception? e) #t)) (let ((t (spawn (lambda () (thread-sleep! 3600))))) (thread-yield!) (thread-terminate! t) (thread-join! t))))
;; handlers and parameters belong to a thread
(define p (make-parameter 'outer))
(test 'inner (thread-join! (parameterize ((p 'inner)) (spawn (lambda () (p))))))
(test 'outer (p))

;; mutexes
(define m (make-mutex 'm))
(test #t (mutex? m)) (test 'm (mutex-name m)) (test 'not-abandoned (mutex-state m))
(test #t (begin (mutex-lock! m) (eq? (mutex-state m) (current-thread))))
(test #f (mutex-lock! m 0.01)) (test 'not-abandoned (begin (mutex-unlock! m) (mutex-state m)))
(test 'specific (begin (mutex-specific-set! m 'specific) (mutex-specific m)))
(test 4000
  (let ((counter 0) (lock (make-mutex)))
    (for-each thread-join!
      (map (lambda (i)
             (spawn (lambda ()
               (do ((n 0 (+ n 1))) ((= n 1000))
                 (mutex-lock! lock)
                 (let ((seen counter)) (if (= 0 (modulo n 100)) (thread-yield!)) (set! counter (+ seen 1)))
                 (mutex-unlock! lock)))))
           '(1 2 3 4)))
    counter))
(test #t
  (let ((lock (make-mutex)))
    (guard (e ((uncaught-exception? e) #t)) (thread-join! (spawn (lambda () (mutex-lock! lock) (raise 'dead)))))
    (guard (e ((abandoned-mutex-exception? e) #t)) (mutex-lock! lock) #f)))

;; the after procedures of a thread run wherever it ends, and before others learn of its end
(define deeds '())
(define (does-last thunk) (lambda () (dynamic-wind (lambda () #f) thunk (lambda () (thread-sleep! 0.01) (set! deeds (cons 'after deeds))))))
(define (end-of thunk) (set! deeds '()) (guard (e ((uncaught-exception? e) (cons (uncaught-exception-reason e) deeds))) (thread-join! (spawn thunk))))
(test '(oops after) (end-of (does-last (lambda () (raise 'oops)))))
(test '(oops after after) (end-of (does-last (does-last (lambda () (raise 'oops))))))
(test '(oops after) (end-of (does-last (lambda () (dynamic-wind (lambda () #f) (lambda () (raise 'oops)) (lambda () #t))))))
(test '(oops) (end-of (does-last (lambda () (dynamic-wind (lambda () #f) (lambda () (raise 'oops)) (lambda () (raise 'again)))))))

;; condition variables: a queue of capacity one
(define (make-box)
  (let ((lock (make-mutex)) (changed (make-condition-variable)) (full #f) (item #f))
    (define (wait-until ready?)
      (mutex-lock! lock)
      (if (ready?) #t (begin (mutex-unlock! lock changed) (wait-until ready?))))
    (lambda (operation . arguments)
      (case operation
        ((put) (wait-until (lambda () (not full))) (set! item (car arguments)) (set! full #t))
        ((take) (wait-until (lambda () full)) (set! full #f)))
      (let ((value item))
        (condition-variable-broadcast! changed)
        (mutex-unlock! lock)
        value))))
(test 499500
  (let* ((box (make-box))
         (producer (spawn (lambda () (do ((n 0 (+ n 1))) ((= n 1000)) (box 'put n)))))
         (consumer (spawn (lambda () (let loop ((n 0) (sum 0)) (if (= n 1000) sum (loop (+ n 1) (+ sum (box 'take)))))))))
    (thread-join! producer)
    (thread-join! consumer)))
(test #f (let ((lock (make-mutex)) (never (make-condition-variable))) (mutex-lock! lock) (mutex-unlock! lock never 0.01)))

;; time
(test #t (time? (current-time))) (test #t (real? (time->seconds (current-time))))
(test #t (let ((before (time->seconds (current-time)))) (thread-sleep! 0.02) (<= 0.02 (- (time->seconds (current-time)) before))))
;; each thread has its own continuation and winders
(test '(in out) (thread-join! (spawn (lambda () (let ((log '())) (dynamic-wind (lambda () (set! log (cons 'in log))) thread-yield! (lambda () (set! log (cons 'out log)))) (reverse log))))))

;; the rest of SRFI 18
(define cv (make-condition-variable 'ready))
(test '(#t #f ready) (list (condition-variable? cv) (condition-variable? 5) (condition-variable-name cv))) (test 'mine (begin (condition-variable-specific-set! cv 'mine) (condition-variable-specific cv)))
(test 'woken (let* ((m (make-mutex)) (go #f) (t (thread-start! (make-thread (lambda () (mutex-lock! m) (let wait () (if go (begin (mutex-unlock! m) 'woken) (begin (mutex-unlock! m cv) (mutex-lock! m) (wait))))))))) (mutex-lock! m) (set! go #t) (condition-variable-signal! cv) (mutex-unlock! m) (thread-join! t)))
(test #t (time? (seconds->time 5))) (test 5.0 (inexact (time->seconds (seconds->time 5)))) (test #t (procedure? (current-exception-handler))) (test 'handled (call/cc (lambda (k) (with-exception-handler (lambda (e) (k 'handled)) (lambda () ((current-exception-handler) 'x))))))

;; an invalid timeout is reported by the procedure that got it
(define (message-of thunk) (guard (e ((error-object? e) (error-object-message e))) (thunk)))
(test "mutex-lock!: second argument must be a real number of seconds" (let ((m (make-mutex))) (mutex-lock! m) (message-of (lambda () (mutex-lock! m 'soon)))))
(test "mutex-unlock!: third argument must be a real number of seconds" (let ((m (make-mutex))) (mutex-lock! m) (message-of (lambda () (mutex-unlock! m (make-condition-variable) 'soon)))))
(test "thread-join!: second argument must be a real number of seconds" (message-of (lambda () (thread-join! (make-thread list) 'soon)))) (test "thread-sleep!: first argument must be a real number of seconds" (message-of (lambda () (thread-sleep! 'soon))))

(finish)
