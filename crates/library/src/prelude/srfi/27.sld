;;; SRFI 27: sources of random numbers. Complete.
;;;
;;; MRG32k3a of L'Ecuyer, Good parameters and implementations for combined multiple recursive random
;;; number generators, Operations Research 47 (1999): period 2^191. Its state is two vectors of
;;; three numbers each. A draw is an integer from 0 to before m1. A source is not protected by a
;;; lock: threads that share one may draw the same number. Not suitable for secrets.

(define-library (srfi 27)
  (import (scheme base) (scheme time))
  (export
   random-integer random-real default-random-source make-random-source random-source?
   random-source-state-ref random-source-state-set! random-source-randomize!
   random-source-pseudo-randomize! random-source-make-integers random-source-make-reals)
  (begin

    (define m1 4294967087)
    (define m2 4294944443)

    (define-record-type random-source
      (make-source state) random-source? (state state set-state!))

    (define (first-state) (vector 12345 12345 12345 12345 12345 12345))
    (define (make-random-source) (make-source (first-state)))
    (define default-random-source (make-random-source))

    (define (check source)
      (if (not (random-source? source)) (error "not a source of random numbers" source)))

    (define (draw! source)
      (let* ((s (state source))
             (x (modulo (- (* 1403580 (vector-ref s 1)) (* 810728 (vector-ref s 0))) m1))
             (y (modulo (- (* 527612 (vector-ref s 5)) (* 1370589 (vector-ref s 3))) m2)))
        (vector-set! s 0 (vector-ref s 1))
        (vector-set! s 1 (vector-ref s 2))
        (vector-set! s 2 x)
        (vector-set! s 3 (vector-ref s 4))
        (vector-set! s 4 (vector-ref s 5))
        (vector-set! s 5 y)
        (modulo (- x y) m1)))

    ;; A uniformly distributed integer from 0 to before n. Draws that would favour small numbers are
    ;; repeated.
    (define (integer! source n)
      (if (<= n m1)
          (let ((part (quotient m1 n)))
            (let loop ()
              (let ((value (quotient (draw! source) part)))
                (if (< value n) value (loop)))))
          (let grow ((digits 1) (size m1))
            (if (< size n)
                (grow (+ digits 1) (* size m1))
                (let ((part (quotient size n)))
                  (let again ()
                    (let loop ((i 0) (drawn 0))
                      (if (< i digits)
                          (loop (+ i 1) (+ (* drawn m1) (draw! source)))
                          (let ((value (quotient drawn part)))
                            (if (< value n) value (again)))))))))))

    (define (random-source-make-integers source)
      (check source)
      (lambda (n)
        (if (not (and (exact-integer? n) (positive? n)))
            (error "random-integer: not an exact positive integer" n))
        (integer! source n)))

    ;; Numbers strictly between 0 and 1: multiples of the unit or of a finer one, with the unit's
    ;; exactness.
    (define (random-source-make-reals source . unit)
      (check source)
      (if (null? unit)
          (lambda () (inexact (/ (+ (draw! source) 1) (+ m1 1))))
          (let ((unit (car unit)))
            (if (not (and (real? unit) (< 0 unit 1)))
                (error "random-source-make-reals: the unit must lie between 0 and 1" unit))
            (let ((parts (exact (ceiling (/ 1 unit)))))
              (lambda ()
                (let ((x (/ (+ (integer! source (- parts 1)) 1) parts)))
                  (if (exact? unit) x (inexact x))))))))

    (define random-integer (random-source-make-integers default-random-source))
    (define random-real (random-source-make-reals default-random-source))

    ;; States.

    (define (random-source-state-ref source)
      (check source)
      (cons 'mrg32k3a (vector->list (state source))))

    (define (random-source-state-set! source external)
      (check source)
      (define (good? numbers m)
        (and (every-number? numbers m) (not (and (= 0 (car numbers) (cadr numbers) (caddr* numbers))))))
      (define (every-number? numbers m)
        (let loop ((numbers numbers) (count 3))
          (or (= count 0)
              (and (exact-integer? (car numbers)) (<= 0 (car numbers) (- m 1))
                   (loop (cdr numbers) (- count 1))))))
      (define (caddr* numbers) (car (cddr numbers)))
      (if (not (and (list? external) (= (length external) 7) (eq? (car external) 'mrg32k3a)
                    (good? (cdr external) m1) (good? (list-tail external 4) m2)))
          (error "random-source-state-set!: not a state of such a source" external))
      (set-state! source (list->vector (cdr external))))

    (define (random-source-randomize! source)
      (check source)
      (let ((now (exact (truncate (* 1000000 (current-second))))) (tick (current-jiffy)))
        (set-state! source
                    (vector (+ 1 (modulo now 4000000007)) (modulo tick 4000000007) 12345
                            (+ 1 (modulo (* 7919 tick) 4000000007)) (modulo (+ now tick) 4000000007)
                            67890))
        (do ((i 0 (+ i 1))) ((= i 16)) (draw! source))))

    ;; The state after i * 2^127 + j * 2^76 draws, for streams far apart. A draw multiplies each
    ;; half of the state by a matrix (nine numbers, row by row).

    (define (product a b m)
      (define (entry row column)
        (let loop ((k 0) (sum 0))
          (if (= k 3)
              (modulo sum m)
              (loop (+ k 1)
                    (+ sum (* (vector-ref a (+ (* 3 row) k)) (vector-ref b (+ (* 3 k) column))))))))
      (let ((c (make-vector 9)))
        (do ((i 0 (+ i 1))) ((= i 9) c)
          (vector-set! c i (entry (quotient i 3) (remainder i 3))))))

    (define (power a n m)
      (let loop ((n n) (square a) (result (vector 1 0 0 0 1 0 0 0 1)))
        (if (= n 0)
            result
            (loop (quotient n 2) (product square square m)
                  (if (odd? n) (product result square m) result)))))

    (define (random-source-pseudo-randomize! source i j)
      (check source)
      (if (not (and (exact-integer? i) (exact-integer? j) (>= i 0) (>= j 0)))
          (error "random-source-pseudo-randomize!: not exact, or negative" i j))
      (let* ((draws (+ (* i (expt 2 127)) (* j (expt 2 76))))
             (a (power (vector 0 1 0 0 0 1 (- m1 810728) 1403580 0) draws m1))
             (b (power (vector 0 1 0 0 0 1 (- m2 1370589) 0 527612) draws m2)))
        (define (row matrix r m)
          (modulo (* 12345 (+ (vector-ref matrix (* 3 r)) (vector-ref matrix (+ (* 3 r) 1))
                              (vector-ref matrix (+ (* 3 r) 2))))
                  m))
        (set-state! source (vector (row a 0 m1) (row a 1 m1) (row a 2 m1)
                                   (row b 0 m2) (row b 1 m2) (row b 2 m2)))))))
