;;; A message there and back through two unbuffered channels, COUNT times; on Kyocho alone.
;;; Usage: PROG [COUNT]; checks what it did and prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context) (srfi 18) (kyocho))

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 100000 (string->number (car arguments)))))

(define there (make-channel))
(define back (make-channel))

(define (work)
  (thread-start!
   (make-thread
    (lambda ()
      (do ((i 0 (+ i 1))) ((= i count)) (channel-send! back (+ 1 (channel-receive there)))))))
  (do ((i 0 (+ i 1))
       (n 0 (begin (channel-send! there n) (channel-receive back))))
      ((= i count) n)))

(define start (current-jiffy))
(define result (work))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (= result count) (error "wrong result" result count))
(display "{\"bench\":\"round_trip_channel\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
