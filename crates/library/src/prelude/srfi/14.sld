;;; SRFI 14: sets of characters. Complete.
;;;
;;; A set is the ascending vector of its boundaries. The characters from the first boundary to
;;; before the second are in the set, those from the third to before the fourth, and so on. So a
;;; character is in the set if the number of boundaries up to it is odd. Two sets are combined by
;;; walking along both. Standard sets are made at their first use. The procedures that may change a
;;; set return a new one, as the SRFI permits.

(define-library (srfi 14)
  (import (scheme base) (srfi 14 categories))
  (export
   char-set? char-set= char-set<= char-set-hash
   char-set-cursor char-set-ref char-set-cursor-next end-of-char-set?
   char-set-fold char-set-unfold char-set-unfold! char-set-for-each char-set-map
   char-set-copy char-set list->char-set list->char-set! string->char-set string->char-set!
   char-set-filter char-set-filter! ucs-range->char-set ucs-range->char-set! ->char-set
   char-set->list char-set->string char-set-size char-set-count char-set-contains?
   char-set-every char-set-any
   char-set-adjoin char-set-adjoin! char-set-delete char-set-delete!
   char-set-complement char-set-complement! char-set-union char-set-union!
   char-set-intersection char-set-intersection! char-set-difference char-set-difference!
   char-set-xor char-set-xor! char-set-diff+intersection char-set-diff+intersection!
   char-set:lower-case char-set:upper-case char-set:title-case char-set:letter char-set:digit
   char-set:letter+digit char-set:graphic char-set:printing char-set:whitespace
   char-set:iso-control char-set:punctuation char-set:symbol char-set:hex-digit char-set:blank
   char-set:ascii char-set:empty char-set:full)
  (begin

    ;; The boundaries, or a procedure that returns them.
    (define-record-type char-set
      (make-set boundaries) char-set? (boundaries set-boundaries set-set-boundaries!))

    (define (boundaries set)
      (let ((known (set-boundaries set)))
        (if (vector? known)
            known
            (let ((made (known)))
              (set-set-boundaries! set made)
              made))))

    (define limit #x110000)
    (define surrogates (vector 0 #xd800 #xe000 limit))

    ;; The number of boundaries that are at most n.
    (define (boundaries-up-to bounds n)
      (let loop ((low 0) (high (vector-length bounds)))
        (if (= low high)
            low
            (let ((middle (quotient (+ low high) 2)))
              (if (<= (vector-ref bounds middle) n)
                  (loop (+ middle 1) high)
                  (loop low middle))))))

    (define (char-set-contains? set char)
      (odd? (boundaries-up-to (boundaries set) (char->integer char))))

    ;; The characters for which (in? in-a in-b) is true, found by walking along the boundaries of
    ;; both sets.
    (define (combine in? a b)
      (let ((na (vector-length a)) (nb (vector-length b)))
        (let loop ((i 0) (j 0) (inside #f) (found '()))
          (if (and (= i na) (= j nb))
              (list->vector (reverse found))
              (let* ((next-a (if (< i na) (vector-ref a i) limit))
                     (next-b (if (< j nb) (vector-ref b j) limit))
                     (at (min next-a next-b))
                     (i (if (and (< i na) (= next-a at)) (+ i 1) i))
                     (j (if (and (< j nb) (= next-b at)) (+ j 1) j))
                     (now (in? (odd? i) (odd? j))))
                (loop i j now (if (eq? now inside) found (cons at found))))))))

    (define (union a b) (combine (lambda (a b) (or a b)) a b))
    (define (intersection a b) (combine (lambda (a b) (and a b)) a b))
    (define (difference a b) (combine (lambda (a b) (and a (not b))) a b))

    ;; The boundaries for the characters with these numbers, in any order.
    (define (boundaries-of numbers)
      (let halve ((numbers numbers) (count (length numbers)))
        (cond ((= count 0) (vector))
              ((= count 1) (vector (car numbers) (+ (car numbers) 1)))
              (else
               (let ((half (quotient count 2)))
                 (union (halve numbers half)
                        (halve (list-tail numbers half) (- count half))))))))

    (define (of-chars chars) (make-set (boundaries-of (map char->integer chars))))

    ;; Cursors: the next character's number, or #f at the end.

    (define (at-or-after set n)
      (let* ((bounds (boundaries set)) (count (boundaries-up-to bounds n)))
        (cond ((odd? count) n)
              ((< count (vector-length bounds)) (vector-ref bounds count))
              (else #f))))

    (define (char-set-cursor set) (at-or-after set 0))
    (define (char-set-ref set cursor) (integer->char cursor))
    (define (char-set-cursor-next set cursor) (at-or-after set (+ cursor 1)))
    (define (end-of-char-set? cursor) (not cursor))

    (define (char-set-fold kons knil set)
      (let ((bounds (boundaries set)))
        (let ranges ((i 0) (state knil))
          (if (= i (vector-length bounds))
              state
              (let ((end (vector-ref bounds (+ i 1))))
                (let loop ((n (vector-ref bounds i)) (state state))
                  (if (= n end)
                      (ranges (+ i 2) state)
                      (loop (+ n 1) (kons (integer->char n) state)))))))))

    (define (char-set-for-each f set) (char-set-fold (lambda (char _) (f char)) #f set))

    (define (char-set-map f set)
      (of-chars (char-set-fold (lambda (char chars) (cons (f char) chars)) '() set)))

    ;; Sets made from other objects.

    (define (base-of rest) (if (null? rest) char-set:empty (car rest)))

    (define (char-set-copy set) (make-set (boundaries set)))
    (define (char-set . chars) (of-chars chars))
    (define (list->char-set chars . base) (char-set-union (base-of base) (of-chars chars)))
    (define (string->char-set string . base)
      (char-set-union (base-of base) (of-chars (string->list string))))

    ;; The SRFI's heading has `f p g`; its definition, examples and implementation have `p f g`.
    (define (char-set-unfold stop? f successor seed . base)
      (let loop ((seed seed) (chars '()))
        (if (stop? seed)
            (list->char-set chars (base-of base))
            (loop (successor seed) (cons (f seed) chars)))))

    (define (char-set-filter test set . base)
      (list->char-set
       (char-set-fold (lambda (char chars) (if (test char) (cons char chars) chars)) '() set)
       (base-of base)))

    ;; Characters from number `low` to before `high`. With error?, an empty or invalid range is an
    ;; error.
    (define (ucs-range->char-set low high . rest)
      (if (not (<= 0 low high))
          (error "ucs-range->char-set: no range of characters" low high))
      (if (and (pair? rest) (car rest)
               (or (> high limit) (and (< low #xe000) (< #xd800 high))))
          (error "ucs-range->char-set: not all of the range are characters" low high))
      (let ((range (if (< low (min high limit)) (vector low (min high limit)) (vector))))
        (char-set-union
         (base-of (if (pair? rest) (cdr rest) '()))
         (make-set (intersection range surrogates)))))

    (define (->char-set x)
      (cond ((char-set? x) x)
            ((string? x) (string->char-set x))
            ((char? x) (char-set x))
            (else (error "->char-set: not a character, string or set of characters" x))))

    ;; Queries.

    (define (char-set->list set) (reverse (char-set-fold cons '() set)))
    (define (char-set->string set) (list->string (char-set->list set)))

    (define (char-set-size set)
      (let ((bounds (boundaries set)))
        (let loop ((i 0) (size 0))
          (if (= i (vector-length bounds))
              size
              (loop (+ i 2) (+ size (- (vector-ref bounds (+ i 1)) (vector-ref bounds i))))))))

    (define (char-set-count test set)
      (char-set-fold (lambda (char count) (if (test char) (+ count 1) count)) 0 set))

    (define (char-set-any test set)
      (let loop ((cursor (char-set-cursor set)))
        (and cursor
             (or (test (integer->char cursor)) (loop (char-set-cursor-next set cursor))))))

    (define (char-set-every test set)
      (let loop ((cursor (char-set-cursor set)) (last #t))
        (if cursor
            (let ((value (test (integer->char cursor))))
              (and value (loop (char-set-cursor-next set cursor) value)))
            last)))

    (define (each-two? test sets)
      (or (null? sets)
          (let loop ((first (car sets)) (rest (cdr sets)))
            (or (null? rest)
                (and (test (boundaries first) (boundaries (car rest)))
                     (loop (car rest) (cdr rest)))))))

    (define (char-set= . sets) (each-two? equal? sets))
    (define (char-set<= . sets)
      (each-two? (lambda (a b) (= (vector-length (difference a b)) 0)) sets))

    (define (char-set-hash set . rest)
      (let ((bound (if (and (pair? rest) (> (car rest) 0)) (car rest) 33554393))
            (bounds (boundaries set)))
        (let loop ((i 0) (hash 0))
          (if (= i (vector-length bounds))
              (modulo hash bound)
              (loop (+ i 1) (modulo (+ (* 37 hash) (vector-ref bounds i)) 33554393))))))

    ;; Algebra.

    (define (char-set-union . sets)
      (make-set (let loop ((found (vector)) (sets sets))
                  (if (null? sets) found (loop (union found (boundaries (car sets))) (cdr sets))))))

    (define (char-set-intersection . sets)
      (make-set (let loop ((found surrogates) (sets sets))
                  (if (null? sets)
                      found
                      (loop (intersection found (boundaries (car sets))) (cdr sets))))))

    (define (char-set-difference set . sets)
      (make-set (difference (boundaries set) (boundaries (apply char-set-union sets)))))

    (define (char-set-xor . sets)
      (make-set (let loop ((found (vector)) (sets sets))
                  (if (null? sets)
                      found
                      (loop (combine (lambda (a b) (not (eq? a b))) found (boundaries (car sets)))
                            (cdr sets))))))

    (define (char-set-complement set) (make-set (difference surrogates (boundaries set))))

    (define (char-set-diff+intersection set . sets)
      (let ((others (boundaries (apply char-set-union sets))))
        (values (make-set (difference (boundaries set) others))
                (make-set (intersection (boundaries set) others)))))

    (define (char-set-adjoin set . chars) (list->char-set chars set))
    (define (char-set-delete set . chars) (char-set-difference set (of-chars chars)))

    (define char-set-unfold! char-set-unfold)
    (define list->char-set! list->char-set)
    (define string->char-set! string->char-set)
    (define char-set-filter! char-set-filter)
    (define ucs-range->char-set! ucs-range->char-set)
    (define char-set-adjoin! char-set-adjoin)
    (define char-set-delete! char-set-delete)
    (define char-set-complement! char-set-complement)
    (define char-set-union! char-set-union)
    (define char-set-intersection! char-set-intersection)
    (define char-set-difference! char-set-difference)
    (define char-set-xor! char-set-xor)
    (define char-set-diff+intersection! char-set-diff+intersection)

    ;; Standard sets.

    (define (of-distances distances)
      (make-set
       (lambda ()
         (let loop ((distances distances) (at 0) (found '()))
           (if (null? distances)
               (list->vector (reverse found))
               (let ((at (+ at (car distances))))
                 (loop (cdr distances) at (cons at found))))))))

    (define (union-of . sets) (make-set (lambda () (boundaries (apply char-set-union sets)))))

    (define char-set:empty (make-set (vector)))
    (define char-set:full (make-set surrogates))
    (define char-set:ascii (make-set (vector 0 128)))
    (define char-set:lower-case (of-distances lower-case-boundaries))
    (define char-set:upper-case (of-distances upper-case-boundaries))
    (define char-set:title-case (of-distances title-case-boundaries))
    (define char-set:letter (of-distances letter-boundaries))
    (define char-set:digit (of-distances digit-boundaries))
    (define char-set:punctuation (of-distances punctuation-boundaries))
    (define char-set:symbol (of-distances symbol-boundaries))
    (define char-set:letter+digit (union-of char-set:letter char-set:digit))
    (define char-set:graphic
      (union-of char-set:letter char-set:digit char-set:punctuation char-set:symbol))
    (define spaces (of-distances space-boundaries))
    (define char-set:whitespace
      (union-of spaces (make-set (vector 9 14)) (make-set (vector #x2028 #x202a))))
    (define char-set:blank (union-of spaces (make-set (vector 9 10))))
    (define char-set:printing (union-of char-set:graphic char-set:whitespace))
    (define char-set:iso-control (make-set (vector 0 32 127 160)))
    (define char-set:hex-digit (make-set (vector 48 58 65 71 97 103)))))
