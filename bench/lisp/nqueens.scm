;;; Solutions of the queens on a board of 8, after Gabriel: lists of small numbers.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (one-to n)
  (let loop ((i n) (numbers '()))
    (if (= i 0) numbers (loop (- i 1) (cons i numbers)))))

(define (safe? row distance placed)
  (or (null? placed)
      (and (not (= (car placed) (+ row distance)))
           (not (= (car placed) (- row distance)))
           (safe? row (+ distance 1) (cdr placed)))))

(define (try rows rejected placed)
  (if (null? rows)
      (if (null? rejected) 1 0)
      (+ (if (safe? (car rows) 1 placed)
             (try (append (cdr rows) rejected) '() (cons (car rows) placed))
             0)
         (try (cdr rows) (cons (car rows) rejected) placed))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 8))
(define (input i) (vector-ref inputs i))
(define (work) (try (one-to (input 0)) '() '()))
(define expected 92)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 1000 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"nqueens\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
