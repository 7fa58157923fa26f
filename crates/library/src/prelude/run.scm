;;; The first form of the prelude, which runs all others. Boot calls its definition directly.

(define (%run-program source)
  (let loop ()
    (let ((thunk (%next-form source)))
      (if thunk
          (begin (thunk) (loop))))))
