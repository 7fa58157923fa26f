;;; SRFI 115: regular expressions written as data. Complete.
;;;
;;; An expression is compiled into a matcher. (matcher text at groups next) tries all ways to match
;;; from `at`, in the order that greediness requires. It calls (next end groups) for each until one
;;; call succeeds. So the first success is the leftmost match. A repetition within a repetition can
;;; take time exponential in the length of the text. Groups are a list of (number start . end), the
;;; newest first. A grapheme is a character with the marks after it, or a return and a newline.

(define-library (srfi 115)
  (import (scheme base) (scheme char) (srfi 14) (srfi 14 categories))
  (export
   regexp regexp? valid-sre? rx regexp->sre char-set->sre regexp-matches regexp-matches?
   regexp-search regexp-replace regexp-replace-all regexp-fold regexp-extract regexp-split
   regexp-partition regexp-match? regexp-match-count regexp-match-submatch
   regexp-match-submatch-start regexp-match-submatch-end regexp-match->list)
  (begin

    (define-record-type regexp-type
      (make-regexp sre matcher count names) regexp?
      (sre regexp->sre) (matcher matcher) (count group-count) (names group-names))
    (define-record-type match-type
      (make-match text groups count names) regexp-match?
      (text match-text) (groups match-groups) (count regexp-match-count) (names match-names))
    (define-record-type text
      (make-text string start end) text? (string text-string) (start text-start) (end text-end))

    (define (wrong sre) (error "not a regular expression" sre))

    ;; Flags: whether case is ignored, whether named sets contain ASCII only, whether groups are not
    ;; recorded.
    (define-record-type flags
      (make-flags fold? ascii? plain?) flags? (fold? fold?) (ascii? ascii?) (plain? plain?))

    ;; Sets.

    (define named-sets
      `((any . ,char-set:full) (nonl . ,(char-set-complement (char-set #\newline #\return)))
        (ascii . ,char-set:ascii)
        (lower-case . ,char-set:lower-case) (lower . ,char-set:lower-case)
        (upper-case . ,char-set:upper-case) (upper . ,char-set:upper-case)
        (title-case . ,char-set:title-case) (title . ,char-set:title-case)
        (alphabetic . ,char-set:letter) (alpha . ,char-set:letter)
        (numeric . ,char-set:digit) (num . ,char-set:digit)
        (alphanumeric . ,char-set:letter+digit) (alphanum . ,char-set:letter+digit)
        (alnum . ,char-set:letter+digit)
        (punctuation . ,char-set:punctuation) (punct . ,char-set:punctuation)
        (symbol . ,char-set:symbol)
        (graphic . ,char-set:graphic) (graph . ,char-set:graphic)
        (whitespace . ,char-set:whitespace) (white . ,char-set:whitespace)
        (space . ,char-set:whitespace)
        (printing . ,char-set:printing) (print . ,char-set:printing)
        (control . ,char-set:iso-control) (cntrl . ,char-set:iso-control)
        (hex-digit . ,char-set:hex-digit) (xdigit . ,char-set:hex-digit)))

    (define marks
      (let loop ((distances mark-boundaries) (at 0) (set char-set:empty))
        (if (null? distances)
            set
            (let* ((start (+ at (car distances))) (end (+ start (cadr distances))))
              (loop (cddr distances) end (ucs-range->char-set start end #f set))))))

    (define word-chars (char-set-adjoin char-set:letter+digit #\_))

    (define (ranges-of specs sre)
      (let* ((text (apply string-append (map (lambda (x) (if (char? x) (string x) x)) specs)))
             (length (string-length text)))
        (if (odd? length) (wrong sre))
        (let loop ((i 0) (set char-set:empty))
          (if (= i length)
              set
              (loop (+ i 2)
                    (ucs-range->char-set (char->integer (string-ref text i))
                                         (+ (char->integer (string-ref text (+ i 1))) 1)
                                         #f set))))))

    (define (folded set flags)
      (if (fold? flags)
          (char-set-fold
           (lambda (c set) (char-set-adjoin set (char-upcase c) (char-downcase c)))
           set
           ;; Only characters with another case matter. A large set is assumed to be closed already.
           (if (< (char-set-size set) 5000) set char-set:empty))
          set))

    ;; The set of characters that an expression names, or #f.
    (define (set-of sre flags)
      (define (all list) (map (lambda (x) (or (set-of x flags) (wrong sre))) list))
      (cond
       ((char? sre) (folded (char-set sre) flags))
       ((and (string? sre) (= (string-length sre) 1)) (folded (string->char-set sre) flags))
       ((char-set? sre) (folded sre flags))
       ((symbol? sre)
        (let ((entry (assq sre named-sets)))
          (and entry
               (folded (if (ascii? flags)
                           (char-set-intersection (cdr entry) char-set:ascii)
                           (cdr entry))
                       flags))))
       ((not (and (pair? sre) (list? sre))) #f)
       ((and (string? (car sre)) (null? (cdr sre))) (folded (string->char-set (car sre)) flags))
       (else
        (case (car sre)
          ((char-set) (folded (string->char-set (cadr sre)) flags))
          ((/ char-range) (folded (ranges-of (cdr sre) sre) flags))
          ((or |\||) (let ((sets (map (lambda (x) (set-of x flags)) (cdr sre))))
                       (and (pair? sets) (not (memq #f sets)) (apply char-set-union sets))))
          ((and &) (apply char-set-intersection (all (cdr sre))))
          ((- difference) (apply char-set-difference (all (cdr sre))))
          ((~ complement) (char-set-complement (apply char-set-union (all (cdr sre)))))
          ((w/case w/nocase w/ascii w/unicode)
           (and (pair? (cdr sre)) (null? (cddr sre)) (set-of (cadr sre) (changed (car sre) flags))))
          (else #f)))))

    (define (changed word flags)
      (make-flags (case word ((w/nocase) #t) ((w/case) #f) (else (fold? flags)))
                  (case word ((w/ascii) #t) ((w/unicode) #f) (else (ascii? flags)))
                  (or (plain? flags) (eq? word 'w/nocapture))))

    (define (char-set->sre set) (list (char-set->string set)))

    ;; Matchers.

    (define (at-set set)
      (lambda (text at groups next)
        (and (< at (text-end text))
             (char-set-contains? set (string-ref (text-string text) at))
             (next (+ at 1) groups))))

    (define (empty text at groups next) (next at groups))

    (define (then first second)
      (lambda (text at groups next)
        (first text at groups (lambda (at groups) (second text at groups next)))))

    (define (either first second)
      (lambda (text at groups next)
        (or (first text at groups next) (second text at groups next))))

    (define (at-string string fold?)
      (let ((length (string-length string)) (same? (if fold? char-ci=? char=?)))
        (lambda (text at groups next)
          (and (<= (+ at length) (text-end text))
               (let loop ((i 0))
                 (or (= i length)
                     (and (same? (string-ref string i) (string-ref (text-string text) (+ at i)))
                          (loop (+ i 1)))))
               (next (+ at length) groups)))))

    ;; Repeats from `low` to `high` times (#f: without limit). An iteration that matches nothing is
    ;; not repeated.
    (define (repeated matcher low high greedy?)
      (lambda (text at groups next)
        (let loop ((n 0) (at at) (groups groups))
          (define (more)
            (and (or (not high) (< n high))
                 (matcher text at groups
                          (lambda (end groups)
                            (and (or (> end at) (< n low)) (loop (+ n 1) end groups))))))
          (cond ((< n low) (more))
                (greedy? (or (more) (next at groups)))
                (else (or (next at groups) (more)))))))

    (define (group number matcher)
      (lambda (text at groups next)
        (matcher text at groups
                 (lambda (end groups) (next end (cons (cons number (cons at end)) groups))))))

    (define (where test)
      (lambda (text at groups next) (and (test text at) (next at groups))))
    (define (word-at? text i)
      (and (<= (text-start text) i) (< i (text-end text))
           (char-set-contains? word-chars (string-ref (text-string text) i))))
    (define (char-at text i)
      (and (<= (text-start text) i) (< i (text-end text)) (string-ref (text-string text) i)))
    (define (line-end? c) (memv c '(#\newline #\return)))
    (define (grapheme-begins? text at)
      (let ((c (char-at text at)) (before (char-at text (- at 1))))
        (not (and c before
                  (or (char-set-contains? marks c)
                      (and (char=? c #\newline) (char=? before #\return)))))))

    (define (in-behind? matcher)
      (lambda (text at groups)
        (let loop ((start at))
          (and (>= start (text-start text))
               (or (matcher text start groups (lambda (end groups) (and (= end at) (list groups))))
                   (loop (- start 1)))))))
    (define (in-ahead? matcher)
      (lambda (text at groups) (matcher text at groups (lambda (end groups) (list groups)))))
    (define (look in? wanted?)
      (lambda (text at groups next)
        (let ((found (in? text at groups)))
          (if wanted? (and found (next at (car found))) (and (not found) (next at groups))))))

    (define (backreference find fold?)
      (lambda (text at groups next)
        (let ((range (find groups)))
          (and range
               ((at-string (substring (text-string text) (car range) (cdr range)) fold?)
                text at groups next)))))

    ;; Compiling. Groups are counted from left to right.

    (define (regexp sre)
      (if (regexp? sre)
          sre
          (let ((count 0) (names '()))
            (define (new-group! name)
              (set! count (+ count 1))
              (if name (set! names (append names (list (cons name count)))))
              count)
            (define (sequence sres flags)
              (if (null? sres)
                  empty
                  (let ((first (compile (car sres) flags)))
                    (if (null? (cdr sres)) first (then first (sequence (cdr sres) flags))))))
            (define (alternatives sres flags)
              (cond ((null? sres) (lambda (text at groups next) #f))
                    ((null? (cdr sres)) (compile (car sres) flags))
                    (else
                     (let ((first (compile (car sres) flags)))
                       (either first (alternatives (cdr sres) flags))))))
            (define (times sre low high rest greedy? flags)
              (if (not (and (exact-integer? low) (>= low 0)
                            (or (not high) (and (exact-integer? high) (>= high low)))))
                  (wrong sre))
              (repeated (sequence rest flags) low high greedy? ))
            (define (finder name sre)
              (if (integer? name)
                  (lambda (groups) (let ((entry (assv name groups))) (and entry (cdr entry))))
                  (lambda (groups)
                    (let loop ((entries names))
                      (and (pair? entries)
                           (or (and (eq? (caar entries) name)
                                    (let ((entry (assv (cdar entries) groups))) (and entry (cdr entry))))
                               (loop (cdr entries))))))))
            (define (compile sre flags)
              (define set (set-of sre flags))
              (cond (set (at-set set))
                    ((string? sre) (at-string sre (fold? flags)))
                    ((symbol? sre) (place sre))
                    ((and (pair? sre) (list? sre)) (compound sre flags))
                    (else (wrong sre))))
            (define (place sre)
              (case sre
                ((bos) (where (lambda (text at) (= at (text-start text)))))
                ((eos) (where (lambda (text at) (= at (text-end text)))))
                ((bol) (where (lambda (text at)
                                (let ((c (char-at text (- at 1)))) (or (not c) (line-end? c))))))
                ((eol) (where (lambda (text at)
                                (let ((c (char-at text at))) (or (not c) (line-end? c))))))
                ((bow) (where (lambda (text at)
                                (and (word-at? text at) (not (word-at? text (- at 1)))))))
                ((eow) (where (lambda (text at)
                                (and (word-at? text (- at 1)) (not (word-at? text at))))))
                ((nwb) (where (lambda (text at)
                                (eq? (word-at? text at) (word-at? text (- at 1))))))
                ((bog) (where (lambda (text at) (and (char-at text at) (grapheme-begins? text at)))))
                ((eog) (where (lambda (text at)
                                (and (char-at text (- at 1)) (grapheme-begins? text at)))))
                ((grapheme)
                 (lambda (text at groups next)
                   (and (char-at text at)
                        (let loop ((end (+ at 1)))
                          (if (and (char-at text end) (not (grapheme-begins? text end)))
                              (loop (+ end 1))
                              (next end groups))))))
                ((word) (compile '(word+ any) (make-flags #f #f #t)))
                (else (wrong sre))))
            (define (compound sre flags)
              (define rest (cdr sre))
              (define (operand)
                (if (pair? rest) (car rest) (wrong sre)))
              (case (car sre)
                ((seq :) (sequence rest flags))
                ((or |\||) (alternatives rest flags))
                ((* zero-or-more) (times sre 0 #f rest #t flags))
                ((+ one-or-more) (times sre 1 #f rest #t flags))
                ((? optional) (times sre 0 1 rest #t flags))
                ((= exactly) (times sre (operand) (operand) (cdr rest) #t flags))
                ((>= at-least) (times sre (operand) #f (cdr rest) #t flags))
                ((** repeated) (times sre (operand) (cadr rest) (cddr rest) #t flags))
                ((*? non-greedy-zero-or-more) (times sre 0 #f rest #f flags))
                ((?? non-greedy-optional) (times sre 0 1 rest #f flags))
                ((**? non-greedy-repeated) (times sre (operand) (cadr rest) (cddr rest) #f flags))
                (($ submatch)
                 (if (plain? flags)
                     (sequence rest flags)
                     (let ((number (new-group! #f))) (group number (sequence rest flags)))))
                ((-> submatch-named)
                 (if (not (symbol? (operand))) (wrong sre))
                 (if (plain? flags)
                     (sequence (cdr rest) flags)
                     (let ((number (new-group! (car rest))))
                       (group number (sequence (cdr rest) flags)))))
                ((w/case w/nocase w/ascii w/unicode w/nocapture)
                 (sequence rest (changed (car sre) flags)))
                ((word) (sequence `(bow ,@rest eow) flags))
                ((word+) (sequence `(bow (+ (and ,word-chars (or ,@rest))) eow) flags))
                ((look-ahead) (look (in-ahead? (sequence rest flags)) #t))
                ((neg-look-ahead) (look (in-ahead? (sequence rest flags)) #f))
                ((look-behind) (look (in-behind? (sequence rest flags)) #t))
                ((neg-look-behind) (look (in-behind? (sequence rest flags)) #f))
                ((backref) (backreference (finder (operand) sre) (fold? flags)))
                (else (wrong sre))))
            (let ((compiled (compile sre (make-flags #f #f #f))))
              (make-regexp sre compiled count names)))))

    (define (valid-sre? x) (guard (_ (#t #f)) (regexp x) #t))
    (define-syntax rx (syntax-rules () ((_ sre ...) (regexp `(: sre ...)))))

    ;; Matching.

    (define (text-of string range)
      (let* ((start (if (pair? range) (car range) 0))
             (end (if (and (pair? range) (pair? (cdr range))) (cadr range) (string-length string))))
        (if (not (<= 0 start end (string-length string)))
            (error "not a range of the string" string start end))
        (make-text string start end)))

    (define (match-at re text at whole?)
      ((matcher re) text at '()
       (lambda (end groups)
         (and (or (not whole?) (= end (text-end text)))
              (make-match text (cons (cons 0 (cons at end)) groups)
                          (group-count re) (group-names re))))))

    (define (search re text from)
      (let loop ((at from))
        (and (<= at (text-end text))
             (or (match-at re text at #f) (loop (+ at 1))))))

    (define (regexp-matches re string . range)
      (let ((text (text-of string range))) (match-at (regexp re) text (text-start text) #t)))
    (define (regexp-matches? re string . range)
      (and (apply regexp-matches re string range) #t))
    (define (regexp-search re string . range)
      (let ((text (text-of string range))) (search (regexp re) text (text-start text))))

    (define (range-of match field)
      (let ((groups (match-groups match)))
        (if (symbol? field)
            (let loop ((names (match-names match)) (known? #f))
              (cond ((null? names)
                     (if known? #f (error "no submatch of this name" field)))
                    ((and (eq? (caar names) field) (assv (cdar names) groups)) => cdr)
                    (else (loop (cdr names) (or known? (eq? (caar names) field))))))
            (begin
              (if (not (and (exact-integer? field) (<= 0 field (regexp-match-count match))))
                  (error "no submatch of this number" field))
              (let ((entry (assv field groups))) (and entry (cdr entry)))))))

    (define (field-of rest) (if (null? rest) 0 (car rest)))
    (define (regexp-match-submatch match . field)
      (let ((range (range-of match (field-of field))))
        (and range (substring (text-string (match-text match)) (car range) (cdr range)))))
    (define (regexp-match-submatch-start match . field)
      (let ((range (range-of match (field-of field)))) (and range (car range))))
    (define (regexp-match-submatch-end match . field)
      (let ((range (range-of match (field-of field)))) (and range (cdr range))))
    (define (regexp-match->list match)
      (let loop ((i (regexp-match-count match)) (list '()))
        (if (< i 0) list (loop (- i 1) (cons (regexp-match-submatch match i) list)))))

    ;; Iterates over all matches: (kons from match string state). Each search begins at the end of
    ;; the match before.

    (define (regexp-fold re kons knil string . rest)
      (let ((re (regexp re))
            (finish (if (pair? rest) (car rest) (lambda (from match string state) state)))
            (text (text-of string (if (pair? rest) (cdr rest) '()))))
        (let loop ((from (text-start text)) (at (text-start text)) (state knil))
          (let ((match (search re text at)))
            (if match
                (let ((end (regexp-match-submatch-end match)))
                  (loop end
                        (if (= end (regexp-match-submatch-start match)) (+ end 1) end)
                        (kons from match string state)))
                (finish from #f string state))))))

    (define (not-empty? match)
      (< (regexp-match-submatch-start match) (regexp-match-submatch-end match)))

    (define (regexp-extract re string . range)
      (reverse
       (apply regexp-fold re
              (lambda (from match string list)
                (if (not-empty? match) (cons (regexp-match-submatch match) list) list))
              '() string (lambda (from match string list) list) range)))

    ;; The pieces between matches, and the matches if `keep?` is true. The state is where the next
    ;; piece begins, with the pieces so far.
    (define (pieces re string range keep? last?)
      (let ((text (text-of string range)))
        (reverse
         (regexp-fold
          re
          (lambda (from match string state)
            (if (not-empty? match)
                (let ((piece (substring string (car state) (regexp-match-submatch-start match))))
                  (cons (regexp-match-submatch-end match)
                        (if keep?
                            (cons* (regexp-match-submatch match) piece (cdr state))
                            (cons piece (cdr state)))))
                state))
          (list (text-start text)) string
          (lambda (from match string state)
            (let ((piece (substring string (car state) (text-end text))))
              (if (or last? (null? (cdr state)) (not (string=? piece "")))
                  (cons piece (cdr state))
                  (cdr state))))
          (text-start text) (text-end text)))))
    (define (cons* a b list) (cons a (cons b list)))

    (define (regexp-split re string . range) (pieces re string range #f #t))
    (define (regexp-partition re string . range) (pieces re string range #t #f))

    ;; Replacement: a string, a submatch's number or name, pre, post, a procedure of the match, or a
    ;; list of these.
    (define (replacement template match text)
      (cond ((string? template) template)
            ((integer? template) (or (regexp-match-submatch match template) ""))
            ((eq? template 'pre)
             (substring (text-string text) (text-start text) (regexp-match-submatch-start match)))
            ((eq? template 'post)
             (substring (text-string text) (regexp-match-submatch-end match) (text-end text)))
            ((symbol? template) (or (regexp-match-submatch match template) ""))
            ((procedure? template) (replacement (template match) match text))
            ((list? template)
             (apply string-append (map (lambda (each) (replacement each match text)) template)))
            (else (error "not a replacement" template))))

    (define (replaced re string template text chosen?)
      (let ((count -1))
        (apply string-append
               (reverse
                (regexp-fold
                 re
                 (lambda (from match string parts)
                   (set! count (+ count 1))
                   (cons* (if (chosen? count)
                              (replacement template match text)
                              (regexp-match-submatch match))
                          (substring string from (regexp-match-submatch-start match))
                          parts))
                 (list (substring string 0 (text-start text))) string
                 (lambda (from match string parts) (cons (substring string from (string-length string)) parts))
                 (text-start text) (text-end text))))))

    ;; (regexp-replace re string template [start [end [count]]]): replaces match number `count`,
    ;; from 0.
    (define (regexp-replace re string template . rest)
      (let ((nth (if (and (pair? rest) (pair? (cdr rest)) (pair? (cddr rest))) (car (cddr rest)) 0))
            (range (if (and (pair? rest) (pair? (cdr rest)))
                       (list (car rest) (or (cadr rest) (string-length string)))
                       rest)))
        (replaced re string template (text-of string range) (lambda (n) (eqv? n nth)))))

    (define (regexp-replace-all re string template . rest)
      (let ((range (if (and (pair? rest) (pair? (cdr rest)))
                       (list (car rest) (or (cadr rest) (string-length string)))
                       rest)))
        (replaced re string template (text-of string range) (lambda (n) #t))))))
