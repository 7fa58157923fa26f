;;; SRFI 133: vectors. Complete. Procedures of R7RS and the prelude are re-exported; the others are
;;; defined here. A range is [start, end). A procedure checks its range once.

(define-library (srfi 133)
  (import (scheme base))
  (export
   make-vector vector vector-unfold vector-unfold-right vector-copy vector-reverse-copy
   vector-append vector-concatenate vector-append-subvectors
   vector? vector-empty? vector= vector-ref vector-length
   vector-fold vector-fold-right vector-map vector-map! vector-for-each vector-count vector-cumulate
   vector-index vector-index-right vector-skip vector-skip-right vector-binary-search
   vector-any vector-every vector-partition
   vector-set! vector-swap! vector-fill! vector-reverse! vector-copy! vector-reverse-copy!
   vector-unfold! vector-unfold-right!
   vector->list reverse-vector->list list->vector reverse-list->vector vector->string
   string->vector)
  (begin

    (define (shortest vector vectors)
      (let loop ((least (vector-length vector)) (rest vectors))
        (if (null? rest)
            least
            (loop (min least (vector-length (car rest))) (cdr rest)))))

    (define (elements vectors i)
      (map (lambda (vector) (vector-ref vector i)) vectors))

    ;; The range from optional arguments: (who vector range) -> start and end.
    (define (range who vector range)
      (let* ((length (vector-length vector))
             (start (if (pair? range) (car range) 0))
             (end (if (and (pair? range) (pair? (cdr range))) (cadr range) length)))
        (if (not (and (exact-integer? start) (exact-integer? end) (<= 0 start end length)))
            (error (string-append who ": not a range of the vector") start end))
        (values start end)))

    ;; Constructors.

    (define (vector-unfold! f vector start end . seeds)
      (range "vector-unfold!" vector (list start end))
      (cond
       ((null? seeds)
        (let loop ((i start))
          (when (< i end) (vector-set! vector i (f i)) (loop (+ i 1)))))
       ((null? (cdr seeds))
        (let loop ((i start) (seed (car seeds)))
          (when (< i end)
            (let-values (((value seed) (f i seed)))
              (vector-set! vector i value)
              (loop (+ i 1) seed)))))
       (else
        (let loop ((i start) (seeds seeds))
          (when (< i end)
            (let-values (((value . seeds) (apply f i seeds)))
              (vector-set! vector i value)
              (loop (+ i 1) seeds)))))))

    (define (vector-unfold-right! f vector start end . seeds)
      (range "vector-unfold-right!" vector (list start end))
      (let loop ((i (- end 1)) (seeds seeds))
        (when (>= i start)
          (let-values (((value . seeds) (apply f i seeds)))
            (vector-set! vector i value)
            (loop (- i 1) seeds)))))

    (define (vector-unfold f length . seeds)
      (let ((vector (make-vector length)))
        (apply vector-unfold! f vector 0 length seeds)
        vector))

    (define (vector-unfold-right f length . seeds)
      (let ((vector (make-vector length)))
        (apply vector-unfold-right! f vector 0 length seeds)
        vector))

    (define (vector-reverse-copy vector . rest)
      (let-values (((start end) (range "vector-reverse-copy" vector rest)))
        (let ((new (make-vector (- end start))))
          (do ((i start (+ i 1)) (j (- end start 1) (- j 1)))
              ((= i end) new)
            (vector-set! new j (vector-ref vector i))))))

    (define (vector-concatenate vectors) (apply vector-append vectors))

    (define (vector-append-subvectors . parts)
      (let loop ((parts parts) (vectors '()))
        (cond
         ((null? parts) (vector-concatenate (reverse vectors)))
         ((and (pair? (cdr parts)) (pair? (cddr parts)))
          (loop (cdddr parts) (cons (vector-copy (car parts) (cadr parts) (caddr parts)) vectors)))
         (else (error "vector-append-subvectors: a vector without its range" (car parts))))))

    (define (caddr list) (car (cddr list)))
    (define (cdddr list) (cdr (cddr list)))

    ;; Predicates.

    (define (vector-empty? vector) (= (vector-length vector) 0))

    (define (vector= same? . vectors)
      (define (two a b)
        (let ((length (vector-length a)))
          (and (= length (vector-length b))
               (let loop ((i 0))
                 (or (= i length)
                     (and (same? (vector-ref a i) (vector-ref b i)) (loop (+ i 1))))))))
      (or (null? vectors)
          (let loop ((a (car vectors)) (rest (cdr vectors)))
            (or (null? rest)
                (and (two a (car rest)) (loop (car rest) (cdr rest)))))))

    ;; Iteration.

    (define (vector-fold kons knil vector . vectors)
      (let ((length (shortest vector vectors)))
        (if (null? vectors)
            (let loop ((i 0) (state knil))
              (if (= i length) state (loop (+ i 1) (kons state (vector-ref vector i)))))
            (let loop ((i 0) (state knil))
              (if (= i length)
                  state
                  (loop (+ i 1)
                        (apply kons state (vector-ref vector i) (elements vectors i))))))))

    (define (vector-fold-right kons knil vector . vectors)
      (let loop ((i (- (shortest vector vectors) 1)) (state knil))
        (if (< i 0)
            state
            (loop (- i 1)
                  (if (null? vectors)
                      (kons state (vector-ref vector i))
                      (apply kons state (vector-ref vector i) (elements vectors i)))))))

    (define (vector-map! f vector . vectors)
      (let ((length (shortest vector vectors)))
        (do ((i 0 (+ i 1)))
            ((= i length))
          (vector-set! vector i (apply f (vector-ref vector i) (elements vectors i))))))

    (define (vector-count test vector . vectors)
      (apply vector-fold
             (lambda (count . each) (if (apply test each) (+ count 1) count))
             0 vector vectors))

    (define (vector-cumulate f knil vector)
      (let* ((length (vector-length vector)) (new (make-vector length)))
        (let loop ((i 0) (state knil))
          (if (= i length)
              new
              (let ((state (f state (vector-ref vector i))))
                (vector-set! new i state)
                (loop (+ i 1) state))))))

    ;; Searching.

    (define (vector-index test vector . vectors)
      (let ((length (shortest vector vectors)))
        (let loop ((i 0))
          (cond ((= i length) #f)
                ((apply test (vector-ref vector i) (elements vectors i)) i)
                (else (loop (+ i 1)))))))

    (define (vector-index-right test vector . vectors)
      (for-each (lambda (other)
                  (if (not (= (vector-length other) (vector-length vector)))
                      (error "vector-index-right: vectors of unequal length" vector other)))
                vectors)
      (let loop ((i (- (vector-length vector) 1)))
        (cond ((< i 0) #f)
              ((apply test (vector-ref vector i) (elements vectors i)) i)
              (else (loop (- i 1))))))

    (define (complement test) (lambda each (not (apply test each))))

    (define (vector-skip test . vectors) (apply vector-index (complement test) vectors))

    (define (vector-skip-right test . vectors)
      (apply vector-index-right (complement test) vectors))

    ;; (compare element value) is negative, zero or positive.
    (define (vector-binary-search vector value compare)
      (let loop ((low 0) (high (vector-length vector)))
        (and (< low high)
             (let* ((middle (quotient (+ low high) 2))
                    (order (compare (vector-ref vector middle) value)))
               (cond ((zero? order) middle)
                     ((positive? order) (loop low middle))
                     (else (loop (+ middle 1) high)))))))

    (define (vector-any test vector . vectors)
      (let ((length (shortest vector vectors)))
        (let loop ((i 0))
          (and (< i length)
               (or (apply test (vector-ref vector i) (elements vectors i))
                   (loop (+ i 1)))))))

    (define (vector-every test vector . vectors)
      (let ((length (shortest vector vectors)))
        (let loop ((i 0) (last #t))
          (if (= i length)
              last
              (let ((value (apply test (vector-ref vector i) (elements vectors i))))
                (and value (loop (+ i 1) value)))))))

    ;; The elements that satisfy the test, then the others; and the number of the former.
    (define (vector-partition test vector)
      (let* ((length (vector-length vector))
             (kinds (vector-map (lambda (element) (if (test element) #t #f)) vector))
             (count (vector-count values kinds))
             (new (make-vector length)))
        (let loop ((i 0) (yes 0) (no count))
          (cond ((= i length) (values new count))
                ((vector-ref kinds i)
                 (vector-set! new yes (vector-ref vector i))
                 (loop (+ i 1) (+ yes 1) no))
                (else
                 (vector-set! new no (vector-ref vector i))
                 (loop (+ i 1) yes (+ no 1)))))))

    ;; Mutators.

    (define (vector-swap! vector i j)
      (let ((element (vector-ref vector i)))
        (vector-set! vector i (vector-ref vector j))
        (vector-set! vector j element)))

    (define (vector-reverse! vector . rest)
      (let-values (((start end) (range "vector-reverse!" vector rest)))
        (let loop ((i start) (j (- end 1)))
          (when (< i j)
            (vector-swap! vector i j)
            (loop (+ i 1) (- j 1))))))

    (define (vector-reverse-copy! to at from . rest)
      (vector-copy! to at (apply vector-reverse-copy from rest)))

    ;; Conversion.

    (define (reverse-vector->list vector . rest)
      (let-values (((start end) (range "reverse-vector->list" vector rest)))
        (let loop ((i start) (list '()))
          (if (= i end) list (loop (+ i 1) (cons (vector-ref vector i) list))))))

    (define (reverse-list->vector list) (list->vector (reverse list)))))
