;;; A portable test form. A test file includes this file, contains tests, and ends with (finish).

(define passed 0)
(define failed 0)

(define (same? expected actual)
  (or (equal? expected actual)
      (and (number? expected) (number? actual)
           (not (= expected expected)) (not (= actual actual)))))

(define (near? expected actual)
  (and (number? actual)
       (<= (abs (- expected actual)) (* 1e-9 (max 1 (abs expected))))))

(define (report what expected actual)
  (set! failed (+ failed 1))
  (display "FAILED ") (write what) (newline)
  (display "  expected ") (write expected) (newline)
  (display "  got      ") (write actual) (newline))

(define (condition->datum condition)
  (if (error-object? condition)
      (cons* 'raised (error-object-message condition) (error-object-irritants condition))
      (list 'raised condition)))

(define (cons* first . rest)
  (if (null? rest) first (cons first (apply cons* rest))))

(define (check what same? expected thunk)
  (let ((actual
         (call-with-current-continuation
          (lambda (k)
            (with-exception-handler
             (lambda (condition) (k (condition->datum condition)))
             thunk)))))
    (if (same? expected actual)
        (set! passed (+ passed 1))
        (report what expected actual))))

(define (check-error what thunk)
  (let ((outcome
         (call-with-current-continuation
          (lambda (k)
            (with-exception-handler
             (lambda (condition) (k 'raised))
             (lambda () (list 'returned (thunk))))))))
    (if (eq? outcome 'raised)
        (set! passed (+ passed 1))
        (report what 'raised outcome))))

(define-syntax test
  (syntax-rules ()
    ((_ expected expression)
     (check 'expression same? expected (lambda () expression)))))

(define-syntax test-near
  (syntax-rules ()
    ((_ expected expression)
     (check 'expression near? expected (lambda () expression)))))

(define-syntax test-true
  (syntax-rules ()
    ((_ expression)
     (check 'expression (lambda (expected actual) (eq? actual #t)) #t
            (lambda () (if expression #t #f))))))

(define-syntax test-error
  (syntax-rules ()
    ((_ expression) (check-error 'expression (lambda () expression)))))

(define-syntax test-values
  (syntax-rules ()
    ((_ (expected ...) expression)
     (check 'expression same? (list expected ...)
            (lambda () (call-with-values (lambda () expression) list))))))

(define (finish)
  (display passed) (display " passed, ")
  (display failed) (display " failed") (newline)
  (exit (if (= failed 0) 0 1)))
