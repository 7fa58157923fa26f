;;; Threads of (kyocho): spawn, channels, and procedures that show and control the program's
;;; threads.
(import (kyocho))
(include "harness.scm")

(define (raised-by thunk) (guard (e ((error-object? e) 'error)) (thunk)))
(define (await ready?) (if (not (ready?)) (begin (thread-sleep! 0.001) (await ready?))))
(define (ended? thread) (guard (e ((terminated-thread-exception? e) 'terminated)) (thread-join! thread)))
(define (forever) (thread-sleep! 3600))

;; spawn makes a thread and starts it
(test '(5 named #t) (let ((t (spawn (lambda () 5) 'named))) (list (thread-join! t) (thread-name t) (thread? t)))) (test '(0 1 4 9) (map thread-join! (map (lambda (i) (spawn (lambda () (* i i)))) (iota 4)))) (test-error (spawn 5)) (test-error (spawn (lambda () 1) 'a 'b)) (test-error (thread-start! (spawn list)))
(test 'oops (guard (e ((uncaught-exception? e) (uncaught-exception-reason e))) (thread-join! (spawn (lambda () (raise 'oops))))))
(test '(1 2) (guard (e ((uncaught-exception? e) (uncaught-exception-reason e))) (thread-join! (spawn (lambda () (dynamic-wind list (lambda () (let deep ((n 100)) (if (= n 0) (raise (list 1 2)) (+ 1 (deep (- n 1)))))) (lambda () (do ((i 0 (+ i 1))) ((= i 20)) (gc) (make-list 300000 'x)))))))))

