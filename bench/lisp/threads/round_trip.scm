;;; Two threads take turns by a mutex and a condition variable: COUNT times there and back.
;;; Usage: PROG [COUNT]; checks what it did and prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context) (srfi 18))

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 100000 (string->number (car arguments)))))

(define guard (make-mutex))
(define changed (make-condition-variable))
(define turn 0)

;; Waits until it is the turn of `mine`, then gives it to `other`.
(define (take-turn mine other)
  (mutex-lock! guard)
  (let wait ()
    (unless (= turn mine)
      (mutex-unlock! guard changed)
      (mutex-lock! guard)
      (wait)))
  (set! turn other)
  (condition-variable-signal! changed)
  (mutex-unlock! guard))

(define (work)
  (let ((echo (thread-start!
               (make-thread
                (lambda ()
                  (do ((i 0 (+ i 1))) ((= i count) i) (take-turn 1 0)))))))
    (do ((i 0 (+ i 1))) ((= i count)) (take-turn 0 1))
    (thread-join! echo)))

(define start (current-jiffy))
(define result (work))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (= result count) (error "wrong result" result count))
(display "{\"bench\":\"round_trip\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
