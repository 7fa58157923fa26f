;;; Sorting: a stable merge sort of lists. Vectors are converted to lists (SRFI 132's names, and
;;; `sort`).

(define (%merge! less? a b)
  (let ((head (cons #f '())))
    (let loop ((last head) (a a) (b b))
      (cond ((null? a) (set-cdr! last b))
            ((null? b) (set-cdr! last a))
            ((less? (car b) (car a)) (set-cdr! last b) (loop b a (cdr b)))
            (else (set-cdr! last a) (loop a (cdr a) b))))
    (cdr head)))

;; Sorts a list of n pairs, consuming it from the left.
(define (%sort-pairs! less? list n)
  (let ((rest list))
    (let step ((n n))
      (if (= n 1)
          (let ((pair rest))
            (set! rest (cdr rest))
            (set-cdr! pair '())
            pair)
          (let* ((half (quotient n 2))
                 (a (step half))
                 (b (step (- n half))))
            (%merge! less? a b))))))

(define (list-sort! less? list)
  (let ((n (length list)))
    (if (< n 2) list (%sort-pairs! less? list n))))

(define (list-sort less? list) (list-sort! less? (list-copy list)))
(define list-stable-sort list-sort)

(define (%in-order f less? sequence)
  ;; SRFI 132 has the procedure first, older code last.
  (if (procedure? less?) (f less? sequence) (f sequence less?)))

(define (vector-sort less? vector)
  (%in-order (lambda (less? vector) (list->vector (list-sort! less? (vector->list vector))))
             less? vector))
(define vector-stable-sort vector-sort)

(define (vector-sort! less? vector)
  (%in-order (lambda (less? vector)
               (vector-copy! vector 0 (vector-sort less? vector)))
             less? vector))
(define vector-stable-sort! vector-sort!)

(define (sort sequence less?)
  (if (procedure? sequence)
      (sort less? sequence)
      (if (vector? sequence)
          (vector-sort less? sequence)
          (list-sort less? sequence))))
(define stable-sort sort)

(define (sort! sequence less?)
  (cond ((procedure? sequence) (sort! less? sequence))
        ((vector? sequence) (vector-sort! less? sequence) sequence)
        (else (list-sort! less? sequence))))

(define (list-sorted? less? list)
  (or (null? list)
      (let loop ((x (car list)) (rest (cdr list)))
        (or (null? rest)
            (and (not (less? (car rest) x)) (loop (car rest) (cdr rest)))))))
(define (vector-sorted? less? vector) (list-sorted? less? (vector->list vector)))

(define (list-merge less? a b) (%merge! less? (list-copy a) (list-copy b)))
