;;; JSON (RFC 8259), with the mapping of SRFI 180: objects are association lists with symbols as
;;; keys, arrays are vectors, null is the symbol null. Numbers without fraction and exponent are
;;; exact.

(define-library (kyocho json)
  (import (scheme base) (scheme char) (scheme write))
  (export json-read json-write json-null? json-error? json-error-reason string->json json->string
          json-nesting-max)
  (begin

    (define (json-null? x) (eq? x 'null))

    ;; Maximum number of levels of nested arrays and objects that json-read accepts.
    (define json-nesting-max (make-parameter 1000))

    (define-record-type json-error
      (make-json-error reason)
      json-error?
      (reason json-error-reason))
    (define (fail . parts)
      (raise (make-json-error
              (let ((port (open-output-string)))
                (for-each (lambda (part) (display part port)) parts)
                (get-output-string port)))))

    ;; Reading.

    (define (json-read . port)
      (read-value (if (null? port) (current-input-port) (car port)) 0))

    ;; The whole text is one value.
    (define (string->json text)
      (let* ((port (open-input-string text)) (value (read-value port 0)))
        (skip-white port)
        (if (not (eof-object? (peek-char port)))
            (fail "a character behind the value: " (peek-char port)))
        value))

    (define (skip-white port)
      (let ((c (peek-char port)))
        (if (and (char? c) (memv c '(#\space #\tab #\newline #\return)))
            (begin (read-char port) (skip-white port)))))

    (define (expect port wanted)
      (skip-white port)
      (let ((c (read-char port)))
        (if (not (eqv? c wanted)) (fail wanted " expected, got " (shown c)))))

    (define (shown c) (if (eof-object? c) "the end" c))

    (define (read-value port depth)
      (skip-white port)
      (let ((c (peek-char port)))
        (cond ((eof-object? c) (if (= depth 0) c (fail "a value expected, got the end")))
              ((char=? c #\{) (read-char port) (read-object port (deeper depth)))
              ((char=? c #\[) (read-char port) (read-array port (deeper depth)))
              ((char=? c #\") (read-char port) (read-text port))
              ((or (char=? c #\-) (digit? c)) (read-number port))
              (else (read-word port)))))

    (define (deeper depth)
      (if (>= depth (json-nesting-max)) (fail "nested deeper than " (json-nesting-max) " levels"))
      (+ depth 1))

    ;; Calls read-one for each part up to `close`; commas separate the parts.
    (define (read-parts port close read-one)
      (skip-white port)
      (if (eqv? (peek-char port) close)
          (begin (read-char port) '())
          (let loop ((parts (list (read-one))))
            (skip-white port)
            (let ((c (read-char port)))
              (cond ((eqv? c close) (reverse parts))
                    ((eqv? c #\,) (loop (cons (read-one) parts)))
                    (else (fail "a comma or " close " expected, got " (shown c))))))))

    (define (read-array port depth)
      (list->vector (read-parts port #\] (lambda () (read-value port depth)))))

    (define (read-object port depth)
      (read-parts port #\}
        (lambda ()
          (expect port #\")
          (let ((key (string->symbol (read-text port))))
            (expect port #\:)
            (let ((value (read-value port depth)))
              (if (eof-object? value) (fail "a value expected, got the end"))
              (cons key value))))))

    (define (read-word port)
      (let loop ((letters '()))
        (let ((c (peek-char port)))
          (if (and (char? c) (char<=? #\a c #\z) (< (length letters) 6))
              (loop (cons (read-char port) letters))
              (let ((word (list->string (reverse letters))))
                (cond ((string=? word "true") #t)
                      ((string=? word "false") #f)
                      ((string=? word "null") 'null)
                      ((string=? word "") (fail "a value expected, got " (shown c)))
                      (else (fail "this is no value: " word))))))))

    (define (digit? c) (and (char? c) (char<=? #\0 c #\9)))

    (define (read-number port)
      (let ((out (open-output-string)))
        (define (take) (write-char (read-char port) out))
        (define (take-digits)
          (if (not (digit? (peek-char port))) (fail "a digit expected, got " (shown (peek-char port))))
          (let loop () (if (digit? (peek-char port)) (begin (take) (loop)))))
        (if (eqv? (peek-char port) #\-) (take))
        (if (eqv? (peek-char port) #\0)
            (begin
              (take)
              (if (digit? (peek-char port)) (fail "a number begins with a zero")))
            (take-digits))
        (if (eqv? (peek-char port) #\.) (begin (take) (take-digits)))
        (if (memv (peek-char port) '(#\e #\E))
            (begin
              (take)
              (if (memv (peek-char port) '(#\+ #\-)) (take))
              (take-digits)))
        (string->number (get-output-string out))))

    ;; The rest of a string after its opening quote.
    (define (read-text port)
      (let ((out (open-output-string)))
        (let loop ()
          (let ((c (read-char port)))
            (cond ((eof-object? c) (fail "a string without an end"))
                  ((char=? c #\") (get-output-string out))
                  ((char=? c #\\) (write-char (read-escape port) out) (loop))
                  ((char<? c #\space) (fail "a control character in a string"))
                  (else (write-char c out) (loop)))))))

    (define escapes
      '((#\" . #\") (#\\ . #\\) (#\/ . #\/) (#\b . #\backspace) (#\f . #\page) (#\n . #\newline)
        (#\r . #\return) (#\t . #\tab)))

    (define (read-escape port)
      (let* ((c (read-char port)) (plain (assv c escapes)))
        (cond (plain (cdr plain))
              ((eqv? c #\u)
               (let ((unit (read-unit port)))
                 (cond ((<= #xd800 unit #xdbff) (read-low-half port unit))
                       ((<= #xdc00 unit #xdfff) (fail "half a character"))
                       (else (integer->char unit)))))
              (else (fail "no such escape: " (shown c))))))

    (define (read-low-half port high)
      (if (not (and (eqv? (read-char port) #\\) (eqv? (read-char port) #\u))) (fail "half a character"))
      (let ((low (read-unit port)))
        (if (not (<= #xdc00 low #xdfff)) (fail "half a character"))
        (integer->char (+ #x10000 (* 1024 (- high #xd800)) (- low #xdc00)))))

    (define (read-unit port)
      (let loop ((left 4) (value 0))
        (if (= left 0)
            value
            (let* ((c (read-char port))
                   (digit (and (char? c) (char<? c #\x80) (string->number (string c) 16))))
              (if (not digit) (fail "a hexadecimal digit expected, got " (shown c)))
              (loop (- left 1) (+ (* 16 value) digit))))))

    ;; Writing.

    (define (json-write value . port)
      (write-value value (if (null? port) (current-output-port) (car port))))

    (define (json->string value)
      (let ((port (open-output-string)))
        (write-value value port)
        (get-output-string port)))

    (define (write-value value port)
      (cond ((eq? value #t) (write-string "true" port))
            ((eq? value #f) (write-string "false" port))
            ((eq? value 'null) (write-string "null" port))
            ((string? value) (write-text value port))
            ((vector? value) (write-array value port))
            ((null? value) (write-string "{}" port))
            ((pair? value) (write-object value port))
            ((and (real? value) (or (exact-integer? value) (< -inf.0 value +inf.0)))
             (write-number value port))
            (else (fail "no JSON value: " value))))

    (define (write-number value port)
      (write-string (number->string (if (exact-integer? value) value (inexact value))) port))

    (define (write-array value port)
      (write-string "[" port)
      (do ((i 0 (+ i 1))) ((= i (vector-length value)))
        (if (> i 0) (write-string "," port))
        (write-value (vector-ref value i) port))
      (write-string "]" port))

    (define (write-object value port)
      (write-string "{" port)
      (let loop ((rest value) (first? #t))
        (if (pair? rest)
            (let ((member (car rest)))
              (if (not (and (pair? member) (symbol? (car member))))
                  (fail "a member of an object is (symbol . value): " member))
              (if (not first?) (write-string "," port))
              (write-text (symbol->string (car member)) port)
              (write-string ":" port)
              (write-value (cdr member) port)
              (loop (cdr rest) #f))))
      (write-string "}" port))

    (define (write-text text port)
      (write-string "\"" port)
      (string-for-each
       (lambda (c)
         (cond ((or (char=? c #\") (char=? c #\\)) (write-char #\\ port) (write-char c port))
               ((char=? c #\newline) (write-string "\\n" port))
               ((char=? c #\return) (write-string "\\r" port))
               ((char=? c #\tab) (write-string "\\t" port))
               ((char<? c #\space)
                (let ((digits (number->string (char->integer c) 16)))
                  (write-string "\\u" port)
                  (write-string (make-string (- 4 (string-length digits)) #\0) port)
                  (write-string digits port)))
               (else (write-char c port))))
       text)
      (write-string "\"" port))))
