;;; SRFI 13: strings. Complete, including the procedures for writers of string procedures.
;;;
;;; A range is [start, end), optional at the end of the arguments. A criterion is a character, a set
;;; of characters (SRFI 14) or a predicate. Procedures that may share storage copy here. If you
;;; import this together with (scheme base), exclude string-map and string-for-each from one of the
;;; two: R7RS passes further strings where this library passes a range. string-filter and
;;; string-delete accept string and criterion in either order, because the SRFI's text and its
;;; implementation differ.

(define-library (srfi 13)
  (import (except (scheme base) string-map string-for-each)
          (prefix (only (scheme base) string-map) r7rs:)
          (only (scheme char) char-foldcase char-upcase char-downcase char-alphabetic?
                string-upcase string-downcase)
          (rename (only (kyocho) string-hash string-ci-hash string-join)
                  (string-hash whole-hash))
          (srfi 14))
  (export
   string? string-null? string-every string-any make-string string string-tabulate
   string->list list->string reverse-list->string string-join
   string-length string-ref string-copy substring/shared string-copy!
   string-take string-take-right string-drop string-drop-right
   string-pad string-pad-right string-trim string-trim-right string-trim-both
   string-set! string-fill!
   string-compare string-compare-ci string= string<> string< string> string<= string>=
   string-ci= string-ci<> string-ci< string-ci> string-ci<= string-ci>= string-hash string-hash-ci
   string-prefix-length string-suffix-length string-prefix-length-ci string-suffix-length-ci
   string-prefix? string-suffix? string-prefix-ci? string-suffix-ci?
   string-index string-index-right string-skip string-skip-right string-count
   string-contains string-contains-ci
   (rename titlecase string-titlecase) (rename upcase string-upcase)
   (rename downcase string-downcase) string-titlecase! string-upcase! string-downcase!
   string-reverse string-reverse! string-append string-concatenate string-concatenate/shared
   string-append/shared string-concatenate-reverse string-concatenate-reverse/shared
   string-map string-map! string-fold string-fold-right string-unfold string-unfold-right
   string-for-each string-for-each-index xsubstring string-xcopy! string-replace string-tokenize
   string-filter string-delete
   string-parse-start+end string-parse-final-start+end let-string-start+end check-substring-spec
   substring-spec-ok? make-kmp-restart-vector kmp-step string-kmp-partial-search)
  (begin

    ;; Ranges.

    (define (substring-spec-ok? s start end)
      (and (string? s) (exact-integer? start) (exact-integer? end)
           (<= 0 start end (string-length s))))

    (define (check-substring-spec who s start end)
      (if (not (substring-spec-ok? s start end))
          (error "not a range of the string" who s start end)))

    ;; The arguments after the range, start and end.
    (define (string-parse-start+end who s arguments)
      (let* ((start (if (pair? arguments) (car arguments) 0))
             (rest (if (pair? arguments) (cdr arguments) '()))
             (end (if (pair? rest) (car rest) (string-length s))))
        (check-substring-spec who s start end)
        (values (if (pair? rest) (cdr rest) '()) start end)))

    (define (string-parse-final-start+end who s arguments)
      (let-values (((rest start end) (string-parse-start+end who s arguments)))
        (if (pair? rest) (error "too many arguments" who rest))
        (values start end)))

    (define-syntax let-string-start+end
      (syntax-rules ()
        ((_ (start end) who s arguments body ...)
         (let-values (((start end) (string-parse-final-start+end who s arguments))) body ...))
        ((_ (start end rest) who s arguments body ...)
         (let-values (((rest start end) (string-parse-start+end who s arguments))) body ...))))

    (define (criterion who x)
      (cond ((procedure? x) x)
            ((char? x) (lambda (c) (char=? c x)))
            ((char-set? x) (lambda (c) (char-set-contains? x c)))
            (else (error "not a character, set of characters or predicate" who x))))

    (define (ci=? a b) (char=? (char-foldcase a) (char-foldcase b)))
    (define (ci<? a b) (char<? (char-foldcase a) (char-foldcase b)))

    ;; Predicates and constructors.

    (define (string-null? s) (= (string-length s) 0))

    (define (string-every x s . range)
      (let-string-start+end (start end) 'string-every s range
        (let ((test (criterion 'string-every x)))
          (let loop ((i start) (last #t))
            (if (= i end)
                last
                (let ((value (test (string-ref s i))))
                  (and value (loop (+ i 1) value))))))))

    (define (string-any x s . range)
      (let-string-start+end (start end) 'string-any s range
        (let ((test (criterion 'string-any x)))
          (let loop ((i start))
            (and (< i end) (or (test (string-ref s i)) (loop (+ i 1))))))))

    (define (string-tabulate f length)
      (let ((s (make-string length)))
        (do ((i 0 (+ i 1))) ((= i length) s) (string-set! s i (f i)))))

    (define (reverse-list->string chars) (list->string (reverse chars)))

    ;; Selection.

    (define (substring/shared s start . end) (apply string-copy s start end))
    (define (string-take s n) (string-copy s 0 n))
    (define (string-drop s n) (string-copy s n))
    (define (string-take-right s n) (string-copy s (- (string-length s) n)))
    (define (string-drop-right s n) (string-copy s 0 (- (string-length s) n)))

    (define (optional list default) (if (pair? list) (car list) default))
    (define (behind list) (if (pair? list) (cdr list) '()))

    (define (string-pad s length . rest)
      (let-string-start+end (start end) 'string-pad s (behind rest)
        (let ((missing (- length (- end start))))
          (if (<= missing 0)
              (string-copy s (- end length) end)
              (string-append (make-string missing (optional rest #\space))
                             (string-copy s start end))))))

    (define (string-pad-right s length . rest)
      (let-string-start+end (start end) 'string-pad-right s (behind rest)
        (let ((missing (- length (- end start))))
          (if (<= missing 0)
              (string-copy s start (+ start length))
              (string-append (string-copy s start end)
                             (make-string missing (optional rest #\space)))))))

    (define (trim who left? right? s rest)
      (let-string-start+end (start end) who s (behind rest)
        (let* ((test (criterion who (optional rest char-set:whitespace)))
               (from (if left? (let loop ((i start))
                                 (if (and (< i end) (test (string-ref s i))) (loop (+ i 1)) i))
                         start))
               (to (if right? (let loop ((i end))
                                (if (and (< from i) (test (string-ref s (- i 1)))) (loop (- i 1)) i))
                       end)))
          (string-copy s from to))))

    (define (string-trim s . rest) (trim 'string-trim #t #f s rest))
    (define (string-trim-right s . rest) (trim 'string-trim-right #f #t s rest))
    (define (string-trim-both s . rest) (trim 'string-trim-both #t #t s rest))

    ;; Comparison.

    ;; (use a b from-a to-a from-b to-b) of two strings and two optional ranges.
    (define (with-ranges who a b ranges use)
      (let-string-start+end (start-a end-a rest) who a ranges
        (let-string-start+end (start-b end-b) who b rest
          (use start-a end-a start-b end-b))))

    (define (prefix-length same? a start-a end-a b start-b end-b)
      (let loop ((i start-a) (j start-b))
        (if (and (< i end-a) (< j end-b) (same? (string-ref a i) (string-ref b j)))
            (loop (+ i 1) (+ j 1))
            (- i start-a))))

    (define (suffix-length same? a start-a end-a b start-b end-b)
      (let loop ((i end-a) (j end-b))
        (if (and (< start-a i) (< start-b j)
                 (same? (string-ref a (- i 1)) (string-ref b (- j 1))))
            (loop (- i 1) (- j 1))
            (- end-a i))))

    (define (compare who same? less? a b on-less on-same on-more ranges)
      (with-ranges who a b ranges
        (lambda (start-a end-a start-b end-b)
          (let* ((n (prefix-length same? a start-a end-a b start-b end-b))
                 (i (+ start-a n)) (j (+ start-b n)))
            ((cond ((= i end-a) (if (= j end-b) on-same on-less))
                   ((= j end-b) on-more)
                   ((less? (string-ref a i) (string-ref b j)) on-less)
                   (else on-more))
             i)))))

    (define (string-compare a b on-less on-same on-more . ranges)
      (compare 'string-compare char=? char<? a b on-less on-same on-more ranges))
    (define (string-compare-ci a b on-less on-same on-more . ranges)
      (compare 'string-compare-ci ci=? ci<? a b on-less on-same on-more ranges))

    (define (yes i) #t)
    (define (no i) #f)
    (define (comparison who same? less? on-less on-same on-more)
      (lambda (a b . ranges) (compare who same? less? a b on-less on-same on-more ranges)))

    (define string= (comparison 'string= char=? char<? no yes no))
    (define string<> (comparison 'string<> char=? char<? yes no yes))
    (define string< (comparison 'string< char=? char<? yes no no))
    (define string> (comparison 'string> char=? char<? no no yes))
    (define string<= (comparison 'string<= char=? char<? yes yes no))
    (define string>= (comparison 'string>= char=? char<? no yes yes))
    (define string-ci= (comparison 'string-ci= ci=? ci<? no yes no))
    (define string-ci<> (comparison 'string-ci<> ci=? ci<? yes no yes))
    (define string-ci< (comparison 'string-ci< ci=? ci<? yes no no))
    (define string-ci> (comparison 'string-ci> ci=? ci<? no no yes))
    (define string-ci<= (comparison 'string-ci<= ci=? ci<? yes yes no))
    (define string-ci>= (comparison 'string-ci>= ci=? ci<? no yes yes))

    (define (hash-of hash who s rest)
      (let-string-start+end (start end) who s (behind rest)
        (let ((bound (optional rest 0)))
          (modulo (hash (string-copy s start end)) (if (> bound 0) bound 33554393)))))
    (define (string-hash s . rest) (hash-of whole-hash 'string-hash s rest))
    (define (string-hash-ci s . rest) (hash-of string-ci-hash 'string-hash-ci s rest))

    ;; Prefixes and suffixes.

    (define (measure who length same?)
      (lambda (a b . ranges)
        (with-ranges who a b ranges
          (lambda (start-a end-a start-b end-b)
            (length same? a start-a end-a b start-b end-b)))))
    (define (is-part who length same?)
      (lambda (a b . ranges)
        (with-ranges who a b ranges
          (lambda (start-a end-a start-b end-b)
            (= (length same? a start-a end-a b start-b end-b) (- end-a start-a))))))

    (define string-prefix-length (measure 'string-prefix-length prefix-length char=?))
    (define string-suffix-length (measure 'string-suffix-length suffix-length char=?))
    (define string-prefix-length-ci (measure 'string-prefix-length-ci prefix-length ci=?))
    (define string-suffix-length-ci (measure 'string-suffix-length-ci suffix-length ci=?))
    (define string-prefix? (is-part 'string-prefix? prefix-length char=?))
    (define string-suffix? (is-part 'string-suffix? suffix-length char=?))
    (define string-prefix-ci? (is-part 'string-prefix-ci? prefix-length ci=?))
    (define string-suffix-ci? (is-part 'string-suffix-ci? suffix-length ci=?))

    ;; Searching.

    (define (find-left test s start end)
      (let loop ((i start))
        (and (< i end) (if (test (string-ref s i)) i (loop (+ i 1))))))
    (define (find-right test s start end)
      (let loop ((i (- end 1)))
        (and (>= i start) (if (test (string-ref s i)) i (loop (- i 1))))))
    (define (complement test) (lambda (c) (not (test c))))
    (define (search who find change)
      (lambda (s x . range)
        (let-string-start+end (start end) who s range
          (find (change (criterion who x)) s start end))))

    (define string-index (search 'string-index find-left values))
    (define string-index-right (search 'string-index-right find-right values))
    (define string-skip (search 'string-skip find-left complement))
    (define string-skip-right (search 'string-skip-right find-right complement))

    (define (string-count s x . range)
      (let-string-start+end (start end) 'string-count s range
        (let ((test (criterion 'string-count x)))
          (let loop ((i start) (count 0))
            (if (= i end) count (loop (+ i 1) (if (test (string-ref s i)) (+ count 1) count)))))))

    ;; Knuth, Morris and Pratt: entry i of a restart vector is the index in the pattern to continue
    ;; with if its character i does not match. -1 means: continue with the next character of the
    ;; text.

    (define (make-kmp-restart-vector pattern . rest)
      (let-string-start+end (start end) 'make-kmp-restart-vector pattern (behind rest)
        (let* ((same? (optional rest char=?)) (length (- end start)) (v (make-vector length -1)))
          (let loop ((i 0) (j -1))
            (cond ((>= i (- length 1)) v)
                  ((= j -1) (next v pattern same? start i 0 loop))
                  ((same? (string-ref pattern (+ start i)) (string-ref pattern (+ start j)))
                   (next v pattern same? start i (+ j 1) loop))
                  (else (loop i (vector-ref v j))))))))

    (define (next v pattern same? start i j loop)
      (vector-set! v (+ i 1)
                   (if (same? (string-ref pattern (+ start i 1)) (string-ref pattern (+ start j)))
                       (vector-ref v j)
                       j))
      (loop (+ i 1) j))

    (define (kmp-step pattern restarts c i same? start)
      (let loop ((i i))
        (cond ((= i -1) 0)
              ((same? c (string-ref pattern (+ i start))) (+ i 1))
              (else (loop (vector-ref restarts i))))))

    ;; The end of the match in s, or minus the number of pattern characters matched.
    (define (string-kmp-partial-search pattern restarts s i . rest)
      (let* ((same? (optional rest char=?)) (rest (behind rest)) (start-p (optional rest 0)))
        (let-string-start+end (start end) 'string-kmp-partial-search s (behind rest)
          (let ((length (vector-length restarts)))
            (let loop ((at start) (i i))
              (cond ((= i length) at)
                    ((= at end) (- i))
                    (else
                     (loop (+ at 1)
                           (kmp-step pattern restarts (string-ref s at) i same? start-p)))))))))

    (define (contains who same?)
      (lambda (s pattern . ranges)
        (with-ranges who s pattern ranges
          (lambda (start end start-p end-p)
            (let* ((restarts (make-kmp-restart-vector pattern same? start-p end-p))
                   (found (string-kmp-partial-search pattern restarts s 0 same? start-p start end)))
              (cond ((= start-p end-p) start)
                    ((> found 0) (- found (- end-p start-p)))
                    (else #f)))))))
    (define string-contains (contains 'string-contains char=?))
    (define string-contains-ci (contains 'string-contains-ci ci=?))

    ;; Case.

    (define (upcase s . range)
      (let-string-start+end (start end) 'string-upcase s range
        (string-upcase (string-copy s start end))))
    (define (downcase s . range)
      (let-string-start+end (start end) 'string-downcase s range
        (string-downcase (string-copy s start end))))

    (define (in-place who change)
      (lambda (s . range)
        (let-string-start+end (start end) who s range
          (let loop ((i start) (in-word? #f))
            (when (< i end)
              (let ((c (string-ref s i)))
                (string-set! s i (change c in-word?))
                (loop (+ i 1) (char-alphabetic? c))))))))
    (define string-titlecase!
      (in-place 'string-titlecase! (lambda (c in-word?) (if in-word? (char-downcase c) (char-upcase c)))))
    (define string-upcase! (in-place 'string-upcase! (lambda (c _) (char-upcase c))))
    (define string-downcase! (in-place 'string-downcase! (lambda (c _) (char-downcase c))))
    (define (titlecase s . range)
      (let ((new (apply string-copy s range)))
        (string-titlecase! new)
        new))

    ;; Reversing and appending.

    (define (string-reverse! s . range)
      (let-string-start+end (start end) 'string-reverse! s range
        (let loop ((i start) (j (- end 1)))
          (when (< i j)
            (let ((c (string-ref s i)))
              (string-set! s i (string-ref s j))
              (string-set! s j c))
            (loop (+ i 1) (- j 1))))))
    (define (string-reverse s . range)
      (let ((new (apply string-copy s range)))
        (string-reverse! new)
        new))

    (define (string-concatenate strings) (apply string-append strings))
    (define string-concatenate/shared string-concatenate)
    (define string-append/shared string-append)
    (define (string-concatenate-reverse strings . rest)
      (let* ((last (optional rest "")) (end (optional (behind rest) (string-length last))))
        (string-concatenate (reverse (cons (string-copy last 0 end) strings)))))
    (define string-concatenate-reverse/shared string-concatenate-reverse)

    ;; Iteration.

    (define (string-map f s . range)
      (r7rs:string-map f (apply string-copy s range)))

    (define (string-map! f s . range)
      (let-string-start+end (start end) 'string-map! s range
        (do ((i start (+ i 1))) ((= i end)) (string-set! s i (f (string-ref s i))))))

    (define (string-fold kons knil s . range)
      (let-string-start+end (start end) 'string-fold s range
        (let loop ((i start) (state knil))
          (if (= i end) state (loop (+ i 1) (kons (string-ref s i) state))))))

    (define (string-fold-right kons knil s . range)
      (let-string-start+end (start end) 'string-fold-right s range
        (let loop ((i end) (state knil))
          (if (= i start) state (loop (- i 1) (kons (string-ref s (- i 1)) state))))))

    (define (unfolded stop? f successor seed)
      (let loop ((seed seed) (chars '()))
        (if (stop? seed)
            (values chars seed)
            (loop (successor seed) (cons (f seed) chars)))))
    (define (nothing seed) "")

    (define (string-unfold stop? f successor seed . rest)
      (let-values (((chars last) (unfolded stop? f successor seed)))
        (string-append (optional rest "") (list->string (reverse chars))
                       ((optional (behind rest) nothing) last))))
    (define (string-unfold-right stop? f successor seed . rest)
      (let-values (((chars last) (unfolded stop? f successor seed)))
        (string-append ((optional (behind rest) nothing) last) (list->string chars)
                       (optional rest ""))))

    (define (string-for-each f s . range)
      (let-string-start+end (start end) 'string-for-each s range
        (do ((i start (+ i 1))) ((= i end)) (f (string-ref s i)))))
    (define (string-for-each-index f s . range)
      (let-string-start+end (start end) 'string-for-each-index s range
        (do ((i start (+ i 1))) ((= i end)) (f i))))

    ;; Replication: the range of s is repeated without end in both directions, with its first
    ;; character at 0.

    (define (xsubstring s from . rest)
      (let-string-start+end (start end) 'xsubstring s (behind rest)
        (let* ((length (- end start)) (to (optional rest (+ from length))))
          (cond ((< to from) (error "not a range" 'xsubstring from to))
                ((= to from) "")
                ((= length 0) (error "nothing to replicate" 'xsubstring s))
                (else
                 (string-tabulate
                  (lambda (i) (string-ref s (+ start (modulo (+ from i) length))))
                  (- to from)))))))
    (define (string-xcopy! target at s from . rest)
      (string-copy! target at (apply xsubstring s from rest)))

    ;; The rest.

    (define (string-replace a b start-a end-a . range)
      (string-append (string-copy a 0 start-a) (apply string-copy b range) (string-copy a end-a)))

    (define (string-tokenize s . rest)
      (let-string-start+end (start end) 'string-tokenize s (behind rest)
        (let* ((test (criterion 'string-tokenize (optional rest char-set:graphic)))
               (gap? (complement test)))
          (let loop ((end end) (tokens '()))
            (let ((last (find-right test s start end)))
              (if last
                  (let ((before (find-right gap? s start last)))
                    (let ((from (if before (+ before 1) start)))
                      (loop from (cons (string-copy s from (+ last 1)) tokens))))
                  tokens))))))

    (define (chosen who change)
      (lambda (x y . range)
        (let ((s (if (string? x) x y)) (test (change (criterion who (if (string? x) y x)))))
          (let-string-start+end (start end) who s range
            (let loop ((i (- end 1)) (chars '()))
              (if (< i start)
                  (list->string chars)
                  (loop (- i 1)
                        (let ((c (string-ref s i))) (if (test c) (cons c chars) chars)))))))))
    (define string-filter (chosen 'string-filter values))
    (define string-delete (chosen 'string-delete complement))))
