;;; Policies of the system, written in Lisp: a thread that receives events and answers with orders.

;; `decide` is called with the events, and has `seconds` (one by default) to return its orders.
(define (install-policy! kind decide . seconds)
  (if (not (procedure? decide)) (%wrong-type 'install-policy! 2 "procedure" decide))
  (%install-policy!
    kind
    (make-thread
      (lambda () (let loop () (%answer kind (decide (%await-question kind))) (loop)))
      (string->symbol (string-append (symbol->string kind) "-policy")))
    (if (null? seconds) 1 (car seconds))))
