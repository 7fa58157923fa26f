;;; Supervisors: processes that start other processes, and restart them when they end (Armstrong,
;;; 2003, ch. 5).
;;;
;;;    strategy   one-for-one    restarts the process that ended
;;;               one-for-all    restarts all
;;;               rest-for-one   restarts it, and those started after it
;;;    restart    permanent      always
;;;               transient      unless it ended normally, or by shutdown
;;;               temporary      never
;;;
;;; A supervisor that exceeds its number of restarts in its period ends with all its children. Its
;;; own supervisor then decides what to do.

(define-library (kyocho supervisor)
  (import (scheme base) (srfi 18) (kyocho mailbox))
  (export make-supervisor supervisor-children supervisor-add! supervisor-remove! supervisor-stop!)
  (begin

    ;; Seconds that a child has to end before it is killed.
    (define patience 5)

    (define-record-type child
      (make-child id thunk restart process)
      child?
      (id child-id)
      (thunk child-thunk)
      (restart child-restart)
      (process child-process set-child-process!))

    ;; (make-supervisor strategy restarts seconds (id thunk [restart]) ...): a supervisor linked to
    ;; the caller.
    (define (make-supervisor strategy restarts seconds . specifications)
      (check (memq strategy '(one-for-one one-for-all rest-for-one))
             "the strategy must be one-for-one, one-for-all or rest-for-one" strategy)
      (check (and (exact-integer? restarts) (>= restarts 0)) "restarts must be 0 or more" restarts)
      (check (and (real? seconds) (> seconds 0)) "the period must be more than 0 seconds" seconds)
      (let ((children (map specified specifications)))
        (spawn-linked
         (lambda ()
           (trap-exits! #t)
           (for-each start! children)
           (supervise strategy restarts seconds children '()))
         'supervisor)))

    (define (check ok? message object)
      (if (not ok?) (error (string-append "supervisor: " message) object)))

    (define (specified specification)
      (check (and (list? specification) (<= 2 (length specification) 3)
                  (procedure? (cadr specification)))
             "a child is (id thunk [restart])" specification)
      (let ((restart (if (null? (cddr specification)) 'permanent (car (cddr specification)))))
        (check (memq restart '(permanent transient temporary))
               "restart must be permanent, transient or temporary" restart)
        (make-child (car specification) (cadr specification) restart #f)))

    (define (start! child)
      (set-child-process! child (spawn-linked (child-thunk child) (child-id child))))

    ;; Ends a child and waits until it has ended.
    (define (stop! child)
      (let ((process (child-process child)))
        (define (its-end? message)
          (and (exit? message) (eq? (vector-ref message 1) process)))
        (if (and process (process-alive? process))
            (begin
              (exit-process! process 'shutdown)
              (if (not (receive-message its-end? patience #f))
                  (begin
                    (exit-process! process 'kill)
                    (receive-message its-end?)))))
        (set-child-process! child #f)))

    (define (exit? message) (and (vector? message) (= (vector-length message) 3)
                                 (eq? (vector-ref message 0) 'exit)))

    ;; `times` are the times of the restarts within the period, the newest first.
    (define (supervise strategy restarts seconds children times)
      (let ((message (receive-message)))
        (cond ((exit? message)
               (let ((ended (find-child (lambda (child) (eq? (child-process child) (vector-ref message 1)))
                                        children)))
                 (cond (ended
                        (recover strategy restarts seconds children times ended (vector-ref message 2)))
                       ;; A linked process has ended, or requests an end. It is not a child that
                       ;; this supervisor has stopped.
                       ((eq? (vector-ref message 2) 'normal)
                        (supervise strategy restarts seconds children times))
                       (else (finish! children (vector-ref message 2))))))
              ((procedure? message)
               (supervise strategy restarts seconds (message children) times))
              (else (supervise strategy restarts seconds children times)))))

    (define (recover strategy restarts seconds children times ended reason)
      (set-child-process! ended #f)
      (if (stays-ended? ended reason)
          (supervise strategy restarts seconds children times)
          (let* ((now (time->seconds (current-time)))
                 (times (cons now (recent times (- now seconds)))))
            (if (> (length times) restarts)
                (finish! children 'too-many-restarts)
                (begin
                  (restart! strategy children ended)
                  (supervise strategy restarts seconds children times))))))

    (define (stays-ended? child reason)
      (case (child-restart child)
        ((permanent) #f)
        ((transient) (and (memq reason '(normal shutdown)) #t))
        (else #t)))

    (define (recent times since)
      (let loop ((times times) (kept '()))
        (if (or (null? times) (< (car times) since))
            (reverse kept)
            (loop (cdr times) (cons (car times) kept)))))

    (define (restart! strategy children ended)
      (let ((concerned (case strategy
                         ((one-for-one) (list ended))
                         ((one-for-all) children)
                         (else (memq ended children)))))
        (for-each stop! (reverse concerned))
        (for-each (lambda (child)
                    (if (or (eq? child ended) (not (eq? (child-restart child) 'temporary)))
                        (start! child)))
                  concerned)))

    (define (finish! children reason)
      (for-each stop! (reverse children))
      (trap-exits! #f)
      (exit-process! (self) reason))

    (define (find-child ok? children)
      (cond ((null? children) #f)
            ((ok? (car children)) (car children))
            (else (find-child ok? (cdr children)))))

    ;; Makes the supervisor call `change` with its children. `change` returns the new children and a
    ;; result; the result is returned. An error if the supervisor ends first.
    (define (ask supervisor change)
      (let ((reference (monitor! supervisor)) (me (self)) (mark (list 'answer)))
        (send! supervisor
               (lambda (children)
                 (call-with-values (lambda () (change children))
                   (lambda (children result)
                     (send! me (vector mark result))
                     children))))
        (let ((answer (receive-message
                       (lambda (message)
                         (and (vector? message) (> (vector-length message) 1)
                              (or (eq? (vector-ref message 0) mark)
                                  (eq? (vector-ref message 1) reference)))))))
          (demonitor! supervisor reference)
          (if (eq? (vector-ref answer 0) mark)
              (vector-ref answer 1)
              (error "supervisor: it has ended" supervisor)))))

    ;; ((id . process) ...); #f in place of a process that has ended permanently.
    (define (supervisor-children supervisor)
      (ask supervisor
           (lambda (children)
             (values children
                     (map (lambda (child) (cons (child-id child) (child-process child))) children)))))

    ;; (supervisor-add! supervisor id thunk [restart]): returns the new process.
    (define (supervisor-add! supervisor . specification)
      (let ((child (specified specification)))
        (ask supervisor
             (lambda (children)
               (start! child)
               (values (append children (list child)) (child-process child))))))

    ;; Ends a child permanently. Returns whether it existed.
    (define (supervisor-remove! supervisor id)
      (ask supervisor
           (lambda (children)
             (let ((child (find-child (lambda (child) (equal? (child-id child) id)) children)))
               (if child (stop! child))
               (values (let loop ((rest children) (kept '()))
                         (cond ((null? rest) (reverse kept))
                               ((eq? (car rest) child) (loop (cdr rest) kept))
                               (else (loop (cdr rest) (cons (car rest) kept)))))
                       (and child #t))))))

    ;; Ends the supervisor and all its children, and waits until they have ended.
    (define (supervisor-stop! supervisor)
      (let ((reference (monitor! supervisor)))
        (unlink! supervisor)
        (exit-process! supervisor 'shutdown)
        (receive-message
         (lambda (message)
           (and (vector? message) (= (vector-length message) 4) (eq? (vector-ref message 1) reference))))
        #t))))
