;;; Numbers, characters and hashes of (kyocho): bits in two's complement, digits, hash functions.
(import (kyocho))
(include "harness.scm")

(define wide (expt 2 100))

;; one more, one less
(test '(6 0 7/2 2.5) (map 1+ '(5 -1 5/2 1.5))) (test '(4 -2 3/2 0.5) (map 1- '(5 -1 5/2 1.5))) (test wide (1- (1+ wide))) (test 1152921504606846976 (1+ 1152921504606846975)) (test -1152921504606846977 (1- -1152921504606846976)) (test-error (1+ 'a)) (test-error (1- "1")) (test-error (1+)) (test-error (1- 1 2))

;; bits of fixnums, of longer integers, and of both together
(test '(-1 0 0 0) (list (bitwise-and) (bitwise-ior) (bitwise-or) (bitwise-xor))) (test '(8 14 14 6) (list (bitwise-and 12 10) (bitwise-ior 12 10) (bitwise-or 12 10) (bitwise-xor 12 10)))
(test '(0 15 15 9) (list (bitwise-and 12 10 1) (bitwise-ior 12 10 1) (bitwise-or 12 10 1) (bitwise-xor 12 6 3))) (test '(4 -1 -5) (list (bitwise-and -4 7) (bitwise-ior -4 7) (bitwise-xor -4 7)))
(test (list wide 0 (+ wide 5) (+ wide 5) (+ wide 5)) (list (bitwise-and wide -1) (bitwise-and wide (- wide 1)) (bitwise-ior wide 5) (bitwise-or 5 wide) (bitwise-xor wide 5))) (test 5 (bitwise-xor wide (bitwise-xor 5 wide))) (test (- wide) (bitwise-and (- wide) (- 1 wide -1 1)))
(test '(-1 0 -6) (map bitwise-not '(0 -1 5))) (test (- -1 wide) (bitwise-not wide)) (test wide (bitwise-not (bitwise-not wide)))
(define operators (list bitwise-and bitwise-ior bitwise-or bitwise-xor)) (for-each (lambda (f) (test-error (f 1.5)) (test-error (f 1 'a)) (test-error (f 1/2 1)) (test-error (f wide "1"))) operators) (test-error (bitwise-not 1.0)) (test-error (bitwise-not 'a))
;; a & b = ~(~a | ~b) and a ^ b = (a | b) & ~(a & b), for any lengths and signs
(define samples (list 0 1 -1 5 -6 1152921504606846975 -1152921504606846976 wide (- wide) (- wide 1) (+ 3 (* 7 wide))))
(test '() (append-map (lambda (a) (filter (lambda (b) (not (and (= (bitwise-and a b) (bitwise-not (bitwise-ior (bitwise-not a) (bitwise-not b)))) (= (bitwise-xor a b) (bitwise-and (bitwise-ior a b) (bitwise-not (bitwise-and a b)))) (= (+ a b) (+ (bitwise-ior a b) (bitwise-and a b)))))) samples)) samples))

;; shifts multiply and divide; division rounds down
(for-each (lambda (shift) (test '(40 5 2 -2 -1 -1 0 0) (list (shift 5 3) (shift 5 0) (shift 5 -1) (shift -3 -1) (shift -1 -1) (shift -5 -100) (shift 5 -100) (shift 0 1000))) (test wide (shift 1 100)) (test 1 (shift wide -100)) (test -1 (shift (- wide) -101)) (test (- wide) (shift -1 100)) (test '() (filter (lambda (n) (not (= (shift n -3) (floor-quotient n 8)))) samples)) (test '() (filter (lambda (n) (not (= (shift n 70) (* n (expt 2 70))))) samples))
            (test-error (shift 1.5 1)) (test-error (shift 1 1.5)) (test-error (shift 'a 1)) (test-error (shift 1 wide)) (test-error (shift 1 (expt 2 50))))
          (list arithmetic-shift ash))

(test '(0 1 2 0 2 100) (map bit-count (list 0 1 5 -1 -6 (- wide 1)))) (test-error (bit-count 0.5)) (test '(0 1 3 0 3 3 101 100) (map integer-length (list 0 1 5 -1 -5 -8 wide (- wide)))) (test-error (integer-length 'a)) (test '(60 60 61) (map integer-length '(1152921504606846975 -1152921504606846976 1152921504606846976)))
(test '(#t #f #t #f #t #t) (list (bit-set? 0 5) (bit-set? 1 5) (bit-set? 2 5) (bit-set? 1000 5) (bit-set? 1000 -5) (bit-set? 100 wide))) (test '(#f #t) (list (bit-set? 99 wide) (bit-set? 100 (- wide)))) (test-error (bit-set? -1 5)) (test-error (bit-set? 0 1.0)) (test-error (bit-set? 'a 1))

(test '(#t #t #f #f #f #f #t) (map exact-nonnegative-integer? (list 0 5 -1 1.0 1/2 'a wide))) (test '(#t #t #t #f #f #f) (map exact-rational? (list 1 -1/2 wide 0.5 +i 'a)))

;; digits in a radix up to 36
(test '(7 #f 15 15 35 #f) (list (char->digit #\7) (char->digit #\a) (char->digit #\f 16) (char->digit #\F 16) (char->digit #\z 36) (char->digit #\2 2))) (test '(#\7 #f #\f #\z #f) (list (digit->char 7) (digit->char 10) (digit->char 15 16) (digit->char 35 36) (digit->char 1000000))) (test #f (char->digit #\٣))
(test-error (char->digit 7)) (test-error (char->digit #\1 1)) (test-error (char->digit #\1 37)) (test-error (digit->char -1)) (test-error (digit->char wide)) (test-error (digit->char 1 1)) (test-error (digit->char #\1)) (test '() (filter (lambda (n) (not (= n (char->digit (digit->char n 36) 36)))) (iota 36)))

;; hashes: equal for equal objects, below the bound, exact and not negative
(define (hash? x) (and (exact-integer? x) (>= x 0)))
(define text (string-copy "text")) (define pair (cons 1 2))
(test '(#t #t #t #t) (list (= (eq-hash pair) (eq-hash pair)) (= (eqv-hash 1.5) (eqv-hash 1.5)) (= (eqv-hash wide) (eqv-hash (expt 2 100))) (= (equal-hash (list text #(1 #\a) pair)) (equal-hash (list (string-copy text) (vector 1 #\a) (cons 1 2))))))
(test '(#t #t #t #t) (list (= (char-hash #\a) (char-hash #\a)) (= (number-hash 1/3) (number-hash (/ 2 6))) (= (symbol-hash 'a) (symbol-hash (string->symbol "a"))) (= (equal-hash "é") (equal-hash (string #\é)))))
(for-each (lambda (f x) (test #t (hash? (f x))) (test '() (filter (lambda (n) (not (< -1 (f x n) n))) '(1 2 7 1000000))) (test-error (f x 0)) (test-error (f x -1)) (test-error (f x 1.5)) (test-error (f x 10 10)) (test-error (f))) (list eq-hash eqv-hash equal-hash char-hash number-hash symbol-hash) (list pair 1.5 "x" #\x 1.5 'x))
(test-error (char-hash "a")) (test-error (number-hash 'a)) (test-error (symbol-hash "a"))
;; hashes are spread: of a thousand keys almost all differ
(define (distinct f keys) (let ((t (make-hash-table eqv?))) (for-each (lambda (k) (hash-table-set! t (f k) #t)) keys) (hash-table-size t)))
(test '(#t #t #t #t) (map (lambda (n) (> n 990)) (list (distinct number-hash (iota 1000)) (distinct equal-hash (map list (iota 1000))) (distinct char-hash (map integer->char (iota 1000 256))) (distinct equal-hash (map number->string (iota 1000))))))

(finish)
