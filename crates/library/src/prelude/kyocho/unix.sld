;;; Programs of the host, run alone or in pipelines, with their output shown or returned as text;
;;; files and folders as in SRFI 170; the environment. Requires the right to use files.
;;;
;;;    (run "ls" "-l")                                  shows the output, and returns the exit code
;;;    (run/string "date")                              returns the output; an error if the program fails
;;;    (pipeline/lines '("sort" "names") '("uniq" "-c"))  returns the output of a pipeline as lines

(define-library (kyocho unix)
  (import (scheme base) (scheme process-context) (scheme write) (srfi 18) (srfi 170)
          (only (kyocho) start-programs program? program-id program-wait program-signal!))
  (export run run/string run/lines pipeline pipeline/string pipeline/lines
          start-programs program? program-id program-wait program-signal!
          program-input program-directory program-environment
          get-environment-variable get-environment-variables
          create-directory delete-directory rename-file create-hard-link create-symlink read-symlink
          real-path truncate-file set-file-mode directory-files file-info file-info? file-info:size
          file-info:mode file-info:mtime file-info-directory? file-info-regular? file-info-symlink?
          current-directory set-current-directory! create-temp-file pid)
  (begin

    ;; The standard input of programs: a string, a bytevector, or #f for none.
    (define program-input (make-parameter #f))
    ;; The working directory of programs; with #f that of the system.
    (define program-directory (make-parameter #f))
    ;; Changes to the system's environment for programs: (name . value) ...; #f as value removes the
    ;; name.
    (define program-environment (make-parameter '()))

    (define (run . words) (pipeline words))
    (define (run/string . words) (pipeline/string words))
    (define (run/lines . words) (pipeline/lines words))

    ;; Calls `use` with the programs, the port of their output, and the port of their errors.
    (define (start commands errors-apart? use)
      (let* ((input (program-input))
             (started (start-programs commands (and input #t) errors-apart? (program-directory)
                                      (program-environment))))
        (if input (in-thread (lambda () (feed (cadr started) input))))
        (use (car started) (car (cddr started)) (cadr (cddr started)))))

    (define (in-thread thunk) (thread-start! (make-thread thunk 'program)))

    ;; Ignores that a program does not read all of its input.
    (define (feed port input)
      (guard (condition ((file-error? condition) #f))
        (write-bytevector (if (string? input) (string->utf8 input) input) port)
        (close-port port)))

    ;; Waits for all programs. Returns the exit code of the last.
    (define (statuses programs)
      (let loop ((programs programs) (status 0))
        (if (null? programs) status (loop (cdr programs) (program-wait (car programs))))))

    ;; Shows their output and errors, line by line.
    (define (pipeline . commands)
      (start commands #f
             (lambda (programs output errors)
               (let loop ()
                 (let ((line (next-line output)))
                   (if line
                       (begin (display line) (loop)))))
               (close-port output)
               (statuses programs))))

    ;; A line with its end, or the rest before the end of file; #f at the end of file.
    (define (next-line port)
      (let ((line (open-output-bytevector)))
        (let loop ((length 0))
          (let ((byte (read-u8 port)))
            (cond ((eof-object? byte) (and (> length 0) (text line)))
                  (else
                   (write-u8 byte line)
                   (if (= byte 10) (text line) (loop (+ length 1)))))))))

    (define (text bytes) (utf8->string (get-output-bytevector bytes)))

    (define (drain port)
      (let ((all (open-output-bytevector)))
        (let loop ()
          (let ((bytes (read-bytevector 16384 port)))
            (if (eof-object? bytes)
                (begin (close-port port) (text all))
                (begin (write-bytevector bytes all) (loop)))))))

    (define (pipeline/string . commands)
      (start commands #t
             (lambda (programs output errors)
               (let* ((complaints (in-thread (lambda () (drain errors))))
                      (result (drain output))
                      (status (statuses programs)))
                 (if (not (= status 0))
                     (error (string-append "run: the program failed: " (thread-join! complaints))
                            commands status))
                 result))))

    (define (pipeline/lines . commands)
      (let ((port (open-input-string (apply pipeline/string commands))))
        (let loop ((lines '()))
          (let ((line (read-line port)))
            (if (eof-object? line) (reverse lines) (loop (cons line lines)))))))))
