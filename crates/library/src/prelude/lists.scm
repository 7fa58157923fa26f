;;; Lists: procedures with procedure arguments (R7RS 6.4 and 6.10, SRFI 1).

(define (%check-list who position list)
  (if (not (null? list)) (%wrong-type who position "proper list" list)))

;; Checks the arguments when a mapping ends, because the procedure may not have been called, and the
;; list that ended first may be improper.
(define (%check-mapped who f lists)
  (if (not (procedure? f)) (%wrong-type who 1 "procedure" f))
  (let loop ((lists lists) (position 2))
    (if (pair? lists)
        (begin
          (if (not (or (pair? (car lists)) (null? (car lists))))
              (%wrong-type who position "list" (car lists)))
          (loop (cdr lists) (+ position 1))))))

;; Mapping. Results are collected and reversed, so that a long list needs no deep stack. Nothing is
;; mutated, so a continuation captured in the procedure may return more than once.

(define (%any-null? lists)
  (and (pair? lists) (or (not (pair? (car lists))) (%any-null? (cdr lists)))))

(define (%cars lists) (%map1 car lists))
(define (%cdrs lists) (%map1 cdr lists))

(define (%map1 f list)
  (let loop ((rest list) (result '()))
    (if (pair? rest)
        (loop (cdr rest) (cons (f (car rest)) result))
        (begin
          (if (not (null? rest)) (%wrong-type 'map 2 "proper list" list))
          (if (not (procedure? f)) (%wrong-type 'map 1 "procedure" f))
          (reverse result)))))

(define map
  (case-lambda
    ((f list) (%map1 f list))
    ((f a b)
     (let loop ((a a) (b b) (result '()))
       (if (and (pair? a) (pair? b))
           (loop (cdr a) (cdr b) (cons (f (car a) (car b)) result))
           (begin (%check-mapped 'map f (list a b)) (reverse result)))))
    ((f a b . lists)
     (let loop ((lists (cons* a b lists)) (result '()))
       (if (%any-null? lists)
           (begin (%check-mapped 'map f lists) (reverse result))
           (loop (%cdrs lists) (cons (apply f (%cars lists)) result)))))))

(define map-in-order map)

(define for-each
  (case-lambda
    ((f list)
     (let loop ((rest list))
       (if (pair? rest)
           (begin (f (car rest)) (loop (cdr rest)))
           (begin
             (if (not (null? rest)) (%wrong-type 'for-each 2 "proper list" list))
             (if (not (procedure? f)) (%wrong-type 'for-each 1 "procedure" f))))))
    ((f a b)
     (let loop ((a a) (b b))
       (if (and (pair? a) (pair? b))
           (begin (f (car a) (car b)) (loop (cdr a) (cdr b)))
           (%check-mapped 'for-each f (list a b)))))
    ((f a b . lists)
     (let loop ((lists (cons* a b lists)))
       (if (%any-null? lists)
           (%check-mapped 'for-each f lists)
           (begin (apply f (%cars lists)) (loop (%cdrs lists))))))))

(define (filter-map f list . lists)
  (if (null? lists)
      (let loop ((rest list) (result '()))
        (if (pair? rest)
            (let ((x (f (car rest))))
              (loop (cdr rest) (if x (cons x result) result)))
            (reverse result)))
      (filter (lambda (x) x) (apply map f list lists))))

(define (append-map f list . lists) (apply append (apply map f list lists)))
(define append-map! append-map)
(define concatenate! concatenate)
(define map! map)

;; Searching.

;; `behind` moves up whenever the number of steps has doubled, so a circular list reaches it again
;; (Brent, 1980).
(define (%memp-of who same? x list)
  (let loop ((rest list) (behind '()) (steps 1) (steps-max 1))
    (cond ((null? rest) #f)
          ((not (pair? rest)) (%wrong-type who 2 "proper list" list))
          ((same? x (car rest)) rest)
          ((eq? rest behind) (%wrong-type who 2 "proper list" list))
          ((= steps steps-max) (loop (cdr rest) rest 1 (* 2 steps-max)))
          (else (loop (cdr rest) behind (+ steps 1) steps-max)))))

(define (%memp same? x list) (%memp-of 'member same? x list))

;; `part` searches one part of a list. It returns the result, #f, or the number of elements that it
;; has searched.
(define (%search part who x list)
  (let ((found (part x list)))
    (if (exact-integer? found)
        (begin
          (if (circular-list? list) (%wrong-type who 2 "proper list" list))
          (let loop ((rest (list-tail list found)))
            (let ((found (part x rest)))
              (if (exact-integer? found) (loop (list-tail rest found)) found))))
        found)))

(define member
  (case-lambda
    ((x list) (%search %member-part 'member x list))
    ((x list same?) (%memp same? x list))))

(define assoc
  (case-lambda
    ((key list) (%search %assoc-part 'assoc key list))
    ((key list same?)
     (let ((found (%memp-of 'assoc (lambda (key entry) (same? key (car entry))) key list)))
       (and found (car found))))))

(define (find-tail ok? list)
  (let loop ((rest list))
    (and (pair? rest) (if (ok? (car rest)) rest (loop (cdr rest))))))

(define (find ok? list)
  (let ((tail (find-tail ok? list))) (and tail (car tail))))

(define (list-index ok? list . lists)
  (if (null? lists)
      (let loop ((rest list) (i 0))
        (and (pair? rest) (if (ok? (car rest)) i (loop (cdr rest) (+ i 1)))))
      (let loop ((lists (cons list lists)) (i 0))
        (and (not (%any-null? lists))
             (if (apply ok? (%cars lists)) i (loop (%cdrs lists) (+ i 1)))))))

(define (any ok? list . lists)
  (if (null? lists)
      (let loop ((rest list))
        (and (pair? rest)
             (if (null? (cdr rest)) (ok? (car rest)) (or (ok? (car rest)) (loop (cdr rest))))))
      (let loop ((lists (cons list lists)))
        (and (not (%any-null? lists))
             (let ((next (%cdrs lists)))
               (if (%any-null? next)
                   (apply ok? (%cars lists))
                   (or (apply ok? (%cars lists)) (loop next))))))))

(define (every ok? list . lists)
  (if (null? lists)
      (or (not (pair? list))
          (let loop ((rest list))
            (if (null? (cdr rest)) (ok? (car rest)) (and (ok? (car rest)) (loop (cdr rest))))))
      (let loop ((lists (cons list lists)))
        (or (%any-null? lists)
            (let ((next (%cdrs lists)))
              (if (%any-null? next)
                  (apply ok? (%cars lists))
                  (and (apply ok? (%cars lists)) (loop next))))))))

(define (count ok? list . lists)
  (if (null? lists)
      (let loop ((rest list) (n 0))
        (if (pair? rest) (loop (cdr rest) (if (ok? (car rest)) (+ n 1) n)) n))
      (length (filter (lambda (x) x) (apply map ok? list lists)))))

;; Choosing.

(define (filter ok? list)
  (let loop ((rest list) (result '()))
    (if (pair? rest)
        (loop (cdr rest) (if (ok? (car rest)) (cons (car rest) result) result))
        (begin (%check-list 'filter 2 rest) (reverse result)))))

(define (remove ok? list) (filter (lambda (x) (not (ok? x))) list))
(define filter! filter)
(define remove! remove)

(define (partition ok? list)
  (let loop ((rest list) (in '()) (out '()))
    (cond ((not (pair? rest)) (values (reverse in) (reverse out)))
          ((ok? (car rest)) (loop (cdr rest) (cons (car rest) in) out))
          (else (loop (cdr rest) in (cons (car rest) out))))))
(define partition! partition)

(define (delete x list . rest)
  (let ((same? (if (pair? rest) (car rest) equal?)))
    (filter (lambda (y) (not (same? x y))) list)))
(define delete! delete)

(define (delete-duplicates list . rest)
  (let ((same? (if (pair? rest) (car rest) equal?)))
    (let loop ((rest list) (result '()))
      (if (pair? rest)
          (loop (cdr rest)
                (if (%memp (lambda (x y) (same? y x)) (car rest) result)
                    result
                    (cons (car rest) result)))
          (reverse result)))))
(define delete-duplicates! delete-duplicates)

(define (take-while ok? list)
  (let loop ((rest list) (result '()))
    (if (and (pair? rest) (ok? (car rest)))
        (loop (cdr rest) (cons (car rest) result))
        (reverse result))))
(define take-while! take-while)

(define (drop-while ok? list)
  (let loop ((rest list))
    (if (and (pair? rest) (ok? (car rest))) (loop (cdr rest)) rest)))

(define (span ok? list) (values (take-while ok? list) (drop-while ok? list)))
(define (break ok? list) (span (lambda (x) (not (ok? x))) list))
(define span! span)
(define break! break)

(define (split-at list k) (values (take list k) (drop list k)))
(define split-at! split-at)
(define take! take)
(define drop-right! drop-right)

;; Folding.

(define fold
  (case-lambda
    ((f seed list)
     (let loop ((rest list) (result seed))
       (if (pair? rest) (loop (cdr rest) (f (car rest) result)) result)))
    ((f seed . lists)
     (let loop ((lists lists) (result seed))
       (if (%any-null? lists)
           result
           (loop (%cdrs lists) (apply f (append (%cars lists) (list result)))))))))

(define fold-left
  (case-lambda
    ((f seed list)
     (let loop ((rest list) (result seed))
       (if (pair? rest) (loop (cdr rest) (f result (car rest))) result)))
    ((f seed . lists)
     (let loop ((lists lists) (result seed))
       (if (%any-null? lists)
           result
           (loop (%cdrs lists) (apply f result (%cars lists))))))))

(define (fold-right f seed list . lists)
  (if (null? lists)
      (let loop ((rest (reverse list)) (result seed))
        (if (pair? rest) (loop (cdr rest) (f (car rest) result)) result))
      (let loop ((rows (reverse (apply map (lambda row row) list lists))) (result seed))
        (if (pair? rows)
            (loop (cdr rows) (apply f (append (car rows) (cons result '()))))
            result))))

(define (reduce f identity list)
  (if (pair? list) (fold f (car list) (cdr list)) identity))
(define reduce-left
  (lambda (f identity list)
    (if (pair? list) (fold-left f (car list) (cdr list)) identity)))
(define (reduce-right f identity list)
  (if (pair? list)
      (let ((back (reverse list)))
        (fold f (car back) (cdr back)))
      identity))

;; Each takes the rest of the list before it calls f, because f may change the pair that it gets.
(define pair-fold
  (case-lambda
    ((f seed list)
     (let loop ((rest list) (result seed))
       (if (pair? rest)
           (let ((next (cdr rest))) (loop next (f rest result)))
           result)))
    ((f seed first . others)
     (let loop ((lists (cons first others)) (result seed))
       (if (%any-null? lists)
           result
           (let ((next (%cdrs lists)))
             (loop next (apply f (append lists (cons result '()))))))))))
(define pair-fold-right
  (case-lambda
    ((f seed list)
     (%not-all-circular "pair-fold-right" (cons list '()))
     (let loop ((pairs (pair-fold cons '() list)) (result seed))
       (if (pair? pairs) (loop (cdr pairs) (f (car pairs) result)) result)))
    ((f seed first . others)
     (%not-all-circular "pair-fold-right" (cons first others))
     (let loop ((rows '()) (lists (cons first others)))
       (if (not (%any-null? lists))
           (loop (cons lists rows) (%cdrs lists))
           (let back ((rows rows) (result seed))
             (if (pair? rows)
                 (back (cdr rows) (apply f (append (car rows) (cons result '()))))
                 result)))))))
(define pair-for-each
  (case-lambda
    ((f list)
     (let loop ((rest list))
       (if (pair? rest)
           (let ((next (cdr rest))) (f rest) (loop next)))))
    ((f first . others)
     (let loop ((lists (cons first others)))
       (if (not (%any-null? lists))
           (let ((next (%cdrs lists)))
             (apply f lists)
             (loop next)))))))

;; Checks that one of the lists, which start at argument 3, is not circular.
(define (%not-all-circular who lists)
  (let loop ((rest lists))
    (if (pair? rest)
        (if (circular-list? (car rest)) (loop (cdr rest)))
        (%wrong-type who 3 "finite list" (car lists)))))

(define (unfold stop? value next seed . rest)
  (let loop ((seed seed) (result '()))
    (if (stop? seed)
        (append-reverse result (if (pair? rest) ((car rest) seed) '()))
        (loop (next seed) (cons (value seed) result)))))
(define (unfold-right stop? value next seed . rest)
  (let loop ((seed seed) (result (if (pair? rest) (car rest) '())))
    (if (stop? seed) result (loop (next seed) (cons (value seed) result)))))

;; Construction and selection.

(define (list-tabulate n f)
  (if (not (exact-nonnegative-integer? n))
      (%wrong-type 'list-tabulate 1 "exact non-negative integer" n))
  (let loop ((i (- n 1)) (result '()))
    (if (< i 0) result (loop (- i 1) (cons (f i) result)))))
(define make-initialized-list list-tabulate)

(define (circular-list x . rest)
  (let ((list (cons x rest)))
    (set-cdr! (last-pair list) list)
    list))

(define (append! . lists)
  (let loop ((lists lists))
    (cond ((null? lists) '())
          ((null? (cdr lists)) (car lists))
          ((null? (car lists)) (loop (cdr lists)))
          (else
           (set-cdr! (last-pair (car lists)) (loop (cdr lists)))
           (car lists)))))

(define (reverse! list)
  (let loop ((rest list) (result '()))
    (if (pair? rest)
        (let ((next (cdr rest)))
          (set-cdr! rest result)
          (loop next rest))
        result)))

(define (null-list? list) (not (pair? list)))
(define (car+cdr pair) (values (car pair) (cdr pair)))
(define (zip list . lists) (apply map (lambda row row) list lists))
(define (unzip1 rows) (map car rows))
(define (unzip2 rows) (values (map car rows) (map cadr rows)))
(define (unzip3 rows) (values (map car rows) (map cadr rows) (map caddr rows)))
(define (unzip4 rows)
  (values (map car rows) (map cadr rows) (map caddr rows) (map cadddr rows)))
(define (unzip5 rows)
  (values (map car rows) (map cadr rows) (map caddr rows) (map cadddr rows)
          (map (lambda (row) (car (cddddr row))) rows)))

(define (list= same? . lists)
  (define (two? a b)
    (cond ((null? a) (null? b))
          ((null? b) #f)
          (else (and (same? (car a) (car b)) (two? (cdr a) (cdr b))))))
  (or (null? lists)
      (let loop ((a (car lists)) (rest (cdr lists)))
        (or (null? rest) (and (two? a (car rest)) (loop (car rest) (cdr rest)))))))

;; Association lists.

(define (alist-cons key value alist) (cons (cons key value) alist))
(define (alist-copy alist)
  (map (lambda (entry) (if (pair? entry) (cons (car entry) (cdr entry)) entry)) alist))
(define (alist-delete key alist . rest)
  (let ((same? (if (pair? rest) (car rest) equal?)))
    (remove (lambda (entry) (same? key (car entry))) alist)))
(define alist-delete! alist-delete)

(define (%remover same?)
  (lambda (key alist) (remove (lambda (entry) (same? key (car entry))) alist)))
(define del-assq (%remover eq?))
(define del-assv (%remover eqv?))
(define del-assoc (%remover equal?))

;; Lists as sets.

(define (lset-adjoin same? list . elements)
  (fold (lambda (x result) (if (%memp (lambda (x y) (same? y x)) x result) result (cons x result)))
        list elements))

(define (lset-union same? . lists)
  (reduce (lambda (list result)
            (cond ((null? list) result)
                  ((null? result) list)
                  ((eq? list result) result)
                  (else (apply lset-adjoin same? result list))))
          '() lists))

(define (lset-intersection same? list . lists)
  (filter (lambda (x) (every (lambda (other) (%memp same? x other)) lists)) list))

(define (lset-difference same? list . lists)
  (filter (lambda (x) (every (lambda (other) (not (%memp same? x other))) lists)) list))

(define (lset-xor same? . lists)
  (reduce (lambda (a b)
            (append (lset-difference same? b a) (lset-difference same? a b)))
          '() lists))

(define (lset-diff+intersection same? list . lists)
  (partition (lambda (x) (every (lambda (other) (not (%memp same? x other))) lists)) list))

(define lset-union! lset-union)
(define lset-intersection! lset-intersection)
(define lset-difference! lset-difference)
(define lset-xor! lset-xor)
(define lset-diff+intersection! lset-diff+intersection)

(define (%subset? same? a b)
  (every (lambda (x) (%memp same? x b)) a))
(define (%chain? ok? lists)
  (or (null? lists) (null? (cdr lists))
      (and (ok? (car lists) (cadr lists)) (%chain? ok? (cdr lists)))))
(define (lset<= same? . lists)
  (%chain? (lambda (a b) (%subset? same? a b)) lists))
(define (lset= same? . lists)
  (%chain? (lambda (a b)
             (and (%subset? same? a b)
                  (%subset? (lambda (x y) (same? y x)) b a)))
           lists))
