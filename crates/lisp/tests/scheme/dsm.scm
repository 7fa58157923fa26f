;;; Shared memory, on one node; crates/cli/tests/dsm_lisp.rs runs programs on several nodes.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18) (kyocho dsm))
(include "harness.scm")

(test 0 (shared-node)) (test 1 (shared-nodes))

(define v (shared-vector 1 -2.5 #t #f #\x '() 1152921504606846975))
(test #t (shared-vector? v)) (test #f (shared-vector? (vector 1))) (test 7 (shared-vector-length v))
(test '(1 -2.5 #t #f #\x () 1152921504606846975) (shared-vector->list v))
(test '(0 0 0) (shared-vector->list (make-shared-vector 3)))
(test '(a b) (map (lambda (x) (if (= x 7) 'a 'b)) (list (shared-vector-ref (make-shared-vector 1000 7) 999) 1)))
(shared-vector-set! v 0 9)
(test 9 (shared-vector-ref v 0))
(test 0 (shared-vector-length (shared-vector)))

;; threads of one node exclude each other, and each of them waits on its own
(define counter (make-shared-vector 1))
(define (spawn thunk) (thread-start! (make-thread thunk)))
(define (count n)
  (if (> n 0)
      (begin
        (with-shared-lock 3
          (shared-vector-set! counter 0 (+ 1 (shared-vector-ref counter 0))))
        (count (- n 1)))))
(define threads (map (lambda (i) (spawn (lambda () (count 200)))) '(1 2 3 4)))
(for-each thread-join! threads)
(test 800 (shared-vector-ref counter 0))

(define flag (make-shared-vector 1 #f))
(define waiter
  (spawn (lambda ()
           (with-shared-lock 5
             (let loop ()
               (if (not (shared-vector-ref flag 0))
                   (begin (shared-wait! 5 0) (loop))))
             'raised))))
(with-shared-lock 5 (shared-vector-set! flag 0 #t))
(shared-broadcast! 5 0)
(test 'raised (thread-join! waiter))

; a signal wakes one waiting thread
(define seats (make-shared-vector 1 0)) (define seated 0)
(define (sit) (with-shared-lock 9 (let loop () (if (= 0 (shared-vector-ref seats 0)) (begin (shared-wait! 9 1) (loop)))) (shared-vector-set! seats 0 (- (shared-vector-ref seats 0) 1)) (set! seated (+ seated 1))))
(define sitters (map (lambda (i) (spawn sit)) '(1 2 3)))
(define (offer) (with-shared-lock 9 (shared-vector-set! seats 0 (+ 1 (shared-vector-ref seats 0)))) (shared-signal! 9 1))
(define (await ready?) (if (not (ready?)) (begin (thread-sleep! 0.001) (await ready?))))
(test '(1 2 3) (map (lambda (n) (offer) (await (lambda () (= 0 (with-shared-snapshot 9 (shared-vector-ref seats 0))))) (with-shared-lock 9 seated)) '(1 2 3))) (for-each thread-join! sitters)
(test-error (shared-signal! 100000 0)) (test-error (shared-signal! 9 'a)) (test-error (shared-signal! 'a 0))

(shared-lock! 4)
(test #f (thread-join! (spawn (lambda () (shared-lock-try! 4)))))
(shared-unlock! 4)
(test #t (shared-lock-try! 4))
(shared-unlock! 4)
(test 9 (with-shared-snapshot 4 (shared-vector-ref v 0)))
; a snapshot waits for a writer, and is released like a lock
(shared-lock! 4)
(define reader (spawn (lambda () (shared-snapshot! 4) (let ((seen (shared-vector-ref v 0))) (shared-unlock! 4) seen))))
(shared-vector-set! v 0 10) (shared-unlock! 4)
(test 10 (thread-join! reader)) (test #t (shared-lock-try! 4)) (shared-unlock! 4) (test-error (shared-snapshot! 100000)) (test-error (shared-snapshot! 'a))

;; a lock is released however control leaves its section
(test 'out (call/cc (lambda (k) (with-shared-lock 6 (k 'out)))))
(test 'raised (guard (e (#t e)) (with-shared-lock 6 (raise 'raised))))
(test #t (shared-lock-try! 6))
(shared-unlock! 6)

(shared-barrier)
(shared-barrier 'single-read-write)

;; a waiting thread can be ended: at a lock, and at a condition, whose lock is then released
(shared-lock! 7)
(define stuck (spawn (lambda () (shared-lock! 7))))
(define hopeless (spawn (lambda () (with-shared-lock 8 (shared-wait! 8 0)))))
(thread-sleep! 0.01)
(thread-terminate! stuck) (thread-terminate! hopeless)
(define (ended? thread) (guard (e ((terminated-thread-exception? e) #t)) (thread-join! thread)))
(test '(#t #t) (list (ended? stuck) (ended? hopeless)))
(shared-unlock! 7)
(test #t (shared-lock-try! 7)) (test #t (shared-lock-try! 8))
(shared-unlock! 7) (shared-unlock! 8)

;; a thread that ends releases its locks, even if it is ended right after locking, before its
;; handler exists
(thread-join! (spawn (lambda () (shared-lock! 9))))
(test #t (shared-lock-try! 9)) (shared-unlock! 9)
(thread-join! (spawn (lambda () (shared-snapshot! 9))))
(test #t (shared-lock-try! 9)) (shared-unlock! 9)

;; managers move to an existing node; sizes must be set first; counters are found by name
(test '(moved moved 9.5) (let* ((lock (begin (shared-move-lock! 3 0) 'moved)) (pages (begin (shared-vector-move! v 0 7 0) 'moved))) (shared-barrier) (with-shared-lock 3 (shared-vector-set! v 0 9.5)) (list lock pages (shared-vector-ref v 0))))
(test-error (shared-move-lock! 3 1)) (test-error (shared-move-lock! 100000 0)) (test-error (shared-move-lock! 'a 0)) (test-error (shared-vector-move! v 0 8 0)) (test-error (shared-vector-move! v 2 1 0)) (test-error (shared-vector-move! v 0 1 1)) (test-error (shared-vector-move! (vector 1) 0 1 0)) (test-error (shared-join! 1000000 100)) (test-error (shared-join! 'a 1))
(test #t (let ((before (shared-statistics))) (and (pair? before) (let loop ((rows before)) (or (null? rows) (and (symbol? (caar rows)) (exact-integer? (cdar rows)) (>= (cdar rows) 0) (loop (cdr rows)))))))) (define (counted name) (cdr (assq name (shared-statistics)))) (test '(0 1 1) (let* ((locks (counted 'locks)) (barriers (counted 'barriers))) (with-shared-lock 3 #t) (shared-barrier) (list (counted 'messages-sent) (- (counted 'locks) locks) (- (counted 'barriers) barriers))))

;; vectors in a region at a high address
; regions remain until their process ends, and the process may have run this program before
(define (region-behind address tries)
  (if (zero? tries) (error "no region is to be had"))
  (guard (e (#t (region-behind (+ address (expt 2 40)) (- tries 1))))
    (make-shared-region 10000 address)))
(define far (region-behind (expt 2 63) 1000))
(test '(#t #f 0) (list (shared-region? far) (shared-region? v) (modulo (shared-region-address far) (expt 2 40))))
(test #t (>= (shared-region-address far) (expt 2 63)))
(define distant (make-shared-vector 500 7 far))
(test '(500 7) (list (shared-vector-length distant) (shared-vector-ref distant 499)))
(with-shared-lock 3 (shared-vector-set! distant 499 8))
(test 8 (shared-vector-ref distant 499))
(test #t (< 0 (shared-region-address (make-shared-region 1)) (shared-region-address far)))

;; bad input
(test-error (make-shared-vector 500 0 far))
(test-error (make-shared-vector 1 0 v))
(test-error (make-shared-region 1 (expt 2 63)))
(test-error (make-shared-region 1 1))
(test-error (make-shared-region 0))
(test-error (make-shared-region -1))
(test-error (make-shared-region 1.5))
(test-error (make-shared-region 1 (expt 2 64)))
(test-error (make-shared-region (expt 2 60)))
(test-error (shared-region-address v))
(test-error (shared-vector-ref v 7))
(test-error (shared-vector-ref v -1))
(test-error (shared-vector-ref v 'first))
(test-error (shared-vector-ref (vector 1) 0))
(test-error (shared-vector-set! v 0 "text"))
(test-error (shared-vector-set! v 0 (list 1)))
(test-error (shared-vector-set! v 0 1152921504606846976))
(test-error (make-shared-vector -1))
(test-error (make-shared-vector 4000000000))
(test-error (shared-lock! 100000))
(test-error (shared-lock! 'a))
(test-error (shared-unlock! 1))
(test-error (shared-wait! 1 0))
(test-error (shared-barrier 'wide))
(test-error (with-shared-lock 2 (with-shared-lock 2 1)))

(finish)
