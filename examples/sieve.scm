;; Paper 1, table 4: primes by a chain of threads, one for each prime.
;;   kyocho run examples/sieve.scm 700

(import (scheme base) (scheme write) (scheme process-context) (kyocho))

(define (numbers limit out)
  (do ((n 2 (+ n 1)))
      ((> n limit) (channel-send! out #f))
    (channel-send! out n)))

(define (pass-on-indivisible prime in out)
  (let loop ()
    (let ((n (channel-receive in)))
      (cond ((not n) (channel-send! out #f))
            ((zero? (remainder n prime)) (loop))
            (else (channel-send! out n) (loop))))))

(define (primes limit)
  (let ((source (make-channel)))
    (spawn (lambda () (numbers limit source)))
    (let loop ((in source) (found '()))
      (let ((prime (channel-receive in)))
        (if prime
            (let ((out (make-channel)))
              (spawn (lambda () (pass-on-indivisible prime in out)))
              (loop out (cons prime found)))
            (reverse found))))))

(define limit
  (let ((arguments (cdr (command-line))))
    (if (pair? arguments) (string->number (car arguments)) 700)))

(display (primes limit))
(newline)
