;;; SRFI 170: POSIX, the part about files and folders. Missing: posix-error-name, open-file, fd->port,
;;; create-fifo, set-file-owner, set-file-times, file-space, the process's umask, niceness, users and
;;; groups, terminal?, and changing the environment. An error is a file error of R7RS. Times are
;;; seconds, as (current-second) counts.

(define-library (srfi 170)
  (import (scheme base) (scheme file)
          (rename (only (kyocho) create-directory delete-directory rename-file create-hard-link
                        create-symlink read-symlink real-path truncate-file set-file-mode
                        directory-files file-status current-directory set-current-directory!
                        create-temp-file pid)
                  (create-temp-file create-file-with-prefix)))
  (export
   posix-error? posix-error-message
   create-directory delete-directory rename-file create-hard-link create-symlink read-symlink
   real-path truncate-file set-file-mode directory-files make-directory-files-generator
   open-directory read-directory close-directory
   file-info file-info? file-info:device file-info:inode file-info:mode file-info:nlinks
   file-info:uid file-info:gid file-info:rdev file-info:size file-info:blksize file-info:blocks
   file-info:atime file-info:mtime file-info:ctime file-info-directory? file-info-fifo?
   file-info-symlink? file-info-regular? file-info-socket? file-info-device?
   current-directory set-current-directory! temp-file-prefix create-temp-file
   call-with-temporary-filename pid)
  (begin

    (define (posix-error? x) (and (error-object? x) (file-error? x)))
    (define posix-error-message error-object-message)

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

    ;; Folders, read whole when they are opened.

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

    ;; Temporary files.

    (define temp-file-prefix (make-parameter "/tmp/kyocho."))
    (define (create-temp-file . prefix)
      (create-file-with-prefix (if (null? prefix) (temp-file-prefix) (car prefix))))

    ;; Tries names until (maker name) gives a true value; gives its values.
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
