;;; Comparators: the record of SRFI 128. The rest is in that library; the record is here because
;;; hash tables accept comparators.

(define-record-type %comparator
  (%make-comparator test same before hash ordered? hashable?)
  comparator?
  (test comparator-type-test-predicate)
  (same comparator-equality-predicate)
  (before comparator-ordering-predicate)
  (hash comparator-hash-function)
  (ordered? comparator-ordered?)
  (hashable? comparator-hashable?))

(define (make-comparator test same before hash)
  (%make-comparator
   (if (eq? test #t) (lambda (x) #t) test)
   (if (eq? same #t) (lambda (a b) (and (not (before a b)) (not (before b a)))) same)
   (or before (lambda (a b) (error "this comparator has no ordering" a b)))
   (or hash (lambda (x) (error "this comparator has no hash function" x)))
   (and before #t)
   (and hash #t)))
