;; Paper 3: each node of a program adds one to a number that all share.
;;   kyocho dsm run -n 3 examples/count.scm

(import (scheme base) (scheme write) (kyocho dsm))

(define counter (make-shared-vector 1))

(with-shared-lock 1
  (shared-vector-set! counter 0 (+ 1 (shared-vector-ref counter 0))))

(shared-barrier)

(if (= (shared-node) 0)
    (begin (write (shared-vector-ref counter 0)) (newline)))   ; as many as nodes
