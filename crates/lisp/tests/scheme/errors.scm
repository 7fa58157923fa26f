;;; Errors that R7RS names: what "is an error" or is "signalled" is raised as an error object that says where, section by section.
;;; Each row is an expression, evaluated by itself.
(import (scheme base) (scheme char) (scheme complex) (scheme eval) (scheme file) (scheme inexact) (scheme lazy)
        (scheme process-context) (scheme read) (scheme write))
(include "harness.scm")

(define here
  (environment '(scheme base) '(scheme case-lambda) '(scheme char) '(scheme complex) '(scheme cxr) '(scheme eval) '(scheme file)
               '(scheme inexact) '(scheme lazy) '(scheme load) '(scheme process-context) '(scheme read) '(scheme repl) '(scheme time)
               '(scheme write)))

(define-syntax errors
  (syntax-rules () ((_ section row ...) (begin (check-row 'section 'row) ...))))
(define (check-row section row)
  (check (list section row) equal? 'error
         (lambda ()
           (guard (e ((error-object? e)
                      (if (string? (error-object-message e)) 'error (list 'no-message e)))
                     (else (list 'no-error-object e)))
             (list 'returned (eval row here))))))

;; 4: expressions
(errors 4.1 no-such-variable (set! no-such-variable 1) (5 6) ("f") ('car '(1)) ((lambda (x) x)) ((lambda (x) x) 1 2) ((lambda (x . y) x)) (car) (car '(1) '(2)) (let ((f (lambda () 1))) (f 1)))
(errors 4.1-syntax (if) (if 1 2 3 4) (lambda) (lambda (x)) (lambda (x x) x) (lambda (1) 1) (set! x) (set! 5 1) (quote) (quote 1 2) (include "no such file") ())
(errors 4.2 (letrec ((a b) (b 1)) a) (letrec* ((a b) (b 1)) a) (let loop) (let ((x)) x) (let ((x 1 2)) x) (let ((x 1) (x 2)) x) (letrec ((x 1) (x 2)) x) (do ((i 0)) ()  . 1) (cond) (cond (else)) (case) (let-values (((a b) (values 1))) a) (let-values (((a) (values 1 2))) a) (let*-values (((a . b) (values))) a) (parameterize ((5 1)) 1) (parameterize ((car 1)) 1) ((make-parameter 1) 2 3) (guard (e (#f 1)) (error "again")) ((case-lambda ((x) x) ((x y) y))) (make-parameter) (force) (delay) (delay-force))
(errors 4.3 (let-syntax ((m (syntax-rules () ((_ a) a)))) (m)) (let-syntax ((m 5)) 1) (let-syntax ((m (syntax-rules () ((_ a ...) (a))))) (m 1)) (let-syntax ((m (syntax-rules () ((_ a a) 1)))) (m 1 2)) (syntax-error "said" 1) (let-syntax ((m (syntax-rules () ((_ x) (syntax-error "said" x))))) (m 1)) (else) (=> 1) (... 1) (_ 1))
;; 5: programs
(errors 5 (define) (define 5 1) (define-values (a b) (values 1)) (define-record-type p (make-p x) p? (y p-y)) (define-syntax m) (begin (define-record-type p (make-p x) p? (x p-x)) (p-x 5)) (import (no such library)) (import (only (scheme base) no-such-name)) (import (rename (scheme base) (no-such-name x))) (let () (define x 1)) (let () (define a b) (define b 1) a) (begin (define-record-type p2 (make-p2 x) p2? (x p2-x set-p2-x!)) (set-p2-x! 'a 1)))
;; 6.2: numbers
(errors 6.2 (+ 1 'a) (- "1") (* #\a) (/ 'x) (/ 1 0) (/ 0) (/ 1.5 0) (< 1 'a) (< 'a 1) (> 1 2 'a) (<= 'a) (>= 1 #f) (= 1 'a) (= 'a) (max) (max 'a) (min 1 "2") (abs 'a) (abs +i) (zero? 'a) (positive? 'a) (negative? "1") (odd? 1.5) (even? 1/2) (odd? 'a) (quotient 1 0) (remainder 1 0) (modulo 1 0) (floor/ 1 0) (truncate/ 1 0) (floor-quotient 1 0) (floor-remainder 1.5 2) (truncate-quotient 1 'a) (truncate-remainder 1 0) (exact-integer-sqrt -1) (exact-integer-sqrt 4.0) (gcd 1.5) (lcm 'a) (numerator 'a) (numerator +inf.0) (denominator +nan.0) (floor 'a) (round +i) (ceiling "1") (truncate #f) (rationalize 'a 1) (rationalize 1 'a) (exp 'a) (log 'a) (log 0) (sin 'a) (cos 'a) (tan 'a) (asin 'a) (acos 'a) (atan 'a) (atan 0 0) (atan 1 +i) (square 'a) (sqrt 'a) (expt 'a 1) (expt 1 'a) (expt 0 -1) (exact +inf.0) (exact +nan.0) (exact 'a) (inexact 'a) (exact? 'a) (inexact? "1") (finite? 'a) (infinite? 'a) (nan? 'a) (number->string 'a) (number->string 1 1) (number->string 1 37) (number->string 1 'a) (string->number 1) (string->number "1" 0) (make-rectangular 'a 1) (make-rectangular 1 +i) (make-polar 1 'a) (real-part 'a) (imag-part 'a) (magnitude 'a) (angle 'a))
;; 6.3 to 6.5: booleans, pairs, symbols
(errors 6.3 (boolean=? 1 #t) (boolean=? #t 'a) (boolean=? #t #t 1))
(errors 6.4 (car '()) (cdr '()) (car 5) (caar '(1)) (cddr '(1)) (caddr '(1 2)) (set-car! '() 1) (set-cdr! 5 1) (length 5) (length '(1 . 2)) (length (let ((l (list 1))) (set-cdr! l l) l)) (append '(1 . 2) '(3)) (append 5 '()) (reverse '(1 . 2)) (reverse 5) (list-tail '(1) 2) (list-tail '(1) -1) (list-ref '(1) 1) (list-ref '(1) -1) (list-ref '(1) 'a) (list-set! (list 1) 1 2) (memq 1 5) (member 1 '(2 . 3)) (assq 1 '(2)) (assoc 1 5) (assv 1 '((2 . 3) . 4)) (make-list -1) (make-list 'a) (list-copy))
(errors 6.5 (symbol->string "a") (string->symbol 'a) (symbol=? 'a 1) (symbol=? 1 'a))
;; 6.6 to 6.7: characters, strings
(errors 6.6 (char=? #\a 1) (char<? 1 #\a) (char-ci=? #\a "a") (char->integer 1) (integer->char -1) (integer->char #xd800) (integer->char #x110000) (integer->char 'a) (char-upcase "a") (char-downcase 1) (char-foldcase 1) (char-alphabetic? 1) (char-numeric? "1") (char-whitespace? 1) (char-upper-case? 1) (char-lower-case? 1) (digit-value 1))
(errors 6.7 (make-string -1) (make-string 'a) (make-string 1 "a") (string 1) (string-length 'a) (string-ref "a" 1) (string-ref "a" -1) (string-ref "a" 0.0) (string-ref 'a 0) (string-set! (string #\a) 1 #\b) (string-set! (string #\a) 0 1) (string=? "a" 'a) (string<? 1 "a") (string-ci=? "a" 1) (string-upcase 1) (string-downcase 'a) (string-foldcase 1) (substring "abc" 2 1) (substring "abc" 0 4) (substring "abc" -1 1) (string-append "a" 1) (string->list 1) (string->list "abc" 4) (string->list "abc" 2 1) (list->string '(1)) (list->string '(#\a . #\b)) (list->string 5) (string-copy 1) (string-copy "a" 2) (string-copy! (make-string 1) 0 "abc") (string-copy! (make-string 1) 2 "") (string-fill! (make-string 1) 1) (string-fill! (make-string 1) #\a 2))
;; 6.8 to 6.9: vectors, bytevectors
(errors 6.8 (make-vector -1) (make-vector 'a) (vector-length '()) (vector-ref (vector 1) 1) (vector-ref (vector 1) -1) (vector-ref (vector 1) 1.0) (vector-ref '(1) 0) (vector-set! (vector 1) 1 2) (vector->list 5) (vector->list (vector 1) 2) (vector->list (vector 1 2) 2 1) (list->vector 5) (list->vector '(1 . 2)) (vector->string (vector 1)) (string->vector 'a) (vector-copy 5) (vector-copy (vector 1) 2) (vector-copy! (vector 1) 0 (vector 1 2)) (vector-copy! (vector 1) 2 (vector)) (vector-append (vector) 5) (vector-fill! 5 1) (vector-fill! (vector 1) 1 2))
(errors 6.9 (bytevector 256) (bytevector -1) (bytevector 'a) (make-bytevector -1) (make-bytevector 1 256) (bytevector-u8-ref (bytevector 1) 1) (bytevector-u8-ref (bytevector 1) -1) (bytevector-u8-ref (vector 1) 0) (bytevector-u8-set! (bytevector 1) 1 1) (bytevector-u8-set! (bytevector 1) 0 256) (bytevector-length "a") (bytevector-copy 5) (bytevector-copy (bytevector) 1) (bytevector-copy! (bytevector 1) 0 (bytevector 1 2)) (bytevector-append (bytevector) 5) (utf8->string 5) (utf8->string (bytevector 255)) (utf8->string (bytevector 65) 2) (string->utf8 5) (string->utf8 "a" 2))
;; constants: quoted data, strings in the text, names of symbols
(define (says-mutable? message)
  (let loop ((end 7))
    (and (<= end (string-length message))
         (or (string=? "mutable" (substring message (- end 7) end)) (loop (+ end 1))))))
(define-syntax refused
  (syntax-rules () ((_ row ...) (begin (check-refused 'row) ...))))
(define (check-refused row)
  (check row equal? 'refused
         (lambda ()
           (guard (e ((error-object? e)
                      (if (says-mutable? (error-object-message e)) 'refused (error-object-message e))))
             (list 'returned (eval row here))))))
(refused (string-set! "abc" 0 #\x) (string-set! (car '("abc")) 0 #\x) (string-set! (symbol->string 'abc) 0 #\x) (string-fill! "abc" #\x) (string-fill! "" #\x) (string-copy! "abc" 0 "x") (string-set! "abc" 0 #\λ) (let ((s "abc")) (string-set! s 0 #\x)) (vector-set! '#(1 2) 0 3) (vector-set! #(1 2) 0 3) (let ((v '#(1 2))) (vector-set! v 0 3)) (vector-set! (car '(#(1))) 0 2) (vector-set! (vector-ref '#(#(1)) 0) 0 2) (vector-set! (cadr `(,(car '(1)) #(2))) 0 1) (vector-fill! '#(1 2) 3) (vector-copy! '#(1 2) 0 (vector 3)) (bytevector-u8-set! #u8(1 2) 0 3) (bytevector-u8-set! (car '(#u8(1))) 0 2) (bytevector-copy! #u8(1 2) 0 (bytevector 3)) (read-bytevector! #u8(1 2) (open-input-bytevector (bytevector 3))) (utf8->string (let ((b #u8(65))) (bytevector-u8-set! b 0 66) b)) ((lambda () (define s "abc") (string-set! s 0 #\x) s)) (vector-set! (eval ''#(1) (environment '(scheme base))) 0 2))
(refused (set-car! '(1 2) 3) (set-cdr! '(1 2) '()) (set-car! (cdr '(1 2)) 3) (set-car! (car '((1))) 2) (set-cdr! '(1 . 2) 3) (set-cdr! (vector-ref '#((1)) 0) 2) (set-car! (vector-ref #((1)) 0) 2) (list-set! '(1 2) 0 3) (list-set! '(1 2) 1 3) (list-set! (cons 1 '(2)) 1 3) (set-car! `(1 2) 3) (set-car! (cdr `(,(car '(1)) 2 3)) 4) (set-car! (memq 'b '(a b)) 1) (set-cdr! (assq 'a '((a . 1))) 2) (set-car! (cdr (append (list 1) '(2))) 3) (set-car! (eval ''(1) (environment '(scheme base))) 2) ((lambda () (define l '(1 2)) (set-car! (list-tail l 1) 3) l)) (let loop ((l '(1 2))) (if (pair? l) (begin (set-car! l 0) (loop (cdr l))))) (let-syntax ((m (syntax-rules () ((_ x ...) '(x ...))))) (set-car! (m 1 2) 3)))
;; 6.10 to 6.11: control, exceptions
(errors 6.10 (apply 5 '()) (apply + 1) (apply + '(1 . 2)) (apply car '()) (map 5 '(1)) (map car 5) (map) (for-each car '(5)) (for-each 5 '(1)) (string-map char->integer "a") (string-map 5 "a") (string-for-each 5 "a") (string-for-each car 5) (vector-map car (vector 5)) (vector-map car 5) (vector-for-each 5 (vector 1)) (call/cc 5) (call-with-current-continuation 5) (call-with-values 5 list) (call-with-values values 5) (call-with-values (lambda () (values 1 2)) (lambda (x) x)) (dynamic-wind 5 values values) (dynamic-wind values 5 values) (dynamic-wind values values 5))
(errors 6.11 (with-exception-handler 5 values) (with-exception-handler values 5) (with-exception-handler (lambda (e) 'returns) (lambda () (raise 'x))) (error "said") (error "said" 1 2) (error-object-message 5) (error-object-irritants 'a) (with-exception-handler (lambda (e) 1) (lambda () (error "x"))))
;; 6.12 to 6.14: environments, ports, the system
(errors 6.12 (eval 1 5) (eval) (environment 5) (environment '(no such library)) (eval '(car 5) (environment '(scheme base))) (eval 'car (environment '(only (scheme base) cdr))))
(errors 6.13 (open-input-file "/no/such/file") (open-input-file 5) (open-output-file "/no/such/folder/file") (open-binary-input-file "/no/such/file") (open-binary-output-file "/no/such/folder/file") (call-with-input-file "/no/such/file" read) (with-input-from-file "/no/such/file" read) (call-with-port 5 read) (close-port 5) (close-input-port (open-output-string)) (close-output-port (open-input-string "")) (input-port-open? 5) (input-port-open? (open-output-string)) (output-port-open? (open-input-string "")) (open-input-string 5) (open-input-bytevector "a") (get-output-string (open-input-string "")) (get-output-string (open-output-bytevector)) (get-output-bytevector (open-output-string)) (read (open-input-string "(")) (read (open-input-string ")")) (read (open-input-string "#u8(256)")) (read 5) (read (open-output-string)) (read-char (open-input-bytevector (bytevector))) (read-char 5) (peek-char 5) (read-line 5) (read-string -1 (open-input-string "a")) (read-string 'a) (read-u8 (open-input-string "a")) (peek-u8 5) (u8-ready? (open-input-string "")) (char-ready? (open-output-string)) (read-bytevector -1 (open-input-bytevector (bytevector))) (read-bytevector 1 (open-input-string "a")) (read-bytevector! 5 (open-input-bytevector (bytevector))) (read-bytevector! (bytevector 1) (open-input-bytevector (bytevector)) 2) (let ((p (open-input-string "a"))) (close-port p) (read-char p)) (let ((p (open-output-string))) (close-port p) (write-char #\a p)) (write 1 5) (display 1 (open-input-string "")) (write-char 1) (write-char #\a 5) (write-string 'a) (write-string "abc" (open-output-string) 4) (write-string "abc" (open-output-string) 2 1) (write-string "a" (open-output-bytevector)) (write-u8 256 (open-output-bytevector)) (write-u8 1 (open-output-string)) (write-bytevector "a" (open-output-bytevector)) (write-bytevector (bytevector 1) (open-output-bytevector) 2) (newline 5) (flush-output-port 5))
(errors 6.14 (load "/no/such/file") (load 5) (delete-file "/no/such/file") (delete-file 5) (file-exists? 5) (get-environment-variable 5))

;; what names the kind of error
(define-syntax raised-by (syntax-rules () ((_ expression) (guard (e (#t e)) expression 'nothing))))
(test #t (file-error? (raised-by (open-input-file "/no/such/file")))) (test #t (file-error? (raised-by (delete-file "/no/such/file")))) (test #f (file-error? (raised-by (car 5))))
(test #t (read-error? (raised-by (read (open-input-string ")"))))) (test #t (read-error? (raised-by (read (open-input-string "(1 . "))))) (test #f (read-error? (raised-by (read-char (open-input-bytevector (bytevector)))))) (test #f (file-error? 5)) (test #f (read-error? 5)) (test #f (error-object? 5))
(test "said" (error-object-message (raised-by (error "said" 1 2)))) (test '(1 2) (error-object-irritants (raised-by (error "said" 1 2))))

;; what is refused is named; a constant stays what it was; what is made from one, or read, may be changed
(test '("vector-set!: first argument must be a mutable vector" #(1 2)) (let ((e (raised-by (vector-set! '#(1 2) 0 3)))) (cons (error-object-message e) (error-object-irritants e))))
(test '("string-fill!: first argument must be a mutable string" "abc") (let ((e (raised-by (string-fill! "abc" #\x)))) (cons (error-object-message e) (error-object-irritants e))))
(test '("read-bytevector!: first argument must be a mutable bytevector" #u8(1)) (let ((e (raised-by (read-bytevector! #u8(1) (open-input-bytevector (bytevector 2)))))) (cons (error-object-message e) (error-object-irritants e))))
(define circular '#0=#(1 #0#)) (test "vector-set!: first argument must be a mutable vector" (error-object-message (raised-by (vector-set! (vector-ref circular 1) 0 2))))
(define circular-pairs '#1=((#1# 2) 3 . #1#))
(test "set-cdr!: first argument must be a mutable pair" (error-object-message (raised-by (set-cdr! (cddr circular-pairs) '())))) (test "set-car!: first argument must be a mutable pair" (error-object-message (raised-by (set-car! (caar circular-pairs) 3)))) (test #t (eq? circular-pairs (cddr circular-pairs))) (test #t (eq? circular-pairs (caar circular-pairs)))
(define (constant-text) "text") (define (constant-vector) '#(1 #(2)))
(test "text" (begin (raised-by (string-set! (constant-text) 0 #\n)) (constant-text))) (test '#(1 #(2)) (begin (raised-by (vector-set! (vector-ref (constant-vector) 1) 0 3)) (constant-vector)))
(define-syntax changed (syntax-rules () ((_ made change ...) (let ((x made)) (change x) ... x))))
(test "xbc" (changed (string-copy "abc") (lambda (s) (string-set! s 0 #\x)))) (test "xbc" (changed (string-append "abc") (lambda (s) (string-set! s 0 #\x)))) (test "xbc" (changed (substring "abc" 0 3) (lambda (s) (string-set! s 0 #\x)))) (test "xb" (changed (list->string '(#\a #\b)) (lambda (s) (string-set! s 0 #\x)))) (test "x" (changed (number->string 1) (lambda (s) (string-set! s 0 #\x)))) (test "xb" (changed (utf8->string #u8(65 98)) (lambda (s) (string-set! s 0 #\x))))
(test '#(x 2) (changed (vector-copy '#(1 2)) (lambda (v) (vector-set! v 0 'x)))) (test '#(x 2) (changed (list->vector '(1 2)) (lambda (v) (vector-set! v 0 'x)))) (test '#(x 2) (changed (vector-append '#(1 2)) (lambda (v) (vector-set! v 0 'x)))) (test '#(x 2) (changed `#(,(car '(1)) 2) (lambda (v) (vector-set! v 0 'x)))) (test #u8(9 2) (changed (bytevector-copy #u8(1 2)) (lambda (b) (bytevector-u8-set! b 0 9))))
(test '(x 2) (changed (list-copy '(1 2)) (lambda (l) (set-car! l 'x)))) (test '(1 x) (changed (map values '(1 2)) (lambda (l) (set-car! (cdr l) 'x)))) (test '(x 1) (changed (reverse '(1 2)) (lambda (l) (set-car! l 'x)))) (test '(1 x 3) (changed (append '(1 2) '(3)) (lambda (l) (set-car! (cdr l) 'x)))) (test '(x 2) (changed (vector->list '#(1 2)) (lambda (l) (set-car! l 'x)))) (test '(x #\b) (changed (string->list "ab") (lambda (l) (set-car! l 'x)))) (test '(x 2) (changed (apply list '(1 2)) (lambda (l) (set-car! l 'x)))) (test '(1 x) (changed (apply (lambda (a . l) (cons a l)) '(1 2)) (lambda (l) (set-car! (cdr l) 'x)))) (test '(x 2) (changed (cons 1 '(2)) (lambda (l) (set-car! l 'x)))) (test '(x 2) (changed `(,(car '(1)) 2) (lambda (l) (set-car! l 'x)))) (test '((x . 1)) (changed (read (open-input-string "((a . 1))")) (lambda (l) (set-car! (car l) 'x)))) (test '(1 x) (changed (list 1 2) (lambda (l) (list-set! l 1 'x))))
;; what eval quotes is a copy, which is a constant: the program's own list stays its own
(test '((1 2) (x 2)) (let* ((l (list 1 2)) (quoted (eval (list 'quote l) here))) (set-car! l 'x) (list quoted l)))
;; a pair of a literal is one pair, whichever way it is come by
(define constant-pairs '((a . 1) (b . 2)))
(test #t (eq? (cdr constant-pairs) (list-tail constant-pairs 1))) (test #t (eq? (assq 'b constant-pairs) (cadr constant-pairs))) (test '((b . 2)) (memq (cadr constant-pairs) constant-pairs)) (test #t (equal? constant-pairs (list (cons 'a 1) (cons 'b 2)))) (test #t (equal? (list (cons 'a 1) (cons 'b 2)) constant-pairs)) (test '(1 2) (map cdr constant-pairs)) (test '((a . 1) (b . 2)) (begin (raised-by (set-cdr! (car constant-pairs) 5)) constant-pairs))
(test '("set-car!: first argument must be a mutable pair" (1 2)) (let ((e (raised-by (set-car! '(1 2) 3)))) (cons (error-object-message e) (error-object-irritants e)))) (test '("list-set!: first argument must be a mutable list" (1 2)) (let ((e (raised-by (list-set! '(1 2) 1 3)))) (cons (error-object-message e) (error-object-irritants e)))) (test '("set-cdr!: first argument must be a pair" 5) (let ((e (raised-by (set-cdr! 5 3)))) (cons (error-object-message e) (error-object-irritants e))))
(test '(#(x) "x") (let ((l (read (open-input-string "(#(1) \"a\")")))) (vector-set! (car l) 0 'x) (string-set! (cadr l) 0 #\x) l))

(finish)
