;;; Vectors: a product of matrices of whole numbers, rows of vectors, and the primes of a sieve.
;;; Usage: PROG [COUNT]; runs COUNT times, checks the last result, prints one JSON line.
(import (scheme base) (scheme write) (scheme time) (scheme process-context))

(define (make-matrix rows columns element)
  (let ((matrix (make-vector rows)))
    (do ((i 0 (+ i 1))) ((= i rows) matrix)
      (let ((row (make-vector columns)))
        (do ((j 0 (+ j 1))) ((= j columns)) (vector-set! row j (element i j)))
        (vector-set! matrix i row)))))

(define (product a b)
  (let ((inner (vector-length b)))
    (make-matrix (vector-length a) (vector-length (vector-ref b 0))
                 (lambda (i j)
                   (let ((row (vector-ref a i)))
                     (do ((k 0 (+ k 1))
                          (sum 0 (+ sum (* (vector-ref row k) (vector-ref (vector-ref b k) j)))))
                         ((= k inner) sum)))))))

(define (trace matrix)
  (do ((i 0 (+ i 1)) (sum 0 (+ sum (vector-ref (vector-ref matrix i) i))))
      ((= i (vector-length matrix)) sum)))

(define (primes below)
  (let ((is-prime (make-vector below #t)))
    (do ((n 2 (+ n 1)) (count 0 (if (vector-ref is-prime n) (+ count 1) count)))
        ((= n below) count)
      (when (vector-ref is-prime n)
        (do ((multiple (* n n) (+ multiple n))) ((>= multiple below))
          (vector-set! is-prime multiple #f))))))

;; Inputs lie in a vector, so that no compiler computes the answer before the clock starts.
(define inputs (vector 80 50000))
(define (input i) (vector-ref inputs i))
(define (work) (let ((a (make-matrix (input 0) (input 0) (lambda (i j) (- (* 3 i) j)))))
    (+ (trace (product a a)) (primes (input 1)))))
(define expected 19470733)

(define count
  (let ((arguments (cdr (command-line))))
    (if (null? arguments) 20 (string->number (car arguments)))))
(define start (current-jiffy))
(define result (do ((i 0 (+ i 1)) (result expected (work))) ((= i count) result)))
(define seconds (/ (- (current-jiffy) start) (jiffies-per-second)))
(unless (equal? result expected) (error "wrong result" result expected))
(display "{\"bench\":\"vectors\",\"value\":")
(display (if (= count 0) 0 (/ (round (* 1e6 1e3 (/ seconds count))) 1e3)))
(display ",\"unit\":\"us\",\"runs\":")
(display count)
(display "}")
(newline)
