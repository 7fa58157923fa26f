;;; (kyocho unix): programs of the host.
(import (scheme base) (scheme write) (scheme process-context) (scheme file) (srfi 18) (kyocho unix))
(include "harness.scm")

(define (shown thunk) (let ((port (open-output-string))) (let ((status (parameterize ((current-output-port port)) (thunk)))) (list status (get-output-string port)))))
(test '(0 "a b\nc\n") (shown (lambda () (run "printf" "%s\n" "a b" "c"))))
(test '(3 "out\nerr\n") (shown (lambda () (run "sh" "-c" "echo out; echo err >&2; exit 3"))))
(test '(143 "") (shown (lambda () (run "sh" "-c" "kill -TERM $$"))))
(test "no end" (run/string "printf" "no end"))
(test '(("a" "b c" "") () ("last")) (list (run/lines "printf" "%s\n" "a" "b c" "") (run/lines "true") (run/lines "printf" "last"))) (test-error (run/lines "false")) (test-error (run/lines))
(test '("1" "2" "3") (pipeline/lines '("printf" "3\n1\n2\n") '("sort") '("cat")))
(test '(0 "2\n") (shown (lambda () (pipeline '("printf" "a\nb\n") '("grep" "-c" "")))))
(test '(0 "") (shown (lambda () (pipeline '("false") '("true")))))

;; the input of a program, larger than a pipe; and a program that does not read it
(define much (make-string 1000000 #\x))
(test #t (string=? much (parameterize ((program-input much)) (run/string "cat"))))
(test "né" (parameterize ((program-input (bytevector 110 195 169))) (pipeline/string '("cat") '("cat"))))
(test "" (parameterize ((program-input much)) (run/string "true")))
(test #t (string=? (string-append much "\n") (run/string "sh" "-c" "i=0; while [ $i -lt 1000 ]; do printf '%01000d' 0; i=$((i+1)); done | tr 0 x; echo; echo much >&2")))

;; the objects for programs survive a collection while the programs start
(define (allocate-until stop?) (let loop ((kept '())) (if (not (stop?)) (loop (list 'garbage)))))
(test '("a\n" "a\n" "a\n" "a\n" "a\n" "a\n" "a\n" "a\n")
  (let* ((done #f)
         (other (thread-start! (make-thread (lambda () (allocate-until (lambda () done))))))
         (said (let loop ((n 8) (said '())) (if (= n 0) said (loop (- n 1) (cons (pipeline/string '("echo" "a") '("cat")) said))))))
    (set! done #t)
    (thread-join! other)
    said))

;; the working directory and the environment
(test "/\n" (parameterize ((program-directory "/")) (run/string "pwd")))
(test "here\n" (parameterize ((program-environment '(("KYOCHO_TEST" . "here")))) (run/string "sh" "-c" "echo $KYOCHO_TEST")))
(test "\n" (parameterize ((program-environment '(("PATH" . "/usr/bin:/bin") ("HOME" . #f)))) (run/string "sh" "-c" "echo $HOME")))

;; failures are errors with a reason
(define (complaint thunk) (guard (e ((error-object? e) (error-object-message e))) (thunk)))
(test "run: the program failed: not this\n" (complaint (lambda () (run/string "sh" "-c" "echo not this >&2; exit 1"))))
(test #t (guard (e ((file-error? e) #t)) (run "no-such-program-anywhere")))
(test #t (guard (e ((file-error? e) #t)) (pipeline '("true") '("no-such-program-anywhere"))))
(test-error (run)) (test-error (pipeline '())) (test-error (run 'ls)) (test-error (parameterize ((program-directory "/none")) (run "true")))
(test-error (parameterize ((program-environment '(("A=B" . "x")))) (run "true")))

;; a running program is signalled, or waited for by a thread that is ended
(define (sleeper) (caar (start-programs '(("sleep" "30")) #f #f #f '())))
(test 137 (let ((p (sleeper))) (program-signal! p 9) (program-wait p)))
(test '(#t #f) (let ((p (sleeper))) (let ((first (program-signal! p 9))) (program-wait p) (list first (program-signal! p 9)))))
(test 'ended
  (let* ((p (sleeper)) (waiter (thread-start! (make-thread (lambda () (program-wait p))))))
    (thread-sleep! 0.01)
    (thread-terminate! waiter)
    (let ((end (guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! waiter))))
      (program-signal! p 9)
      (program-wait p)
      end)))
(test #t (exact-integer? (program-id (sleeper)))) (test #t (program? (sleeper))) (test-error (program-signal! (sleeper) 0)) (test-error (program-wait 'none))

(finish)
