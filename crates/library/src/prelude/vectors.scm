;;; Vectors: procedures with procedure arguments (R7RS 6.10, the common part of SRFI 133).

(define (%vector-length who position v)
  (if (vector? v) (vector-length v) (%wrong-type who position "vector" v)))
(define (%string-length who position s)
  (if (string? s) (string-length s) (%wrong-type who position "string" s)))

(define (%shortest-length length-of who sequences)
  (let loop ((n (length-of who 2 (car sequences))) (rest (cdr sequences)) (position 3))
    (if (null? rest)
        n
        (loop (min n (length-of who position (car rest))) (cdr rest) (+ position 1)))))

;; For empty sequences, for which the procedure is never called.
(define (%check-procedure who f)
  (if (not (procedure? f)) (%wrong-type who 1 "procedure" f)))

(define (%elements ref sequences i)
  (map (lambda (sequence) (ref sequence i)) sequences))

(define vector-map
  (case-lambda
    ((f v)
     ;; Collected in a list, so that a continuation may return twice.
     (let ((n (%vector-length 'vector-map 2 v)))
       (let loop ((i 0) (result '()))
         (if (< i n)
             (loop (+ i 1) (cons (f (vector-ref v i)) result))
             (begin (%check-procedure 'vector-map f) (list->vector (reverse result)))))))
    ((f v . rest)
     (let* ((all (cons v rest)) (n (%shortest-length %vector-length 'vector-map all)))
       (let loop ((i 0) (result '()))
         (if (< i n)
             (loop (+ i 1) (cons (apply f (%elements vector-ref all i)) result))
             (begin (%check-procedure 'vector-map f) (list->vector (reverse result)))))))))

(define vector-for-each
  (case-lambda
    ((f v)
     (let ((n (%vector-length 'vector-for-each 2 v)))
       (let loop ((i 0))
         (if (< i n)
             (begin (f (vector-ref v i)) (loop (+ i 1)))
             (%check-procedure 'vector-for-each f)))))
    ((f v . rest)
     (let* ((all (cons v rest)) (n (%shortest-length %vector-length 'vector-for-each all)))
       (let loop ((i 0))
         (if (< i n)
             (begin (apply f (%elements vector-ref all i)) (loop (+ i 1)))
             (%check-procedure 'vector-for-each f)))))))

(define (vector-map! f v)
  (let ((n (vector-length v)))
    (let loop ((i 0))
      (if (< i n)
          (begin (vector-set! v i (f (vector-ref v i))) (loop (+ i 1)))))))

(define (vector-tabulate f n)
  (let ((v (make-vector n)))
    (let loop ((i 0))
      (if (< i n)
          (begin (vector-set! v i (f i)) (loop (+ i 1)))
          v))))
(define (make-initialized-vector n f) (vector-tabulate f n))

(define (vector-fold f seed v)
  (let ((n (vector-length v)))
    (let loop ((i 0) (result seed))
      (if (< i n) (loop (+ i 1) (f result (vector-ref v i))) result))))
(define (vector-fold-right f seed v)
  (let loop ((i (- (vector-length v) 1)) (result seed))
    (if (< i 0) result (loop (- i 1) (f result (vector-ref v i))))))

(define (vector-index ok? v)
  (let ((n (vector-length v)))
    (let loop ((i 0))
      (and (< i n) (if (ok? (vector-ref v i)) i (loop (+ i 1)))))))
(define (vector-count ok? v)
  (vector-fold (lambda (n x) (if (ok? x) (+ n 1) n)) 0 v))
(define (vector-any ok? v)
  (let ((n (vector-length v)))
    (let loop ((i 0))
      (and (< i n) (or (ok? (vector-ref v i)) (loop (+ i 1)))))))
(define (vector-every ok? v)
  (let ((n (vector-length v)))
    (let loop ((i 0) (last #t))
      (if (< i n)
          (let ((x (ok? (vector-ref v i)))) (and x (loop (+ i 1) x)))
          last))))

;; `compare` returns a number below, at or above zero for an element and the key.
(define (vector-binary-search v key compare)
  (let loop ((low 0) (high (vector-length v)))
    (and (< low high)
         (let* ((middle (quotient (+ low high) 2))
                (order (compare (vector-ref v middle) key)))
           (cond ((< order 0) (loop (+ middle 1) high))
                 ((> order 0) (loop low middle))
                 (else middle))))))

(define (vector-head v end) (subvector v 0 end))
(define (vector-tail v start) (subvector v start (vector-length v)))
