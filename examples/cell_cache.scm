;; Paper 4: what a cell costs when each is a request to the system-call thread.
;;   kyocho --engine deep --cell-cache off run examples/cell_cache.scm
;;   kyocho --engine deep --cell-cache 100 run examples/cell_cache.scm

(define ack
  (lambda (m n)
    (cond ((= m 0) (+ n 1))
          ((= n 0) (ack (- m 1) 1))
          (else (ack (- m 1) (ack m (- n 1)))))))

(display (ack 2 3))
(newline)
