;;; Single sentences of the standards: R7RS, SRFI 1, 13, 14, 41 and 158.
(import (scheme base) (scheme write) (scheme read) (scheme eval) (scheme char) (scheme inexact) (scheme complex)
        (scheme cxr) (scheme lazy) (scheme case-lambda) (scheme process-context)
        (except (srfi 1) cons*) (prefix (srfi 13) s:) (srfi 14) (srfi 41) (prefix (srfi 158) g:))
(include "harness.scm")

(define (read-from text) (read (open-input-string text)))
(define (l* a b c) (cons a (cons b c)))
(define (written x) (let ((p (open-output-string))) (write x p) (get-output-string p)))

;; R7RS 2.2: nested comments, datum comments, and the ends of comments
(test '(1 3) (read-from "(1 #;2 3)")) (test '(1) (read-from "(1 #;(2 #;3 4))")) (test '(2) (read-from "(#| a #| b |# c |# 2)"))
(test 'a (read-from "#;#;x y a")) (test '(a . b) (read-from "(a . #;x b)")) (test '(a . b) (read-from "(a #;x . b #;y)"))
;; 2.4: labels
(test #t (let ((x (read-from "#0=(a b . #0#)"))) (eq? x (cddr x)))) (test "#0=(a b . #0#)" (written (let ((x (list 'a 'b))) (set-cdr! (cdr x) x) x)))
;; 4.1.7, 4.2.7, 4.2.9
(test 10 (let ((x 5)) (define-values (a b) (values x x)) (+ a b))) (test '(1 (2 3)) (let () (define-values (a . b) (values 1 2 3)) (list a b))) (test '(1 2) (let () (define-values all (values 1 2)) all))
(test '(3 2 1) (let*-values (((a b) (values 1 2)) ((c) (values (+ a b)))) (list c b a))) (test '(x y x y) (let ((a 'a) (b 'b) (x 'x) (y 'y)) (let*-values (((a b) (values x y)) ((x y) (values a b))) (list a b x y))))
(test 2 (call-with-values (lambda () (values 'a 'b)) (case-lambda ((a) 1) ((a b) 2)))) (test '(1 2 (3)) ((case-lambda ((a b) (list a b)) ((a b . c) (list a b c))) 1 2 3))
(test '(b . 23) (guard (e ((assq 'a e) => cdr) ((assq 'b e))) (raise (list (cons 'b 23))))) (test 'outer (guard (e (#t e)) (guard (e ((number? e) 'inner)) (raise 'outer))))
;; 4.2.6: a parameter's converter is applied to new values, but not to the restored value
(test '(11 101 11) (let* ((p (make-parameter 10 (lambda (x) (+ x 1)))) (before (p)) (inside (parameterize ((p 100)) (p)))) (list before inside (p))))
(test '(1 2) (let ((p (make-parameter 1)) (q (make-parameter 2))) (parameterize ((p (q)) (q (p))) (list (q) (p)))))
(test 5 (parameterize () 5)) (test-error ((make-parameter 1) 2)) (test-error ((make-parameter 1) 2 3))
;; 4.3.2: ellipses, literals, underscores, escapes, vectors, tails
(define-syntax my-list (syntax-rules () ((_ (a b ...) ...) '((b ... a) ...)))) (test '((2 3 1) (5 4)) (my-list (1 2 3) (4 5)))
(define-syntax tail (syntax-rules () ((_ a ... b c) '(c b (a ...))))) (test '(4 3 (1 2)) (tail 1 2 3 4)) (test '(2 1 ()) (tail 1 2))
(define-syntax be-like (syntax-rules () ((_ name) (define-syntax name (syntax-rules () ((_ expr (... ...)) (list 'name expr (... ...)))))))) (be-like sequence) (test '(sequence 1 2 3) (sequence 1 2 3))
(define-syntax other-ellipsis (syntax-rules ::: () ((_ a :::) '((a ...) :::)))) (test '((1 ...) (2 ...)) (other-ellipsis 1 2))
(define-syntax underscore (syntax-rules () ((_ _ _) 'two) ((_ _) 'one))) (test '(one two) (list (underscore 1) (underscore 1 2)))
(define-syntax in-vector (syntax-rules () ((_ #(a b ...)) '(a (b ...))))) (test '(1 (2 3)) (in-vector #(1 2 3)))
(define-syntax dotted (syntax-rules () ((_ a . b) '(a b)))) (test '(1 (2 . 3)) (dotted 1 2 . 3)) (test '(1 ()) (dotted 1))
(define-syntax nested (syntax-rules () ((_ ((a b ...) ...) c ...) '((a ... c ...) (b ... ...))))) (test '((1 4 x y) (2 3 5)) (nested ((1 2 3) (4 5)) x y))
(test 'now (let ((if #t)) (define-syntax given (syntax-rules () ((_ t s) (cond (t s))))) (given if (set! if 'now)) if))
(test 'ok (let ((=> #f)) (cond (#t => 'ok))))
;; 5.3 and 5.5: a begin may contain definitions; record types are distinct
(begin (define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y)) (define origin (make-point 0 0)))
(test '(#t #f 0) (list (point? origin) (point? (vector 0 0)) (point-y origin))) (test 7 (begin (set-point-x! origin 7) (point-x origin))) (test-error (point-x 5)) (test-error (make-point 1))
;; 6.1: equality
(test '(#f #t #f #t) (list (eqv? 0.0 -0.0) (= 0.0 -0.0) (eqv? 1 1.0) (equal? "a\nb" "a\nb"))) (test #t (equal? (make-vector 5 'a) (make-vector 5 'a))) (test #t (eqv? +nan.0 +nan.0))
(test #t (let ((a (list 1 2)) (b (list 1 2))) (set-cdr! (cdr a) a) (set-cdr! (cdr b) b) (equal? a b)))
;; 6.2: numbers
(test '(2 -3 -2 3) (list (floor-quotient 5 2) (floor-quotient 5 -2) (truncate-quotient 5 -2) (truncate-quotient 7 2))) (test '(-1 1) (list (floor-remainder 5 -2) (truncate-remainder 5 -2)))
(test '(-4.0 -4.0 -5.0 4.0 4 4) (list (round -4.3) (truncate -4.3) (floor -4.3) (round 3.5) (round 7/2) (round 9/2)))
(test '("1e100" "#xff" "+inf.0" "-1/3") (list (number->string 1e100) (string-append "#x" (number->string 255 16)) (number->string +inf.0) (number->string -1/3)))
(test '(255 #f 100.0 #f 1/2 -2.5 3) (list (string->number "ff" 16) (string->number "ff") (string->number "1e2") (string->number "1.2.3") (string->number "1/2") (string->number "#i-5/2") (string->number "#e3.0")))
(test '(0 -inf.0) (list (log 1) (log 0.0))) (test-near 3.141592653589793 (angle -1)) (test-near -3.141592653589793 (angle -1.0-0.0i)) (test-near 3.141592653589793 (imag-part (log -1))) (test-near 3.141592653589793 (imag-part (log -0.0)))
(test '(3 2) (call-with-values (lambda () (exact-integer-sqrt 11)) list))
(test '(#t #f #t #f) (list (exact-integer? 32) (exact-integer? 32.0) (nan? +nan.0) (finite? +inf.0)))
;; 6.7, 6.8, 6.9: ranges and overlap
(test "a12de" (let ((a "12345") (b (string-copy "abcde"))) (string-copy! b 1 a 0 2) b)) (test "aabce" (let ((b (string-copy "abcde"))) (string-copy! b 1 b 0 3) b)) (test #(1 1 2 3 5) (let ((v (vector 1 2 3 4 5))) (vector-copy! v 1 v 0 3) v)) (test #u8(2 3 4 4 5) (let ((v (bytevector 1 2 3 4 5))) (bytevector-copy! v 0 v 1 4) v))
(test "A" (utf8->string #u8(#x41))) (test #u8(#xCE #xBB) (string->utf8 "λ")) (test "StUdLyCaPs" (string-map (lambda (c k) ((if (eqv? k #\u) char-upcase char-downcase) c)) "studlycaps xxx" "ululululul"))
;; 6.10 and 6.11
(test '((1 . 4) (2 . 5)) (map cons '(1 2 3) '(4 5))) (test '(101 100 99 98 97) (let ((v '())) (string-for-each (lambda (c) (set! v (cons (char->integer c) v))) "abcde") v))
(test '(65 handled) (list (with-exception-handler (lambda (c) 42) (lambda () (+ (raise-continuable 'oops) 23))) (guard (e ((string? e) 'handled)) (raise "x")))) (test '(in out in out) (let ((path '()) (k #f)) (dynamic-wind (lambda () (set! path (cons 'in path))) (lambda () (call/cc (lambda (c) (set! k c)))) (lambda () (set! path (cons 'out path)))) (if (< (length path) 4) (k #f) (reverse path))))
;; 6.13
(test '("one" "two" "three" "") (let ((p (open-input-string "one\rtwo\r\nthree\n\n"))) (let* ((a (read-line p)) (b (read-line p)) (c (read-line p)) (d (read-line p))) (list a b c d)))) (test '(#f #f #t #t) (let ((i (open-input-string "")) (o (open-output-string))) (list (output-port-open? i) (input-port-open? o) (input-port-open? i) (output-port-open? o))))
(test '(a "b" #\c 1.5 #u8(1)) (read-from (written '(a "b" #\c 1.5 #u8(1))))) (test "|a b|" (written '|a b|)) (test "||" (written (string->symbol "")))

;; SRFI 1
(test '((3) (2 3) (1 2 3)) (pair-fold cons '() '(1 2 3))) (test '((1 2 3) (2 3) (3)) (pair-fold-right cons '() '(1 2 3))) (test '(a 1 b 2 c 3) (pair-fold-right (lambda (p q acc) (l* (car p) (car q) acc)) '() '(a b c) '(1 2 3))) (test '(c 3 b 2 a 1) (fold l* '() '(a b c) '(1 2 3 4 5)))
(test '(1 4 9 16) (unfold (lambda (x) (> x 4)) (lambda (x) (* x x)) (lambda (x) (+ x 1)) 1)) (test '(1 4 9) (unfold-right zero? (lambda (x) (* x x)) (lambda (x) (- x 1)) 3)) (test 6 (reduce + 0 '(1 2 3))) (test 0 (reduce + 0 '())) (test '(1 2 3) (reduce-right append '() '((1) (2) (3)))) (test '(5 7 9) (map-in-order + '(1 2 3) '(4 5 6)))
(test-values ('(3 1) '(4 1 5)) (span odd? (list 3 1 4 1 5))) (test '((a . 1) (b . 2)) (delete-duplicates '((a . 1) (b . 2) (a . 3)) (lambda (x y) (eq? (car x) (car y)))))
;; SRFI 13
(test '(2 #f "abc" "  a") (list (s:string-index "abcd" #\c) (s:string-index "abcd" #\x) (s:string-trim-both "  abc ") (s:string-pad "a" 3))) (test '("345" "00345") (list (s:string-pad "12345" 3) (s:string-pad "345" 5 #\0))) (test '("a" "b" "c") (s:string-tokenize "a b  c")) (test "a, b" (s:string-join '("a" "b") ", ")) (test 4 (s:string-contains "eek -- what a geek." "--"))
;; SRFI 14
(test '(#t #t #f) (list (char-set-contains? (char-set-unfold null? car cdr '(#\a #\b)) #\b) (char-set= (char-set-unfold! eof-object? values (lambda (x) (eof-object)) #\a (char-set #\b)) (char-set #\a #\b)) (char-set-contains? char-set:digit #\a))) (test 3 (char-set-count char-numeric? (->char-set "a1b2c3")))
;; SRFI 41
(test '(3 2 1) (stream->list (stream-reverse (stream 1 2 3)))) (test 2 (stream-length (stream-reverse (stream (error "x") (error "y"))))) (test '(0 1 2) (stream->list (stream-unfold values (lambda (x) (< x 3)) (lambda (x) (+ x 1)) 0))) (test '((0 5) (1 6)) (stream->list (stream-zip (stream 0 1) (stream 5 6)))) (test '(1 3 6) (stream->list (stream-cdr (stream-scan + 0 (stream 1 2 3)))))
;; SRFI 158
(test '(1 2 3) (g:generator->list (g:make-for-each-generator for-each '(1 2 3)))) (test '((1 a) (2 b)) (g:generator->list (g:gmap list (g:generator 1 2 3) (g:generator 'a 'b)))) (test '(1 3 6) (g:generator->list (g:gcombine (lambda (x sum) (values (+ x sum) (+ x sum))) 0 (g:generator 1 2 3)))) (test '(3 (1 2 3)) (let ((c (g:count-accumulator)) (l (g:list-accumulator))) (for-each (lambda (x) (c x) (l x)) '(1 2 3)) (list (c (eof-object)) (l (eof-object)))))

(finish)
