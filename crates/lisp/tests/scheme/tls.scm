;;; (kyocho tls): both sides in one program. crates/lisp/tests/tls.rs tests a hostile peer.
(import (scheme base) (scheme write) (scheme process-context) (srfi 18) (kyocho socket) (kyocho tls))
(include "harness.scm")

;; Made for this program, for the name localhost, valid until 2126. The key need not be secret.
(define certificate "-----BEGIN CERTIFICATE-----
MIIBkzCCATigAwIBAgIUTp3AAeDSLkcaYTvBS1vVuam4cqUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzAxNDc1MloYDzIxMjYxMDMw
MDE0NzUyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQTGwoL9lV78sTLhUg4GJuYpfK9NfxH+SWEH8y/xtXCoyb+W80xumpq
G2Ir6yx5e5tiwfL4r5y1+8PpwTBYysN2o2YwZDAdBgNVHQ4EFgQUWBZpnk/ojeiJ
uHhuGDBksgwO3EAwHwYDVR0jBBgwFoAUWBZpnk/ojeiJuHhuGDBksgwO3EAwDAYD
VR0TAQH/BAIwADAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwIDSQAw
RgIhAIY57Ke5uqbi9FT3pQpqsV2oVBKKtrUcCJmC7dNCy2l5AiEA3Fi1XkiFqVQa
pCJXx14S6oZQic3YDG6fPxH1cebuTAo=
-----END CERTIFICATE-----
")
(define key "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVxwZoRtCSPGcYw3Y
91vK2o+csjMWSprEuT6ml1qbRRKhRANCAAQTGwoL9lV78sTLhUg4GJuYpfK9NfxH
+SWEH8y/xtXCoyb+W80xumpqG2Ir6yx5e5tiwfL4r5y1+8PpwTBYysN2
-----END PRIVATE KEY-----
")

(define (spawn thunk) (thread-start! (make-thread thunk)))
(define (after-last-colon text) (let loop ((i (string-length text))) (if (char=? #\: (string-ref text (- i 1))) (substring text i (string-length text)) (loop (- i 1)))))
(define (port-of listener) (string->number (after-last-colon (socket-address listener))))
(define (has? part text) (let loop ((i 0)) (and (<= (+ i (string-length part)) (string-length text)) (or (string=? part (substring text i (+ i (string-length part)))) (loop (+ i 1))))))
(define (complaint thunk) (guard (e ((error-object? e) (let ((port (open-output-string))) (display (error-object-message e) port) (display (error-object-irritants e) port) (get-output-string port)))) (thunk)))
(define (answer socket) (let ((in (socket-input-port socket)) (out (socket-output-port socket))) (let loop () (let ((line (read-line in))) (if (eof-object? line) (socket-close! socket) (begin (write-string (string-append line "!\n") out) (flush-output-port out) (loop)))))))

(define listener (tls-listen "127.0.0.1" 0 certificate key)) (test #t (socket? listener)) (test #t (> (port-of listener) 0))
(define (accept-one) (spawn (lambda () (answer (socket-accept listener)))))
(define (talk socket . lines) (let ((in (socket-input-port socket)) (out (socket-output-port socket))) (let* ((answers (map (lambda (line) (write-string line out) (newline out) (flush-output-port out) (read-line in)) lines)) (end (begin (socket-end! socket) (read-line in)))) (socket-close! socket) (append answers (list (eof-object? end))))))
(define (reach) (tls-connect "localhost" (port-of listener) certificate))

;; data are echoed, and the end is announced
(test '("one!" "two é!" #t) (let* ((server (accept-one)) (said (talk (reach) "one" "two é"))) (thread-join! server) said))
(test '(("a!" #t) ("b!" #t) ("c!" #t)) (let ((servers (map (lambda (i) (accept-one)) '(1 2 3)))) (map thread-join! (map (lambda (text) (spawn (lambda () (talk (reach) text)))) '("a" "b" "c")))))
;; the wire carries no plaintext: an observer sees a handshake record, whose first byte is 22
(test 22 (let* ((plain (tcp-listen "127.0.0.1" 0)) (client (spawn (lambda () (guard (e (#t 'gone)) (tls-connect "localhost" (port-of plain) certificate))))) (seen (socket-accept plain)) (byte (read-u8 (socket-input-port seen 'binary)))) (socket-close! seen) (socket-close! plain) (thread-join! client) byte))

;; a peer that is not trusted, or has another name, is refused with a reason
(define (refused host . roots) (let* ((server (spawn (lambda () (guard (e (#t 'gone)) (answer (socket-accept listener)))))) (why (complaint (lambda () (apply tls-connect host (port-of listener) roots))))) (thread-join! server) why))
(test '(#t #t) (list (has? "invalid peer certificate" (refused "127.0.0.1" certificate)) (has? "invalid peer certificate" (refused "localhost"))))
(test '(#t #t #t) (list (has? "PEM is expected" (complaint (lambda () (tls-connect "localhost" (port-of listener) "")))) (has? "key" (complaint (lambda () (tls-listen "127.0.0.1" 0 certificate "")))) (has? "certificate" (complaint (lambda () (tls-listen "127.0.0.1" 0 "" key))))))
(test-error (tls-connect 5 443)) (test-error (tls-connect "localhost" 'port certificate)) (test-error (tls-connect "localhost" 70000 certificate)) (test-error (tls-connect "localhost" 443 5)) (test-error (tls-connect "localhost")) (test-error (tls-listen "127.0.0.1" 0 certificate)) (test-error (tls-listen "127.0.0.1" -1 certificate key)) (test-error (tls-listen "no such host at all" 0 certificate key)) (test-error (tls-listen "127.0.0.1" 0 certificate 5))
(test 'error (let ((port (port-of listener))) (socket-close! listener) (guard (e ((error-object? e) 'error)) (tls-connect "localhost" port certificate))))

(finish)
