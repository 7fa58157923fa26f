;;; Forms and ports of (kyocho): assert, fluid-let, libraries in a program, ports to and from
;;; strings.
(import (kyocho))
(include "harness.scm")

(define (message-of thunk) (guard (e ((error-object? e) (cons (error-object-message e) (error-object-irritants e)))) (thunk)))

;; assert has no effect if all expressions are true, and names the one that is false
(test 'went-on (begin (assert #t) (assert (< 1 2) 5) 'went-on)) (test #t (pair? (message-of (lambda () (assert (= 1 2)))))) (test 1 (let ((n 0)) (assert (begin (set! n (+ n 1)) #t)) n)) (test-error (assert #f)) (test-error (eval '(assert) (interaction-environment)))
(test #t (let ((all (call-with-output-string (lambda (port) (write (message-of (lambda () (assert (= 1 2)))) port))))) (pair? (string-search-all "(= 1 2)" all))))

;; fluid-let assigns for the extent of a body, however control leaves and re-enters
(define depth 0) (define other 'o) (define (depth-now) depth)
(test '(5 0) (let ((inside (fluid-let ((depth 5)) (depth-now)))) (list inside depth))) (test '(1 p) (fluid-let ((depth (+ depth 1)) (other 'p)) (list (depth-now) other))) (test '(0 o) (list depth other)) (test '(left 0) (let ((out (call/cc (lambda (k) (fluid-let ((depth 7)) (k 'left)))))) (list out depth))) (test '(raised 0) (list (guard (e (#t e)) (fluid-let ((depth 7)) (raise 'raised))) depth))
(test '(1 2 0) (let* ((again #f) (seen '()) (round (fluid-let ((depth 1)) (call/cc (lambda (k) (set! again k))) (set! seen (cons depth seen)) (set! depth (+ depth 1)) 'x))) (if (< (length seen) 2) (again 'x) (append (reverse seen) (list depth))))) (test-error (eval '(fluid-let ((no-such-variable 1)) 1) (interaction-environment))) (test-error (eval '(fluid-let ((car 1)) 1) (interaction-environment))) (test 3 (fluid-let () 1 2 3))

;; a library in the program's text, and its import
(define-library (test counter) (export (rename next! count!) start) (import (scheme base)) (begin (define n 0) (define start 10) (define (next!) (set! n (+ n 1)) (+ start n))))
(import (only (test counter) count!)) (test '(11 12) (let* ((a (count!)) (b (count!))) (list a b)))
(import (prefix (test counter) c:)) (test '(13 10) (let ((n (c:count!))) (list n c:start)))
(test-error (eval '(import (test none)) (interaction-environment))) (test-error (eval 'next! (environment '(test counter)))) (test-error (eval '(begin (define-library (test bad) (export no) (import (no such))) (import (test bad))) (interaction-environment)))

;; void returns the unspecified value for any arguments
(test #t (eq? (void) (void 1 2 3))) (test #f (memq (void) (list #t #f '() (eof-object)))) (test #t (eq? (void) (if #f #f)))

;; ports to and from strings
(test "a\"b\"" (call-with-output-string (lambda (port) (write 'a port) (write "b" port) 'ignored))) (test "" (call-with-output-string list)) (test-error (call-with-output-string 5)) (test "ab" (with-output-to-string (lambda () (display "a") (display #\b) 'ignored))) (test-error (with-output-to-string 5)) (test-error (with-output-to-string (lambda (x) x)))
(test '(inner "outer") (let* ((inner #f) (outer (with-output-to-string (lambda () (display "ou") (set! inner (string->symbol (with-output-to-string (lambda () (display "inner"))))) (display "ter"))))) (list inner outer))) (test "half" (call-with-output-string (lambda (port) (guard (e (#t 1)) (with-output-to-string (lambda () (display "lost") (display "half" port) (raise 'x)))))))
(test '((1 2) 3 #t) (call-with-input-string "(1 2) 3" (lambda (port) (let* ((a (read port)) (b (read port))) (list a b (eof-object? (read port))))))) (test-error (call-with-input-string 'a read)) (test-error (call-with-input-string "a" 5)) (test '(x #\y) (with-input-from-string "x y" (lambda () (let ((a (read))) (read-char) (list a (read-char)))))) (test-error (with-input-from-string 5 read)) (test-error (with-input-from-string "a" 5))
(test '(1 2) (with-input-from-string "1 3" (lambda () (let* ((a (read)) (b (with-input-from-string "2" read))) (list a b))))) (test #f (let ((kept #f)) (call-with-input-string "x" (lambda (port) (set! kept port))) (input-port-open? kept)))
;; fresh-line writes a newline only if the line is not empty
(test "a\nb\n" (call-with-output-string (lambda (port) (fresh-line port) (display "a" port) (fresh-line port) (fresh-line port) (display "b\n" port) (fresh-line port)))) (test "x\n" (with-output-to-string (lambda () (display "x") (fresh-line)))) (test-error (fresh-line 5)) (test-error (fresh-line (open-input-string "")))
(define path (create-temp-file "kyocho-control-")) (test #t (and (string-prefix? "kyocho-control-" path) (file-exists? path) (not (string=? path (let ((other (create-temp-file "kyocho-control-"))) (delete-file other) other))))) (test-error (create-temp-file "/no/such/folder/x")) (test-error (create-temp-file 5))
(define port (open-output-file path)) (display "kept" port) (flush-output port) (test "kept" (call-with-input-file path read-line)) (close-port port) (delete-file path) (test-error (flush-output port)) (test-error (flush-output 5)) (test-error (flush-output (open-input-string "")))
(test 'done (begin (flush-output) 'done))

(finish)
