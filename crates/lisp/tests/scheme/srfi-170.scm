;;; SRFI 170: POSIX.
(import (scheme base) (scheme write) (scheme process-context) (scheme file) (srfi 18) (srfi 170) (only (kyocho unix) run/string))
(include "harness.scm")

(define root (create-temp-file))
(test 0 (file-info:size (file-info root #t)))
(delete-file root)
(create-directory root #o750)
(define (in name) (string-append root "/" name))
(define (put name text) (call-with-output-file (in name) (lambda (port) (write-string text port))))
(test #t (file-info-directory? (file-info root #t))) (test #o750 (modulo (file-info:mode (file-info root #t)) #o1000)) (test-error (create-directory root))
(put "a" "twelve bytes") (put ".hidden" "")
(test #t (file-info? (file-info (in "a") #t))) (test 12 (file-info:size (file-info (in "a") #t))) (test #t (file-info-regular? (file-info (in "a") #t))) (test #f (file-info-directory? (file-info (in "a") #t))) (test 1 (file-info:nlinks (file-info (in "a") #t))) (test #t (< 1e9 (file-info:mtime (file-info (in "a") #t)))) (test #t (and (exact-integer? (file-info:inode (file-info (in "a") #t))) (exact-integer? (file-info:device (file-info (in "a") #t)))))
(test #t (let ((info (file-info (in "a") #t))) (and (>= (file-info:uid info) 0) (>= (file-info:gid info) 0) (>= (file-info:rdev info) 0) (> (file-info:blksize info) 0) (>= (file-info:blocks info) 0) (real? (file-info:atime info)) (real? (file-info:ctime info)))))
(create-hard-link (in "a") (in "b")) (test 2 (file-info:nlinks (file-info (in "b") #t))) (test #t (= (file-info:inode (file-info (in "a") #t)) (file-info:inode (file-info (in "b") #t))))
(create-symlink "a" (in "s")) (test "a" (read-symlink (in "s"))) (test #t (file-info-symlink? (file-info (in "s") #f))) (test #f (file-info-symlink? (file-info (in "s") #t))) (test #t (string=? (real-path (in "s")) (real-path (in "a"))))
(test '("a" "b" "s") (directory-files root)) (test '(".hidden" "a" "b" "s") (directory-files root #t))
(rename-file (in "b") (in "c")) (test '("a" "c" "s") (directory-files root)) (truncate-file (in "c") 5) (test 5 (file-info:size (file-info (in "a") #t))) (set-file-mode (in "a") #o640) (test #o640 (modulo (file-info:mode (file-info (in "a") #t)) #o1000)) (test-error (set-file-mode (in "a") -1)) (test-error (truncate-file (in "a") -1))
(test '("a" "c" "s" end) (let* ((d (open-directory root)) (a (read-directory d)) (b (read-directory d)) (c (read-directory d))) (list a b c (if (eof-object? (read-directory d)) 'end 'more)))) (test-error (let ((d (open-directory root))) (close-directory d) (read-directory d))) (test ".hidden" ((make-directory-files-generator root #t)))
(test #t (let ((before (current-directory))) (set-current-directory! root) (let ((here (current-directory))) (set-current-directory! before) (string=? here (real-path root)))))
(test 'refused (guard (e ((posix-error? e) (and (string? (posix-error-message e)) 'refused))) (file-info (in "none") #t))) (test '(#f #f) (list (posix-error? 'no) (guard (e (#t (posix-error? e))) (error "of ours")))) (test-error (read-symlink (in "a"))) (test-error (delete-directory root)) (test-error (rename-file (in "none") (in "x"))) (test-error (directory-files (in "none"))) (test-error (real-path (in "none"))) (test-error (set-current-directory! (in "none"))) (test-error (create-hard-link (in "none") (in "x")))
(test #f (file-info-fifo? (file-info (in "a") #t))) (test #f (file-info-socket? (file-info (in "a") #t))) (test #t (file-info-device? (file-info "/dev/null" #t))) (test #t (exact-integer? (pid)))
(define made (parameterize ((temp-file-prefix (in "t"))) (create-temp-file))) (test #t (file-exists? made)) (test #f (string=? made (create-temp-file (in "t"))))
(test 3 (let ((tries 0)) (call-with-temporary-filename (lambda (name) (set! tries (+ tries 1)) (and (= tries 3) tries)) (in "u"))))
(test #t (file-exists? (call-with-temporary-filename (lambda (name) (create-hard-link made name) name) (in "u"))))
;; names of errors
(define-syntax name-of (syntax-rules () ((_ expression) (guard (e ((posix-error? e) (posix-error-name e))) expression 'nothing))))
(test '(ENOENT EEXIST ENOTEMPTY EISDIR ENOTDIR EINVAL) (list (name-of (file-info (in "none") #t)) (name-of (create-directory root)) (name-of (delete-directory root)) (name-of (open-input-file root)) (name-of (directory-files made)) (name-of (read-symlink made))))
(test '(#f #f) (list (posix-error-name 'no) (guard (e (#t (posix-error-name e))) (car 5)))) (test 'ENOSPC (name-of (call-with-output-file "/dev/full" (lambda (p) (write-string "x" p) (close-port p)))))
;; open-file: flags, modes, buffering
(define (text-of name) (call-with-input-file (in name) (lambda (p) (let ((text (read-string 100 p))) (if (eof-object? text) "" text)))))
(define (put-by type flags text . rest) (let ((p (apply open-file (in "o") type flags rest))) (write-string text p) (close-port p) (text-of "o")))
(test 'ENOENT (name-of (open-file (in "o") textual-output 0))) (test "one" (put-by textual-output (+ open/create open/exclusive) "one" #o600)) (test 'EEXIST (name-of (open-file (in "o") textual-output (+ open/create open/exclusive)))) (test #o600 (modulo (file-info:mode (file-info (in "o") #t)) #o1000)) (test "onetwo" (put-by textual-output open/append "two")) (test "x" (put-by textual-output open/truncate "x")) (test "y" (put-by textual-output 0 "y"))
(create-symlink "o" (in "link")) (test 'ELOOP (name-of (open-file (in "link") textual-input open/nofollow))) (test "y" (let* ((p (open-file (in "link") textual-input 0)) (text (read-line p))) (close-port p) text)) (test #u8(121) (let* ((p (open-file (in "o") binary-input 0)) (bytes (read-bytevector 9 p))) (close-port p) bytes))
(test '("a" "a") (let* ((p (open-file (in "o") textual-output open/truncate #o666 buffer-none)) (q (begin (write-string "a" p) (text-of "o")))) (close-port p) (list q (text-of "o")))) (test '("" "a\n") (let* ((p (open-file (in "o") textual-output open/truncate #o666 buffer-line)) (q (begin (write-string "a" p) (text-of "o"))) (r (begin (newline p) (text-of "o")))) (close-port p) (list q r))) (test '("" "a\n") (let* ((p (open-file (in "o") binary-output open/truncate #o666 buffer-block)) (q (begin (write-bytevector #u8(97 10) p) (text-of "o")))) (close-port p) (list q (text-of "o"))))
(test-error (open-file (in "o") 'sideways 0)) (test-error (open-file (in "o") textual-input 32)) (test-error (open-file (in "o") textual-output 0 #o10000)) (test-error (open-file (in "o") textual-output 0 #o666 'sometimes)) (test 'EISDIR (name-of (open-file root textual-input 0)))
;; a port for both directions has one position in its file: writing begins where reading ended, and
;; vice versa
(define (both name flags . rest) (apply open-file (in name) binary-input/output flags rest))
(define (bytes . texts) (string->utf8 (apply string-append texts))) (define (write-text text port) (write-bytevector (string->utf8 text) port)) (define (read-text n port) (let ((read (read-bytevector n port))) (if (eof-object? read) 'end (utf8->string read))))
(put "both" "0123456789")
(define p (both "both" 0)) (test '(#t #t #t #f #t #t) (list (port? p) (input-port? p) (output-port? p) (textual-port? p) (input-port-open? p) (output-port-open? p)))
(test '("012" "567" 9) (let* ((a (read-text 3 p)) (b (begin (write-text "xy" p) (read-text 3 p))) (c (begin (write-u8 56 p) (read-u8 p)))) (list a b (- c 48)))) (test "012xy56789" (begin (flush-output-port p) (text-of "both"))) (test '(end end) (let* ((a (read-text 1 p)) (b (begin (write-text "new" p) (read-text 1 p)))) (list a b))) (test "012xy56789new" (text-of "both"))
(close-port p) (test '(#f #f) (list (input-port-open? p) (output-port-open? p))) (test-error (read-u8 p)) (test-error (write-u8 1 p)) (test-error (write-string "text" p)) (test-error (read-char p))
; after an end of file, reading continues if the file has grown
(test '(end "y") (let* ((p (both "grows" open/create)) (end (if (eof-object? (peek-u8 p)) 'end 'more))) (write-text "x" p) (flush-output-port p) (let ((other (open-file (in "grows") binary-output open/append))) (write-text "y" other) (close-port other)) (let ((rest (read-text 1 p))) (close-port p) (list end rest))))
; peeking does not consume; written data can be read; more than a buffer, alternately
(test '(48 "a12") (let* ((p (both "both" 0)) (byte (peek-u8 p))) (write-text "a" p) (close-port p) (list byte (substring (text-of "both") 0 3))))
(test '(#t 100000) (let ((p (both "large" (+ open/create open/exclusive) #o600))) (do ((i 0 (+ i 1))) ((= i 50)) (write-bytevector (make-bytevector 1000 i) p)) (close-port p) (let* ((p (both "large" 0)) (all (let loop ((i 0) (good? #t)) (if (= i 50) good? (loop (+ i 1) (and good? (equal? (read-bytevector 1000 p) (make-bytevector 1000 i)))))))) (write-bytevector (make-bytevector 50000 7) p) (close-port p) (list all (file-info:size (file-info (in "large") #t))))))
(test #t (let ((p (both "large" 0))) (do ((i 0 (+ i 1))) ((= i 40)) (read-bytevector 1000 p) (write-bytevector (make-bytevector 1000 99) p)) (close-port p) (let ((p (open-binary-input-file (in "large")))) (let loop ((i 0)) (let ((part (read-bytevector 1000 p))) (if (= i 80) (begin (close-port p) #t) (and (equal? part (make-bytevector 1000 (if (odd? i) 99 (if (< i 50) i 7)))) (loop (+ i 1)))))))))
; appending goes to the end, and so does the position; truncating and creating work as usual
(test '("0" "end") (let* ((p (both "large" (+ open/truncate open/append))) (a (begin (write-text "0123" p) (close-port p) (text-of "large"))) (p (both "large" open/append)) (b (read-text 1 p))) (write-text "end" p) (close-port p) (list b (substring (text-of "large") 4 7)))) (test 'ENOENT (name-of (both "none" 0))) (test 'EISDIR (name-of (open-file root binary-input/output 0)))
; one direction may be closed: bytes read ahead are returned, written ones are flushed
(test '("ab" #f #t "abXY56") (let* ((made (put "half" "ab3456")) (p (both "half" 0)) (a (read-text 2 p))) (close-input-port p) (let ((open (list (input-port-open? p) (output-port-open? p)))) (write-text "XY" p) (close-port p) (list a (car open) (cadr open) (text-of "half")))))
(test '(#t #f "56") (let ((p (both "half" 0))) (write-text "wxyz" p) (close-output-port p) (let* ((rest (read-text 9 p)) (open (list (input-port-open? p) (output-port-open? p)))) (close-port p) (list (car open) (cadr open) rest)))) (test "wxyz56" (text-of "half"))
; without a file position the directions are independent; the host's refusal is an error, and the
; port is closed
(create-fifo (in "pipe") #o600) (test '("ab" "c") (let ((p (both "pipe" 0))) (write-text "abc" p) (flush-output-port p) (let* ((a (read-text 2 p)) (b (begin (write-text "d" p) (read-text 1 p)))) (close-port p) (list a b)))) (delete-file (in "pipe"))
(test '(ENOSPC #f #f) (let* ((p (open-file "/dev/full" binary-input/output 0)) (why (begin (write-u8 1 p) (name-of (close-port p))))) (list why (input-port-open? p) (output-port-open? p)))) (test '(#t #t) (let ((p (fd->port 2 binary-input/output buffer-none))) (let ((is (list (input-port? p) (output-port? p)))) (close-port p) is)))
(test "#<binary-input/output-port" (let ((port (open-output-string)) (p (both "half" 0))) (write p port) (close-port p) (substring (get-output-string port) 0 26)))
; two threads alternate: no data are lost
(test 2000 (let* ((p (both "turns" open/create)) (write-some (lambda (byte) (thread-start! (make-thread (lambda () (do ((i 0 (+ i 1))) ((= i 1000)) (write-u8 byte p) (if (= 0 (modulo i 100)) (peek-u8 p)))))))) (writers (map write-some '(1 2)))) (for-each thread-join! writers) (close-port p) (file-info:size (file-info (in "turns") #t))))
;; ports as files
(test '(2 #t) (let* ((p (open-file (in "o") textual-input 0)) (info (file-info p #t))) (close-port p) (list (file-info:size info) (= (file-info:inode info) (file-info:inode (file-info (in "o") #t)))))) (test '(#t #t) (let* ((p (open-file (in "o") binary-output 0)) (space (file-space p))) (truncate-file p 1) (close-port p) (list (and (exact-integer? space) (>= space 0)) (= 1 (file-info:size (file-info (in "o") #t)))))) (test #t (>= (file-space root) 0)) (test 'ENOENT (name-of (file-space (in "none")))) (test-error (file-info (open-input-string "") #t)) (test-error (let ((p (open-input-file (in "o")))) (close-port p) (file-space p)))
(test '(#f #f) (list (terminal? (open-input-string "")) (let* ((p (open-input-file "/dev/null")) (is? (terminal? p))) (close-port p) is?))) (test-error (terminal? 5))
(test 'EBADF (name-of (fd->port 999999 binary-input))) (test-error (fd->port -1 binary-input)) (test '(#t #f) (let ((p (fd->port 2 textual-output buffer-none))) (let ((output? (output-port? p))) (close-port p) (list output? (output-port-open? p)))))
;; fifos, times, owners
(create-fifo (in "fifo") #o600) (test '(#t #o600) (let ((info (file-info (in "fifo") #t))) (list (file-info-fifo? info) (modulo (file-info:mode info) #o1000)))) (test 'EEXIST (name-of (create-fifo (in "fifo"))))
(set-file-times (in "o") 1000000000 2000000000.5) (test '(1000000000.0 2000000000.5) (let ((info (file-info (in "o") #t))) (list (file-info:atime info) (file-info:mtime info)))) (set-file-times (in "o") time/unchanged 5/4) (test '(1000000000.0 1.25) (let ((info (file-info (in "o") #t))) (list (file-info:atime info) (file-info:mtime info)))) (set-file-times (in "o") time/now time/unchanged) (test '(#t 1.25) (let ((info (file-info (in "o") #t))) (list (> (file-info:atime info) 1.5e9) (file-info:mtime info)))) (set-file-times (in "o")) (test #t (> (file-info:mtime (file-info (in "o") #t)) 1.5e9)) (test-error (set-file-times (in "o") 1)) (test-error (set-file-times (in "o") 'yesterday 1)) (test-error (set-file-times (in "o") 1e300 1)) (test 'ENOENT (name-of (set-file-times (in "none"))))
(set-file-owner (in "o") owner/unchanged group/unchanged) (set-file-owner (in "o") (user-uid) (user-gid)) (test (list (user-uid) (user-gid)) (let ((info (file-info (in "o") #t))) (list (file-info:uid info) (file-info:gid info)))) (test-error (set-file-owner (in "o") -1 0)) (test 'ENOENT (name-of (set-file-owner (in "none") (user-uid) (user-gid))))
;; the process
(test '(#o027 #o640) (let ((before (umask))) (set-umask! #o027) (let ((now (umask))) (close-port (open-file (in "masked") textual-output open/create)) (set-umask! before) (list now (modulo (file-info:mode (file-info (in "masked") #t)) #o1000))))) (test-error (set-umask! -1)) (test-error (set-umask! #o1000))
(test #t (exact-integer? (nice 0))) (test-error (nice 'more))
(test #t (let ((groups (user-supplementary-gids))) (and (list? groups) (exact-integer? (user-effective-uid)) (exact-integer? (user-effective-gid)))))
;; users and groups: root exists wherever there is a database
(define root-user (user-info 0)) (test '(#t "root" 0 0 #t #t) (list (user-info? root-user) (user-info:name root-user) (user-info:uid root-user) (user-info:gid root-user) (string? (user-info:home-dir root-user)) (string? (user-info:shell root-user)))) (test 0 (user-info:uid (user-info "root"))) (test #t (string? (user-info:full-name root-user))) (test #t (let ((parts (user-info:parsed-full-name root-user))) (and (pair? parts) (string? (car parts))))) (test '(#f #f #f #f) (list (user-info "no such user") (user-info 4000000000) (group-info "no such group") (user-info? 5))) (test-error (user-info 'root)) (test-error (user-info -1))
(test '(#t "root" 0 #f) (let ((group (group-info 0))) (list (group-info? group) (group-info:name group) (group-info:gid (group-info "root")) (group-info? root-user))))
;; time, the environment
(test #t (< 1.6e9 (posix-time))) (test #t (let ((before (monotonic-time))) (<= before (monotonic-time))))
(define variable "KYOCHO_TEST_VARIABLE") (define (in-shell) (run/string "sh" "-c" "echo \"<${KYOCHO_TEST_VARIABLE-none}>\""))
(test '(#f "one" "<one>\n" "two" ("two") #f "<none>\n") (let* ((before (get-environment-variable variable)) (one (begin (set-environment-variable! variable "one") (get-environment-variable variable))) (shell (in-shell)) (two (begin (set-environment-variable! variable "two") (get-environment-variable variable))) (all (let loop ((all (get-environment-variables)) (found '())) (if (null? all) found (loop (cdr all) (if (string=? (caar all) variable) (cons (cdar all) found) found))))) (gone (begin (delete-environment-variable! variable) (get-environment-variable variable)))) (list before one shell two all gone (in-shell))))
(test #f (begin (delete-environment-variable! variable) (get-environment-variable variable))) (test '(#f #t) (let* ((path (get-environment-variable "PATH")) (gone (begin (delete-environment-variable! "PATH") (get-environment-variable "PATH")))) (set-environment-variable! "PATH" path) (list gone (equal? path (get-environment-variable "PATH"))))) (test-error (set-environment-variable! "" "x")) (test-error (set-environment-variable! "a=b" "x")) (test-error (set-environment-variable! "a" "x\x0;")) (test-error (set-environment-variable! "a" (make-string 200000 #\x))) (test #f (get-environment-variable "a"))
(for-each (lambda (name) (delete-file (in name))) (directory-files root #t))
(delete-directory root)
(test #f (file-exists? root))

(finish)