;; a channel without capacity: a sender waits until its message is received
(define c (make-channel)) (test '(#t #f) (list (channel? c) (channel? 5)))
(test '((1 2 3) (taken)) (let* ((log '()) (t (spawn (lambda () (for-each (lambda (x) (channel-send! c x)) '(1 2 3)) (set! log '(taken)))))) (let* ((before log) (a (channel-receive c)) (b (channel-receive c)) (d (channel-receive c))) (thread-join! t) (if (null? before) (list (list a b d) log) 'too-early))))
;; a channel with capacity: a sender continues until the channel is full
(define wide (make-channel 3)) (test '(1 2 3) (begin (for-each (lambda (x) (channel-send! wide x)) '(1 2 3)) (let* ((a (channel-receive wide)) (b (channel-receive wide))) (list a b (channel-receive wide)))))
(define full (make-channel 1)) (define sent 0) (define sender (spawn (lambda () (do ((i 0 (+ i 1))) ((= i 5)) (channel-send! full i) (set! sent (+ sent 1)))))) (await (lambda () (= sent 1))) (thread-sleep! 0.01) (test 1 sent) (test '(0 1 2 3 4) (let loop ((n 5) (got '())) (if (= n 0) (reverse got) (loop (- n 1) (cons (channel-receive full) got))))) (thread-join! sender) (test 5 sent)
;; several senders and receivers: each message is received once, those of one sender in order
(define (receive-all channel) (let loop ((got '())) (let ((x (channel-receive channel 'end))) (if (eq? x 'end) got (loop (cons x got))))))
(for-each (lambda (shared) (test (list (iota 400) #t) (let* ((takers (map (lambda (i) (spawn (lambda () (receive-all shared)))) (iota 3))) (givers (map (lambda (i) (spawn (lambda () (for-each (lambda (n) (channel-send! shared (+ n (* 100 i)))) (iota 100))))) (iota 4)))) (for-each thread-join! givers) (channel-close! shared) (let ((all (map thread-join! takers))) (list (list-sort < (apply append all)) (every (lambda (got) (every (lambda (i) (list-sorted? > (filter (lambda (n) (= i (quotient n 100))) got))) (iota 4))) all))))))
          (list (make-channel) (make-channel 1) (make-channel 7)))
;; a closed channel yields its remaining messages, then the error
(define closed (make-channel 2)) (channel-send! closed 'left) (channel-close! closed) (test '(left none error error) (let* ((a (channel-receive closed)) (b (channel-receive closed 'none))) (list a b (raised-by (lambda () (channel-receive closed))) (raised-by (lambda () (channel-send! closed 1)))))) (channel-close! closed)
(test '(woken) (let* ((c (make-channel)) (t (spawn (lambda () (channel-receive c 'woken))))) (thread-sleep! 0.01) (channel-close! c) (list (thread-join! t)))) (test 'error (let* ((c (make-channel)) (t (spawn (lambda () (raised-by (lambda () (channel-send! c 1))))))) (thread-sleep! 0.01) (channel-close! c) (thread-join! t)))
;; a thread that waits for a channel can be ended, and takes no message
(test '(terminated 5) (let* ((c (make-channel)) (t (spawn (lambda () (channel-receive c))))) (thread-sleep! 0.01) (thread-terminate! t) (let ((end (ended? t))) (spawn (lambda () (channel-send! c 5))) (list end (channel-receive c)))))
(test '(error error error error error error) (list (raised-by (lambda () (make-channel -1))) (raised-by (lambda () (make-channel 'a))) (raised-by (lambda () (make-channel 1e3))) (raised-by (lambda () (channel-send! 5 1))) (raised-by (lambda () (channel-receive 5))) (raised-by (lambda () (channel-close! 'c))))) (test-error (make-channel (expt 2 40)))

;; a thread that is woken for another reason, here by bt, and finds room itself, leaves the queue
(define (awaits name what) (await (lambda () (pair? (string-search-all (string-append name ", waits for " what) (with-output-to-string ps))))))
(test '(second later) (let* ((full (make-channel 1)) (then (make-channel)) (ahead (begin (channel-send! full 'm) (spawn (lambda () (channel-send! full 'first)) 'the-first))) (behind (begin (awaits "the-first" "room") (spawn (lambda () (channel-send! full 'second) (channel-receive then)) 'the-second))))
  (awaits "the-second" "room") (suspend (thread-number ahead)) (channel-receive full)
  (with-output-to-string (lambda () (bt (thread-number behind)))) (awaits "the-second" "a message")
  (channel-send! then 'later) (let ((m (channel-receive full))) (resume (thread-number ahead)) (thread-join! ahead) (list m (thread-join! behind)))))

;; the program's threads, and what they wait for
(define parked (spawn (lambda () (channel-receive (make-channel))) 'the-parked))
(test '(#t #t #t) (list (and (memq (current-thread) (threads)) #t) (and (memq parked (threads)) #t) (every thread? (threads)))) (test #t (begin (await (lambda () (pair? (string-search-all "the-parked, waits for" (with-output-to-string ps))))) #t)) (test #t (string-prefix? "    ID PRI      CELLS NAME\n" (with-output-to-string ps)))
(define number (thread-number parked)) (test '(#t #f) (list (exact-integer? number) (= number (thread-number (current-thread))))) (test-error (thread-number 5))
(test '(9 4) (begin (set-priority! number 9) (let ((before (thread-priority parked))) (set-priority! number 4) (list before (thread-priority parked))))) (test-error (set-priority! number 1000)) (test-error (set-priority! number -1)) (test-error (set-priority! number 'high)) (test-error (set-priority! -5 3))
(test 'terminated (begin (kill number) (ended? parked))) (test #f (memq parked (threads))) (test-error (kill number)) (test-error (kill 'a))
;; suspend stops a thread in any state, resume continues it
(define turns 0) (define stop #f) (define busy (spawn (lambda () (let loop () (set! turns (+ turns 1)) (if (not stop) (loop))) 'stopped)))
(await (lambda () (> turns 0))) (suspend (thread-number busy))
(define (still? before tries) (thread-sleep! 0.01) (or (= turns before) (and (> tries 0) (still? turns (- tries 1)))))
(test #t (still? turns 1000)) (test #t (let ((before turns)) (thread-sleep! 0.02) (= before turns))) (test #t (let ((before turns)) (resume (thread-number busy)) (await (lambda () (> turns before))) #t)) (test 'stopped (begin (set! stop #t) (thread-join! busy))) (test-error (suspend 'a)) (test-error (resume -1)) (test-error (resume number))

;; top shows which threads ran in a period; timed shows the duration of a call and its value
(test '(#t #t) (let* ((stop #f) (t (spawn (lambda () (let loop () (if (not stop) (loop)))) 'the-busy)) (table (with-output-to-string (lambda () (top 0.05))))) (set! stop #t) (thread-join! t) (list (string-prefix? "    ID  CPU %      CELLS NAME\n" table) (pair? (string-search-all "the-busy" table))))) (test-error (top 'long))
(define timed-result #f) (define timed-text (with-output-to-string (lambda () (set! timed-result (timed (lambda () 'value)))))) (test '(value #t #t) (list timed-result (string-prefix? "; " timed-text) (string-suffix? " ms\n" timed-text))) (test-error (timed 5)) (test 'x (guard (e (#t e)) (timed (lambda () (raise 'x)))))
;; raw-sleep sleeps in the kernel: other threads continue
(test '(slept #t) (let* ((n 0) (t (spawn (lambda () (raw-sleep 0.05) 'slept)))) (let loop () (if (and (< n 1000) (memq t (threads))) (begin (set! n (+ n 1)) (thread-yield!) (loop)))) (list (thread-join! t) (> n 1)))) (test-error (raw-sleep 'a)) (test-error (raw-sleep 1 1)) (test-error (raw-sleep 1e300))

(finish)
