;; A first program: ten threads send squares through a channel.
;;   kyocho run examples/first.scm

(import (scheme base) (scheme write) (kyocho))

(define squares (make-channel))

(define (send-square n)
  (spawn (lambda () (channel-send! squares (* n n)))))

(define (receive-sum count)
  (if (= count 0)
      0
      (+ (channel-receive squares) (receive-sum (- count 1)))))

(for-each send-square '(1 2 3 4 5 6 7 8 9 10))
(display "the sum of ten squares is ")
(display (receive-sum 10))
(newline)
