;;; Strings: what takes procedures (R7RS 6.10, the common part of SRFI 13 and 130).

(define string-map
  (case-lambda
    ((f s)
     (let ((n (%string-length 'string-map 2 s)))
       (let loop ((i 0) (result '()))
         (if (< i n)
             (loop (+ i 1) (cons (f (string-ref s i)) result))
             (begin (%check-procedure 'string-map f) (list->string (reverse result)))))))
    ((f s . rest)
     (let* ((all (cons s rest)) (n (%shortest-length %string-length 'string-map all)))
       (let loop ((i 0) (result '()))
         (if (< i n)
             (loop (+ i 1) (cons (apply f (%elements string-ref all i)) result))
             (begin (%check-procedure 'string-map f) (list->string (reverse result)))))))))

(define string-for-each
  (case-lambda
    ((f s)
     (let ((n (%string-length 'string-for-each 2 s)))
       (let loop ((i 0))
         (if (< i n)
             (begin (f (string-ref s i)) (loop (+ i 1)))
             (%check-procedure 'string-for-each f)))))
    ((f s . rest)
     (let* ((all (cons s rest)) (n (%shortest-length %string-length 'string-for-each all)))
       (let loop ((i 0))
         (if (< i n)
             (begin (apply f (%elements string-ref all i)) (loop (+ i 1)))
             (%check-procedure 'string-for-each f)))))))

(define (string-tabulate f n) (list->string (list-tabulate n f)))

(define (string-fold f seed s)
  (let ((n (string-length s)))
    (let loop ((i 0) (result seed))
      (if (< i n) (loop (+ i 1) (f (string-ref s i) result)) result))))
(define (string-fold-right f seed s)
  (let loop ((i (- (string-length s) 1)) (result seed))
    (if (< i 0) result (loop (- i 1) (f (string-ref s i) result)))))

;; A character stands for the test whether another is the same.
(define (%char-test x)
  (if (char? x) (lambda (c) (char=? c x)) x))

(define (string-index s x . range)
  (if (char? x)
      (apply %string-index s x range)
      (let ((end (if (and (pair? range) (pair? (cdr range))) (cadr range) (string-length s))))
        (let loop ((i (if (pair? range) (car range) 0)))
          (and (< i end) (if (x (string-ref s i)) i (loop (+ i 1))))))))

(define (string-rindex s x)
  (if (char? x)
      (%string-rindex s x)
      (let loop ((i (- (string-length s) 1)))
        (and (>= i 0) (if (x (string-ref s i)) i (loop (- i 1)))))))
(define string-index-right string-rindex)

(define (string-skip s x)
  (let ((test (%char-test x)))
    (string-index s (lambda (c) (not (test c))))))

(define (string-count s x)
  (let ((test (%char-test x)))
    (string-fold (lambda (c n) (if (test c) (+ n 1) n)) 0 s)))

(define (string-any ok? s)
  (let ((test (%char-test ok?)) (n (string-length s)))
    (let loop ((i 0)) (and (< i n) (or (test (string-ref s i)) (loop (+ i 1)))))))
(define (string-every ok? s)
  (let ((test (%char-test ok?)) (n (string-length s)))
    (let loop ((i 0) (last #t))
      (if (< i n)
          (let ((x (test (string-ref s i)))) (and x (loop (+ i 1) x)))
          last))))

(define (string-filter ok? s)
  (list->string (filter (%char-test ok?) (string->list s))))
(define (string-delete ok? s)
  (list->string (remove (%char-test ok?) (string->list s))))

(define (%trimmer whole left? right?)
  (lambda (s . rest)
    (if (null? rest)
        (whole s)
        (let ((drop? (%char-test (car rest))) (n (string-length s)))
          (let* ((start (if left?
                            (let loop ((i 0))
                              (if (and (< i n) (drop? (string-ref s i))) (loop (+ i 1)) i))
                            0))
                 (end (if right?
                          (let loop ((i n))
                            (if (and (> i start) (drop? (string-ref s (- i 1)))) (loop (- i 1)) i))
                          n)))
            (substring s start end))))))
(define string-trim (%trimmer %string-trim-left #t #f))
(define string-trim-left string-trim)
(define string-trim-right (%trimmer %string-trim-right #f #t))
(define string-trim-both (%trimmer %string-trim #t #t))

;; Parts between characters that are the same as, or pass, or around a string.
(define (string-split s x)
  (if (procedure? x)
      (let ((n (string-length s)))
        (let loop ((start 0) (i 0) (parts '()))
          (cond ((= i n) (reverse (cons (substring s start n) parts)))
                ((x (string-ref s i)) (loop (+ i 1) (+ i 1) (cons (substring s start i) parts)))
                (else (loop start (+ i 1) parts)))))
      (%string-split s x)))

;; The words of a text: what stands between runs of white space.
(define (string-tokenize s . rest)
  (let ((in? (if (pair? rest) (%char-test (car rest)) (lambda (c) (not (char-whitespace? c)))))
        (n (string-length s)))
    (let loop ((i 0) (start #f) (words '()))
      (cond ((= i n) (reverse (if start (cons (substring s start n) words) words)))
            ((in? (string-ref s i)) (loop (+ i 1) (or start i) words))
            (start (loop (+ i 1) #f (cons (substring s start i) words)))
            (else (loop (+ i 1) #f words))))))
