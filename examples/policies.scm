;; Paper 4: policies of the scheduler and the collector, in Lisp, in a running system.
;;   kyocho run examples/policies.scm

;; Multi-level feedback. A thread that has run for long since the last report gets a lower priority;
;; one that has waited returns to its own. An event is #(number user state nanoseconds-run
;; own-priority). An order is (number . priority), or (number . #f) for the thread's own priority.
(define levels (make-hash-table eqv?))
(define (feedback events)
  (map (lambda (event)
         (let* ((number (vector-ref event 0))
                (own (vector-ref event 4))
                (level (hash-table-ref/default levels number own)))
           (if (and (eq? (vector-ref event 2) 'ready) (> (vector-ref event 3) 5000000))
               (let ((lower (max (- own 8) (- level 1) 0)))
                 (hash-table-set! levels number lower)
                 (cons number lower))
               (begin (hash-table-delete! levels number)
                      (cons number #f)))))
       (remove (lambda (event) (> (vector-ref event 4) 61)) events)))

;; Collects after as much allocation as there is live memory, 8 MiB at least. Free memory is returned
;; to the host.
(define (frugal collection)
  (let ((live (cdr (assq 'live-bytes collection))))
    (list (cons 'budget-bytes (max live (* 8 1024 1024)))
          (cons 'keep-bytes 0))))

(install-policy! 'scheduler feedback)
(install-policy! 'collector frugal)

;; A thread that computes, and one that waits until the first has a lower priority.
(define stop #f)
(define hog (spawn (lambda () (let loop ((n 0)) (if stop n (loop (+ n 1))))) 'hog))
(let wait ()
  (if (not (hash-table-exists? levels (thread-number hog)))
      (begin (thread-sleep! 0.01) (wait))))
(display "the hog has sunk\n")
(set! stop #t)
(thread-join! hog)

(for-each remove-policy! '(scheduler collector))
(for-each (lambda (seat) (write seat) (newline)) (policies))
