;;; Hash tables (SRFI 69): 20,000 numbers counted, 5,000 strings looked up.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context) (srfi 69))

(define (count-numbers count distinct)
  (let ((table (make-hash-table)))
    (do ((i 0 (+ i 1))
         (seed 1 (modulo (+ (* seed 1103515245) 12345) 2147483648)))
        ((= i count) (hash-table-size table))
      (hash-table-update!/default table (modulo (quotient seed 65536) distinct)
                                  (lambda (n) (+ n 1)) 0))))

(define (look-up-strings count)
  (let ((table (make-hash-table string=?)))
    (do ((i 0 (+ i 1))) ((= i count)) (hash-table-set! table (number->string i) i))
    (do ((i 0 (+ i 1))
         (sum 0 (+ sum (hash-table-ref table (number->string i) (lambda () -1)))))
        ((= i count) sum))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 20000 1000 5000))
(define (input i) (vector-ref inputs i))
(define (work) (+ (count-numbers (input 0) (input 1)) (look-up-strings (input 2))))
(define expected 12498500)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 40 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"hash\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
