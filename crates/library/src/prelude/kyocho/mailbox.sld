;;; Processes as in Erlang: threads with mailboxes, which are informed of one another's ends through
;;; links and monitors (Armstrong, Making reliable distributed systems, 2003).
;;;
;;;    a process ends --> each linked process ends too, for the same reason, unless that is normal;
;;;                       a process that traps exits gets #(exit process reason) instead
;;;                   --> each monitor gets #(down reference process reason)
;;;
;;; A reason is normal, a raised object, the reason passed to exit-process!, or killed. A thread
;;; that is not a process uses the mailbox of its session, from which one thread at a time may
;;; receive. (If thread-terminate! ends a thread before its process has begun, no process is
;;; informed. exit-process! does not have this gap.)

(define-library (kyocho mailbox)
  (import (scheme base) (srfi 18))
  (export spawn-process spawn-linked self process? process-name process-thread process-alive?
          send! receive-message mailbox-length link! unlink! monitor! demonitor! trap-exits!
          exit-process!)
  (begin

    (define-record-type process
      (make-process name lock changed arrived waiting links monitors traps? status asked begun? thread)
      process?
      (name process-name)
      (lock process-lock)
      (changed process-changed)
      (arrived arrived set-arrived!)          ; messages, the newest first
      (waiting waiting set-waiting!)          ; messages that the owner has taken in, the oldest first
      (links links set-links!)
      (monitors monitors set-monitors!)       ; (reference . mailbox)
      (traps? traps? set-traps!)
      (status status set-status!)             ; alive, or the reason why it ended
      (asked asked set-asked!)                ; the reason why it must end, or #f
      (begun? begun? set-begun!)              ; its thread has begun, and will report its end
      (thread process-thread set-thread!))

    (define (new-process name)
      (make-process name (make-mutex) (make-condition-variable) '() '() '() '() #f 'alive #f #f #f))

    ;; A thread that was ended while it held the lock has completed its one assignment, or has not
    ;; made it. So the state is consistent.
    (define (lock! process)
      (guard (e ((abandoned-mutex-exception? e) #t)) (mutex-lock! (process-lock process))))
    (define (unlock! process) (mutex-unlock! (process-lock process)))

    (define (locked process thunk)
      (lock! process)
      (let ((result (thunk)))
        (unlock! process)
        result))

    (define outside (new-process 'session))
    (define current (make-parameter outside))
    (define (self) (current))
    (define (process-alive? process) (eq? (status process) 'alive))

    ;; Processes.

    ;; (spawn-process thunk [name])
    (define (spawn-process thunk . name)
      (start (new-process (if (null? name) #f (car name))) thunk))

    ;; As spawn-process, linked to the caller from the beginning.
    (define (spawn-linked thunk . name)
      (let ((process (new-process (if (null? name) #f (car name)))))
        (tie! process (self))
        (start process thunk)))

    (define (start process thunk)
      (define (body)
        (dynamic-wind
         (lambda () #f)
         (lambda ()
           (set-begun! process #t)
           (with-exception-handler
            (lambda (condition) (end! process condition) (raise condition))
            (lambda () (parameterize ((current process)) (thunk))))
           (end! process 'normal))
         (lambda () (end! process (or (asked process) 'killed)))))
      (let ((thread (make-thread body (or (process-name process) 'process))))
        (set-thread! process thread)
        (thread-start! thread)
        process))

    ;; Informs all links and monitors. Only the first end counts.
    (define (end! process reason)
      (lock! process)
      (if (process-alive? process)
          (let ((linked (links process)) (watching (monitors process)))
            (set-status! process reason)
            (set-links! process '())
            (set-monitors! process '())
            (set-arrived! process '())
            (unlock! process)
            (for-each (lambda (other) (untie! other process) (signal! other process reason)) linked)
            (for-each (lambda (monitor) (send! (cdr monitor) (vector 'down (car monitor) process reason)))
                      watching))
          (unlock! process)))

    ;; Applies to a process the signal of `from`, which has ended or pretends to have.
    (define (signal! process from reason)
      (cond ((not (process-alive? process)) #f)
            ((eq? reason 'kill) (terminate! process 'killed))
            ((or (traps? process) (eq? process outside)) (send! process (vector 'exit from reason)))
            ((eq? reason 'normal) #f)
            (else (terminate! process reason))))

    (define (terminate! process reason)
      (if (eq? process outside)
          (error "exit-process!: this is no process of its own" process))
      (if (not (asked process)) (set-asked! process reason))
      (thread-terminate! (process-thread process))
      (if (not (begun? process)) (end! process (asked process))))

    ;; Ends a process as if a linked process had ended for this reason. The reason kill cannot be
    ;; trapped.
    (define (exit-process! process reason)
      (if (and (eq? process (self)) (not (traps? process)))
          (terminate! process reason)
          (signal! process (self) reason)))

    (define (trap-exits! on?) (set-traps! (self) on?))

    ;; Links and monitors.

    (define (adjoin x list) (if (memq x list) list (cons x list)))
    (define (without x list)
      (let loop ((list list) (kept '()))
        (cond ((null? list) (reverse kept))
              ((eq? x (car list)) (loop (cdr list) kept))
              (else (loop (cdr list) (cons (car list) kept))))))

    ;; Adds `other` to the links of the process. Returns whether the process is alive.
    (define (half-tie! process other)
      (locked process
        (lambda ()
          (and (process-alive? process)
               (begin (set-links! process (adjoin other (links process))) #t)))))
    (define (tie! a b) (and (half-tie! a b) (half-tie! b a)))
    (define (untie! process other)
      (locked process (lambda () (set-links! process (without other (links process))))))

    ;; A link to a process that has ended signals its end at once.
    (define (link! process)
      (half-tie! (self) process)
      (if (not (half-tie! process (self)))
          (begin
            (untie! (self) process)
            (signal! (self) process (status process)))))

    (define (unlink! process)
      (untie! (self) process)
      (untie! process (self)))

    ;; Returns the reference that will be in #(down reference process reason).
    (define (monitor! process)
      (let ((reference (list 'monitor)) (watcher (self)))
        (if (not (locked process
                   (lambda ()
                     (and (process-alive? process)
                          (begin
                            (set-monitors! process
                              (cons (cons reference watcher) (monitors process)))
                            #t)))))
            (send! watcher (vector 'down reference process (status process))))
        reference))

    (define (demonitor! process reference)
      (locked process
        (lambda ()
          (let ((entry (assq reference (monitors process))))
            (if entry (set-monitors! process (without entry (monitors process))))))))

    ;; Messages.

    ;; Never waits. Messages to a process that has ended are lost.
    (define (send! process message)
      (lock! process)
      (if (process-alive? process)
          (set-arrived! process (cons message (arrived process))))
      (condition-variable-signal! (process-changed process))
      (unlock! process))

    (define (mailbox-length)
      (let ((process (self)))
        (locked process (lambda () (+ (length (arrived process)) (length (waiting process)))))))

    ;; (receive-message [match? [timeout [default]]]): takes the oldest message that matches, and
    ;; leaves the others. Waits for one, for at most `timeout` seconds.
    (define (receive-message . options)
      (let* ((process (self))
             (match? (if (null? options) (lambda (message) #t) (car options)))
             (timeout (and (pair? options) (pair? (cdr options)) (cadr options)))
             (default (and timeout (pair? (cddr options)) (car (cddr options))))
             (until (and timeout (seconds->time (+ (time->seconds (current-time)) timeout)))))
        ;; The messages in `seen` do not match, the newest first; those in `left` are still to be
        ;; tested.
        (let look ((left (waiting process)) (seen '()))
          (cond ((null? left)
                 (set-waiting! process (reverse seen))
                 (let ((new (await-arrival process until)))
                   (if new (look new seen) default)))
                ((match? (car left))
                 (set-waiting! process (append-reverse seen (cdr left)))
                 (car left))
                (else (look (cdr left) (cons (car left) seen)))))))

    (define (append-reverse head tail)
      (if (null? head) tail (append-reverse (cdr head) (cons (car head) tail))))

    ;; The messages that have arrived, the oldest first; #f after the timeout.
    (define (await-arrival process until)
      (lock! process)
      (let ((new (reverse (arrived process))))
        (cond ((pair? new)
               (set-arrived! process '())
               (unlock! process)
               new)
              ((mutex-unlock! (process-lock process) (process-changed process) until)
               (await-arrival process until))
              (else
               (lock! process)
               (let ((last (reverse (arrived process))))
                 (set-arrived! process '())
                 (unlock! process)
                 (and (pair? last) last))))))))
