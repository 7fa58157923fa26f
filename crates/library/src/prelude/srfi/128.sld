;;; SRFI 128: comparators. Complete.
;;;
;;; The default comparator orders by type first: the empty list, pairs, booleans, characters,
;;; strings, symbols, numbers, vectors, bytevectors. Then come the types registered with
;;; comparator-register-default!, in the order of registration. All other objects come last, and are
;;; distinguished only by equal?.

;;;
;;; The record and its parts are in the prelude (comparators.scm). string-hash and string-ci-hash
;;; are those of SRFI 125, so that a program may import both.

(define-library (srfi 128)
  (import (scheme base) (scheme case-lambda) (scheme char) (scheme complex) (scheme inexact)
          (only (kyocho) comparator? make-comparator comparator-type-test-predicate
                comparator-equality-predicate comparator-ordering-predicate
                comparator-hash-function comparator-ordered? comparator-hashable?
                equal-hash string-hash string-ci-hash)
          (rename (only (kyocho) number-hash) (number-hash any-number-hash)))
  (export
   comparator? comparator-ordered? comparator-hashable? make-comparator make-pair-comparator
   make-list-comparator make-vector-comparator make-eq-comparator make-eqv-comparator
   make-equal-comparator boolean-hash (rename one-char-hash char-hash) char-ci-hash
   string-hash string-ci-hash
   (rename one-symbol-hash symbol-hash) number-hash hash-bound hash-salt make-default-comparator
   default-hash comparator-register-default! comparator-type-test-predicate
   comparator-equality-predicate comparator-ordering-predicate comparator-hash-function
   comparator-test-type comparator-check-type comparator-hash =? <? >? <=? >=? comparator-if<=>)
  (begin

    ;; Hash functions.

    ;; Upper bound of hash values. Their products with small numbers are still fixnums.
    (define bound 281474976710656)
    (define-syntax hash-bound (syntax-rules () ((_) 281474976710656)))
    (define-syntax hash-salt (syntax-rules () ((_) 16064047)))

    (define (bounded hash) (lambda (x) (modulo (hash x) bound)))
    (define (mix a b) (modulo (+ (* 31 a) b) bound))

    (define (boolean-hash x) (if x 1 0))
    (define one-char-hash (bounded (lambda (c) (char->integer c))))
    (define char-ci-hash (bounded (lambda (c) (char->integer (char-foldcase c)))))
    (define (one-symbol-hash s) (string-hash (symbol->string s)))

    ;; Numbers that are = have the same hash, exact or not.
    (define (number-hash x)
      (cond ((nan? x) 1)
            ((not (real? x))
             (modulo (+ (number-hash (real-part x))
                        (if (zero? (imag-part x)) 0 (* 31 (number-hash (imag-part x)))))
                     bound))
            ((infinite? x) (if (> x 0) 2 3))
            (else (modulo (any-number-hash (exact x)) bound))))

    ;; Comparators made from other comparators.

    (define (ordering? . comparators) (every? comparator-ordered? comparators))
    (define (hashing? . comparators) (every? comparator-hashable? comparators))
    (define (every? test list) (or (null? list) (and (test (car list)) (every? test (cdr list)))))

    (define (make-pair-comparator head tail)
      (define (test x)
        (and (pair? x) (comparator-test-type head (car x)) (comparator-test-type tail (cdr x))))
      (define (same a b) (and (=? head (car a) (car b)) (=? tail (cdr a) (cdr b))))
      (define (before a b)
        (if (=? head (car a) (car b)) (<? tail (cdr a) (cdr b)) (<? head (car a) (car b))))
      (define (hash x) (mix (comparator-hash head (car x)) (comparator-hash tail (cdr x))))
      (make-comparator test same
                       (and (ordering? head tail) before)
                       (and (hashing? head tail) hash)))

    (define make-list-comparator
      (case-lambda
        ((element) (make-list-comparator element list? null? car cdr))
        ((element type-test empty? head tail)
         (define (test x)
           (and (type-test x)
                (let loop ((x x))
                  (or (empty? x)
                      (and (comparator-test-type element (head x)) (loop (tail x)))))))
         (define (same a b)
           (cond ((empty? a) (empty? b))
                 ((empty? b) #f)
                 (else (and (=? element (head a) (head b)) (same (tail a) (tail b))))))
         (define (before a b)
           (cond ((empty? a) (not (empty? b)))
                 ((empty? b) #f)
                 ((=? element (head a) (head b)) (before (tail a) (tail b)))
                 (else (<? element (head a) (head b)))))
         (define (hash x)
           (let loop ((x x) (state 17))
             (if (empty? x)
                 state
                 (loop (tail x) (mix state (comparator-hash element (head x)))))))
         (make-comparator test same
                          (and (ordering? element) before)
                          (and (hashing? element) hash)))))

    ;; Shorter vectors come first.
    (define make-vector-comparator
      (case-lambda
        ((element) (make-vector-comparator element vector? vector-length vector-ref))
        ((element type-test length ref)
         (define (all? test count)
           (let loop ((i 0)) (or (= i count) (and (test i) (loop (+ i 1))))))
         (define (test x)
           (and (type-test x)
                (all? (lambda (i) (comparator-test-type element (ref x i))) (length x))))
         (define (same a b)
           (and (= (length a) (length b))
                (all? (lambda (i) (=? element (ref a i) (ref b i))) (length a))))
         (define (before a b)
           (let ((count (length a)))
             (if (= count (length b))
                 (let loop ((i 0))
                   (cond ((= i count) #f)
                         ((=? element (ref a i) (ref b i)) (loop (+ i 1)))
                         (else (<? element (ref a i) (ref b i)))))
                 (< count (length b)))))
         (define (hash x)
           (let ((count (length x)))
             (let loop ((i 0) (state 29))
               (if (= i count)
                   state
                   (loop (+ i 1) (mix state (comparator-hash element (ref x i))))))))
         (make-comparator test same
                          (and (ordering? element) before)
                          (and (hashing? element) hash)))))

    (define (make-eq-comparator) (make-comparator #t eq? #f default-hash))
    (define (make-eqv-comparator) (make-comparator #t eqv? #f default-hash))
    (define (make-equal-comparator) (make-comparator #t equal? #f default-hash))

    ;; The default comparator.

    (define registered '())
    (define (comparator-register-default! comparator)
      (set! registered (append registered (list comparator))))

    (define first-registered 9)
    (define (registered-kind x)
      (let loop ((comparators registered) (kind first-registered))
        (cond ((null? comparators) kind)
              ((comparator-test-type (car comparators) x) kind)
              (else (loop (cdr comparators) (+ kind 1))))))
    (define (comparator-of kind)
      (let ((i (- kind first-registered)))
        (and (< -1 i (length registered)) (list-ref registered i))))

    (define (kind-of x)
      (cond ((null? x) 0) ((pair? x) 1) ((boolean? x) 2) ((char? x) 3) ((string? x) 4)
            ((symbol? x) 5) ((number? x) 6) ((vector? x) 7) ((bytevector? x) 8)
            (else (registered-kind x))))

    (define (default-same? a b)
      (let ((kind (kind-of a)))
        (and (= kind (kind-of b))
             (case kind
               ((0) #t)
               ((1) (=? pairs a b))
               ((6) (or (= a b) (and (nan? a) (nan? b))))
               ((7) (=? vectors a b))
               (else (let ((comparator (comparator-of kind)))
                       (if comparator (=? comparator a b) (equal? a b))))))))

    (define (default-before? a b)
      (let ((kind (kind-of a)) (other (kind-of b)))
        (if (= kind other)
            (case kind
              ((0) #f)
              ((1) (<? pairs a b))
              ((2) (and (not a) b))
              ((3) (char<? a b))
              ((4) (string<? a b))
              ((5) (string<? (symbol->string a) (symbol->string b)))
              ((6) (if (nan? a) (not (nan? b)) (number-before? a b)))
              ((7) (<? vectors a b))
              ((8) (<? bytevectors a b))
              (else (let ((comparator (comparator-of kind)))
                      (and comparator (<? comparator a b)))))
            (< kind other))))

    ;; By the real part, then by the imaginary part.
    (define (number-before? a b)
      (cond ((and (real? a) (real? b)) (< a b))
            ((nan? b) #f)
            ((= (real-part a) (real-part b)) (< (imag-part a) (imag-part b)))
            (else (< (real-part a) (real-part b)))))

    (define (default-hash x)
      (case (kind-of x)
        ((0) 5)
        ((1) (comparator-hash pairs x))
        ((2) (boolean-hash x))
        ((3) (one-char-hash x))
        ((4) (string-hash x))
        ((5) (one-symbol-hash x))
        ((6) (number-hash x))
        ((7) (comparator-hash vectors x))
        ((8) (comparator-hash bytevectors x))
        (else (let ((comparator (comparator-of (kind-of x))))
                (if comparator (comparator-hash comparator x) (modulo (equal-hash x) bound))))))

    (define default (make-comparator #t default-same? default-before? default-hash))
    (define (make-default-comparator) default)
    (define pairs (make-pair-comparator default default))
    (define vectors (make-vector-comparator default))
    (define bytevectors
      (make-vector-comparator default bytevector? bytevector-length bytevector-u8-ref))

    ;; Applying comparators.

    (define (comparator-test-type comparator x) ((comparator-type-test-predicate comparator) x))
    (define (comparator-check-type comparator x)
      (if (comparator-test-type comparator x) #t (error "not of the comparator's type" x)))
    (define (comparator-hash comparator x) ((comparator-hash-function comparator) x))

    (define (chain related?)
      (lambda (comparator a b . rest)
        (let loop ((a a) (b b) (rest rest))
          (and (related? comparator a b)
               (or (null? rest) (loop b (car rest) (cdr rest)))))))
    (define (same? c a b) ((comparator-equality-predicate c) a b))
    (define (before? c a b) ((comparator-ordering-predicate c) a b))
    (define =? (chain same?))
    (define <? (chain before?))
    (define >? (chain (lambda (c a b) (before? c b a))))
    (define <=? (chain (lambda (c a b) (not (before? c b a)))))
    (define >=? (chain (lambda (c a b) (not (before? c a b)))))

    (define-syntax comparator-if<=>
      (syntax-rules ()
        ((_ a b less equal greater) (comparator-if<=> (make-default-comparator) a b less equal greater))
        ((_ comparator a b less equal greater)
         (let ((c comparator) (x a) (y b))
           (cond ((=? c x y) equal) ((<? c x y) less) (else greater))))))))
