;;; Prompts and composable continuations, in Racket's terms (Flatt, Yu, Findler, Felleisen, Adding
;;; delimited and composable control to a production programming environment, ICFP 2007).
;;;
;;; A prompt is an association in the list of parameters: tag to prompt. So it is part of every
;;; continuation. Code that runs inside finds it, and it is gone when control leaves, like a
;;; parameter's value.
;;;
;;;    parameters:  (q . 2) (tag . prompt) (p . 1) ...       innermost first
;;;    frames:      newest ... | base of the prompt | ...
;;;                 `- a piece: what a composable continuation puts on top of its caller's frames
;;;
;;; A composable continuation is a list of pieces, outermost first. It is cut at prompts with other
;;; tags, because these get a new base each time. The winders, handlers and parameters of a piece
;;; are those added since its base. Frames remove their own entries one by one (control.scm), so
;;; pieces work on top of any frames.

(define-record-type %prompt-tag (%make-prompt-tag name) continuation-prompt-tag? (name %prompt-tag-name))

(define-record-type %prompt (%make-prompt base winders handlers handler thread) %prompt?
  (base %prompt-base) (winders %prompt-winders) (handlers %prompt-handlers) (handler %prompt-handler)
  (thread %prompt-thread))

;; Passed to a base instead of a value when control leaves the prompt: a thunk to run outside.
(define-record-type %departure (%make-departure thunk) %departure? (thunk %departure-thunk))

(define-record-type %piece (%make-piece entry base end winders handlers parameters before) %piece?
  (entry %piece-entry)              ; (tag . prompt) at its base
  (base %piece-base)
  (end %piece-end)                  ; the continuation at its other end
  (winders %piece-winders)          ; those added, outermost first
  (handlers %piece-handlers)        ; those added, innermost first; or the number removed
  (parameters %piece-parameters)    ; those added, innermost first
  (before %piece-before))           ; numbers of handlers and parameters at its base

(define (make-continuation-prompt-tag . name)
  (%make-prompt-tag (if (pair? name) (car name) #f)))

(define %default-tag (%make-prompt-tag 'default))

(define (default-continuation-prompt-tag) %default-tag)

(define (%tag-of who rest)
  (let ((tag (if (pair? rest) (car rest) %default-tag)))
    (if (not (continuation-prompt-tag? tag))
        (error (string-append who ": not a continuation prompt tag") tag))
    tag))

;; The list of parameters from the prompt of `tag` on; #f if this thread has none.
(define (%prompt-place tag)
  (let ((place (%entries-from tag (%parameters))))
    (and place (eq? (%prompt-thread (cdar place)) (current-thread)) place)))

(define (%entries-from key entries)
  (cond ((null? entries) #f)
        ((eq? (caar entries) key) entries)
        (else (%entries-from key (cdr entries)))))

(define (%require-prompt who tag)
  (or (%prompt-place tag)
      (error (string-append who
                            (if (%entries-from tag (%parameters))
                                ": the prompt with this tag is another thread's"
                                ": no prompt with this tag is around"))
             tag)))

(define (continuation-prompt-available? . tag)
  (if (%prompt-place (%tag-of "continuation-prompt-available?" tag)) #t #f))

;; (call-with-continuation-prompt thunk [tag [handler]])
(define (call-with-continuation-prompt thunk . rest)
  (let ((tag (%tag-of "call-with-continuation-prompt" rest))
        (handler (if (and (pair? rest) (pair? (cdr rest))) (cadr rest) #f)))
    (if (not (procedure? thunk))
        (error "call-with-continuation-prompt: not a procedure" thunk))
    (if (not (or (not handler) (procedure? handler)))
        (error "call-with-continuation-prompt: not a procedure" handler))
    (%under-prompt tag (or handler (%default-handler tag)) thunk)))

;; An abort passes a thunk, which runs under a new prompt.
(define (%default-handler tag)
  (lambda (thunk) (call-with-continuation-prompt thunk tag)))

(define (%under-prompt tag handler thunk)
  (let ((result
         (call/cc
          (lambda (base)
            (%set-parameters!
             (cons (cons tag (%make-prompt base (%winders) (%handlers) handler (current-thread)))
                   (%parameters)))
            (thunk)))))
    (if (%departure? result)
        ((%departure-thunk result))
        (begin
          (%set-parameters! (cdr (%parameters)))
          result))))

(define (abort-to-prompt tag . values)
  (let* ((tag (%tag-of "abort-to-prompt" (list tag)))
         (prompt (cdar (%require-prompt "abort-to-prompt" tag))))
    ((%prompt-base prompt)
     (%make-departure (lambda () (apply (%prompt-handler prompt) values))))))

;; (call-with-composable-continuation procedure [tag])
(define (call-with-composable-continuation procedure . rest)
  (let ((tag (%tag-of "call-with-composable-continuation" rest)))
    (if (not (procedure? procedure))
        (error "call-with-composable-continuation: not a procedure" procedure))
    (%require-prompt "call-with-composable-continuation" tag)
    (call/cc
     (lambda (end)
       (let ((pieces (%pieces-to tag end)))
         (procedure
          (lambda values
            (%put-on pieces (lambda () (apply %values values))))))))))

;; The pieces between `end`, the current continuation, and the prompt of `tag`.
(define (%pieces-to tag end)
  (let cut ((end end) (winders (%winders)) (handlers (%handlers)) (parameters (%parameters)) (pieces '()))
    (let collect ((rest parameters) (added '()))
      (if (not (%prompt? (cdar rest)))
          (collect (cdr rest) (cons (car rest) added))
          (let* ((entry (car rest))
                 (prompt (cdr entry))
                 (piece (%make-piece entry (%prompt-base prompt) end
                                     (%added-winders winders (%prompt-winders prompt))
                                     (%added-handlers handlers (%prompt-handlers prompt))
                                     (reverse added)
                                     (cons (length (%prompt-handlers prompt)) (length rest)))))
            (if (eq? (car entry) tag)
                (cons piece pieces)
                (cut (%prompt-base prompt) (%prompt-winders prompt) (%prompt-handlers prompt)
                     (cdr rest) (cons piece pieces))))))))

(define (%added-winders winders base)
  (let loop ((winders winders) (added '()))
    (if (eq? winders base) added (loop (cdr winders) (cons (car winders) added)))))

(define (%added-handlers handlers base)
  (let ((more (- (length handlers) (length base))))
    (if (< more 0) (- more) (%first more handlers))))

(define (%first count list)
  (if (= count 0) '() (cons (car list) (%first (- count 1) (cdr list)))))

;; Calls `thunk` in the frames of the pieces, on top of the current frames.
(define (%put-on pieces thunk)
  (let* ((piece (car pieces))
         (before (%piece-before piece))
         (handlers (%handlers))
         (parameters (%parameters)))
    (%wind-piece (%piece-winders piece)
                 (lambda (then) (%rebased then (car before) handlers))
                 (lambda (then) (%rebased then (cdr before) parameters)))
    (%set-handlers! (%with-added (%piece-handlers piece) handlers))
    (%set-parameters! (append (%piece-parameters piece) parameters))
    (%splice (%piece-base piece) (%piece-end piece)
             (if (null? (cdr pieces))
                 thunk
                 (lambda () (%put-on-prompt (cdr pieces) thunk))))))

;; As %put-on, at the base of an inner prompt, which is set up again here.
(define (%put-on-prompt pieces thunk)
  (let* ((entry (%piece-entry (car pieces)))
         (handler (%prompt-handler (cdr entry))))
    (call/cc
     (lambda (base)
       (%set-parameters!
        (cons (cons (car entry)
                    (%make-prompt base (%winders) (%handlers) handler (current-thread)))
              (%parameters)))
       (%put-on pieces thunk)))))

;; Replaces the base of a list: `list` was captured over a base of length `length-then`, and now has
;; `base` there.
(define (%rebased list length-then base)
  (let ((more (- (length list) length-then)))
    (if (< more 0) base (append (%first more list) base))))

(define (%with-added added handlers)
  (if (pair? added)
      (append added handlers)
      (let drop ((fewer (if (null? added) 0 added)) (handlers handlers))
        (if (or (= fewer 0) (null? handlers)) handlers (drop (- fewer 1) (cdr handlers))))))

;; Runs the before procedures, outermost first, each with the winders that its dynamic-wind now has.
(define (%wind-piece winders handlers-of parameters-of)
  (if (pair? winders)
      (let* ((then (car winders))
             (winder (cons* (car then) (cadr then)
                            (handlers-of (caddr then)) (parameters-of (cdddr then)))))
        (%call-where-wound (car winder) winder)
        (%set-winders! (cons winder (%winders)))
        (%wind-piece (cdr winders) handlers-of parameters-of))))
