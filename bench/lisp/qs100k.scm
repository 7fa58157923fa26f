;;; QuickSort of 100,000 numbers: lists, recursion, garbage.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (below pivot numbers)
  (cond ((null? numbers) '())
        ((< (car numbers) pivot) (cons (car numbers) (below pivot (cdr numbers))))
        (else (below pivot (cdr numbers)))))

(define (from pivot numbers)
  (cond ((null? numbers) '())
        ((< (car numbers) pivot) (from pivot (cdr numbers)))
        (else (cons (car numbers) (from pivot (cdr numbers))))))

(define (quicksort numbers)
  (if (null? numbers)
      '()
      (append (quicksort (below (car numbers) (cdr numbers)))
              (cons (car numbers) (quicksort (from (car numbers) (cdr numbers)))))))

;; A linear congruential generator, so that every system sorts the same numbers.
(define (random-numbers count seed)
  (if (= count 0)
      '()
      (let ((next (modulo (+ (* seed 1103515245) 12345) 2147483648)))
        (cons (quotient next 65536) (random-numbers (- count 1) next)))))

(define (sorted? numbers)
  (or (null? numbers)
      (null? (cdr numbers))
      (and (<= (car numbers) (cadr numbers)) (sorted? (cdr numbers)))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector (random-numbers 100000 1)))
(define (input i) (vector-ref inputs i))
(define (work) (let ((sorted (quicksort (input 0))))
  (and (sorted? sorted) (= (length sorted) (length (input 0))))))
(define expected #t)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 3 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"qs100k\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
