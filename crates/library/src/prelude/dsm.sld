;;; Shared memory across nodes (paper 3): vectors that all nodes of a program share, locks,
;;; conditions, barriers.
;;;
;;; `kyocho dsm run -n N FILE` runs a program on N nodes; each node runs all of it. Writes under a
;;; lock become visible to the next node that acquires the lock; all other writes become visible
;;; after a barrier. Locks and conditions are numbers. One thread of a node crosses a barrier for
;;; the whole node; its other threads must not use shared vectors meanwhile.
;;;
;;; (shared-join! bytes locks) sets the amount of memory and the number of locks; by default 64 MiB
;;; and 4,096. It must come first and be the same on all nodes. Managers of locks and of pages move
;;; at the next barrier; the pages are those of the elements from START to before END.
;;; (shared-statistics) is an association list of this node's counters.

(define-library (kyocho dsm)
  (import (scheme base)
          (only (kyocho) shared-join! shared-statistics shared-move-lock! shared-vector-move! shared-node shared-nodes shared-vector-place shared-vector-allocate! shared-vector? shared-vector-length
                shared-region-place shared-region-make! shared-region? shared-region-address
                shared-vector-ref shared-vector-set! shared-acquire! shared-unlock! shared-wait!
                shared-signal! shared-broadcast! shared-cross!))
  (export
   shared-join! shared-statistics shared-move-lock! shared-vector-move!
   make-shared-region shared-region? shared-region-address
   shared-node shared-nodes make-shared-vector shared-vector shared-vector? shared-vector-length
   shared-vector-ref shared-vector-set! shared-vector->list shared-lock! shared-lock-try!
   shared-snapshot! shared-unlock! shared-wait! shared-signal! shared-broadcast! shared-barrier
   with-shared-lock with-shared-snapshot)
  (begin

    ;; (make-shared-region bytes [address]): more shared memory, in the space of 2^64 bytes. The
    ;; address must begin a page; without one, the first place with enough room is taken. All nodes
    ;; must make the same regions in the same order. Crosses a barrier.
    (define (make-shared-region bytes . address)
      (apply shared-region-make! (shared-region-place) bytes address))

    ;; (make-shared-vector length [fill [region]]). All nodes must make the same vectors in the same
    ;; order; the initial values are those of node 0. Both procedures cross barriers.
    (define (make-shared-vector length . fill)
      (let ((vector (apply shared-vector-allocate! (shared-vector-place) length
                           (if (pair? fill) (cdr fill) '()))))
        (if (pair? fill)
            (begin
              (if (= (shared-node) 0)
                  (do ((i 0 (+ i 1))) ((= i length)) (shared-vector-set! vector i (car fill))))
              (shared-barrier)))
        vector))

    (define (shared-vector . objects)
      (let ((vector (make-shared-vector (length objects))))
        (if (= (shared-node) 0)
            (do ((i 0 (+ i 1)) (rest objects (cdr rest)))
                ((null? rest))
              (shared-vector-set! vector i (car rest))))
        (shared-barrier)
        vector))

    (define (shared-vector->list vector)
      (let loop ((i (- (shared-vector-length vector) 1)) (objects '()))
        (if (< i 0)
            objects
            (loop (- i 1) (cons (shared-vector-ref vector i) objects)))))

    ;; A thread that was interrupted and continues has not acquired the lock.
    (define (shared-lock! lock) (if (not (shared-acquire! lock #t #t)) (shared-lock! lock)))
    (define (shared-lock-try! lock) (shared-acquire! lock #t #f))
    (define (shared-snapshot! lock) (if (not (shared-acquire! lock #f #t)) (shared-snapshot! lock)))

    (define (shared-barrier . kind)
      (cond ((null? kind) (shared-cross! #f))
            ((eq? (car kind) 'single-read-write) (shared-cross! #t))
            ((eq? (car kind) 'ordinary) (shared-cross! #f))
            (else (error "shared-barrier: ordinary or single-read-write" (car kind)))))

    ;; The lock is released whenever control leaves the body, and acquired again whenever control
    ;; re-enters it.
    (define-syntax with-shared-lock
      (syntax-rules ()
        ((_ lock body0 body ...)
         (let ((number lock))
           (dynamic-wind
             (lambda () (shared-lock! number))
             (lambda () body0 body ...)
             (lambda () (shared-unlock! number)))))))

    ;; As with-shared-lock, for a reader: waits for a writer, and does not exclude other nodes.
    (define-syntax with-shared-snapshot
      (syntax-rules ()
        ((_ lock body0 body ...)
         (let ((number lock))
           (dynamic-wind
             (lambda () (shared-snapshot! number))
             (lambda () body0 body ...)
             (lambda () (shared-unlock! number)))))))))
