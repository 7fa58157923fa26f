;;; Gates: a server that starts a thread for each call, at the caller's priority.

(define (gate-serve path handler)
  (if (not (procedure? handler)) (%wrong-type 'gate-serve 2 "procedure" handler))
  (let ((server (%gate-bind path)))
    (spawn (lambda () (%gate-attend server handler)) 'gate)
    server))

(define (%gate-attend server handler)
  (let ((call (%gate-accept server)))
    (if call
        (begin
          (spawn (lambda () (%gate-answer call handler)) 'gate-call)
          (%gate-attend server handler)))))

;; The caller gets an answer however the thread ends. Answers after the first are ignored.
(define (%gate-answer call handler)
  (thread-priority-set! (current-thread) (%gate-request-priority call))
  (dynamic-wind
    (lambda () #f)
    (lambda ()
      (guard (condition (#t (%gate-fail! call) (raise condition)))
        (%gate-reply! call
          (handler (%gate-request-method call) (%gate-request-bytes call)))))
    (lambda () (%gate-fail! call))))
