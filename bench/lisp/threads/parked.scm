;;; COUNT threads wait for a mutex while the one who started us looks at our memory.
;;; Usage: PROG [COUNT]. Prints a line when all threads wait, lets them continue when it reads a line,
;;; and prints how many have continued.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18))

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 1000 (string->number (car arguments)))))

(define gate (make-mutex))
(define guard (make-mutex))
(define waiting 0)

(define (wait-at-gate)
  (mutex-lock! guard)
  (set! waiting (+ waiting 1))
  (mutex-unlock! guard)
  (mutex-lock! gate)
  (mutex-unlock! gate)
  1)

(mutex-lock! gate)
(define threads
  (let start ((i 0) (threads '()))
    (if (= i count)
        threads
        (start (+ i 1) (cons (thread-start! (make-thread wait-at-gate)) threads)))))

(let until-all-wait ()
  (mutex-lock! guard)
  (let ((now waiting))
    (mutex-unlock! guard)
    (when (< now count)
      (thread-yield!)
      (until-all-wait))))
(thread-sleep! 0.1)

(display "parked")
(newline)
(flush-output-port)
(read-line)

(mutex-unlock! gate)
(let join ((threads threads) (sum 0))
  (if (null? threads)
      (begin (display sum) (newline))
      (join (cdr threads) (+ sum (thread-join! (car threads))))))
