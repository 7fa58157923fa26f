;;; (kyocho json): RFC 8259 as SRFI 180 maps it.
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

;; What is written is read.
(for-each
 (lambda (value) (test value (string->json (json->string value))))
 (list 0 -1 1.5 -0.25 1e300 "" "a\"b\\c\n\x1;é𝄞" '#() '() '((a . #(1 2)) (|b c| . ((d . null)))) #t #f 'null))
(test "{\"a\":[1,0.5,2.0,\"\\u0001\"]}" (json->string '((a . #(1 1/2 2. "\x1;")))))

;; What is no JSON is told so.
(define (reason text)
  (guard (e ((json-error? e) (json-error-reason e))) (list 'read (string->json text))))
(for-each
 (lambda (text) (test-true (string? (reason text))))
 '("{" "[1" "[1,]" "{\"a\"}" "{\"a\":}" "{a:1}" "{\"a\":1,}" "01" "1." "-" ".5" "1e" "+1" "tru" "truex" "nul" "\"a"
   "\"\\x\"" "\"\\u12\"" "\"\\ud834\"" "\"\\ud834x\"" "\"\\udd1e\"" "1 2" "[1 2]" "'a'" "NaN" "\"\n\"" "]" "{\"a\":"))
(test "nested deeper than 1000 levels" (reason (make-string 100000 #\[)))
(for-each (lambda (value) (test-error (json->string value))) (list +nan.0 -inf.0 'symbol #\a '(1 2) car))

(finish)
