;; Threads to look at from another terminal: one computes, one ticks, one waits.
;;   kyocho run examples/busy.scm

(import (scheme base) (srfi 18) (kyocho))

(define mail (make-channel))

(spawn (lambda () (let loop ((n 0)) (loop (+ n 1)))) 'hog)
(spawn (lambda () (let loop () (thread-sleep! 0.01) (loop))) 'ticker)
(thread-join! (spawn (lambda () (channel-receive mail)) 'clerk))
