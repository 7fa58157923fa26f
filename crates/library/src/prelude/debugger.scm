;;; The debugger: the last failure, ways to continue it, and the activity of threads. No state is
;;; kept here, because all users share these definitions.

(define (%numbered lines)
  (let loop ((n 0) (lines lines))
    (if (pair? lines)
        (begin
          (display (%padded n 4))
          (display "  ")
          (display (car lines))
          (newline)
          (loop (+ n 1) (cdr lines))))))

;; Shows the callers, the innermost first: of the last failure, or in a thread.
(define (bt . id)
  (if (null? id)
      (if (%failure)
          (%numbered (map car (%failure-frames)))
          (display "; nothing has failed that is kept\n"))
      (let ((lines (%backtrace (if (thread? (car id)) (car id) (%thread "bt" (car id))))))
        (if lines
            (%numbered lines)
            (display "; it has ended, or is suspended\n")))))

(define %shown-max 200)

(define (%shortly value)
  (let ((text (call-with-output-string (lambda (port) (write value port)))))
    (if (> (string-length text) %shown-max)
        (string-append (substring text 0 %shown-max) " ...")
        text)))

;; Shows the local variables of a frame of the last failure. `bt` shows the frame's number.
(define (locals . number)
  (let ((frames (%failure-frames)) (n (if (null? number) 0 (car number))))
    (if (and (exact-integer? n) (< -1 n (length frames)))
        (for-each
         (lambda (local)
           (display "  ")
           (display (car local))
           (display " = ")
           (display (%shortly (cdr local)))
           (newline))
         (cdr (list-ref frames n)))
        (display "; there is no such frame\n"))))

;; Calls `go-on` with the last failure. Nothing is raised here, because that would become the last
;; failure.
(define (%with-failure go-on)
  (let ((failure (%failure)))
    (if failure
        (go-on (vector-ref failure 1) (vector-ref failure 2))
        (display "; nothing has failed that is kept\n"))))

;; Continues with a value in place of what failed.
(define (use-value value)
  (%with-failure
   (lambda (continuation again?)
     (%forget-failure!)
     (continuation value))))

;; Repeats what failed, with the definitions made meanwhile.
(define (retry)
  (%with-failure
   (lambda (continuation again?)
     (if again?
         (begin
           (%forget-failure!)
           (%rewind-to (%continuation-winders continuation))
           (%reinstate-again continuation))
         (display "; what failed takes a value: use-value\n")))))

;; Shows the activity of the account's threads over the next seconds (one by default), the busiest
;; first.
(define (top . seconds)
  (let ((before (%threads)) (seconds (if (null? seconds) 1 (car seconds))))
    (define (since entry field)
      (let ((old (find (lambda (old) (eqv? (vector-ref old 0) (vector-ref entry 0))) before)))
        (- (vector-ref entry field) (if old (vector-ref old field) 0))))
    (dynamic-wind
     (lambda () (%measure! 1))
     (lambda () (thread-sleep! seconds))
     (lambda () (%measure! -1)))
    (let ((rows (map (lambda (entry) (vector (since entry 4) (since entry 3) entry)) (%threads))))
      (display "    ID  CPU %      CELLS NAME\n")
      (for-each
       (lambda (row)
         (let ((entry (vector-ref row 2)))
           (display (%padded (vector-ref entry 0) 6))
           (display (%padded (exact (round (/ (vector-ref row 0) (* 1e7 seconds)))) 7))
           (display (%padded (vector-ref row 1) 11))
           (display " ")
           (display (vector-ref entry 6))
           (newline)))
       (list-sort (lambda (a b) (> (vector-ref a 0) (vector-ref b 0))) rows)))))

;; Calls a thunk and reports how long that took.
(define (timed thunk)
  (let* ((begin (current-jiffy)) (result (thunk)) (end (current-jiffy)))
    (display "; ")
    (display (/ (round (/ (* 1e6 (- end begin)) (jiffies-per-second))) 1000))
    (display " ms\n")
    result))
