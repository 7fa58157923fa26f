;;; The first form of the prelude: what runs all others. Booting calls its definition directly.

(define (%run-program source)
  (let loop ()
    (let ((thunk (%next-form source)))
      (if thunk
          (begin (thunk) (loop))))))
