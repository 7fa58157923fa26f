;;; Threads as objects: those of the same account, by number.

(define (threads) (map (lambda (entry) (vector-ref entry 1)) (%threads)))

(define (%thread who id)
  (let ((entry (find (lambda (entry) (eqv? (vector-ref entry 0) id)) (%threads))))
    (if entry
        (vector-ref entry 1)
        (error (string-append who ": you have no such thread") id))))

(define (%padded object width)
  (let ((text (call-with-output-string (lambda (port) (display object port)))))
    (string-append (make-string (max 0 (- width (string-length text))) #\space) text)))

;; Shows a line for each thread: number, priority, cells taken, name, what it waits for.
(define (ps)
  (display "    ID PRI      CELLS NAME\n")
  (for-each
   (lambda (entry)
     (let ((thread (vector-ref entry 1)) (waits-for (vector-ref entry 2)))
       (display (%padded (vector-ref entry 0) 6))
       (display (%padded (thread-priority thread) 4))
       (display (%padded (vector-ref entry 3) 11))
       (display " ")
       (display (vector-ref entry 6))
       (if waits-for (begin (display ", waits for ") (display waits-for)))
       (newline)))
   (%threads)))

(define (kill id) (thread-terminate! (%thread "kill" id)))
(define (suspend id) (%suspend (%thread "suspend" id)))
(define (resume id) (%resume (%thread "resume" id)))
(define (set-priority! id priority) (thread-priority-set! (%thread "set-priority!" id) priority))

;; Waits for the first of several cases, (receive channel [when-closed]) or (send channel message).
;; Returns its index and its message, or #f and #f.
(define channel-select
  (case-lambda
    ((cases) (%channel-select cases #f values))
    ((cases timeout) (%channel-select cases timeout values))))
