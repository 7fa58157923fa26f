;;; SRFI 125: hash tables that hold their keys weakly.
(import (scheme base) (scheme write) (scheme process-context) (srfi 125) (only (srfi 1) iota)
        (only (kyocho) gc))
(include "harness.scm")

(define (fill! table count keep?)
  (let loop ((n 0) (kept '()))
    (if (= n count)
        kept
        (let ((key (list n)))
          (hash-table-set! table key (vector n key))
          (loop (+ n 1) (if (keep? n) (cons key kept) kept))))))
(define (values-of table) (map (lambda (value) (vector-ref value 0)) (hash-table-values table)))

;; What is kept is found, though its value leads to its key; the rest is gone.
(define table (make-hash-table eq? 'weak-keys))
(define kept (fill! table 200 even?))
(gc)
(test 100 (hash-table-size table))
(test 100 (length (hash-table-keys table)))
(test (map (lambda (n) (* 2 n)) (iota 100)) (values-of table))
(test #t (let loop ((kept kept))
           (or (null? kept)
               (and (eq? (car kept) (vector-ref (hash-table-ref table (car kept)) 1))
                    (loop (cdr kept))))))

;; It stays a table: what is set, changed, deleted, and grown past what is gone.
(define more (fill! table 200 (lambda (n) (= n 7))))
(gc)
(test 101 (hash-table-size table))
(hash-table-set! table (car more) (vector 'changed #f))
(gc)
(test 'changed (vector-ref (hash-table-ref table (car more)) 0))
(test 1 (hash-table-delete! table (car more)))
(test 'none (hash-table-ref/default table (car more) 'none))
(test 100 (hash-table-size table))
(set! kept #f)
(gc)
(test 0 (hash-table-size table))
(test '() (hash-table->alist table))
(test #t (hash-table-empty? table))
(test-error (hash-table-pop! table))

;; Copies hold weakly as well.
(define original (make-hash-table equal? 'ephemeral-keys))
(define copied-keys (fill! original 10 odd?))
(define copy (hash-table-copy original))
(define empty-copy (hash-table-empty-copy original))
(define others (fill! empty-copy 10 (lambda (n) #f)))
(gc)
(test '(5 5 0) (map hash-table-size (list original copy empty-copy)))
(test 3 (vector-ref (hash-table-ref copy (list 3)) 0))
(set! copied-keys #f)
(gc)
(test '(0 0) (map hash-table-size (list original copy)))

;; Keys are compared as they are elsewhere; those that are no objects stay.
(define strings (make-hash-table string=? 'weak-keys))
(define name (string #\a #\b))
(hash-table-set! strings name 1)
(hash-table-set! strings (string #\c) 2)
(define small (make-hash-table eqv? 'weak-keys))
(for-each (lambda (key) (hash-table-set! small key key)) '(1 #\a symbol #t ()))
(gc)
(test 1 (hash-table-ref strings (string #\a #\b)))
(test 'none (hash-table-ref/default strings (string #\c) 'none))
(test 5 (hash-table-size small))

;; Others hold their keys.
(define strong (make-hash-table eq?))
(define held (fill! strong 10 (lambda (n) #f)))
(gc)
(test 10 (hash-table-size strong))

;; What cannot be had is refused.
(test-error (make-hash-table equal? 'weak-values))
(test-error (make-hash-table equal? 'weak-keys 'ephemeral-values))
(test-error (make-hash-table (lambda (a b) (eq? a b)) hash-by-identity 'weak-keys))
(test #t (hash-table? (make-hash-table equal? 100 'thread-safe)))

(finish)
