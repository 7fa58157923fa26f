;;; (kyocho json): RFC 8259 with the mapping of SRFI 180.
(import (scheme base) (scheme write) (scheme process-context) (kyocho json))
(include "harness.scm")

(test '((a . 1) (b . #(#t #f null "x")) (c . ()))
      (string->json " {\"a\":1, \"b\" : [true,false , null,\"x\"],\"c\":{}} "))
(test '(0 -5 1.5 -250.0 123456789012345678901234567890)
      (map string->json '("0" "-5" "1.5" "-2.5E2" "123456789012345678901234567890")))
(test "tab\tquote\"\\/é€𝄞\x7;" (string->json "\"tab\\tquote\\\"\\\\\\/\\u00e9€\\ud834\\udd1e\\u0007\""))
(test '#() (string->json "[]"))
(test #t (eof-object? (json-read (open-input-string "  "))))
(test '(1 #(2) end)
      (let* ((port (open-input-string "1 [2]")) (a (json-read port)) (b (json-read port)))
        (list a b (if (eof-object? (json-read port)) 'end 'more))))

;; Written values can be read.
(for-each
 (lambda (value) (test value (string->json (json->string value))))
 (list 0 -1 1.5 -0.25 1e300 "" "a\"b\\c\n\x1;é𝄞" '#() '() '((a . #(1 2)) (|b c| . ((d . null)))) #t #f 'null))
(test "{\"a\":[1,0.5,2.0,\"\\u0001\"]}" (json->string '((a . #(1 1/2 2. "\x1;")))))

;; Invalid JSON is an error.
(define (reason text)
  (guard (e ((json-error? e) (json-error-reason e))) (list 'read (string->json text))))
(for-each
 (lambda (text) (test-true (string? (reason text))))
 '("{" "[1" "[1,]" "{\"a\"}" "{\"a\":}" "{a:1}" "{\"a\":1,}" "01" "1." "-" ".5" "1e" "+1" "tru" "truex" "nul" "\"a"
   "\"\\x\"" "\"\\u12\"" "\"\\ud834\"" "\"\\ud834x\"" "\"\\udd1e\"" "1 2" "[1 2]" "'a'" "NaN" "\"\n\"" "]" "{\"a\":"))
(test "nested deeper than 1000 levels" (reason (make-string 100000 #\[)))
(for-each (lambda (value) (test-error (json->string value))) (list +nan.0 -inf.0 'symbol #\a '(1 2) car))

;; each error has a message of its own
(for-each
 (lambda (entry) (test (cadr entry) (reason (car entry))))
 '(("{\"a\";1}" ": expected, got ;") ("{xa\":1}" "\" expected, got x") ("[1," "a value expected, got the end")
   ("00" "a number begins with a zero") ("\"\\ud834\\u0041\"" "half a character") ("\"\\ud834\\n1234\"" "half a character")
   ("[1;2]" "a comma or ] expected, got ;") ("1e" "a digit expected, got the end")))
(test '(100.0 0.01 -250.0) (map string->json '("1e+2" "1E-2" "-2.5e+2")))
(test "\x8;\xc;\n\r\t" (string->json "\"\\b\\f\\n\\r\\t\""))
(test "\"\\u0008\\u000c\\n\\r\\t\"" (json->string "\x8;\xc;\n\r\t"))
(test '(1 1) (list (string->json "\r1\t") (string->json "\n1 ")))
(test '("-0.5" "-1.0" "7") (map json->string '(-1/2 -1. 7)))
(test "{\"a\":{},\"b\":[null,false]}" (json->string '((a . ()) (b . #(null #f)))))
(test '(#t #f) (list (json-null? 'null) (json-null? '())))
(test "a member of an object is (symbol . value): 1" (guard (e ((json-error? e) (json-error-reason e))) (json->string '(1))))
;; output to a given or the current port; nesting up to the parameter's limit
(test "[1,\"a\"]{\"b\":null}" (let ((port (open-output-string))) (json-write '#(1 "a") port) (json-write '((b . null)) port) (get-output-string port))) (test "true" (let ((port (open-output-string))) (parameterize ((current-output-port port)) (json-write #t)) (get-output-string port))) (test-error (json-write 'symbol (open-output-string))) (test-error (json-write 1 5)) (test-error (json-write 1 (open-input-string "")))
(test '(1000 (#(#(1)) "nested deeper than 1 levels")) (list (json-nesting-max) (parameterize ((json-nesting-max 1)) (list (parameterize ((json-nesting-max 2)) (string->json "[[1]]")) (guard (e ((json-error? e) (json-error-reason e))) (string->json "[[1]]"))))))
(test '(#t deep) (let ((text (lambda (n) (string-append (make-string n #\[) (make-string n #\]))))) (list (vector? (string->json (text 1000))) (guard (e ((json-error? e) 'deep)) (string->json (text 1001))))))

(finish)
