;;; R7RS §6.13: input and output; §2 and §7.1: the syntax that read accepts.
(import (scheme base) (scheme write) (scheme read) (scheme file) (scheme process-context) (scheme char))
(include "harness.scm")

(define (written x) (let ((p (open-output-string))) (write x p) (get-output-string p)))
(define (displayed x) (let ((p (open-output-string))) (display x p) (get-output-string p)))
(define (read-from text) (read (open-input-string text)))

;; ports
(test #t (input-port? (current-input-port))) (test #t (output-port? (current-output-port))) (test #t (output-port? (current-error-port)))
(test #t (input-port? (open-input-string "abc"))) (test #t (output-port? (open-output-string))) (test #f (input-port? (open-output-string))) (test #t (port? (open-input-string ""))) (test #f (port? 5))
(test #t (textual-port? (open-input-string "abc"))) (test #t (binary-port? (open-input-bytevector #u8(0 1 2))))
(test #t (let ((p (open-input-string "a"))) (input-port-open? p))) (test #f (let ((p (open-input-string "a"))) (close-input-port p) (input-port-open? p))) (test #f (let ((p (open-output-string))) (close-output-port p) (output-port-open? p))) (test #f (let ((p (open-input-string "a"))) (close-port p) (input-port-open? p)))
(test #f (let ((p (open-output-string))) (input-port-open? p))) (test #f (let ((p (open-input-string "a"))) (output-port-open? p))) (test #f (output-port-open? (open-input-bytevector #u8()))) (test-error (input-port-open? 5)) (test-error (output-port-open? "port"))
(test-error (let ((p (open-input-string "a"))) (close-port p) (read-char p)))
(test 'result (call-with-port (open-input-string "x") (lambda (p) (read-char p) 'result)))
(test #t (eof-object? (eof-object))) (test #t (eof-object? (read-char (open-input-string "")))) (test #f (eof-object? 'eof))

;; reading characters
(test #\a (read-char (open-input-string "abc"))) (test #\a (peek-char (open-input-string "abc"))) (test '(#\a #\a #\b) (let* ((p (open-input-string "ab")) (a (peek-char p)) (b (read-char p)) (c (read-char p))) (list a b c)))
(test #t (char-ready? (open-input-string "a"))) (test #t (eof-object? (peek-char (open-input-string ""))))
(test "abc" (read-line (open-input-string "abc\ndef"))) (test '("abc" "" "def") (let* ((p (open-input-string "abc\n\ndef\n")) (a (read-line p)) (b (read-line p)) (c (read-line p))) (list a b c))) (test #t (eof-object? (read-line (open-input-string "")))) (test "abc" (read-line (open-input-string "abc")))
;; a line ends with a newline, a return, or both
(define (lines text) (let ((p (open-input-string text))) (let loop ((r '())) (let ((l (read-line p))) (if (eof-object? l) (reverse r) (loop (cons l r)))))))
(test '("a" "b" "c" "" "d") (lines "a\nb\rc\r\n\rd")) (test '("" "" "") (lines "\r\r\n\n")) (test '("a") (lines "a\r")) (test '("λ" "μ") (lines "λ\rμ\r\n"))
(test '("a" #\b) (let* ((p (open-input-string "a\r\nb")) (l (read-line p))) (list l (read-char p)))) (test '("a" #\newline) (let* ((p (open-input-string "a\r\n\n")) (l (read-line p))) (list l (read-char p))))
(test '(a b) (read-from "(a ; comment\rb)")) (test '(a b) (read-from "(a ; comment\r\nb)")) (test 'b (read-from "; comment\rb")) (test 'c (read-from "; a\r; b\rc"))
(test "a\nb\nc\nd" (read-from "\"a\rb\r\nc\nd\"")) (test "ab" (read-from "\"a\\ \r  b\"")) (test "ab" (read-from "\"a\\\r\n  b\"")) (test "a\nb" (read-from "\"a\\\r\rb\""))
(test "abc" (read-string 3 (open-input-string "abcd"))) (test "ab" (read-string 3 (open-input-string "ab"))) (test #t (eof-object? (read-string 3 (open-input-string "")))) (test "" (read-string 0 (open-input-string "abc"))) (test "λx" (read-string 2 (open-input-string "λxy")))

;; reading bytes
(test 1 (read-u8 (open-input-bytevector #u8(1 2 3)))) (test 1 (peek-u8 (open-input-bytevector #u8(1 2 3)))) (test #t (eof-object? (read-u8 (open-input-bytevector #u8())))) (test #t (u8-ready? (open-input-bytevector #u8(1))))
(test #u8(1) (read-bytevector 1 (open-input-bytevector #u8(1)))) (test #u8(1 2 3) (read-bytevector 4 (open-input-bytevector #u8(1 2 3)))) (test #t (eof-object? (read-bytevector 3 (open-input-bytevector #u8()))))
(test '(2 #u8(1 2 0)) (let* ((b (bytevector 0 0 0)) (n (read-bytevector! b (open-input-bytevector #u8(1 2)) 0 2))) (list n b))) (test '(2 #u8(0 1 2)) (let* ((b (bytevector 0 0 0)) (n (read-bytevector! b (open-input-bytevector #u8(1 2 3)) 1 3))) (list n b)))

;; writing
(test "abc" (let ((p (open-output-string))) (write-char #\a p) (write-string "bc" p) (get-output-string p))) (test "b" (let ((p (open-output-string))) (write-string "abc" p 1 2) (get-output-string p))) (test "\n" (let ((p (open-output-string))) (newline p) (get-output-string p)))
(test #u8(1 2 3) (let ((p (open-output-bytevector))) (write-u8 1 p) (write-bytevector #u8(2 3) p) (get-output-bytevector p))) (test #u8(2) (let ((p (open-output-bytevector))) (write-bytevector #u8(1 2 3) p 1 2) (get-output-bytevector p)))
(test "inside" (let ((p (open-output-string))) (parameterize ((current-output-port p)) (display "inside")) (get-output-string p)))
(test #\x (parameterize ((current-input-port (open-input-string "xyz"))) (read-char)))
(test "abc" (written 'abc)) (test "\"abc\"" (written "abc")) (test "abc" (displayed "abc")) (test "#\\a" (written #\a)) (test "a" (displayed #\a)) (test "(1 . 2)" (written '(1 . 2))) (test "(1 2 3)" (written '(1 2 3))) (test "(1 2 . 3)" (written '(1 2 . 3))) (test "#(1 \"a\" #\\b)" (written '#(1 "a" #\b))) (test "#u8(1 2)" (written #u8(1 2))) (test "()" (written '())) (test "#t" (written #t)) (test "#f" (written #f)) (test "1.5" (written 1.5)) (test "1/2" (written 1/2)) (test "(a (b c) d)" (displayed '(a (b c) d))) (test "(a b)" (displayed '("a" #\b)))
(test "\"a\\\"b\\\\c\"" (written "a\"b\\c")) (test "\"a\\nb\"" (written "a\nb")) (test "|a b|" (written (string->symbol "a b"))) (test "||" (written (string->symbol ""))) (test "a b" (displayed (string->symbol "a b"))) (test "|12|" (written (string->symbol "12")))
(test "#\\space" (written #\space)) (test "#\\newline" (written #\newline)) (test "#\\x0" (let ((s (written #\null))) (if (equal? s "#\\null") "#\\x0" s))) (test "'a" (let ((s (written ''a))) (if (equal? s "(quote a)") "'a" s)))
;; shared and circular structure
(test "#0=(a . #0#)" (let ((l (list 'a))) (set-cdr! l l) (written l))) (test "#0=#(#0# 1)" (let ((v (vector 0 1))) (vector-set! v 0 v) (written v)))
(define (shared x) (let ((p (open-output-string))) (write-shared x p) (get-output-string p)))
(define (simple x) (let ((p (open-output-string))) (write-simple x p) (get-output-string p)))
(test "(#0=(1) #0#)" (let ((l (list 1))) (shared (list l l)))) (test "((1) (1))" (let ((l (list 1))) (written (list l l)))) (test "((1) (1))" (let ((l (list 1))) (simple (list l l))))

;; read
(test 'abc (read-from "abc")) (test '(1 2 . 3) (read-from "(1 2 . 3)")) (test ''a (read-from "'a")) (test '`(a ,b ,@c) (read-from "`(a ,b ,@c)")) (test '#(1 2) (read-from "#(1 2)")) (test #u8(1 2) (read-from "#u8(1 2)")) (test "a\nb" (read-from "\"a\\nb\"")) (test #\space (read-from "#\\space")) (test 255 (read-from "#xff")) (test '() (read-from "()")) (test #t (read-from "#true")) (test #f (read-from "#false"))
(test 'c (read-from "; a comment\n#| block #| nested |# |# #;(a datum) c")) (test '(a c) (read-from "(a #;b c)")) (test #t (eof-object? (read-from ""))) (test #t (eof-object? (read-from "  ; nothing"))) (test '(a b) (let* ((p (open-input-string "a b")) (x (read p)) (y (read p))) (list x y))) (test #\) (let ((p (open-input-string "abc)"))) (read p) (read-char p)))
(test '|a b| (read-from "|a b|")) (test 'aAb (read-from "|a\\x41;b|")) (test 'abc (read-from "#!fold-case ABC")) (test 'ABC (read-from "#!fold-case #!no-fold-case ABC"))
(test #t (let ((x (read-from "#0=(a b . #0#)"))) (eq? x (cddr x)))) (test #t (let ((x (read-from "(#0=(1) #0#)"))) (eq? (car x) (cadr x)))) (test #t (let ((x (read-from "#0=#(1 #0#)"))) (eq? x (vector-ref x 1))))
(test-error (read-from "(a")) (test-error (read-from ")")) (test-error (read-from "(a . b c)")) (test-error (read-from "#<procedure>")) (test-error (read-from "\"abc"))
;; written values can be read again
(define data
  (list 'symbol (string->symbol "odd symbol") (string->symbol "|") "str\"ing\\ \n\t λ" #\a #\space #\newline #\x0 #\x7f #\λ 1 -1/2 1.5 1e100 -0.0 +inf.0 123456789012345678901234567890 '(1 (2 . 3) #(4 #u8(5))) #t #f '() ''quoted '`(q ,u ,@s) (string->symbol "1") (string->symbol "+") (string->symbol ".") (string->symbol "a.b") (string->symbol "UPPER") (string->symbol "#foo")))
(for-each (lambda (datum) (test datum (read-from (written datum)))) data)

;; files
(define file "kyocho-ports-test.tmp")
(define (read-all-chars p) (let loop ((r '())) (let ((c (read-char p))) (if (eof-object? c) (list->string (reverse r)) (loop (cons c r))))))
(test #f (begin (if (file-exists? file) (delete-file file)) (file-exists? file)))
(test "line λ 1\nline 2\n" (begin (call-with-output-file file (lambda (p) (write-string "line λ 1\nline 2\n" p))) (call-with-input-file file read-all-chars)))
(test #t (file-exists? file))
(test "again" (begin (with-output-to-file file (lambda () (display "again"))) (with-input-from-file file read-line)))
(test #u8(0 255 128) (begin (let ((p (open-binary-output-file file))) (write-bytevector #u8(0 255 128) p) (close-port p)) (let* ((p (open-binary-input-file file)) (b (read-bytevector 10 p))) (close-port p) b)))
(test 200000 (begin (let ((p (open-output-file file))) (do ((i 0 (+ i 1))) ((= i 20000)) (write-string "0123456789" p)) (close-output-port p)) (let* ((p (open-input-file file)) (s (read-all-chars p))) (close-input-port p) (string-length s))))
(test #f (begin (delete-file file) (file-exists? file)))
(test-error (delete-file file)) (test-error (open-input-file file))
(test-error (with-input-from-file "/no/such/directory/file" read))

(test "ab" (let ((p (open-output-string))) (write-string "ab" p) (flush-output-port p) (get-output-string p)))

(finish)
