;;; Strings and symbols of (kyocho); (srfi 13) has other argument orders for some of these names.
(import (kyocho))
(include "harness.scm")

(define (raised-by thunk) (guard (e ((error-object? e) 'error)) (thunk)))
(define (refused f . arguments) (raised-by (lambda () (apply f arguments) 'done)))
(define (complaint f . arguments) (guard (e ((error-object? e) (error-object-message e))) (apply f arguments)))
(define greek "αβγ")

;; parts
(test '("ab" "cd" "ab" "cd" "cd" "ab") (map (lambda (f) (f "abcd" 2)) (list string-head string-tail string-take string-drop string-take-right string-drop-right))) (test '("α" "βγ" "γ" "αβ") (map (lambda (f) (f greek 1)) (list string-head string-tail string-take-right string-drop-right)))
(for-each (lambda (f) (test '("" "abc") (list-sort string<? (map (lambda (n) (f "abc" n)) '(0 3)))) (test '(error error error error error) (list (refused f "abc" 4) (refused f "abc" -1) (refused f "abc" 1.0) (refused f 'abc 1) (refused f "abc"))))
          (list string-head string-tail string-take string-drop string-take-right string-drop-right))
(test '(#t #f) (map string-null? '("" "a"))) (test-error (string-null? '())) (test "aab" (string-concatenate '("a" "" "ab"))) (test "" (string-concatenate '())) (test "aα" (string-concatenate (list "a" "α"))) (test-error (string-concatenate '("a" b))) (test-error (string-concatenate "a"))
(test '("cba" "cb" "b" "γβα") (list (string-reverse "abc") (string-reverse "abc" 1) (string-reverse "abc" 1 2) (string-reverse greek))) (test-error (string-reverse "abc" 4)) (test-error (string-reverse "abc" 2 1)) (test-error (string-reverse '(a))) (test "0149" (string-tabulate (lambda (i) (string-ref (number->string (* i i)) 0)) 4)) (test "" (string-tabulate car 0)) (test-error (string-tabulate list 1)) (test-error (string-tabulate 5 1)) (test-error (string-tabulate car -1))

;; padding keeps the right end, or the left one
(test '("  abc" "  abc" "abc  " "bc" "bc" "ab" "") (list (string-pad "abc" 5) (string-pad-left "abc" 5) (string-pad-right "abc" 5) (string-pad "abc" 2) (string-pad-left "abc" 2) (string-pad-right "abc" 2) (string-pad "abc" 0))) (test '("007" "7--" "ααx") (list (string-pad "7" 3 #\0) (string-pad-right "7" 3 #\-) (string-pad-left "x" 3 #\α)))
(for-each (lambda (f) (test '(error error error error) (list (refused f 5 5) (refused f "a" -1) (refused f "a" 1.5) (refused f "a" 5 "x")))) (list string-pad string-pad-left string-pad-right))
(test '("axyd" "abcd" "xyabcd" "") (list (string-replace "abcd" "xy" 1 3) (string-replace "abcd" "" 2 2) (string-replace "abcd" "xy" 0 0) (string-replace "abcd" "" 0 4))) (test "aβd" (string-replace "abcd" "β" 1 3)) (test '(error error error) (list (refused string-replace "abc" "x" 2 1) (refused string-replace "abc" "x" 0 4) (refused string-replace "abc" #\x 0 1)))

;; search for a character, or with a test
(test '(2 #f 3 2 3) (list (string-index "hello" #\l) (string-index "hello" #\z) (string-index "hello" #\l 3) (string-index "heLLo" char-upper-case?) (string-index "heLLo" char-upper-case? 3))) (test '(#f #f 1) (list (string-index "hello" #\l 0 2) (string-index "heLLo" char-upper-case? 0 2) (string-index greek #\β)))
(test '(error error error error error error) (list (refused string-index "abc" #\a 4) (refused string-index "abc" char-numeric? 4) (refused string-index "abc" char-numeric? 0 4) (refused string-index "abc" char-numeric? 2 1) (refused string-index "abc" 5) (refused string-index 'abc #\a)))
(for-each (lambda (f) (test '(3 #f 3 #f) (list (f "hello" #\l) (f "hello" #\z) (f "heLLo" char-upper-case?) (f "" #\a))) (test '(error error) (list (refused f 'a #\a) (refused f "a" 5)))) (list string-rindex string-index-right))
(test '(2 #f 0 1) (list (string-skip "aab" #\a) (string-skip "aaa" #\a) (string-skip "b" #\a) (string-skip "7a" char-numeric?))) (test-error (string-skip 5 #\a)) (test-error (string-skip "a" 5)) (test '(3 0 2) (list (string-count "banana" #\a) (string-count "" #\a) (string-count "a1b2" char-numeric?))) (test-error (string-count 'a #\a)) (test-error (string-count "a" "a"))
(test '(#t #f #f 4) (list (string-any #\a "xa") (string-any #\a "x") (string-any #\a "") (string-any (lambda (c) (char->digit c)) "x4"))) (test '(#t #f #t 5) (list (string-every #\a "aa") (string-every #\a "ab") (string-every #\a "") (string-every char->digit "45"))) (test '(error error error error) (list (refused string-any 5 "a") (refused string-any #\a 5) (refused string-every 5 "a") (refused string-every #\a 'a)))
(test '("12" "ab" "nn" "bnn") (list (string-filter char-numeric? "a1b2") (string-delete char-numeric? "a1b2") (string-filter #\n "banana") (string-delete #\a "banana"))) (test '(error error error) (list (refused string-filter 5 "a") (refused string-filter #\a 5) (refused string-delete #\a 5)))
(test '(#t #f #t #t #f) (list (string-prefix? "ab" "abc") (string-prefix? "b" "abc") (string-prefix? "" "") (string-prefix? "α" greek) (string-prefix? "abcd" "abc"))) (test '(#t #f #t #t #f) (list (string-suffix? "bc" "abc") (string-suffix? "b" "abc") (string-suffix? "" "") (string-suffix? "γ" greek) (string-suffix? "0abc" "abc"))) (test '(error error) (list (refused string-prefix? #\a "a") (refused string-suffix? "a" 'a)))
(test '(2 #f 0 4 #f) (list (string-contains "banana" "nan") (string-contains "banana" "x") (string-contains "" "") (string-contains "banana" "na" 3) (string-contains "banana" "bana" 1))) (test-error (string-contains "a" "a" 2)) (test-error (string-contains "a" #\a))
(test '(2 4 #f 6) (list (string-search-forward "na" "banana" 0) (string-search-forward "na" "banana" 3) (string-search-forward "x" "banana" 0) (string-search-forward "" "banana" 6))) (test '(6 4 #f) (list (string-search-backward "na" "banana" 6) (string-search-backward "na" "banana" 5) (string-search-backward "x" "banana" 6))) (test '((1 3) () (0 1 2)) (list (string-search-all "ana" "banana") (string-search-all "x" "banana") (string-search-all "" "ab")))
(test '(error error error error) (list (refused string-search-forward "a" "a" 2) (refused string-search-backward "a" "a" 2) (refused string-search-all #\a "a") (refused string-search-forward "a" 'a 0)))

;; folds
(test '(#\c #\b #\a) (string-fold cons '() "abc")) (test '(#\a #\b #\c) (string-fold-right cons '() "abc")) (test '(0 0) (list (string-fold cons 0 "") (string-fold-right cons 0 ""))) (test '(error error error error) (list (refused string-fold 5 0 "a") (refused string-fold cons 0 '(a)) (refused string-fold-right 5 0 "a") (refused string-fold-right cons 0 5)))

;; trimming, splitting
(test '("a b " "a b " " a b" "a b") (map (lambda (f) (f " a b ")) (list string-trim string-trim-left string-trim-right string-trim-both))) (test '("bxx" "bxx" "xxb" "b") (map (lambda (f) (f "xxbxx" #\x)) (list string-trim string-trim-left string-trim-right string-trim-both))) (test '("a1" "a1" "1a" "a") (map (lambda (f) (f "1a1" char-numeric?)) (list string-trim string-trim-left string-trim-right string-trim-both)))
(for-each (lambda (f) (test '("" "" "") (list (f "") (f " \t\n") (f "xx" #\x))) (test '(error error) (list (refused f 5) (refused f "a" 5)))) (list string-trim string-trim-left string-trim-right string-trim-both))
(test '(("a" "b" "" "c") ("") ("" "") ("a" "b") ("a" "" "b")) (list (string-split "a b  c" #\space) (string-split "" #\x) (string-split "x" #\x) (string-split "a, b" ", ") (string-split "a1 b" (lambda (c) (or (char-numeric? c) (char-whitespace? c)))))) (test '(error error error) (list (refused string-split "a" "") (refused string-split "a" 5) (refused string-split 'a #\a)))
(test '(("a" "bc" "d") () ("1" "22") ("aa" "a")) (list (string-tokenize " a bc  d ") (string-tokenize "  ") (string-tokenize "1-22" char-numeric?) (string-tokenize "aaba" #\a))) (test-error (string-tokenize 5)) (test-error (string-tokenize "a" 5))

;; symbols
(test '(ab a |a b|) (list (symbol-append 'a 'b) (symbol-append 'a) (symbol-append 'a '| | 'b))) (test #t (eq? (symbol-append) '||)) (test-error (symbol-append 'a "b")) (test '(#t #f #f) (list (symbol<? 'a 'b) (symbol<? 'b 'a) (symbol<? 'a 'a))) (test-error (symbol<? 'a "b")) (test-error (symbol<? 'a))
(test #t (eq? 'a (intern "a"))) (test '|A b| (intern "A b")) (test-error (intern 'a)) (test '(#f #t "a") (let ((s (string->uninterned-symbol "a"))) (list (eq? s 'a) (symbol? s) (symbol->string s)))) (test #f (eq? (string->uninterned-symbol "a") (string->uninterned-symbol "a"))) (test-error (string->uninterned-symbol 'a))
(for-each (lambda (make) (let ((a (make)) (b (make))) (test '(#t #f #f #f) (list (symbol? a) (eq? a b) (string=? (symbol->string a) (symbol->string b)) (eq? a (string->symbol (symbol->string a)))))) (test '(#t #t) (list (string-prefix? "x" (symbol->string (make 'x))) (string-prefix? "y" (symbol->string (make "y"))))) (test 'error (refused make 5)) (test 'error (refused make 'a 'b)))
          (list generate-symbol gensym))
;; the error names the procedure that was called
(test '("string-pad: first argument must be a string" "string-pad-left: first argument must be a string" "gensym: first argument must be a string" "generate-symbol: first argument must be a string" "string-index: third argument must be a place in the string, not before the start" "list-head: second argument must be an exact non-negative integer" "take: second argument must be an exact non-negative integer")
      (list (complaint string-pad 5 5) (complaint string-pad-left 5 5) (complaint gensym 5) (complaint generate-symbol 5) (complaint string-index "abc" char-numeric? 4) (complaint list-head '(a) 'b) (complaint take '(a) 'b)))

(finish)
