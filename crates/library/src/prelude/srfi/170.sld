;;; SRFI 170: POSIX. A port for reading and writing counts as two open ports of its user. If its
;;; file has a position, both directions share it. A posix-error is a file error of R7RS with an
;;; error number of the host. Times are seconds, as returned by (current-second). The environment
;;; belongs to the session: changes are visible to the session and to the programs that it starts,
;;; but not to the C library. State that all users of the process share (working directory, umask,
;;; niceness, descriptors) can be changed only by the user that runs the process.

(define-library (srfi 170)
  (import (scheme base) (scheme char) (scheme file) (scheme process-context) (scheme time)
          (rename (only (kyocho) create-directory delete-directory rename-file create-hard-link
                        create-symlink read-symlink real-path truncate-file set-file-mode
                        directory-files file-status current-directory set-current-directory!
                        create-temp-file pid posix-error-name open-file fd->port terminal?
                        create-fifo set-file-owner set-file-times file-space umask set-umask! nice
                        user-uid user-gid user-effective-uid user-effective-gid
                        user-supplementary-gids user-entry group-entry
                        set-environment-variable! delete-environment-variable!)
                  (create-temp-file create-file-with-prefix)
                  (set-file-times set-times)))
  (export
   posix-error? posix-error-name posix-error-message
   open-file fd->port binary-input textual-input binary-output textual-output
   binary-input/output buffer-none buffer-block buffer-line
   open/append open/create open/exclusive open/nofollow open/truncate
   create-directory create-fifo delete-directory rename-file create-hard-link create-symlink
   read-symlink real-path truncate-file set-file-mode set-file-owner owner/unchanged
   group/unchanged set-file-times time/now time/unchanged file-space
   directory-files make-directory-files-generator open-directory read-directory close-directory
   file-info file-info? file-info:device file-info:inode file-info:mode file-info:nlinks
   file-info:uid file-info:gid file-info:rdev file-info:size file-info:blksize file-info:blocks
   file-info:atime file-info:mtime file-info:ctime file-info-directory? file-info-fifo?
   file-info-symlink? file-info-regular? file-info-socket? file-info-device?
   temp-file-prefix create-temp-file call-with-temporary-filename
   current-directory set-current-directory! umask set-umask! nice pid
   user-uid user-gid user-effective-uid user-effective-gid user-supplementary-gids
   user-info user-info? user-info:name user-info:uid user-info:gid user-info:home-dir
   user-info:shell user-info:full-name user-info:parsed-full-name
   group-info group-info? group-info:name group-info:gid
   posix-time monotonic-time set-environment-variable! delete-environment-variable! terminal?)
  (begin

    (define (posix-error? x) (and (posix-error-name x) #t))
    (define posix-error-message error-object-message)

    ;; Ports.

    (define binary-input 'binary-input)
    (define textual-input 'textual-input)
    (define binary-output 'binary-output)
    (define textual-output 'textual-output)
    (define binary-input/output 'binary-input/output)
    (define buffer-none 'none)
    (define buffer-block 'block)
    (define buffer-line 'line)
    (define open/append 1)
    (define open/create 2)
    (define open/exclusive 4)
    (define open/nofollow 8)
    (define open/truncate 16)

    ;; Files.

    (define owner/unchanged #f)
    (define group/unchanged #f)
    (define time/now 'now)
    (define time/unchanged #f)
    (define (set-file-times path . times)
      (apply set-times path (map (lambda (time) (if (number? time) (inexact time) time)) times)))

    (define-record-type file-info-type (make-file-info status) file-info? (status status))
    (define (file-info path follow-links?) (make-file-info (file-status path follow-links?)))

    (define (field i) (lambda (info) (vector-ref (status info) i)))
    (define file-info:device (field 1))
    (define file-info:inode (field 2))
    (define file-info:mode (field 3))
    (define file-info:nlinks (field 4))
    (define file-info:uid (field 5))
    (define file-info:gid (field 6))
    (define file-info:rdev (field 7))
    (define file-info:size (field 8))
    (define file-info:blksize (field 9))
    (define file-info:blocks (field 10))
    (define file-info:atime (field 11))
    (define file-info:mtime (field 12))
    (define file-info:ctime (field 13))

    (define (is kind) (lambda (info) (eq? kind (vector-ref (status info) 0))))
    (define file-info-directory? (is 'directory))
    (define file-info-fifo? (is 'fifo))
    (define file-info-symlink? (is 'symlink))
    (define file-info-regular? (is 'regular))
    (define file-info-socket? (is 'socket))
    (define file-info-device? (is 'device))

    ;; Folders, which are read completely when they are opened.

    (define-record-type directory (make-directory names) directory? (names names set-names!))
    (define (open-directory path . dot-files?)
      (make-directory (apply directory-files path dot-files?)))
    (define (read-directory directory)
      (let ((left (names directory)))
        (cond ((not left) (error "read-directory: the directory is closed" directory))
              ((null? left) (eof-object))
              (else (set-names! directory (cdr left)) (car left)))))
    (define (close-directory directory) (set-names! directory #f))
    (define (make-directory-files-generator path . dot-files?)
      (let ((directory (apply open-directory path dot-files?)))
        (lambda () (read-directory directory))))

    ;; Users and groups.

    (define-record-type user-info-type (make-user-info entry) user-info? (entry user))
    (define (user-info uid/name)
      (let ((entry (user-entry uid/name)))
        (and entry (make-user-info entry))))
    (define (user-info:name info) (vector-ref (user info) 0))
    (define (user-info:uid info) (vector-ref (user info) 1))
    (define (user-info:gid info) (vector-ref (user info) 2))
    (define (user-info:home-dir info) (vector-ref (user info) 3))
    (define (user-info:shell info) (vector-ref (user info) 4))
    (define (user-info:full-name info) (vector-ref (user info) 5))

    ;; The parts between commas. In the first, an ampersand is replaced by the user's name.
    (define (user-info:parsed-full-name info)
      (let ((parts (split (user-info:full-name info))))
        (cons (expanded (car parts) (capitalised (user-info:name info))) (cdr parts))))
    (define (split text)
      (let loop ((chars (reverse (string->list text))) (part '()) (parts '()))
        (cond ((null? chars) (cons (list->string part) parts))
              ((char=? (car chars) #\,) (loop (cdr chars) '() (cons (list->string part) parts)))
              (else (loop (cdr chars) (cons (car chars) part) parts)))))
    (define (expanded text name)
      (apply string-append
             (map (lambda (c) (if (char=? c #\&) name (string c))) (string->list text))))
    (define (capitalised name)
      (if (and (> (string-length name) 0) (char<=? #\a (string-ref name 0) #\z))
          (string-append (string (char-upcase (string-ref name 0))) (string-copy name 1))
          name))

    (define-record-type group-info-type (make-group-info entry) group-info? (entry group))
    (define (group-info gid/name)
      (let ((entry (group-entry gid/name)))
        (and entry (make-group-info entry))))
    (define (group-info:name info) (vector-ref (group info) 0))
    (define (group-info:gid info) (vector-ref (group info) 1))

    ;; Time.

    (define (posix-time) (current-second))
    (define (monotonic-time) (/ (inexact (current-jiffy)) (jiffies-per-second)))

    ;; Temporary files.

    (define temp-file-prefix (make-parameter "/tmp/kyocho."))
    (define (create-temp-file . prefix)
      (create-file-with-prefix (if (null? prefix) (temp-file-prefix) (car prefix))))

    ;; Tries names until (maker name) returns a true value. Returns the values of that call.
    (define (call-with-temporary-filename maker . prefix)
      (let ((prefix (if (null? prefix) (temp-file-prefix) (car prefix))))
        (let loop ((i 0))
          (if (= i 1000)
              (error "call-with-temporary-filename: no name would do" prefix))
          (call-with-values
           (lambda ()
             (guard (condition ((file-error? condition) #f))
               (maker (string-append prefix (number->string (pid)) "-" (number->string i)))))
           (lambda results
             (if (and (pair? results) (car results))
                 (apply values results)
                 (loop (+ i 1))))))))))
