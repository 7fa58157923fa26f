;;; Guardians: (make-guardian) gives a procedure. Called with an object, it watches over it; without, it returns one
;;; that nothing else leads to any more, or #f. What the collector does is in heap/guardians.rs.

(define (make-guardian)
  (let ((guardian (%make-guardian)))
    (case-lambda
      (() (%guardian-take! guardian))
      ((object) (%guardian-watch! guardian object)))))
