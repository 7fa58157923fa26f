;;; Waiting for the first of several channels: select and channel-select.
(import (kyocho))
(include "harness.scm")

(define (message-of thunk) (guard (e ((error-object? e) (error-object-message e))) (thunk)))
(define (await ready?) (if (not (ready?)) (begin (thread-sleep! 0.001) (await ready?))))
(define (ended? thread) (guard (e ((terminated-thread-exception? e) 'terminated)) (thread-join! thread)))
(define (waits? name what) (pair? (string-search-all (string-append name ", waits for " what) (with-output-to-string ps))))
;; A thread that waits for WHAT. If there are several, each has a name of its own.
(define (waiting name what thunk)
  (let ((thread (spawn thunk name)))
    (await (lambda () (waits? (symbol->string name) what)))
    thread))
(define (selecting name thunk) (waiting name "one of several channels" thunk))
(define (receiving name channel) (waiting name "a message" (lambda () (channel-receive channel))))
(define (peek . channels) (call-with-values (lambda () (channel-select (map (lambda (c) (list 'receive c)) channels) 0)) list))
(define (filled capacity . messages) (let ((c (make-channel capacity))) (for-each (lambda (m) (channel-send! c m)) messages) c))
(define nobody (make-channel))
;; Unreachable objects are freed, and their memory is reused.
(define (churn) (gc) (make-list 20000 'other) (gc))

;; a ready case is executed; the value is that of the last body
(test 'm (select ((m (channel-receive (filled 1 'm))) m)))
(test '(2 m) (select ((m (channel-receive nobody)) 1) ((m (channel-receive (filled 1 'm))) (display "") (list 2 m))))
(test 'got (select ((channel-receive (filled 1 'm)) 'got)))
(test '(sent m) (let* ((c (make-channel 1)) (it (select ((channel-send! c 'm) 'sent)))) (list it (channel-receive c))))
(test '(none (#f #f)) (let ((full (filled 1 'm)) (c (make-channel))) (list (select ((channel-send! full 1) 'sent) ((channel-receive c) 'got) ((channel-send! c 1) 'met) (else 'none)) (peek c))))
(test 'late (select ((channel-receive nobody) 'got) ((thread-sleep! 0.01) 'late)))
(test 'm (select ((channel-receive nobody) 'got) ((m (channel-receive (filled 1 'm))) m) ((thread-sleep! 3600) 'late)))
(test 'none (select (else 'none))) (test 'late (select ((thread-sleep! 0) 'late)))
(test-values (1 2) (select (else (values 1 2))))
(define (total jobs stop) (let loop ((sum 0)) (select ((job (channel-receive jobs)) (loop (+ sum job))) ((channel-receive stop #f) sum) ((thread-sleep! 10) (error "nobody has work" sum)))))
(test 6 (let* ((jobs (make-channel)) (stop (make-channel)) (worker (spawn (lambda () (total jobs stop))))) (for-each (lambda (n) (channel-send! jobs n)) '(1 2 3)) (channel-close! stop) (thread-join! worker)))
;; the keywords may have other meanings, and the procedures other names
(test '(0 m) (receive (index message) (channel-select (list (list 'receive (filled 1 'm)))) (list index message)))
(test '(m 5 6) (let ((receive 5) (send 6) (list list)) (select ((index (channel-receive (filled 1 'm))) (list index receive send)))))
(define-library (prefixed)
  (import (only (scheme base) begin define quote) (prefix (only (kyocho) select channel-receive channel-send! thread-sleep! make-channel else) k:))
  (export first-of)
  (begin (define (first-of c) (k:select ((m (k:channel-receive c)) m) ((k:channel-send! (k:make-channel) 1) 'sent) (k:else 'none)))))
(import (prefixed)) (test '(m none) (let ((c (filled 1 'm))) (let ((m (first-of c))) (list m (first-of c)))))

