;;; A thread with an empty body is started and joined, COUNT times, one after the other.
;;; Usage: PROG [COUNT]; checks what it did and prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context) (srfi 18))

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 100000 (string->number (car arguments)))))

(define (work)
  (do ((i 0 (+ i 1))
       (sum 0 (+ sum (thread-join! (thread-start! (make-thread (lambda () 1)))))))
      ((= i count) sum)))

(define start (current-jiffy))
(define result (work))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (= result count) (error "wrong result" result count))
(display "{\"bench\":\"spawn_join\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
