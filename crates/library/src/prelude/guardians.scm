;;; Guardians: (make-guardian) returns a procedure. Called with an object, it registers the object.
;;; Called without arguments, it returns a registered object that is otherwise unreachable, or #f.
;;; For the collector's part see heap/guardians.rs.

(define (make-guardian)
  (let ((guardian (%make-guardian)))
    (case-lambda
      (() (%guardian-take! guardian))
      ((object) (%guardian-watch! guardian object)))))
