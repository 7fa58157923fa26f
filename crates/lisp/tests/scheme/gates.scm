;;; Gates: data are echoed, calls are threads with their callers' priorities, and ends are reported.
(import (scheme base) (scheme write) (scheme process-context) (scheme file) (srfi 18) (kyocho gate)
        (only (kyocho) pid thread-priority thread-priority-set!))
(include "harness.scm")

(define path (string-append "/tmp/kyocho-gate-scheme-" (number->string (pid))))

(define (handler method bytes)
  (cond ((= method 0) bytes)
        ((= method 1) (bytevector (thread-priority (current-thread))))
        ((= method 2) (thread-sleep! 3600))
        ((= method 3) (thread-terminate! (current-thread)))
        ((= method 4) "no bytevector")
        (else (thread-sleep! 0.01) (bytevector-append bytes (bytevector method)))))

(define server (gate-serve path handler))
(define gate (gate-connect path))
(define (spawn thunk) (thread-start! (make-thread thunk)))

(test #t (gate? gate)) (test #t (gate? server)) (test #f (gate? 5))
(test (bytevector 1 2 3) (gate-call gate 0 (bytevector 1 2 3)))
(test (bytevector) (gate-call gate 0 (bytevector)))
(test 8000 (bytevector-length (gate-call gate 0 (make-bytevector 8000 7))))

;; each call is served by its own thread: none waits for another
(define (ask n) (spawn (lambda () (bytevector-u8-ref (gate-call gate (+ 100 n) (bytevector n)) 1))))
(test '(100 101 102 103 104 105 106 107) (map thread-join! (map ask '(0 1 2 3 4 5 6 7))))

;; the caller's priority
(define (level-of n)
  (thread-join!
   (spawn (lambda ()
            (thread-priority-set! (current-thread) n)
            (bytevector-u8-ref (gate-call gate 1 (bytevector)) 0)))))
(test '(50 3) (map level-of '(50 3)))

;; timeouts, termination, failures
(test-error (gate-call gate 2 (bytevector) 0.01))
(define waiting (spawn (lambda () (gate-call gate 2 (bytevector)))))
(thread-sleep! 0.01)
(thread-terminate! waiting)
(test #t (guard (e ((terminated-thread-exception? e) #t)) (thread-join! waiting)))
(test-error (gate-call gate 3 (bytevector)))
(test-error (gate-call gate 4 (bytevector)))
(test (bytevector 9) (gate-call gate 0 (bytevector 9)))

;; bad input
(test-error (gate-connect "/nonexistent/gate"))
(test-error (gate-connect 5))
(test-error (gate-serve path handler))
(test-error (gate-serve "/nonexistent/gate" handler))
(test-error (gate-serve path 5))
(test-error (gate-call gate -1 (bytevector)))
(test-error (gate-call gate 4294967296 (bytevector)))
(test-error (gate-call gate 'm (bytevector)))
(test-error (gate-call gate 0 "text"))
(test-error (gate-call gate 0 (make-bytevector 100000 0)))
(test-error (gate-call gate 0 (bytevector) 'soon))
(test-error (gate-call server 0 (bytevector)))
(test-error (gate-close! 5))

;; closing either side
(define last (spawn (lambda () (guard (e (#t 'ended)) (gate-call gate 2 (bytevector))))))
(thread-sleep! 0.01)
(gate-close! server)
(test 'ended (thread-join! last))
(test-error (gate-call gate 0 (bytevector)))
(test #f (file-exists? path))
(gate-close! gate)
(gate-close! gate)
(test-error (gate-call gate 0 (bytevector)))
(finish)
