;;; Hash tables: SRFI 69 and SRFI 125 on top of the native tables, which support eqv?, equal? and
;;; string=?.
;;;
;;; A table with any other equivalence ("custom") maps hashes to association lists that are never
;;; mutated. Its procedures are a vector: equivalence, hash, number of associations. Each operation
;;; on a native table is atomic among threads. A custom table, and every update, needs a mutex.

(define %absent (list 'absent))

(define (%hash-table-kind same?)
  (cond ((or (eq? same? eqv?) (eq? same? eq?) (eq? same? char=?) (eq? same? symbol=?)
             (eq? same? boolean=?))
         'eqv)
        ((eq? same? equal?) 'equal)
        ((eq? same? string=?) 'string)
        (else 'custom)))

(define (%default-hash same?)
  (cond ((eq? same? string-ci=?) string-ci-hash)
        ((eq? same? =) (lambda (x) (hash (if (and (inexact? x) (finite? x)) (exact x) x))))
        ((eq? same? char-ci=?) (lambda (c) (hash (char-foldcase c))))
        (else (%wrong-type 'make-hash-table 2 "hash function for this equivalence" same?))))

;; Whether keys or values are weak, from the hints. Weak tables use ephemerons for both kinds of
;; hint.
(define (%weakness same? kind hints)
  (let ((keys? (or (memq 'weak-keys hints) (memq 'ephemeral-keys hints)))
        (values? (or (memq 'weak-values hints) (memq 'ephemeral-values hints))))
    (cond ((not (or keys? values?)) #f)
          ((eq? kind 'custom)
           (error "make-hash-table: where a procedure of the program's compares the keys, nothing is held weakly"
                  same?))
          ((and keys? values?) 'weak-keys-and-values)
          (keys? 'weak-keys)
          (else 'weak-values))))

;; (make-hash-table [comparator hint ...]), (make-hash-table [equivalence [hash [hint ...]]]). Hints
;; that are not symbols, such as a size, are ignored.
(define (make-hash-table . rest)
  (cond ((and (pair? rest) (comparator? (car rest)))
         (let* ((comparator (car rest)) (same? (comparator-equality-predicate comparator)))
           (if (and (not (comparator-hashable? comparator)) (eq? (%hash-table-kind same?) 'custom))
               (%wrong-type 'make-hash-table 1 "comparator with a hash function" comparator))
           (%make-table same?
                        (and (comparator-hashable? comparator) (comparator-hash-function comparator))
                        (cdr rest))))
        (else
         (%make-table (if (and (pair? rest) (procedure? (car rest))) (car rest) equal?)
                      (and (pair? rest) (pair? (cdr rest)) (procedure? (cadr rest)) (cadr rest))
                      rest))))

(define (%make-table same? hash-of hints)
  (let* ((kind (%hash-table-kind same?)) (weakness (%weakness same? kind hints)))
    (%make-hash-table kind
                      (vector same? (or hash-of (and (eq? kind 'custom) (%default-hash same?))) 0)
                      0
                      weakness)))

(define (hash-table same? . rest)
  (let ((table (make-hash-table same?)))
    (let loop ((rest rest))
      (if (null? rest)
          table
          (begin (hash-table-set! table (car rest) (cadr rest)) (loop (cddr rest)))))))

(define (alist->hash-table alist . rest)
  (let ((table (apply make-hash-table rest)))
    ;; If a key occurs more than once, its first association counts.
    (for-each (lambda (entry)
                (if (not (hash-table-contains? table (car entry)))
                    (hash-table-set! table (car entry) (cdr entry))))
              alist)
    table))

(define (hash-table-unfold stop? mapper successor seed . rest)
  (let ((table (apply make-hash-table rest)))
    (let loop ((seed seed))
      (if (stop? seed)
          table
          (call-with-values (lambda () (mapper seed))
            (lambda (key value)
              (hash-table-set! table key value)
              (loop (successor seed))))))))

(define (hash-table-equivalence-function table) (vector-ref (%hash-table-procedures table) 0))
(define (hash-table-hash-function table)
  (or (vector-ref (%hash-table-procedures table) 1)
      (let ((same? (hash-table-equivalence-function table)))
        (cond ((eq? same? equal?) hash)
              ((eq? same? string=?) string-hash)
              (else eqv-hash)))))

;; Custom tables.

(define (%custom-hash table key) ((vector-ref (%hash-table-procedures table) 1) key))

(define (%custom-find table key)
  (assoc key (%bucket-ref table (%custom-hash table key)) (hash-table-equivalence-function table)))

(define (%without entry bucket)
  (cond ((eq? entry (car bucket)) (cdr bucket))
        (else (cons (car bucket) (%without entry (cdr bucket))))))

(define (%custom-add-count! table n)
  (let ((procedures (%hash-table-procedures table)))
    (vector-set! procedures 2 (+ n (vector-ref procedures 2)))))

(define (%custom-set! table key value)
  (let* ((code (%custom-hash table key))
         (bucket (%bucket-ref table code))
         (entry (assoc key bucket (hash-table-equivalence-function table))))
    (if (not entry) (%custom-add-count! table 1))
    (%bucket-set! table code
                  (cons (cons key value) (if entry (%without entry bucket) bucket)))))

(define (%custom-delete! table key)
  (let* ((code (%custom-hash table key))
         (bucket (%bucket-ref table code))
         (entry (assoc key bucket (hash-table-equivalence-function table))))
    (and entry
         (begin
           (%custom-add-count! table -1)
           (%bucket-set! table code (%without entry bucket))
           #t))))

;; One association. The native primitives treat a custom table as empty, and do not change it.

(define (%missing table key)
  (if (hash-table? table)
      (error "hash-table-ref: no association for key" key)
      (%wrong-type 'hash-table-ref 1 "hash table" table)))

;; For a key that the native look-up did not find: searches a custom table.
(define (%look-again table key)
  (if (%hash-table-custom? table)
      (let ((entry (%custom-find table key)))
        (if entry (cdr entry) %absent))
      %absent))

(define (%ref table key)
  (let ((value (%hash-table-ref table key %absent)))
    (if (eq? value %absent) (%look-again table key) value)))

(define hash-table-ref
  (case-lambda
    ((table key)
     (let ((value (%ref table key)))
       (if (eq? value %absent) (%missing table key) value)))
    ((table key failure)
     (let ((value (%ref table key)))
       (if (eq? value %absent) (if failure (failure) (%missing table key)) value)))
    ((table key failure success)
     (let ((value (%ref table key)))
       (if (eq? value %absent) (if failure (failure) (%missing table key)) (success value))))))

(define (hash-table-ref/default table key default)
  (let ((value (%hash-table-ref table key %absent)))
    (if (eq? value %absent)
        (let ((value (%look-again table key)))
          (if (eq? value %absent) default value))
        value)))

(define hash-table-set!
  (case-lambda
    ((table key value)
     (if (not (%hash-table-set! table key value)) (%custom-set! table key value)))
    ((table . rest)
     (let loop ((rest rest))
       (if (pair? rest)
           (begin (hash-table-set! table (car rest) (cadr rest)) (loop (cddr rest))))))))

(define (%delete! table key)
  (if (%hash-table-custom? table) (%custom-delete! table key) (%hash-table-delete! table key)))

;; Returns how many of the keys were present.
(define (hash-table-delete! table . keys)
  (let loop ((keys keys) (n 0))
    (if (null? keys) n (loop (cdr keys) (if (%delete! table (car keys)) (+ n 1) n)))))

(define (hash-table-contains? table key)
  (or (%hash-table-contains? table key)
      (and (%hash-table-custom? table) (%custom-find table key) #t)))
(define hash-table-exists? hash-table-contains?)

(define hash-table-update!
  (case-lambda
    ((table key f) (hash-table-set! table key (f (hash-table-ref table key))))
    ((table key f failure) (hash-table-set! table key (f (hash-table-ref table key failure))))
    ((table key f failure success)
     (hash-table-set! table key (f (hash-table-ref table key failure success))))))

(define (hash-table-update!/default table key f default)
  (let ((value (%hash-table-ref table key %absent)))
    (if (eq? value %absent)
        (hash-table-set! table key (f (hash-table-ref/default table key default)))
        (%hash-table-set! table key (f value)))))

(define (hash-table-intern! table key failure)
  (hash-table-ref table key
    (lambda ()
      (let ((value (failure)))
        (hash-table-set! table key value)
        value))))

;; The whole table. Each walk covers the associations that existed when it began.

(define (hash-table->alist table)
  (if (%hash-table-custom? table)
      (apply append (%hash-table-values table))
      (%hash-table->alist table)))
(define (hash-table-keys table)
  (if (%hash-table-custom? table) (map car (hash-table->alist table)) (%hash-table-keys table)))
(define (hash-table-values table)
  (if (%hash-table-custom? table) (map cdr (hash-table->alist table)) (%hash-table-values table)))
(define (hash-table-entries table)
  (let ((alist (hash-table->alist table)))
    (values (map car alist) (map cdr alist))))

(define (hash-table-size table)
  (if (%hash-table-custom? table)
      (vector-ref (%hash-table-procedures table) 2)
      (%hash-table-size table)))
(define (hash-table-empty? table) (= (hash-table-size table) 0))

(define (hash-table-clear! table)
  (if (%hash-table-custom? table) (vector-set! (%hash-table-procedures table) 2 0))
  (%hash-table-clear! table))

(define (hash-table-walk table f)
  (for-each (lambda (entry) (f (car entry) (cdr entry))) (hash-table->alist table)))

;; SRFI 125 has the procedure first, its predecessors have the table first.

(define (hash-table-for-each a b)
  (if (hash-table? a) (hash-table-walk a b) (hash-table-walk b a)))
(define (hash-table-map->list a b)
  (let ((f (if (hash-table? a) b a)) (table (if (hash-table? a) a b)))
    (map (lambda (entry) (f (car entry) (cdr entry))) (hash-table->alist table))))
(define (hash-table-fold a b c)
  (let ((table (if (hash-table? a) a c)) (f (if (hash-table? a) b a)) (seed (if (hash-table? a) c b)))
    (fold (lambda (entry result) (f (car entry) (cdr entry) result)) seed
          (hash-table->alist table))))
(define (hash-table-find f table . failure)
  (or (any (lambda (entry) (f (car entry) (cdr entry))) (hash-table->alist table))
      (and (pair? failure) ((car failure)))))
(define (hash-table-mutable? table) (hash-table? table))
(define (hash-table-count a b)
  (let ((ok? (if (hash-table? a) b a)) (table (if (hash-table? a) a b)))
    (count (lambda (entry) (ok? (car entry) (cdr entry))) (hash-table->alist table))))
(define (hash-table-prune! ok? table)
  (hash-table-walk table (lambda (key value) (if (ok? key value) (%delete! table key)))))
(define (hash-table-map! f table)
  (hash-table-walk table (lambda (key value) (hash-table-set! table key (f key value)))))
(define (hash-table-map f same? table)
  (let ((new (make-hash-table same?)))
    (hash-table-walk table (lambda (key value) (hash-table-set! new key (f value))))
    new))

(define (hash-table-pop! table)
  (let ((alist (hash-table->alist table)))
    (if (null? alist) (error "hash-table-pop!: the table is empty" table))
    (%delete! table (caar alist))
    (values (caar alist) (cdar alist))))

(define (hash-table-empty-copy table)
  (let* ((procedures (%hash-table-procedures table)) (hash-of (vector-ref procedures 1)))
    (apply make-hash-table (vector-ref procedures 0)
           (append (if hash-of (list hash-of) '())
                   (let ((weakness (%hash-table-weakness table)))
                     (cond ((not weakness) '())
                           ((eq? weakness 'weak-keys-and-values) '(weak-keys weak-values))
                           (else (list weakness))))))))
(define (hash-table-copy table . rest)
  (if (%hash-table-custom? table)
      (let ((new (hash-table-empty-copy table)))
        (hash-table-walk table (lambda (key value) (%custom-set! new key value)))
        new)
      (%hash-table-copy table)))

;; Tables as sets; the first is changed and returned.

(define (hash-table-union! a b)
  (hash-table-walk b
    (lambda (key value) (if (not (hash-table-contains? a key)) (hash-table-set! a key value))))
  a)
(define hash-table-merge! hash-table-union!)
(define (hash-table-intersection! a b)
  (hash-table-walk a
    (lambda (key value) (if (not (hash-table-contains? b key)) (%delete! a key))))
  a)
(define (hash-table-difference! a b)
  (hash-table-walk a (lambda (key value) (if (hash-table-contains? b key) (%delete! a key))))
  a)
(define (hash-table-xor! a b)
  (hash-table-walk b
    (lambda (key value)
      (if (hash-table-contains? a key) (%delete! a key) (hash-table-set! a key value))))
  a)
(define (hash-table=? comparator a b)
  (let ((same-value? (if (comparator? comparator) (comparator-equality-predicate comparator) comparator)))
    (and (= (hash-table-size a) (hash-table-size b))
         (every (lambda (entry)
                  (let ((value (%ref b (car entry))))
                    (and (not (eq? value %absent)) (same-value? (cdr entry) value))))
                (hash-table->alist a)))))
