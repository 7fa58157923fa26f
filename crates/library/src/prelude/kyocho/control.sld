;;; Delimited control: shift and reset (Danvy, Filinski, Abstracting control, 1990), control and
;;; prompt (Felleisen, The theory and practice of first-class prompts, 1988), and the procedures
;;; that they are built on, with Racket's names.
;;;
;;;    (reset body ...)          = (prompt body ...): a prompt with the default tag
;;;    (shift k body ...)        the body replaces the frames inside the prompt; k restores them
;;;    (control k body ...)      as shift, but k calls them without a prompt
;;;    (shift0 k body ...), (control0 k body ...)   as shift and control, and the prompt is removed
;;;    reset-at, prompt-at, shift-at, ...           as above, with a tag as first operand

(define-library (kyocho control)
  (import (scheme base)
          (only (kyocho) make-continuation-prompt-tag continuation-prompt-tag?
                default-continuation-prompt-tag call-with-continuation-prompt abort-to-prompt
                call-with-composable-continuation continuation-prompt-available?))
  (export make-continuation-prompt-tag continuation-prompt-tag? default-continuation-prompt-tag
          call-with-continuation-prompt abort-to-prompt
          (rename abort-to-prompt abort-current-continuation)
          call-with-composable-continuation continuation-prompt-available?
          reset shift shift0 prompt control control0
          reset-at shift-at shift0-at prompt-at control-at control0-at)
  (begin

    (define (call tag thunk)
      (call-with-continuation-prompt thunk tag (lambda (thunk) (thunk))))

    (define (capture tag receive inside outside)
      (call-with-composable-continuation
       (lambda (k)
         (abort-to-prompt
          tag
          (lambda () (outside tag (lambda () (receive (inside tag k)))))))
       tag))

    (define (bare tag thunk) (thunk))
    (define (as-it-is tag k) k)
    (define (delimited tag k) (lambda values (call tag (lambda () (apply k values)))))

    (define-syntax reset-at
      (syntax-rules () ((_ tag body0 body ...) (call tag (lambda () body0 body ...)))))

    (define-syntax prompt-at
      (syntax-rules () ((_ tag body0 body ...) (call tag (lambda () body0 body ...)))))

    (define-syntax shift-at
      (syntax-rules ()
        ((_ tag k body0 body ...) (capture tag (lambda (k) body0 body ...) delimited call))))

    (define-syntax shift0-at
      (syntax-rules ()
        ((_ tag k body0 body ...) (capture tag (lambda (k) body0 body ...) delimited bare))))

    (define-syntax control-at
      (syntax-rules ()
        ((_ tag k body0 body ...) (capture tag (lambda (k) body0 body ...) as-it-is call))))

    (define-syntax control0-at
      (syntax-rules ()
        ((_ tag k body0 body ...) (capture tag (lambda (k) body0 body ...) as-it-is bare))))

    (define-syntax define-default
      (syntax-rules ()
        ((_ (name at) ...)
         (begin
           (define-syntax name
             (syntax-rules ()
               ((_ part (... ...)) (at (default-continuation-prompt-tag) part (... ...)))))
           ...))))

    (define-default
      (reset reset-at) (prompt prompt-at) (shift shift-at) (shift0 shift0-at)
      (control control-at) (control0 control0-at))))
