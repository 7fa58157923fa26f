;;; (kyocho mailbox) and (kyocho supervisor): processes, links, monitors, supervision.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18) (kyocho mailbox) (kyocho supervisor))
(include "harness.scm")

;; These processes end by exit-process!, because an end by an exception would also be reported on
;; standard error.
(define (fail reason) (exit-process! (self) reason) (thread-sleep! 60))
(define (forever) (receive-message (lambda (message) #f)))
(define (tagged tag) (lambda (message) (and (vector? message) (eq? (vector-ref message 0) tag))))

;; messages arrive in order, and may be received out of order
(define me (self))
(test '(1 2 3) (begin (for-each (lambda (n) (send! me n)) '(1 2 3)) (let* ((a (receive-message)) (b (receive-message))) (list a b (receive-message)))))
(test '(b a c) (begin (for-each (lambda (x) (send! me x)) '(a b c)) (let* ((b (receive-message (lambda (x) (eq? x 'b)))) (a (receive-message))) (list b a (receive-message)))))
(test '(late 0) (let ((late (receive-message (lambda (x) #t) 0.01 'late))) (list late (mailbox-length))))
(test 'kept (begin (send! me 'kept) (receive-message (lambda (x) (eq? x 'other)) 0.01 #f) (receive-message)))
(test 4950
  (let ((adder (spawn-process (lambda () (let loop ((sum 0)) (let ((m (receive-message))) (if (number? m) (loop (+ sum m)) (send! m sum))))))))
    (do ((i 0 (+ i 1))) ((= i 100)) (send! adder i))
    (send! adder me)
    (receive-message)))
(test '(#t named) (let ((p (spawn-process forever 'named))) (let ((seen (list (process-alive? p) (process-name p)))) (exit-process! p 'kill) seen)))

;; monitors report every end, including one before they existed
(define (end-of p) (let ((reference (monitor! p))) (let ((down (receive-message (tagged 'down)))) (and (eq? (vector-ref down 1) reference) (eq? (vector-ref down 2) p) (vector-ref down 3)))))
(test 'normal (end-of (spawn-process (lambda () 1))))
(test 'oops (end-of (spawn-process (lambda () (fail 'oops)))))
(test 'killed (let ((p (spawn-process forever))) (exit-process! p 'kill) (end-of p)))
(test 'asked (let ((p (spawn-process forever))) (exit-process! p 'asked) (end-of p)))
(test 'killed (let ((p (spawn-process (lambda () (send! me 'up) (forever))))) (receive-message) (thread-terminate! (process-thread p)) (end-of p)))
(test '(normal normal) (let ((p (spawn-process (lambda () 1)))) (let ((first (end-of p))) (list first (end-of p)))))
(test 'none (let* ((p (spawn-process forever)) (reference (monitor! p))) (demonitor! p reference) (exit-process! p 'x) (guard (e ((terminated-thread-exception? e) 'none)) (thread-join! (process-thread p)))))
(test #f (receive-message (tagged 'down) 0.01 #f))

;; linked processes end each other, whichever ends first, but not after a normal end; a process that
;; traps exits gets a message
(define (linked-pair body)
  (let* ((inner #f) (outer (spawn-process (lambda () (set! inner (spawn-linked body)) (send! me 'ready) (forever)))))
    (receive-message (lambda (m) (eq? m 'ready)))
    (cons outer inner)))
(test '(boom boom) (let ((pair (linked-pair forever))) (exit-process! (cdr pair) 'boom) (let ((a (end-of (car pair)))) (list a (end-of (cdr pair))))))
(test '(boom boom) (let ((pair (linked-pair forever))) (exit-process! (car pair) 'boom) (let ((a (end-of (car pair)))) (list a (end-of (cdr pair))))))
(test '(normal #t) (let ((pair (linked-pair (lambda () 1)))) (let ((a (end-of (cdr pair)))) (let ((alive (process-alive? (car pair)))) (exit-process! (car pair) 'kill) (list a alive)))))
(test '(exit why)
  (begin
    (spawn-process
      (lambda ()
        (trap-exits! #t)
        (let* ((child (spawn-linked (lambda () (fail 'why)))) (m (receive-message)))
          (send! me (list (vector-ref m 0) (vector-ref m 2))))))
    (receive-message)))
(test 'unlinked (let* ((a (spawn-process forever)) (b (spawn-process (lambda () (link! a) (unlink! a) (send! me 'ready) (forever))))) (receive-message) (exit-process! a 'x) (end-of a) (if (process-alive? b) (begin (exit-process! b 'kill) 'unlinked) 'dead)))
(test 'noproc-heard (let ((dead (spawn-process (lambda () (fail 'gone))))) (end-of dead) (let ((b (spawn-process (lambda () (link! dead) (forever))))) (if (eq? (end-of b) 'gone) 'noproc-heard 'deaf))))
(test 'lost (begin (send! (let ((p (spawn-process (lambda () 1)))) (end-of p) p) 'nobody) 'lost))
(test-error (exit-process! me 'kill))

;; a chain of a thousand processes ends with its last link
(define (link-above under)
  (let ((p (spawn-process
            (lambda ()
              (if under (link! under) (trap-exits! #t))
              (send! me 'up)
              (receive-message)
              (send! me 'last)))))
    (receive-message (lambda (m) (eq? m 'up)))
    p))
(test 'last (let build ((n 1000) (top #f)) (if (> n 0) (build (- n 1) (link-above top)) (begin (exit-process! top 'chain) (receive-message)))))

;; supervisors
(define (worker id) (list id (lambda () (send! me (list 'up id)) (let ((m (receive-message))) (if (not (eq? m 'end)) (fail m))))))
(define (up id) (equal? (receive-message (lambda (m) (and (pair? m) (equal? (cadr m) id)))) (list 'up id)))
(define (child s id) (cdr (assv id (supervisor-children s))))
(define (all-up ids) (let loop ((ids ids)) (or (null? ids) (and (up (car ids)) (loop (cdr ids))))))
(define (restarted strategy ids)
  (let* ((s (make-supervisor strategy 3 60 (worker 'a) (worker 'b) (worker 'c))) (started (all-up '(a b c))) (before (supervisor-children s)))
    (send! (child s 'b) 'crash)
    (let* ((again (all-up ids)) (after (supervisor-children s)))
      (supervisor-stop! s)
      (list started again (map (lambda (old new) (eq? (cdr old) (cdr new))) before after) (map (lambda (entry) (process-alive? (cdr entry))) after)))))
(test '(#t #t (#t #f #t) (#f #f #f)) (restarted 'one-for-one '(b)))
(test '(#t #t (#f #f #f) (#f #f #f)) (restarted 'one-for-all '(a b c)))
(test '(#t #t (#t #f #f) (#f #f #f)) (restarted 'rest-for-one '(b c)))
(define (child-after id restart message)
  (let ((s (make-supervisor 'one-for-one 3 60 (append (worker id) (list restart)))))
    (up id)
    (let* ((p (child s id)) (reference (monitor! p)))
      (send! p message)
      (receive-message (tagged 'down))
      (let ((now (child s id))) (supervisor-stop! s) (and now #t)))))
(test #t (child-after 1 'permanent 'end)) (test #t (child-after 2 'permanent 'crash))
(test #f (child-after 3 'transient 'end)) (test #t (child-after 4 'transient 'crash))
(test #f (child-after 5 'temporary 'end)) (test #f (child-after 6 'temporary 'crash))
(test 'too-many-restarts
  (let* ((s #f) (outer (spawn-process (lambda () (set! s (make-supervisor 'one-for-one 2 60 (list 'a (lambda () (fail 'again))))) (forever)))))
    (end-of outer)))
(test '(#t (a b) #t (b) #f)
  (let* ((s (make-supervisor 'one-for-one 1 60 (worker 'a))) (b (apply supervisor-add! s (worker 'b))))
    (all-up '(a b))
    (let* ((ids (map car (supervisor-children s))) (removed (supervisor-remove! s 'a)) (left (map car (supervisor-children s))))
      (supervisor-stop! s)
      (list (process? b) ids removed left (process-alive? b)))))
(test-error (supervisor-children (let ((s (make-supervisor 'one-for-one 1 1))) (supervisor-stop! s) s)))
(test-error (make-supervisor 'none 1 1))
(test-error (make-supervisor 'one-for-one 1 1 '(a)))

(finish)
