;;; Policies of the system, written in Lisp: a thread that is asked, and answers with orders.

;; `decide` is called with what has happened, and has `seconds` to return its orders, one unless told otherwise.
(define (install-policy! kind decide . seconds)
  (if (not (procedure? decide)) (%wrong-type 'install-policy! 2 "procedure" decide))
  (%install-policy!
    kind
    (make-thread
      (lambda () (let loop () (%answer kind (decide (%await-question kind))) (loop)))
      (string->symbol (string-append (symbol->string kind) "-policy")))
    (if (null? seconds) 1 (car seconds))))