;; an invalid clause is reported when the form is expanded, and so is a second limit
(define (said-of form) (message-of (lambda () (eval form (environment '(kyocho))))))
(for-each (lambda (form) (test #t (let ((said (said-of form))) (and (string? said) (string-prefix? "select: no clause, or a second limit" said)))))
          '((select (receive c)) (select ((channel-receive c))) (select ((channel-receive) 1)) (select ((channel-send! c) 1)) (select ((channel-send! c 1 2) 3)) (select ((thread-sleep! 1) 2) ((thread-sleep! 1) 2)) (select (else 1) (else 2)) (select ((thread-sleep! 1) 2) (else 1)) (select 5) (select ((thread-sleep!) 1)) (select (else))))
(test "channel-select: without cases and a timeout it would wait for ever" (said-of '(select)))

;; the procedure returns the case's index and its message
(test-values (1 'm) (channel-select (list (list 'receive nobody) (list 'receive (filled 1 'm)))))
(test '(0 m) (let ((c (make-channel 1))) (call-with-values (lambda () (channel-select (list (list 'send c 'm)) #f)) (lambda (index message) (list index (channel-receive c))))))
(test-values (#f #f) (channel-select (list (list 'receive nobody)) 0)) (test-values (#f #f) (channel-select (list (list 'receive nobody)) -1.5)) (test-values (#f #f) (channel-select (list (list 'receive nobody)) 0.01))
(test-values (#f #f) (channel-select (list (list 'receive nobody)) (seconds->time (+ 0.01 (time->seconds (current-time)))))) (test-values (#f #f) (channel-select '() 0))
(define (select-error . arguments) (message-of (lambda () (apply channel-select arguments))))
(test "channel-select: without cases and a timeout it would wait for ever" (select-error '()))
(test "channel-select: first argument must be a list of cases" (select-error (list* (list 'receive nobody) 5))) (test "channel-select: first argument must be a list of cases" (select-error 5))
(for-each (lambda (case) (test "channel-select: case 1 must be (receive channel [when-closed]) or (send channel message)" (select-error (list (list 'receive nobody) case) 0)))
          (list 5 '() nobody (list nobody) '(receive) '(send) (list 'send nobody) (list 'send nobody 1 2) (list 'receive nobody 1 2) (list* 'receive nobody 1) (list 'take nobody) (list "send" nobody 1)))
(test "channel-select: what case 2 names must be a channel" (select-error (list (list 'receive nobody) (list 'send nobody 1) (list 'receive 'c)))) (test "channel-select: what case 0 names must be a channel" (message-of (lambda () (select ((channel-send! 5 1) 'sent)))))
(test "channel-select: second argument must be a real number of seconds" (select-error (list (list 'receive nobody)) 'soon)) (test-error (channel-select (list (list 'receive nobody)) +nan.0)) (test-error (channel-select)) (test-error (channel-select '() 0 values))
(test-values (#f #f) (channel-select (make-list 1024 (list 'receive nobody)) 0)) (test-values (1023 'm) (channel-select (append (make-list 1023 (list 'receive nobody)) (list (list 'receive (filled 1 'm))))))
(test "channel-select: more than 1024 cases" (select-error (make-list 1025 (list 'receive nobody)) 0)) (test "channel-select: more than 1024 cases" (select-error (apply circular-list (make-list 3 (list 'receive nobody))) 0))

;; a closed channel is ready, with the result that the plain procedure would have
(define closed (filled 3 'left)) (channel-close! closed)
(test '(left ended) (let* ((a (select ((m (channel-receive closed 'ended)) m))) (b (select ((m (channel-receive closed 'ended)) m) (else 'none)))) (list a b)))
(define says-closed (message-of (lambda () (channel-receive closed))))
(test "the channel is closed" says-closed) (test says-closed (message-of (lambda () (select ((channel-receive closed) 'got) (else 'none))))) (test says-closed (message-of (lambda () (select ((channel-send! closed 1) 'sent) (else 'none)))))
(define (closing c thunk) (let ((t (selecting 'closing thunk))) (channel-close! c) (thread-join! t)))
(test 'ended (let ((c (make-channel))) (closing c (lambda () (select ((channel-receive nobody) 'got) ((m (channel-receive c 'ended)) m)))))) (test says-closed (let ((c (make-channel 2))) (closing c (lambda () (message-of (lambda () (select ((channel-receive nobody) 'got) ((channel-receive c) 'got))))))))
(test says-closed (let ((c (filled 1 'm))) (closing c (lambda () (message-of (lambda () (select ((channel-send! c 1) 'sent))))))))
;; an offer is removed with its channel
(test (list says-closed 'ended) (let* ((c (make-channel)) (t (selecting 'offers (lambda () (message-of (lambda () (select ((channel-send! c 1) 'sent)))))))) (suspend (thread-number t)) (channel-close! c) (let ((m (channel-receive c 'ended))) (resume (thread-number t)) (list (thread-join! t) m))))

;; of several ready cases each is chosen in turn, also if two selects alternate
(define (counts cases turns . others)
  (let ((counts (make-vector (length cases) 0)))
    (do ((i 0 (+ i 1))) ((= i turns) (vector->list counts))
      (for-each (lambda (cases) (channel-select cases 0)) others)
      (call-with-values (lambda () (channel-select cases)) (lambda (index m) (vector-set! counts index (+ 1 (vector-ref counts index))))))))
(define-values (one two) (let ((a (make-channel)) (b (make-channel))) (channel-close! a) (channel-close! b) (values a b)))
(define both (list (list 'receive one 'ended) (list 'receive two 'ended)))
(for-each (lambda (others) (test #t (every (lambda (n) (<= 30 n 70)) (apply counts both 100 others)))) (list '() (list both) (list both both) (list both both both)))
(test #t (every (lambda (n) (<= 5 n 15)) (counts (make-list 10 (list 'receive one 'ended)) 100)))

;; a channel without capacity: a send case is ready only if a receiver waits
(test '(none sent m) (let* ((c (make-channel)) (a (select ((channel-send! c 'm) 'sent) (else 'none))) (t (receiving 'receives c)) (b (select ((channel-send! c 'm) 'sent) (else 'none)))) (list a b (thread-join! t))))
(test '(sent m) (let* ((c (make-channel)) (t (selecting 'receives (lambda () (select ((m (channel-receive c)) m) ((m (channel-receive nobody)) (list 'nobody m)))))) (it (select ((channel-send! c 'm) 'sent) (else 'none)))) (list it (thread-join! t))))
(test '(sent m (#f #f)) (let* ((c (make-channel)) (d (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent) ((channel-send! d 'm) 'other))))) (m (channel-receive c))) (list (thread-join! t) m (peek c d))))
(test '(sent m) (let* ((c (make-channel)) (t (selecting 'offers (lambda () (select ((channel-receive nobody) 'got) ((channel-send! c 'm) 'sent))))) (m (select ((m (channel-receive c)) m) (else 'none)))) (list (thread-join! t) m)))
(test '(m sent) (let* ((c (make-channel)) (t (selecting 'receives (lambda () (select ((m (channel-receive nobody)) 'nobody) ((m (channel-receive c)) m)))))) (channel-send! c 'm) (list (thread-join! t) 'sent)))
;; first come, first served, for stored and for offered messages
(test '(m sent n) (let* ((c (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent))))) (u (waiting 'sends "a channel's receiver" (lambda () (channel-send! c 'n)))) (a (channel-receive c)) (s (thread-join! t)) (b (channel-receive c))) (thread-join! u) (list a s b)))
(test '(n m sent) (let* ((c (make-channel)) (u (waiting 'sends "a channel's receiver" (lambda () (channel-send! c 'n)))) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent))))) (a (channel-receive c)) (b (channel-receive c))) (thread-join! u) (list a b (thread-join! t))))
;; two selects with the same channels meet in exactly one of them
(define (facing) (let* ((c (make-channel)) (d (make-channel)) (t (spawn (lambda () (select ((channel-send! c 'c) 'sent) ((m (channel-receive d)) m))))) (mine (select ((m (channel-receive c)) m) ((channel-send! d 'd) 'sent))) (its (thread-join! t))) (and (equal? (peek c d) '(#f #f)) (list mine its))))
(test #t (let loop ((n 100)) (or (= n 0) (and (member (facing) '((c sent) (sent d))) (loop (- n 1))))))
;; a select does not meet itself, but meets a similar one
(define (twins c) (select ((channel-send! c 'm) 'sent) ((m (channel-receive c)) m) ((channel-send! c 'm) 'sent) ((m (channel-receive c)) m)))
(test 'neither (let ((c (make-channel))) (select ((channel-send! c 1) 'sent) ((channel-receive c) 'got) ((channel-send! c 1) 'sent) ((thread-sleep! 0.01) 'neither))))
(test '(m sent) (list-sort (lambda (a b) (string<? (symbol->string a) (symbol->string b))) (let* ((c (make-channel)) (t (spawn (lambda () (twins c)))) (mine (twins c))) (list mine (thread-join! t)))))
(test '(m (#f #f)) (let* ((c (make-channel)) (t (selecting 'twin (lambda () (twins c)))) (m (channel-receive c))) (thread-join! t) (list m (peek c))))
(test '(m m) (let* ((c (make-channel)) (t (selecting 'twin (lambda () (twins c)))) (sent (begin (channel-send! c 'm) 'm))) (list sent (thread-join! t))))

;; exactly one case happens; the others have no effect
(test '((1) 2) (let* ((a (make-channel 1)) (b (make-channel 1)) (t (selecting 'waits (lambda () (select ((m (channel-receive a)) (list m)) ((m (channel-receive b)) (list m))))))) (channel-send! a 1) (let ((m (thread-join! t))) (channel-send! b 2) (list m (channel-receive b)))))
(test '(#t #f) (let* ((a (make-channel 1)) (b (make-channel 1)) (t (selecting 'waits (lambda () (select ((m (channel-receive a)) m) ((m (channel-receive b)) m)))))) (suspend (thread-number t)) (channel-send! a 'm) (channel-send! b 'm) (resume (thread-number t)) (let* ((m (thread-join! t)) (left (peek a b)) (rest (peek a b))) (list (and (eq? m 'm) (eq? (cadr left) 'm)) (car rest)))))
;; after a timeout the offer is withdrawn
(test '(late (#f #f)) (let* ((c (make-channel)) (it (select ((channel-send! c 'm) 'sent) ((thread-sleep! 0.01) 'late)))) (list it (peek c))))
(test '(late 5) (let* ((c (make-channel)) (it (select ((channel-receive c) 'got) ((thread-sleep! 0.01) 'late))) (t (spawn (lambda () (channel-send! c 5))))) (list it (channel-receive c))))
;; a case that happened by the time of the timeout counts
(define (in-time)
  (let* ((c (make-channel)) (t (spawn (lambda () (select ((channel-send! c 'm) 'sent) ((thread-sleep! 0.1) 'late))))))
    (thread-sleep! 0.01) (guard (e (#t #f)) (suspend (thread-number t)))
    (let ((taken (peek c))) (thread-sleep! 0.15) (guard (e (#t #f)) (resume (thread-number t))) (let ((it (thread-join! t))) (if (car taken) (list it (cadr taken)) (in-time))))))
(test '(sent m) (in-time))
;; the list of cases may be changed meanwhile
(test '((0 m) (#f #f)) (let* ((c (make-channel)) (cases (list (list 'receive c))) (t (selecting 'waits (lambda () (call-with-values (lambda () (channel-select cases)) list))))) (set-car! (cdr (car cases)) nobody) (set-cdr! cases 5) (channel-send! c 'm) (list (thread-join! t) (peek c nobody))))

(define cases #f)
(define kept #f)
(define (watched m) (set! kept (make-ephemeron m #t)) m)
(define (forgotten make then)
  (let ((t (selecting 'waits (lambda () (set! cases (make)) (call-with-values (lambda () (channel-select cases)) list)))))
    (for-each (lambda (case) (set-cdr! case '())) cases) (set-cdr! cases '()) (set! cases #f) (churn)
    (let ((kept? (not (ephemeron-broken? kept)))) (then) (list kept? (thread-join! t)))))
(test '(#t (1 (ended))) (let ((c (make-channel))) (forgotten (lambda () (list (list 'receive nobody) (list 'receive c (watched (list 'ended))))) (lambda () (channel-close! c)))))
(test '((#t 1) (m)) (let* ((c (filled 1 'first)) (it (forgotten (lambda () (list (list 'receive nobody) (list 'send c (watched (list 'm))))) (lambda () (channel-receive c))))) (list (list (car it) (caadr it)) (channel-receive c))))

;; a thread that is ended takes no message and leaves no offer
(define (end! thread) (thread-terminate! thread) (ended? thread))
(test '(terminated (#f #f)) (let* ((c (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent)))))) (let ((end (end! t))) (list end (peek c)))))
(test '(terminated m) (let* ((c (make-channel)) (t (selecting 'receives (lambda () (select ((channel-receive c) 'got) ((channel-receive nobody) 'got)))))) (let ((end (end! t)) (u (spawn (lambda () (channel-send! c 'm))))) (list end (channel-receive c)))))
;; nor a message that was passed to it before it ran: the next receiver gets that
(define (given-before-it-ran receive)
  (let* ((c (make-channel)) (t (receive c))) (suspend (thread-number t))
    (let* ((it (select ((channel-send! c (list 'm)) 'sent) (else 'none))) (end (begin (churn) (end! t)))) (list it end (peek c) (peek c)))))
(test '(sent terminated (0 (m)) (#f #f)) (given-before-it-ran (lambda (c) (receiving 'receives c))))
(test '(sent terminated (0 (m)) (#f #f)) (given-before-it-ran (lambda (c) (selecting 'receives (lambda () (select ((channel-receive nobody) 'got) ((channel-receive c) 'got)))))))
(test '(sent (m)) (let* ((c (make-channel)) (t (selecting 'receives (lambda () (select ((channel-receive nobody) 'nobody) ((m (channel-receive c)) m)))))) (suspend (thread-number t)) (let ((it (select ((channel-send! c (list 'm)) 'sent) (else 'none)))) (churn) (resume (thread-number t)) (list it (thread-join! t)))))
;; an accepted offer counts as sent, whatever happens to the sender
(test '(m terminated (#f #f)) (let* ((c (make-channel)) (d (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent) ((channel-send! d 'm) 'sent)))))) (suspend (thread-number t)) (let* ((m (channel-receive c)) (left (peek d)) (end (end! t))) (list m end left))))
(test '(m sent (#f #f)) (let* ((c (make-channel)) (d (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c 'm) 'sent) ((channel-send! d 'm) 'other)))))) (suspend (thread-number t)) (let* ((m (channel-receive c)) (left (peek d c))) (resume (thread-number t)) (list m (thread-join! t) left))))
(test '(m (#f #f)) (let* ((c (make-channel)) (t (selecting 'offers (lambda () (select ((channel-send! c (list 'm)) 'sent)))))) (churn) (let ((m (channel-receive c))) (thread-join! t) (list (car m) (peek c)))))

;; a wake that the select does not need is passed on: for a message, for room
(define (told thread) (guard (e ((join-timeout-exception? e) 'lost)) (thread-join! thread 10)))
(define (overtaken go-on)
  (let* ((a (make-channel 1)) (b (make-channel 1)) (t (selecting 'first (lambda () (select ((channel-receive a) 'a) ((channel-receive b) 'b))))) (next (receiving 'next a)))
    (suspend (thread-number t)) (channel-send! a 'm) (channel-send! b 'n)
    (case (go-on t) ((a) (let ((n (channel-receive b))) (channel-send! a 'm) (list (told next) n))) ((b) (list (told next) 'n)) (else (list (told next) (channel-receive b))))))
(define (no-room go-on)
  (let* ((a (filled 1 1)) (b (filled 1 2)) (t (selecting 'first (lambda () (select ((channel-send! a 't) 'a) ((channel-send! b 't) 'b))))) (next (waiting 'next "room in a channel" (lambda () (channel-send! a 'm) 'sent))))
    (suspend (thread-number t)) (channel-receive a) (channel-receive b)
    (case (go-on t) ((a) (let ((m (channel-receive a))) (list (told next) (channel-receive a)))) (else (list (told next) (channel-receive a))))))
(define (resumed t) (resume (thread-number t)) (ended? t))
(test #t (let loop ((n 20)) (or (= n 0) (and (equal? (overtaken resumed) '(m n)) (equal? (no-room resumed) '(sent m)) (loop (- n 1))))))
(test '((m n) (sent m)) (list (overtaken end!) (no-room end!)))
;; channels that only the waiting select refers to, until the timeout
(test '(late late) (let ((t (spawn (lambda () (select ((channel-receive (make-channel)) 'got) ((channel-send! (make-channel) 1) 'sent) ((thread-sleep! 0.02) 'late)))))) (churn) (list (thread-join! t) (select ((channel-receive (make-channel)) 'got) ((thread-sleep! 0.01) 'late)))))

(finish)
