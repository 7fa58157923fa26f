;;; Live tools: calls of a procedure, where time is spent, requests to the system. State of a
;;; session is kept in the session's own table, because all users share these definitions.

;; If two threads create a table at the same time, both get the one that was stored first.
(define (%session-table) (or (%session-value) (%keep-session-value! (make-hash-table eq?))))

;; Tracing. The name is bound to a procedure that reports each call; the table maps that procedure
;; to the traced one.

(define %trace-depth (make-parameter 0))

(define (%traced-by shown) (hash-table-ref/default (%session-table) shown #f))

;; Calls nested deeper than this show their depth as a number. Otherwise the output of a deep
;; recursion would be quadratic in its depth.
(define %trace-bars-max 20)

;; Written as one piece of text, so that lines of several threads do not mix.
(define (%tell-trace depth write-rest)
  (display
   (call-with-output-string
    (lambda (port)
      (do ((i 0 (+ i 1))) ((> i (min depth %trace-bars-max))) (write-string "| " port))
      (if (> depth %trace-bars-max) (begin (write depth port) (write-string " " port)))
      (write-rest port)
      (newline port)))))

(define (%tracing name f)
  (lambda arguments
    (let ((depth (%trace-depth)))
      (%tell-trace depth (lambda (port) (write-string (%shortly (cons name arguments)) port)))
      (call-with-values
       (lambda () (parameterize ((%trace-depth (+ depth 1))) (apply f arguments)))
       (lambda results
         (%tell-trace depth
           (lambda (port)
             (write-string "=>" port)
             (for-each (lambda (result) (write-string " " port) (write-string (%shortly result) port))
                       results)))
         (apply values results))))))

(define (%trace name f)
  (if (not (procedure? f)) (%wrong-type 'trace 1 "procedure" f))
  (if (%traced-by f)
      f
      (let ((shown (%tracing name f)))
        (hash-table-set! (%session-table) shown (cons name f))
        shown)))

(define (%untrace f)
  (let ((traced (%traced-by f)))
    (if traced
        (begin (hash-table-delete! (%session-table) f) (cdr traced))
        f)))

(define (%traced-names) (map car (hash-table-values (%session-table))))

;; The profiler: a thread samples the other threads of the account at intervals and counts each
;; stack, a list of texts with the outermost first.

(define-record-type %profiler
  (%make-profiler stacks running? thread)
  profiler?
  (stacks %profiler-stacks)
  (running? %profiler-running? %set-profiler-running!)
  (thread %profiler-thread %set-profiler-thread!))

(define (%profile-stack entry lines)
  (define (name line)
    (let ((at (string-search-all " at " line)))
      (if (or (null? at) (string-prefix? "in top level" line) (string-prefix? "in lambda" line))
          (substring line 3 (string-length line))
          (substring line 3 (car at)))))
  (cons (vector-ref entry 6) (reverse (map name lines))))

;; Samples threads that run or are runnable; not waiting ones, and not the sampling thread.
(define (%profile-look profiler)
  (for-each
   (lambda (entry)
     (if (and (vector-ref entry 5) (not (eq? (vector-ref entry 1) (current-thread))))
         (let ((lines (%backtrace (vector-ref entry 1))))
           (if (pair? lines)
               (hash-table-update!/default (%profiler-stacks profiler)
                                           (%profile-stack entry lines)
                                           (lambda (count) (+ count 1))
                                           0)))))
   (%threads)))

;; Samples every `interval` seconds, by default a thousandth, until `profile-stop!` returns the
;; profile.
(define (profile-start! . interval)
  (let ((profiler (%make-profiler (make-hash-table equal?) #t #f))
        (interval (if (null? interval) 0.001 (car interval))))
    (if (not (and (real? interval) (> interval 0)))
        (%wrong-type 'profile-start! 1 "positive number of seconds" interval))
    (%set-profiler-thread! profiler
      (spawn (lambda ()
               (let loop ()
                 (thread-sleep! interval)
                 (if (%profiler-running? profiler)
                     (begin (%profile-look profiler) (loop)))))
             'profiler))
    profiler))

;; A profile: a list of (count . stack), the most frequent first.
(define (profile-stop! profiler)
  (if (not (profiler? profiler)) (%wrong-type 'profile-stop! 1 "profiler" profiler))
  (%set-profiler-running! profiler #f)
  (thread-join! (%profiler-thread profiler))
  (list-sort (lambda (a b) (> (car a) (car b)))
             (map (lambda (entry) (cons (cdr entry) (car entry)))
                  (hash-table->alist (%profiler-stacks profiler)))))

;; Calls the thunk, and returns the profile of that time.
(define (profile thunk . interval)
  (let ((profiler (apply profile-start! interval)))
    (dynamic-wind
     (lambda () #f)
     thunk
     (lambda () (%set-profiler-running! profiler #f)))
    (profile-stop! profiler)))

;; One line for each stack, its parts separated by semicolons, then its count: the input format of
;; flame graph tools.
(define (profile->folded profile)
  (call-with-output-string
   (lambda (port)
     (for-each
      (lambda (entry)
        (let loop ((stack (cdr entry)))
          (write-string (car stack) port)
          (if (pair? (cdr stack))
              (begin (write-string ";" port) (loop (cdr stack)))))
        (write-string " " port)
        (write (car entry) port)
        (newline port))
      profile))))

(define (profile->svg profile) (%flame-graph (profile->folded profile)))

(define (profile-report profile)
  (let ((all (apply + (map car profile)))
        (own (make-hash-table equal?))
        (whole (make-hash-table equal?)))
    (define (add! table name count)
      (hash-table-update!/default table name (lambda (n) (+ n count)) 0))
    (for-each
     (lambda (entry)
       (add! own (last (cdr entry)) (car entry))
       (for-each (lambda (name) (add! whole name (car entry))) (delete-duplicates (cddr entry))))
     profile)
    (display "  OWN %  WITH CALLEES %  PROCEDURE\n")
    (for-each
     (lambda (entry)
       (define (percent table) (round (/ (* 100 (hash-table-ref/default table (car entry) 0)) all)))
       (display (%padded (percent own) 7))
       (display (%padded (percent whole) 16))
       (display "  ")
       (display (car entry))
       (newline))
     (list-sort (lambda (a b) (> (cdr a) (cdr b))) (hash-table->alist whole)))))

;; System calls: #(name how times), the most frequent first.
(define (system-call-statistics)
  (list-sort (lambda (a b) (> (vector-ref a 2) (vector-ref b 2))) (%system-calls)))

(define (system-calls)
  (display "      TIMES  HOW      SYSTEM CALL\n")
  (for-each
   (lambda (entry)
     (if (> (vector-ref entry 2) 0)
         (begin
           (display (%padded (vector-ref entry 2) 11))
           (display "  ")
           (let ((how (symbol->string (vector-ref entry 1))))
             (display how)
             (display (make-string (max 0 (- 9 (string-length how))) #\space)))
           (display (vector-ref entry 0))
           (newline))))
   (system-call-statistics)))

;; Images. Hashes that programs compute may be derived from addresses, so those tables are filled
;; again.

(define (%fill-again tables)
  (for-each
    (lambda (table)
      (let ((associations (hash-table->alist table)))
        (hash-table-clear! table)
        (for-each (lambda (entry) (hash-table-set! table (car entry) (cdr entry))) associations)))
    tables))

(define (%enter-image file) (%fill-again (%load-image file)))

;; Runs instead of a text when a session begins with a copy of another session's world.
(define (%enter-world text) (%fill-again (%take-world)))
