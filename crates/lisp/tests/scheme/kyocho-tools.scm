;;; The live tools of (kyocho) in a program: traces, profiles, counts of system calls, images,
;;; packages. system/tests/debugger.rs tests failures at a prompt.
(import (kyocho))
(include "harness.scm")

(define (said thunk) (with-output-to-string thunk))
(define (raised-by thunk) (guard (e ((error-object? e) 'error)) (thunk)))
(define (has? part text) (pair? (string-search-all part text)))

;; a traced procedure reports its calls with their depth
(define (double n) (* 2 n)) (define (count n) (if (= n 0) (values 'done "x") (count (- n 1))))
(trace double count)
(test "| (double 2)\n| => 4\n" (said (lambda () (test 4 (double 2))))) (test "| (count 1)\n| | (count 0)\n| | => done \"x\"\n| => done \"x\"\n" (said (lambda () (call-with-values (lambda () (count 1)) list)))) (test "| (double a)\n" (said (lambda () (raised-by (lambda () (double 'a))))))
(test '(count double) (list-sort symbol<? (trace)))
;; bars up to a depth of twenty-one, then a number; long values are shortened
(define bars (string-concatenate (make-list 21 "| "))) (define deep (said (lambda () (count 40))))
(define (lines-of text) (string-split text #\newline))
(test (list (string-append bars "(count 20)") (string-append bars "21 (count 19)") (string-append bars "40 (count 0)")) (let ((lines (lines-of deep))) (map (lambda (i) (list-ref lines i)) '(20 21 40)))) (test '() (filter (lambda (line) (> (string-length line) 70)) (lines-of deep)))
(define (keep x) 'kept) (trace keep) (test '(#t #t) (let ((text (said (lambda () (keep (iota 1000)))))) (list (< (string-length text) 300) (has? " ...\n" text))))
(untrace double keep) (test '("" (count)) (list (said (lambda () (double 1) (keep 1))) (trace))) (untrace count) (test '() (trace)) (untrace count) (test "" (said (lambda () (count 3)))) (test-error (eval '(begin (define traced-five 5) (trace traced-five)) (interaction-environment))) (test-error (eval '(trace car) (interaction-environment)))

;; a profile contains the running procedure
(define (busy n) (let loop ((i 0) (sum 0)) (if (< i n) (loop (+ i 1) (+ sum (remainder i 7))) sum)))
;; (the procedure may be done before the profiler's first sample if other threads delay the
;; profiler)
(define (finds-busy? profile) (any (lambda (entry) (member "busy" entry)) profile))
(define (until-seen n) (let ((p (profile (lambda () (list (busy n)))))) (if (finds-busy? p) p (until-seen (* 2 n)))))
(define found (until-seen 1000000))
(test #t (list-sorted? > (map car found)))
(test '(#t #t) (let ((text (profile->folded found))) (list (has? "busy " text) (every (lambda (line) (or (string-null? line) (string->number (last (string-split line #\space))))) (lines-of text))))) (test "a;b 2\na 1\n" (profile->folded '((2 "a" "b") (1 "a"))))
(test '(#t #t) (let ((text (profile->svg '((2 "main" "fast")  (1 "main" "slow"))))) (list (has? "<svg" text) (has? "slow (" text))))
(test "  OWN %  WITH CALLEES %  PROCEDURE\n     75              75  slow\n     25              25  fast\n" (said (lambda () (profile-report '((3 "main" "slow") (1 "main" "fast")))))) (test "  OWN %  WITH CALLEES %  PROCEDURE\n     25             100  outer\n     75              75  inner\n" (said (lambda () (profile-report '((3 "main" "outer" "inner") (1 "main" "outer"))))))
(test #t (let* ((p (profile-start! 0.0005)) (is? (profiler? p))) (busy 1000) (let ((found (profile-stop! p))) (and is? (list? found))))) (test #f (profiler? 5))
(test '(error error error error error) (list (raised-by (lambda () (profile-stop! 5))) (raised-by (lambda () (profile-start! 0))) (raised-by (lambda () (profile-start! 'often))) (raised-by (lambda () (profile (lambda () (car 5))))) (raised-by (lambda () (profile->svg '())))))

;; counts of system calls
(define (times name) (apply + (map (lambda (row) (vector-ref row 2)) (filter (lambda (row) (eq? name (vector-ref row 0))) (system-call-statistics)))))
(define (more name thunk) (let ((before (times name))) (thunk) (- (times name) before)))
(test '(#t #t) (list (list-sorted? > (map (lambda (row) (vector-ref row 2)) (system-call-statistics))) (let ((m (make-mutex))) (>= (more 'mutex-lock! (lambda () (do ((i 0 (+ i 1))) ((= i 100)) (mutex-lock! m) (mutex-unlock! m)))) 100)))) (test '(#t #t) (let ((text (said system-calls))) (list (string-prefix? "      TIMES  HOW      SYSTEM CALL\n" text) (has? "mutex-lock!\n" text))))

;; a program is not a session: no failure is kept for it
(raised-by (lambda () (car 5)))
(test '("; nothing has failed that is kept\n" "; there is no such frame\n" "; nothing has failed that is kept\n" "; nothing has failed that is kept\n") (list (said bt) (said locals) (said retry) (said (lambda () (use-value 5))))) (test-error (use-value)) (test-error (retry 1)) (test "; there is no such frame\n" (said (lambda () (locals 'first))))
;; the callers in another thread
(define (stand-here) (list (channel-receive (make-channel)))) (define (go-there) (list (stand-here))) (define parked (spawn go-there))
(define (frames) (said (lambda () (bt (thread-number parked))))) (test #t (let wait () (or (has? "stand-here" (frames)) (begin (thread-sleep! 0.001) (wait))))) (test '(#t #t) (map (lambda (part line) (has? part line)) '("   0  in stand-here at " "   1  in go-there at ") (lines-of (frames)))) (test #t (string=? (frames) (said (lambda () (bt parked))))) (thread-terminate! parked) (test "; it has ended, or is suspended\n" (begin (guard (e (#t e)) (thread-join! parked)) (said (lambda () (bt parked))))) (test-error (bt -5))

;; an image file is written completely or not at all: a thread cannot be saved
(define image (create-temp-file "/tmp/kyocho-image-")) (define size (lambda () (vector-ref (file-status image #t) 8))) (test '(error 0) (let ((refused (raised-by (lambda () (save-image image))))) (list refused (size)))) (set! parked #f) (test '(0 #t) (let ((before (size))) (save-image image) (list before (> (size) 1000)))) (delete-file image) (test '(error error error) (list (raised-by (lambda () (save-image))) (raised-by (lambda () (save-image 5))) (raised-by (lambda () (save-image "/no/such/folder/image")))))
(test '(error error) (list (raised-by (lambda () (load-package "/no/such/package.tgz"))) (raised-by (lambda () (load-package 5))))) (define none (create-temp-file "/tmp/kyocho-package-")) (test 'error (raised-by (lambda () (load-package none)))) (delete-file none)
;; the prelude's environment has names that no library exports
(test '(#t #f) (map (lambda (environment) (guard (e (#t #f)) (procedure? (eval '%wrong-type environment)))) (list (system-environment) (environment '(kyocho))))) (test-error (system-environment 1))

;; primitives on which libraries in Scheme are built
(test '(regular #t 0) (let* ((path (create-temp-file "/tmp/kyocho-status-")) (status (file-status path #t)) (times (begin (set-file-times path 5 6.5) (file-status path #f)))) (delete-file path) (list (vector-ref status 0) (and (= 5 (vector-ref times 11)) (= 6.5 (vector-ref times 12))) (vector-ref status 8)))) (test '(error error error) (list (raised-by (lambda () (file-status "/no/such/file" #t))) (raised-by (lambda () (file-status 'file #t))) (raised-by (lambda () (set-file-times "/no/such/file" 1 2)))))
(test '(("root" 0 0) ("root" 0) #f #f error error) (list (vector->list (vector-head (user-entry 0) 3)) (vector->list (group-entry "root")) (user-entry "no such user") (group-entry "no such group") (raised-by (lambda () (user-entry 'root))) (raised-by (lambda () (group-entry -1)))))
(test '(#t #t #f #t) (let ((at (shared-vector-place))) (list (shared-vector? (shared-vector-allocate! at 3)) (eq? #t (shared-acquire! 9 #t #t)) (begin (shared-unlock! 9) (eq? at (shared-vector-place))) (begin (shared-cross! #f) #t))))
(test '(error error error #f) (let ((at (shared-vector-place))) (shared-vector-allocate! at 3) (list (raised-by (lambda () (shared-vector-allocate! at 3))) (raised-by (lambda () (shared-vector-allocate! (vector) 3))) (raised-by (lambda () (shared-acquire! 'a #t #t))) (begin (shared-acquire! 9 #t #t) (let ((got (thread-join! (spawn (lambda () (shared-acquire! 9 #t #f)))))) (shared-unlock! 9) got)))))
(test '(#t #t error error) (let* ((at (shared-region-place)) (region (shared-region-make! at 1))) (list (eq? at region) (shared-region? region) (raised-by (lambda () (shared-region-make! at 1))) (raised-by (lambda () (shared-region-make! (vector) 1))))))

(finish)
