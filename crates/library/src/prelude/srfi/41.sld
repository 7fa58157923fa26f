;;; SRFI 41: streams. Complete, as one library; (srfi 41 primitive) and (srfi 41 derived) are parts
;;; of it.
;;;
;;; A stream is a promise of stream-null or of a pair of promises. Elements and rests are computed
;;; when they are needed, and only once. A chain of delays is forced in constant space, as R7RS
;;; requires of delay-force.

(define-library (srfi 41)
  (import (scheme base) (scheme lazy))
  (export
   stream-null stream-cons stream? stream-null? stream-pair? stream-car stream-cdr stream-lambda
   define-stream list->stream port->stream stream stream->list stream-append stream-concat
   stream-constant stream-drop stream-drop-while stream-filter stream-fold stream-for-each
   stream-from stream-iterate stream-length stream-let stream-map stream-match stream-of
   stream-range stream-ref stream-reverse stream-scan stream-take stream-take-while stream-unfold
   stream-unfolds stream-zip)
  (begin

    (define-record-type stream-type (make-stream promise) stream? (promise stream-promise))
    (define-record-type stream-pare-type (make-pare head tail) pare? (head pare-head) (tail pare-tail))

    ;; A stream whose computation is delayed.
    (define-syntax stream-lazy
      (syntax-rules ()
        ((_ expression) (make-stream (delay-force (promise-of expression))))))
    (define (promise-of stream)
      (if (stream? stream) (stream-promise stream) (error "not a stream" stream)))

    (define-syntax stream-cons
      (syntax-rules ()
        ((_ head tail)
         (make-stream (make-promise (make-pare (delay head) (stream-lazy tail)))))))

    (define-syntax stream-lambda
      (syntax-rules ()
        ((_ formals body0 body1 ...)
         (lambda formals (stream-lazy (let () body0 body1 ...))))))

    (define-syntax define-stream
      (syntax-rules ()
        ((_ (name . formals) body0 body1 ...)
         (define name (stream-lambda formals body0 body1 ...)))))

    (define-syntax stream-let
      (syntax-rules ()
        ((_ tag ((name value) ...) body1 body2 ...)
         ((letrec ((tag (stream-lambda (name ...) body1 body2 ...))) tag) value ...))))

    (define stream-null (make-stream (make-promise '())))
    (define (content stream) (force (stream-promise stream)))
    (define (stream-null? x) (and (stream? x) (null? (content x))))
    (define (stream-pair? x) (and (stream? x) (pare? (content x))))

    (define (pare who stream)
      (if (not (stream? stream)) (error (string-append who ": not a stream") stream))
      (let ((content (content stream)))
        (if (null? content) (error (string-append who ": the stream is empty")) content)))
    (define (stream-car stream) (force (pare-head (pare "stream-car" stream))))
    (define (stream-cdr stream) (pare-tail (pare "stream-cdr" stream)))

    (define (check who good? x)
      (if (not (good? x)) (error (string-append who ": a wrong argument") x)))
    (define (natural? n) (and (exact-integer? n) (>= n 0)))

    (define-syntax stream
      (syntax-rules ()
        ((_) stream-null)
        ((_ first rest ...) (stream-cons first (stream rest ...)))))

    (define (list->stream list)
      (check "list->stream" list? list)
      (stream-let loop ((list list))
        (if (null? list) stream-null (stream-cons (car list) (loop (cdr list))))))

    (define (port->stream . port)
      (let ((port (if (null? port) (current-input-port) (car port))))
        (check "port->stream" input-port? port)
        (stream-let loop ()
          (let ((char (read-char port)))
            (if (eof-object? char) stream-null (stream-cons char (loop)))))))

    ;; (stream->list [count] stream)
    (define (stream->list first . rest)
      (let ((count (if (null? rest) -1 first)) (stream (if (null? rest) first (car rest))))
        (check "stream->list" stream? stream)
        (if (pair? rest) (check "stream->list" natural? count))
        (let loop ((n count) (stream stream) (list '()))
          (if (or (= n 0) (stream-null? stream))
              (reverse list)
              (loop (- n 1) (stream-cdr stream) (cons (stream-car stream) list))))))

    (define (stream-append . streams)
      (for-each (lambda (stream) (check "stream-append" stream? stream)) streams)
      (stream-let loop ((streams streams))
        (cond ((null? streams) stream-null)
              ((null? (cdr streams)) (car streams))
              ((stream-null? (car streams)) (loop (cdr streams)))
              (else (stream-cons (stream-car (car streams))
                                 (loop (cons (stream-cdr (car streams)) (cdr streams))))))))

    (define (stream-concat streams)
      (check "stream-concat" stream? streams)
      (stream-let loop ((streams streams))
        (if (stream-null? streams)
            stream-null
            (let ((first (stream-car streams)))
              (check "stream-concat" stream? first)
              (if (stream-null? first)
                  (loop (stream-cdr streams))
                  (stream-cons (stream-car first)
                               (loop (stream-cons (stream-cdr first) (stream-cdr streams)))))))))

    (define (stream-constant . values)
      (if (null? values)
          stream-null
          (stream-let loop ((rest values))
            (if (null? rest) (loop values) (stream-cons (car rest) (loop (cdr rest)))))))

    (define (stream-drop n stream)
      (check "stream-drop" natural? n)
      (check "stream-drop" stream? stream)
      (stream-let loop ((n n) (stream stream))
        (if (or (= n 0) (stream-null? stream)) stream (loop (- n 1) (stream-cdr stream)))))

    (define (stream-drop-while test stream)
      (check "stream-drop-while" procedure? test)
      (check "stream-drop-while" stream? stream)
      (stream-let loop ((stream stream))
        (if (and (stream-pair? stream) (test (stream-car stream)))
            (loop (stream-cdr stream))
            stream)))

    (define (stream-filter test stream)
      (check "stream-filter" procedure? test)
      (check "stream-filter" stream? stream)
      (stream-let loop ((stream stream))
        (cond ((stream-null? stream) stream-null)
              ((test (stream-car stream))
               (stream-cons (stream-car stream) (loop (stream-cdr stream))))
              (else (loop (stream-cdr stream))))))

    (define (stream-fold f base stream)
      (check "stream-fold" procedure? f)
      (check "stream-fold" stream? stream)
      (let loop ((base base) (stream stream))
        (if (stream-null? stream)
            base
            (loop (f base (stream-car stream)) (stream-cdr stream)))))

    (define (any-null? streams)
      (and (pair? streams) (or (stream-null? (car streams)) (any-null? (cdr streams)))))

    (define (stream-for-each f stream . streams)
      (check "stream-for-each" procedure? f)
      (let loop ((streams (cons stream streams)))
        (if (not (any-null? streams))
            (begin
              (apply f (map stream-car streams))
              (loop (map stream-cdr streams))))))

    (define (stream-map f stream . streams)
      (check "stream-map" procedure? f)
      (for-each (lambda (stream) (check "stream-map" stream? stream)) (cons stream streams))
      (stream-let loop ((streams (cons stream streams)))
        (if (any-null? streams)
            stream-null
            (stream-cons (apply f (map stream-car streams)) (loop (map stream-cdr streams))))))

    (define (stream-zip stream . streams) (apply stream-map list stream streams))

    (define (stream-from first . step)
      (let ((step (if (null? step) 1 (car step))))
        (check "stream-from" number? first)
        (check "stream-from" number? step)
        (stream-let loop ((n first)) (stream-cons n (loop (+ n step))))))

    (define (stream-iterate f base)
      (check "stream-iterate" procedure? f)
      (stream-let loop ((base base)) (stream-cons base (loop (f base)))))

    (define (stream-length stream)
      (check "stream-length" stream? stream)
      (let loop ((n 0) (stream stream))
        (if (stream-null? stream) n (loop (+ n 1) (stream-cdr stream)))))

    (define (stream-range first past . step)
      (let ((step (if (pair? step) (car step) (if (< first past) 1 -1))))
        (check "stream-range" number? step)
        (stream-let loop ((n first))
          (if (if (< 0 step) (< n past) (> n past))
              (stream-cons n (loop (+ n step)))
              stream-null))))

    (define (stream-ref stream n)
      (check "stream-ref" stream? stream)
      (check "stream-ref" natural? n)
      (let loop ((stream stream) (n n))
        (cond ((stream-null? stream) (error "stream-ref: beyond the end of the stream"))
              ((= n 0) (stream-car stream))
              (else (loop (stream-cdr stream) (- n 1))))))

    (define (stream-reverse stream)
      (check "stream-reverse" stream? stream)
      (stream-let loop ((stream stream) (reversed stream-null))
        (if (stream-null? stream)
            reversed
            (loop (stream-cdr stream) (stream-cons (stream-car stream) reversed)))))

    (define (stream-scan f base stream)
      (check "stream-scan" procedure? f)
      (check "stream-scan" stream? stream)
      (stream-let loop ((base base) (stream stream))
        (if (stream-null? stream)
            (stream-cons base stream-null)
            (stream-cons base (loop (f base (stream-car stream)) (stream-cdr stream))))))

    (define (stream-take n stream)
      (check "stream-take" natural? n)
      (check "stream-take" stream? stream)
      (stream-let loop ((n n) (stream stream))
        (if (or (= n 0) (stream-null? stream))
            stream-null
            (stream-cons (stream-car stream) (loop (- n 1) (stream-cdr stream))))))

    (define (stream-take-while test stream)
      (check "stream-take-while" procedure? test)
      (check "stream-take-while" stream? stream)
      (stream-let loop ((stream stream))
        (if (and (stream-pair? stream) (test (stream-car stream)))
            (stream-cons (stream-car stream) (loop (stream-cdr stream)))
            stream-null)))

    (define (stream-unfold f test successor base)
      (check "stream-unfold" procedure? f)
      (check "stream-unfold" procedure? test)
      (check "stream-unfold" procedure? successor)
      (stream-let loop ((base base))
        (if (test base) (stream-cons (f base) (loop (successor base))) stream-null)))

    ;; (f seed) returns the next seed, and for each stream to make: (value) for an element, #f for
    ;; none in this step, () for the end.
    (define (stream-unfolds f seed)
      (check "stream-unfolds" procedure? f)
      (define results
        (stream-let loop ((seed seed))
          (let ((all (call-with-values (lambda () (f seed)) list)))
            (stream-cons (cdr all) (loop (car all))))))
      (define (pick i)
        (stream-let loop ((results results))
          (let ((result (list-ref (stream-car results) i)))
            (cond ((pair? result) (stream-cons (car result) (loop (stream-cdr results))))
                  ((not result) (loop (stream-cdr results)))
                  (else stream-null)))))
      (let loop ((i (- (length (stream-car results)) 1)) (streams '()))
        (if (< i 0) (apply values streams) (loop (- i 1) (cons (pick i) streams)))))

    (define-syntax stream-match
      (syntax-rules ()
        ((_ expression clause ...)
         (let ((subject expression))
           (check "stream-match" stream? subject)
           (match-clauses subject clause ...)))))

    (define-syntax match-clauses
      (syntax-rules ()
        ((_ subject) (error "stream-match: no pattern matches"))
        ((_ subject (pattern fender expression) clause ...)
         (let ((next (lambda () (match-clauses subject clause ...))))
           (match-one subject pattern (if fender expression (next)) (next))))
        ((_ subject (pattern expression) clause ...)
         (let ((next (lambda () (match-clauses subject clause ...))))
           (match-one subject pattern expression (next))))))

    (define-syntax match-one
      (syntax-rules (_)
        ((m s () yes no) (if (stream-null? s) yes no))
        ((m s (_ . rest) yes no)
         (if (stream-pair? s) (let ((tail (stream-cdr s))) (match-one tail rest yes no)) no))
        ((m s (name . rest) yes no)
         (if (stream-pair? s)
             (let ((name (stream-car s)) (tail (stream-cdr s))) (match-one tail rest yes no))
             no))
        ((m s _ yes no) yes)
        ((m s name yes no) (let ((name s)) yes))))

    (define-syntax stream-of
      (syntax-rules ()
        ((_ expression clause ...) (stream-of-onto expression stream-null clause ...))))

    (define-syntax stream-of-onto
      (syntax-rules (in is)
        ((_ expression base) (stream-cons expression base))
        ((_ expression base (name in stream) clause ...)
         (stream-let loop ((rest stream))
           (if (stream-null? rest)
               base
               (let ((name (stream-car rest)))
                 (stream-of-onto expression (loop (stream-cdr rest)) clause ...)))))
        ((_ expression base (name is value) clause ...)
         (let ((name value)) (stream-of-onto expression base clause ...)))
        ((_ expression base test clause ...)
         (if test (stream-of-onto expression base clause ...) base))))))
