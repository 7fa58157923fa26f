;; All parts at once. Threads read files in parallel, one thread sleeps in the kernel, a channel
;; collects the results, priorities decide the order, and a thread that never ends is terminated.
;;   kyocho run examples/word_count.scm FILE ...

(import (scheme base) (scheme char) (scheme file) (scheme write) (scheme process-context)
        (srfi 18) (srfi 69) (kyocho))

(define (for-each-word port visit)
  (let loop ((letters '()))
    (let ((c (read-char port)))
      (cond ((and (char? c) (char-alphabetic? c)) (loop (cons (char-downcase c) letters)))
            (else
             (unless (null? letters) (visit (list->string (reverse letters))))
             (unless (eof-object? c) (loop '())))))))

;; The number of different words, or #f if the file cannot be read.
(define (count-words file)
  (let ((counts (make-hash-table)))
    (guard (e ((file-error? e) #f))
      (call-with-input-file file
        (lambda (port)
          (for-each-word port
            (lambda (word) (hash-table-update!/default counts word (lambda (n) (+ n 1)) 0)))))
      (hash-table-size counts))))

(define files
  (if (pair? (cdr (command-line)))
      (cdr (command-line))
      '("LICENSE-MIT" "LICENSE-APACHE" "README.md")))

(define results (make-channel))
(define finished (make-mutex 'finished))
(define ended '())

(define (note! what)
  (mutex-lock! finished)
  (set! ended (cons what ended))
  (mutex-unlock! finished))

(define counters
  (map (lambda (file)
         (let ((thread (make-thread
                        (lambda ()
                          (channel-send! results (cons file (count-words file)))
                          (note! file))
                        file)))
           (thread-priority-set! thread 40)
           (thread-start! thread)))
       files))

(define sleeper (spawn (lambda () (raw-sleep 0.01) (note! 'sleeper))))
(define hog (spawn (lambda () (dynamic-wind (lambda () #f)
                                            (lambda () (let loop () (loop)))
                                            (lambda () (note! 'hog))))))

(for-each (lambda (_)
            (let ((result (channel-receive results)))
              (display (or (cdr result) "cannot read the")) (display " different words in ")
              (display (car result)) (newline)))
          files)
(for-each thread-join! (cons sleeper counters))
(thread-terminate! hog)
(guard (e ((terminated-thread-exception? e) (display "the loop was ended") (newline)))
  (thread-join! hog))
(unless (memq 'hog ended) (error "the loop was not unwound"))
