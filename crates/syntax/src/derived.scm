;;; Derived forms that are macros of the system environment.
;;; Names that begin with % are not exported.

;; SRFI 26: (cut f <> x <...>) is a procedure whose parameters are the slots.
(define-syntax cut
  (syntax-rules ()
    ((_ . slots-or-expressions) (%cut () () . slots-or-expressions))))

(define-syntax %cut
  (syntax-rules (<> <...>)
    ((_ (slot ...) (procedure argument ...))
     (lambda (slot ...) ((begin procedure) argument ...)))
    ((_ (slot ...) (procedure argument ...) <...>)
     (lambda (slot ... . rest) (apply procedure argument ... rest)))
    ((_ (slot ...) (position ...) <> . more)
     (%cut (slot ... x) (position ... x) . more))
    ((_ (slot ...) (position ...) expression . more)
     (%cut (slot ...) (position ... expression) . more))))

;; As cut, but expressions that are not slots are evaluated once, when the procedure is made.
(define-syntax cute
  (syntax-rules ()
    ((_ . slots-or-expressions) (%cute () () () . slots-or-expressions))))

(define-syntax %cute
  (syntax-rules (<> <...>)
    ((_ (slot ...) bindings (procedure argument ...))
     (let bindings (lambda (slot ...) (procedure argument ...))))
    ((_ (slot ...) bindings (procedure argument ...) <...>)
     (let bindings (lambda (slot ... . rest) (apply procedure argument ... rest))))
    ((_ (slot ...) bindings (position ...) <> . more)
     (%cute (slot ... x) bindings (position ... x) . more))
    ((_ slots (binding ...) (position ...) expression . more)
     (%cute slots (binding ... (t expression)) (position ... t) . more))))

;; SRFI 31.
(define-syntax rec
  (syntax-rules ()
    ((_ (name . formals) body ...) (letrec ((name (lambda formals body ...))) name))
    ((_ name expression) (letrec ((name expression)) name))))

;; Assigns variables for the dynamic extent of a body.
(define-syntax fluid-let
  (syntax-rules ()
    ((_ () body ...) (let () body ...))
    ((_ ((variable value) ...) body ...)
     (%fluid-let () ((variable value) ...) body ...))))

(define-syntax %fluid-let
  (syntax-rules ()
    ((_ ((variable value inside outside) ...) () body ...)
     (let ((inside value) ... (outside #f) ...)
       (dynamic-wind
        (lambda () (set! outside variable) ... (set! variable inside) ...)
        (lambda () body ...)
        (lambda () (set! inside variable) ... (set! variable outside) ...))))
    ((_ (done ...) ((variable value) more ...) body ...)
     (%fluid-let (done ... (variable value inside outside)) (more ...) body ...))))

;; Makes procedures report each call. Without names, lists the procedures that do.
(define-syntax trace
  (syntax-rules ()
    ((_) (%traced-names))
    ((_ name ...) (begin (set! name (%trace 'name name)) ...))))

(define-syntax untrace
  (syntax-rules ()
    ((_ name ...) (begin (set! name (%untrace name)) ...))))

;; Waits for the first of several channels. A clause begins with the wait as it would be written
;; alone: ((channel-receive c [when-closed]) body ...), ((name (channel-receive c [when-closed]))
;; body ...), ((channel-send! c message) body ...), and at most one of ((thread-sleep! limit) body
;; ...) and (else body ...).
(define-syntax select
  (syntax-rules ()
    ((_ clause ...) (%select () () clause ...))))

(define-syntax %select
  (syntax-rules (channel-receive channel-send! thread-sleep! else)
    ((_ (case ...) end ((channel-send! channel message) body0 body ...) . more)
     (%select (case ... ((list 'send channel message) ignored body0 body ...)) end . more))
    ((_ (case ...) end ((channel-receive channel . closed) body0 body ...) . more)
     (%select (case ... ((list 'receive channel . closed) ignored body0 body ...)) end . more))
    ((_ (case ...) end ((name (channel-receive channel . closed)) body0 body ...) . more)
     (%select (case ... ((list 'receive channel . closed) name body0 body ...)) end . more))
    ((_ cases () ((thread-sleep! limit) body0 body ...) . more)
     (%select cases (limit body0 body ...) . more))
    ((_ cases () (else body0 body ...) . more)
     (%select cases (0 body0 body ...) . more))
    ((_ ((case name body ...) ...) ())
     (%channel-select (list case ...) #f
      (lambda (index message) (%selected index message (name body ...) ...))))
    ((_ ((case name body ...) ...) (limit otherwise ...))
     (%channel-select (list case ...) limit
      (lambda (index message)
        (if index
            (%selected index message (name body ...) ...)
            (let () otherwise ...)))))
    ((_ cases end clause . more)
     (syntax-error "select: no clause, or a second limit" clause))))

;; The body of the case with this index.
(define-syntax %selected
  (syntax-rules ()
    ((_ index message) #f)
    ((_ index message (name body ...)) (let ((name message)) body ...))
    ((_ index message (name body ...) . more)
     (if (eqv? index 0)
         (let ((name message)) body ...)
         (let ((rest (- index 1))) (%selected rest message . more))))))
