;;; Control: multiple values, dynamic-wind, exceptions, parameters, promises. Names that begin with
;;; % are for the prelude and the machine; no library exports them.

(define (call-with-values producer consumer)
  (%apply-values consumer (producer)))

(define (%call-with-values producer consumer)
  (%apply-values consumer (producer)))

;; dynamic-wind: the list of winders is part of every continuation. A winder is (before after
;; handlers . parameters): R7RS requires both to run in the dynamic environment of the call of
;; dynamic-wind, wherever control comes from or goes to.

(define (dynamic-wind before thunk after)
  (before)
  (%set-winders! (cons (cons* before after (%handlers) (%parameters)) (%winders)))
  (let ((result (thunk)))
    (%set-winders! (cdr (%winders)))
    (after)
    result))

(define (%common-tail a b)
  (let ((la (length a)) (lb (length b)))
    (let loop ((a (if (> la lb) (list-tail a (- la lb)) a))
               (b (if (> lb la) (list-tail b (- lb la)) b)))
      (if (eq? a b) a (loop (cdr a) (cdr b))))))

(define (%call-where-wound thunk winder)
  (%set-handlers! (caddr winder))
  (%set-parameters! (cdddr winder))
  (thunk))

;; Runs the after procedures from here out to the common tail, then the before procedures inwards.
(define (%rewind-to winders)
  (let ((common (%common-tail (%winders) winders)))
    (let out ()
      (if (not (eq? (%winders) common))
          (let ((winder (car (%winders))))
            (%set-winders! (cdr (%winders)))
            (%call-where-wound (cadr winder) winder)
            (out))))
    (let in ((target winders))
      (if (not (eq? target common))
          (begin
            (in (cdr target))
            (%call-where-wound (caar target) (car target))
            (%set-winders! target))))))

(define (%rewind continuation values)
  (%rewind-to (%continuation-winders continuation))
  (%reinstate continuation values))

(define (%unwind-all)
  (%rewind-to '()))

;; Run by a terminated thread. There are no handlers, because one of them might keep the thread
;; alive.
(define (%unwind-terminated)
  (if (pair? (%winders))
      (let ((winder (car (%winders))))
        (%set-winders! (cdr (%winders)))
        ((cadr winder))
        (%unwind-terminated))))

;; Exceptions: the handlers are part of every continuation. A handler runs with the outer handlers.
;; Frames remove their own handlers and put them back, whatever is below. The reason is that a
;; composable continuation (prompts.scm) can run them on top of other frames.

(define (with-exception-handler handler thunk)
  (if (not (procedure? handler))
      (error "with-exception-handler: the handler must be a procedure" handler))
  (%set-handlers! (cons handler (%handlers)))
  (let ((result (thunk)))
    (%set-handlers! (cdr (%handlers)))
    result))

(define (%raise object continuable?)
  (let ((handlers (%handlers)))
    (if (null? handlers)
        (%uncaught object)
        (let ((handler (car handlers)))
          (%set-handlers! (cdr handlers))
          (let* ((returned (handler object))
                 (result (if continuable? returned (%raise (%raise-secondary object) #f))))
            (%set-handlers! (cons handler (%handlers)))
            result)))))

(define (raise object) (%raise object #f))
(define (raise-continuable object) (%raise object #t))

(define (%with-guard handler body)
  ((call/cc
    (lambda (guard-k)
      (let ((result
             (with-exception-handler
              (lambda (condition)
                ((call/cc
                  (lambda (handler-k)
                    (guard-k
                     (lambda ()
                       (handler condition
                                (lambda ()
                                  (handler-k
                                   (lambda ()
                                     (raise-continuable condition)))))))))))
              body)))
        (lambda () result))))))

;; Parameters.

(define make-parameter
  (case-lambda
    ((value) (%make-parameter value #f))
    ((value converter) (%make-parameter (converter value) converter))))

(define (%parameterize bindings thunk)
  (let loop ((bindings bindings) (new '()))
    (if (null? bindings)
        (let ((count (length new)))
          (%set-parameters! (append new (%parameters)))
          (let ((result (thunk)))
            (%set-parameters! (list-tail (%parameters) count))
            result))
        (let ((parameter (caar bindings)) (value (cdar bindings)))
          (if (not (%parameter? parameter))
              (error "parameterize: not a parameter" parameter))
          (let ((converter (%parameter-converter parameter)))
            (loop (cdr bindings)
                  (cons (cons parameter (if converter (converter value) value))
                        new)))))))

;; Promises (R7RS 4.2.5): forcing a chain of delay-force takes constant space.

(define (%delay-force thunk) (%make-promise #f thunk))

(define (make-promise value)
  (if (promise? value) value (%make-promise #t value)))

(define (force promise)
  (if (promise? promise)
      (let loop ()
        (let ((state (%promise-state promise)))
          (if (car state)
              (cdr state)
              (let* ((next ((cdr state)))
                     (state (%promise-state promise)))
                (if (not (car state))
                    (let ((other (if (promise? next)
                                     (%promise-state next)
                                     (error "force: what delay-force was given is no promise:" next))))
                      (set-car! state (car other))
                      (set-cdr! state (cdr other))
                      (%set-promise-state! next state)))
                (loop)))))
      promise))

(define exit
  (case-lambda
    (() (exit #t))
    ((object) (%unwind-all) (%exit object))))

;; Programs, texts, eval, load.

(define (%run-text source)
  (let loop ((results '()))
    (let ((thunk (%next-form source)))
      (if thunk
          (loop (cons (thunk) results))
          (reverse results)))))

;; Used when a prompt's standard input is not a terminal: the value of each form is written before
;; the next form runs.
(define (%run-and-print source)
  (let loop ()
    (let ((thunk (%next-form source)))
      (if thunk
          (begin
            (call-with-values thunk (lambda values (for-each %write-result values)))
            (loop))))))

(define (%write-result value)
  (if (not (eq? value (if #f #f)))
      (begin (write value) (newline))))

(define (%run-last source)
  (let loop ((result #f))
    (let ((thunk (%next-form source)))
      (if thunk (loop (thunk)) result))))

(define eval
  (case-lambda
    ((expression) (eval expression (interaction-environment)))
    ((expression environment) (%run-last (%source-of-datum expression environment)))))

(define load
  (case-lambda
    ((file) (load file (interaction-environment)))
    ((file environment) (%run-program (%source-of-file file environment)))))

(define (environment . import-sets)
  (let ((source (%source-of-imports import-sets)))
    (%run-program source)
    (%source-environment source)))

(define (current-exception-handler)
  (let ((handlers (%handlers)))
    (if (null? handlers) %uncaught (car handlers))))

;; (scheme r5rs): the version is ignored, because there is only one.
(define (scheme-report-environment version)
  (environment '(scheme r5rs)))

(define (null-environment version)
  (environment
   '(only (scheme r5rs)
          ... => _ and begin case cond define define-syntax delay do else if lambda let let*
          let-syntax letrec letrec-syntax or quasiquote quote set! syntax-rules unquote
          unquote-splicing)))
