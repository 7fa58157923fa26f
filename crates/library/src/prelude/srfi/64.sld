;;; SRFI 64: test suites. Complete. The simple runner writes failures to the current output port,
;;; and at the end the counts. It writes no log file. The result list of a test has test-name,
;;; source-form, result-kind, and if known expected-value, actual-value, expected-error,
;;; actual-error.

(define-library (srfi 64)
  (import (scheme base) (scheme case-lambda) (scheme eval) (scheme read)
          (scheme repl) (scheme write))
  (export
   test-begin test-end test-group test-group-with-cleanup test-assert test-eqv test-eq test-equal
   test-approximate test-error test-read-eval-string test-apply test-with-runner test-match-name
   test-match-nth test-match-any test-match-all test-skip test-expect-fail test-runner?
   test-runner-current test-runner-get test-runner-simple test-runner-null test-runner-create
   test-runner-factory test-runner-reset test-runner-pass-count test-runner-fail-count
   test-runner-xpass-count test-runner-xfail-count test-runner-skip-count test-runner-test-name
   test-runner-group-path test-runner-group-stack test-runner-aux-value test-runner-aux-value!
   test-result-kind test-passed? test-result-ref test-result-set! test-result-remove
   test-result-clear test-result-alist
   test-runner-on-test-begin test-runner-on-test-begin! test-runner-on-test-end
   test-runner-on-test-end! test-runner-on-group-begin test-runner-on-group-begin!
   test-runner-on-group-end test-runner-on-group-end! test-runner-on-bad-count
   test-runner-on-bad-count! test-runner-on-bad-end-name test-runner-on-bad-end-name!
   test-runner-on-final test-runner-on-final!
   test-on-test-begin-simple test-on-test-end-simple test-on-group-begin-simple
   test-on-group-end-simple test-on-bad-count-simple test-on-bad-end-name-simple
   test-on-final-simple)
  (begin

    (define-record-type test-runner
      (make-runner on-test-begin on-test-end on-group-begin on-group-end on-bad-count
                   on-bad-end-name on-final passes fails xpasses xfails skips results groups
                   skip-specs fail-specs run-specs aux)
      test-runner?
      (on-test-begin test-runner-on-test-begin test-runner-on-test-begin!)
      (on-test-end test-runner-on-test-end test-runner-on-test-end!)
      (on-group-begin test-runner-on-group-begin test-runner-on-group-begin!)
      (on-group-end test-runner-on-group-end test-runner-on-group-end!)
      (on-bad-count test-runner-on-bad-count test-runner-on-bad-count!)
      (on-bad-end-name test-runner-on-bad-end-name test-runner-on-bad-end-name!)
      (on-final test-runner-on-final test-runner-on-final!)
      (passes test-runner-pass-count set-passes!)
      (fails test-runner-fail-count set-fails!)
      (xpasses test-runner-xpass-count set-xpasses!)
      (xfails test-runner-xfail-count set-xfails!)
      (skips test-runner-skip-count set-skips!)
      (results test-result-alist set-results!)
      ;; Groups, innermost first: (name count tests-before skip-specs fail-specs installed?).
      (groups groups set-groups!)
      (skip-specs skip-specs set-skip-specs!)
      (fail-specs fail-specs set-fail-specs!)
      ;; The specifiers of test-apply; #f for all tests.
      (run-specs run-specs set-run-specs!)
      (aux test-runner-aux-value test-runner-aux-value!))

    (define (ignore . arguments) #f)

    (define (test-runner-null)
      (make-runner ignore ignore ignore ignore ignore ignore ignore 0 0 0 0 0 '() '() '() '() #f #f))

    (define (test-runner-simple)
      (make-runner test-on-test-begin-simple test-on-test-end-simple test-on-group-begin-simple
                   test-on-group-end-simple test-on-bad-count-simple test-on-bad-end-name-simple
                   test-on-final-simple 0 0 0 0 0 '() '() '() '() #f #f))

    (define test-runner-current (make-parameter #f))
    (define current #f)
    (define (test-runner-get)
      (or (runner) (error "test-runner-get: there is no current test runner")))
    ;; The runner installed by test-begin if no parameterize has bound one.
    (define (runner) (or (test-runner-current) current))

    (define test-runner-factory (make-parameter test-runner-simple))
    (define (test-runner-create) ((test-runner-factory)))

    (define (test-runner-reset runner)
      (set-passes! runner 0)
      (set-fails! runner 0)
      (set-xpasses! runner 0)
      (set-xfails! runner 0)
      (set-skips! runner 0)
      (set-results! runner '())
      (set-groups! runner '())
      (set-skip-specs! runner '())
      (set-fail-specs! runner '())
      (set-run-specs! runner #f))

    (define (total runner)
      (+ (test-runner-pass-count runner) (test-runner-fail-count runner)
         (test-runner-xpass-count runner) (test-runner-xfail-count runner)
         (test-runner-skip-count runner)))

    ;; Results.

    (define (optional list default) (if (pair? list) (car list) default))
    (define the-runner
      (case-lambda (() (test-runner-get)) ((runner) runner)))

    (define (test-result-ref runner name . default)
      (let ((entry (assq name (test-result-alist runner))))
        (if entry (cdr entry) (optional default #f))))
    (define (test-result-remove runner name)
      (set-results! runner
                    (let loop ((entries (test-result-alist runner)))
                      (cond ((null? entries) '())
                            ((eq? (caar entries) name) (cdr entries))
                            (else (cons (car entries) (loop (cdr entries))))))))
    (define (test-result-set! runner name value)
      (test-result-remove runner name)
      (set-results! runner (append (test-result-alist runner) (list (cons name value)))))
    (define (test-result-clear runner) (set-results! runner '()))
    (define (test-result-kind . runner)
      (test-result-ref (apply the-runner runner) 'result-kind))
    (define (test-passed? . runner)
      (and (memq (apply test-result-kind runner) '(pass xpass)) #t))
    (define (test-runner-test-name runner) (test-result-ref runner 'test-name ""))
    (define (test-runner-group-stack runner) (map car (groups runner)))
    (define (test-runner-group-path runner) (reverse (test-runner-group-stack runner)))

    ;; Specifiers.

    (define (test-match-name name)
      (lambda (runner) (equal? name (test-runner-test-name runner))))
    (define (test-match-nth n . count)
      (let ((seen 0) (count (optional count 1)))
        (lambda (runner)
          (set! seen (+ seen 1))
          (and (<= n seen) (< seen (+ n count))))))
    (define (specifier x)
      (cond ((procedure? x) x)
            ((exact-integer? x) (test-match-nth 1 x))
            ((string? x) (test-match-name x))
            (else (error "not a test specifier" x))))
    ;; All specifiers are called, because those that count must see every test.
    (define (matches specs runner) (map (lambda (spec) (spec runner)) specs))
    (define (any? list) (and (pair? list) (or (car list) (any? (cdr list)))))
    (define (all? list) (or (null? list) (and (car list) (all? (cdr list)))))
    (define (test-match-any . specs)
      (let ((specs (map specifier specs))) (lambda (runner) (any? (matches specs runner)))))
    (define (test-match-all . specs)
      (let ((specs (map specifier specs))) (lambda (runner) (all? (matches specs runner)))))

    (define (test-skip . specs)
      (let ((runner (test-runner-get)))
        (set-skip-specs! runner (cons (apply test-match-all specs) (skip-specs runner)))))
    (define (test-expect-fail . specs)
      (let ((runner (test-runner-get)))
        (set-fail-specs! runner (cons (apply test-match-all specs) (fail-specs runner)))))

    ;; Groups.

    (define (test-begin name . count)
      (let* ((installed? (not (runner))) (count (optional count #f)))
        (if installed? (set! current (test-runner-create)))
        (let ((runner (test-runner-get)))
          ((test-runner-on-group-begin runner) runner name count)
          (set-groups! runner
                       (cons (list name count (total runner) (skip-specs runner)
                                   (fail-specs runner) installed?)
                             (groups runner))))))

    (define (test-end . name)
      (let* ((runner (test-runner-get)) (stack (groups runner)))
        (if (null? stack) (error "test-end: no group has begun" name))
        (let* ((group (car stack)) (done (- (total runner) (list-ref group 2))))
          (if (and (pair? name) (car name) (not (equal? (car name) (car group))))
              ((test-runner-on-bad-end-name runner) runner (car group) (car name)))
          (if (and (cadr group) (not (= (cadr group) done)))
              ((test-runner-on-bad-count runner) runner done (cadr group)))
          ((test-runner-on-group-end runner) runner)
          (set-groups! runner (cdr stack))
          (set-skip-specs! runner (list-ref group 3))
          (set-fail-specs! runner (list-ref group 4))
          (if (null? (cdr stack)) ((test-runner-on-final runner) runner))
          (if (list-ref group 5) (set! current #f)))))

    ;; Whether a group of this name is skipped.
    (define (group-skipped? name)
      (let ((runner (runner)))
        (and runner
             (begin
               (set-results! runner (list (cons 'test-name name)))
               (any? (matches (skip-specs runner) runner))))))

    (define-syntax test-group
      (syntax-rules ()
        ((_ name body ...)
         (let ((group name))
           (if (not (group-skipped? group))
               (dynamic-wind
                (lambda () (test-begin group))
                (lambda () body ...)
                (lambda () (test-end group))))))))

    (define-syntax test-group-with-cleanup
      (syntax-rules ()
        ((_ name body ... cleanup)
         (test-group name (dynamic-wind (lambda () #f) (lambda () body ...) (lambda () cleanup))))))

    ;; Tests. A test is a procedure that runs the expression, records values, and returns whether it
    ;; passed.

    (define (run-test name form test)
      (let* ((installed? (not (runner))) (runner (begin (if installed? (set! current (test-runner-create))) (test-runner-get))))
        (set-results! runner (list (cons 'test-name name) (cons 'source-form form)))
        (let ((run? (or (not (run-specs runner)) (any? (matches (run-specs runner) runner))))
              (skip? (any? (matches (skip-specs runner) runner)))
              (fails? (any? (matches (fail-specs runner) runner))))
          (cond ((or skip? (not run?)) (test-result-set! runner 'result-kind 'skip))
                (fails? (test-result-set! runner 'result-kind 'xfail)))
          ((test-runner-on-test-begin runner) runner)
          (if (not (eq? (test-result-kind runner) 'skip))
              (let* ((fails? (eq? (test-result-kind runner) 'xfail))
                     (passed? (guard (condition
                                      (#t (test-result-set! runner 'actual-error condition) #f))
                                (test runner))))
                (test-result-set! runner 'result-kind
                                  (if passed? (if fails? 'xpass 'pass) (if fails? 'xfail 'fail)))))
          ((test-runner-on-test-end runner) runner)
          (case (test-result-kind runner)
            ((pass) (set-passes! runner (+ (test-runner-pass-count runner) 1)))
            ((fail) (set-fails! runner (+ (test-runner-fail-count runner) 1)))
            ((xpass) (set-xpasses! runner (+ (test-runner-xpass-count runner) 1)))
            ((xfail) (set-xfails! runner (+ (test-runner-xfail-count runner) 1)))
            ((skip) (set-skips! runner (+ (test-runner-skip-count runner) 1))))
          (if installed? (begin ((test-runner-on-final runner) runner) (set! current #f))))))

    (define (truth thunk)
      (lambda (runner)
        (let ((value (thunk)))
          (test-result-set! runner 'actual-value value)
          value)))

    (define (comparison same? expected thunk)
      (lambda (runner)
        (test-result-set! runner 'expected-value expected)
        (let ((value (thunk)))
          (test-result-set! runner 'actual-value value)
          (same? expected value))))

    (define (near? error)
      (lambda (expected value) (<= (- expected error) value (+ expected error))))

    (define (failure type thunk)
      (lambda (runner)
        (test-result-set! runner 'expected-error type)
        (guard (condition
                (#t (test-result-set! runner 'actual-error condition)
                    (if (procedure? type) (type condition) #t)))
          (test-result-set! runner 'actual-value (thunk))
          #f)))

    (define-syntax test-assert
      (syntax-rules ()
        ((_ name expression) (run-test name '(test-assert name expression) (truth (lambda () expression))))
        ((_ expression) (run-test "" '(test-assert expression) (truth (lambda () expression))))))

    (define-syntax define-comparison
      (syntax-rules ()
        ((_ test same?)
         (define-syntax test
           (syntax-rules ()
             ((_ name expected expression)
              (run-test name '(test name expected expression)
                        (comparison same? expected (lambda () expression))))
             ((_ expected expression)
              (run-test "" '(test expected expression)
                        (comparison same? expected (lambda () expression)))))))))
    (define-comparison test-eq eq?)
    (define-comparison test-eqv eqv?)
    (define-comparison test-equal equal?)

    (define-syntax test-approximate
      (syntax-rules ()
        ((_ name expected expression error)
         (run-test name '(test-approximate name expected expression error)
                   (comparison (near? error) expected (lambda () expression))))
        ((_ expected expression error)
         (run-test "" '(test-approximate expected expression error)
                   (comparison (near? error) expected (lambda () expression))))))

    (define-syntax test-error
      (syntax-rules ()
        ((_ name type expression)
         (run-test name '(test-error name type expression) (failure type (lambda () expression))))
        ((_ type expression)
         (run-test "" '(test-error type expression) (failure type (lambda () expression))))
        ((_ expression)
         (run-test "" '(test-error expression) (failure #t (lambda () expression))))))

    (define (test-read-eval-string string)
      (let* ((port (open-input-string string)) (form (read port)))
        (if (not (eof-object? (read-char port)))
            (error "test-read-eval-string: something follows the form" string))
        (eval form (interaction-environment))))

    (define-syntax test-with-runner
      (syntax-rules ()
        ((_ runner body ...) (parameterize ((test-runner-current runner)) body ...))))

    ;; (test-apply [runner] specifier ... procedure)
    (define (test-apply first . rest)
      (if (test-runner? first)
          (test-with-runner first (apply test-apply rest))
          (let* ((all (reverse (cons first rest)))
                 (runner (or (runner) (test-runner-create)))
                 (before (run-specs runner)))
            (dynamic-wind
             (lambda () (if (pair? (cdr all)) (set-run-specs! runner (map specifier (cdr all)))))
             (lambda () (test-with-runner runner ((car all))))
             (lambda () (set-run-specs! runner before))))))

    ;; The simple runner.

    (define (say . parts) (for-each display parts) (newline))

    (define (test-on-test-begin-simple runner) #f)
    (define (test-on-group-begin-simple runner name count)
      (if (null? (groups runner)) (say "Testing " name)))
    (define (test-on-group-end-simple runner) #f)
    (define (test-on-bad-count-simple runner actual expected)
      (say "Group " (caar (groups runner)) ": " actual " tests, but " expected " expected"))
    (define (test-on-bad-end-name-simple runner begun ended)
      (error "test-end: another group has begun last" begun ended))

    (define (test-on-test-end-simple runner)
      (let ((kind (test-result-kind runner)))
        (when (memq kind '(fail xpass))
          (say (if (eq? kind 'fail) "FAIL " "XPASS ") (test-runner-group-path runner) " "
               (test-runner-test-name runner))
          (for-each
           (lambda (entry)
             (when (memq (car entry) '(source-form expected-value actual-value expected-error
                                       actual-error))
               (display "  ")
               (display (car entry))
               (display ": ")
               (write (if (error-object? (cdr entry))
                          (cons (error-object-message (cdr entry))
                                (error-object-irritants (cdr entry)))
                          (cdr entry)))
               (newline)))
           (test-result-alist runner)))))

    (define (test-on-final-simple runner)
      (define (count what number) (if (> number 0) (say what number)))
      (count "Passed: " (test-runner-pass-count runner))
      (count "Failed: " (test-runner-fail-count runner))
      (count "Passed though expected to fail: " (test-runner-xpass-count runner))
      (count "Failed as expected: " (test-runner-xfail-count runner))
      (count "Skipped: " (test-runner-skip-count runner)))))
