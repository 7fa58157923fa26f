;;; R7RS §6.6: characters.
(import (scheme base) (scheme write) (scheme process-context) (scheme char))
(include "harness.scm")

(test #t (char? #\a)) (test #f (char? "a")) (test #f (char? 97))
(test #t (char=? #\a #\a #\a)) (test #f (char=? #\a #\A)) (test #t (char<? #\a #\b #\c)) (test #f (char<? #\a #\a)) (test #t (char>? #\b #\a)) (test #t (char<=? #\a #\a #\b)) (test #t (char>=? #\b #\b #\a))
(test-error (char<? #\a 1))
(test #t (char-ci=? #\a #\A)) (test #t (char-ci<? #\a #\B)) (test #f (char-ci>? #\a #\B)) (test #t (char-ci<=? #\a #\A)) (test #t (char-ci>=? #\A #\a))
(test #t (char-alphabetic? #\a)) (test #f (char-alphabetic? #\1)) (test #t (char-alphabetic? #\x3bb)) (test #f (char-alphabetic? #\space))
(test #t (char-numeric? #\1)) (test #f (char-numeric? #\a)) (test #t (char-numeric? #\x0664))
(test #t (char-whitespace? #\space)) (test #t (char-whitespace? #\newline)) (test #t (char-whitespace? #\tab)) (test #f (char-whitespace? #\a)) (test #t (char-whitespace? #\x00a0))
(test #t (char-upper-case? #\A)) (test #f (char-upper-case? #\a)) (test #f (char-upper-case? #\3)) (test #t (char-lower-case? #\a)) (test #t (char-upper-case? #\x3a3)) (test #t (char-lower-case? #\x3c3))
(test 3 (digit-value #\3)) (test 4 (digit-value #\x0664)) (test 0 (digit-value #\x0AE6)) (test #f (digit-value #\a)) (test #f (digit-value #\x0EA6))
(test 97 (char->integer #\a)) (test #\a (integer->char 97)) (test #\x10ffff (integer->char #x10ffff)) (test 955 (char->integer #\λ))
(test-error (integer->char -1)) (test-error (integer->char #xd800)) (test-error (integer->char #x110000))
(test #\A (char-upcase #\a)) (test #\? (char-upcase #\?)) (test #\a (char-downcase #\A)) (test #\a (char-foldcase #\A)) (test #\x3a3 (char-upcase #\x3c3)) (test #\x3c3 (char-foldcase #\x3c2)) (test #\xdf (char-upcase #\xdf))
;; names
(test '(7 8 127 27 10 0 13 32 9) (map char->integer (list #\alarm #\backspace #\delete #\escape #\newline #\null #\return #\space #\tab)))
(test '(40 41 59 34 35 120 955) (map char->integer (list #\( #\) #\; #\" #\# #\x #\x3bb)))

(finish)
