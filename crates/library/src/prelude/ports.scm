;;; Ports: the current ones, and procedures that close a port when a procedure returns.

(define current-input-port
  (%port-parameter 0
    (lambda (port) (if (input-port? port) port (%wrong-type 'current-input-port 1 "input port" port)))))
(define current-output-port
  (%port-parameter 1
    (lambda (port)
      (if (output-port? port) port (%wrong-type 'current-output-port 1 "output port" port)))))
(define current-error-port
  (%port-parameter 2
    (lambda (port)
      (if (output-port? port) port (%wrong-type 'current-error-port 1 "output port" port)))))

(define (call-with-port port f)
  (if (not (port? port)) (%wrong-type 'call-with-port 1 "port" port))
  (call-with-values (lambda () (f port))
    (lambda results
      (close-port port)
      (apply values results))))

(define (call-with-input-file path f) (call-with-port (open-input-file path) f))
(define (call-with-output-file path f) (call-with-port (open-output-file path) f))

(define (with-input-from-file path thunk)
  (call-with-input-file path
    (lambda (port) (parameterize ((current-input-port port)) (thunk)))))
(define (with-output-to-file path thunk)
  (call-with-output-file path
    (lambda (port) (parameterize ((current-output-port port)) (thunk)))))

(define (call-with-output-string f)
  (let ((port (open-output-string)))
    (f port)
    (get-output-string port)))
(define (with-output-to-string thunk)
  (call-with-output-string
    (lambda (port) (parameterize ((current-output-port port)) (thunk)))))
(define (call-with-input-string string f) (call-with-port (open-input-string string) f))
(define (with-input-from-string string thunk)
  (call-with-input-string string
    (lambda (port) (parameterize ((current-input-port port)) (thunk)))))
