//! `(kyocho tls)`: both sides in one system, over loopback, with the test's own certificates.
#![expect(clippy::unwrap_used, reason = "an unwrap in a helper fails the test")]

use core::time::Duration;
use kyocho_lisp::system::{Options, Session, System};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Only ends a test whose stream is broken; no wait should take long.
const WATCHDOG: Duration = Duration::from_secs(120);

const HELPERS: &str = r#"
    (import (scheme base) (scheme write) (srfi 18) (kyocho socket) (kyocho tls))
    (define (spawn thunk) (thread-start! (make-thread thunk)))
    (define (port-of listener)
      (let* ((text (socket-address listener))
             (colon (let loop ((i (- (string-length text) 1)))
                      (if (char=? (string-ref text i) #\:) i (loop (- i 1))))))
        (string->number (substring text (+ colon 1) (string-length text)))))
    (define (echo socket)
      (let ((in (socket-input-port socket)) (out (socket-output-port socket)))
        (let loop ()
          (let ((line (read-line in)))
            (if (eof-object? line)
                (socket-close! socket)
                (begin (write-string line out) (newline out) (flush-output-port out) (loop)))))))
    (define (serve listener)
      (spawn (lambda () (let loop () (let ((s (socket-accept listener))) (spawn (lambda () (echo s))) (loop))))))
    (define (talk socket)
      (let ((in (socket-input-port socket)) (out (socket-output-port socket)))
        (write-string "one\ntwo é\n" out)
        (flush-output-port out)
        (let* ((one (read-line in)) (two (read-line in)))
          (socket-end! socket)
          (let ((end (read-line in)))
            (socket-close! socket)
            (list one two (eof-object? end))))))
    (define (reason thunk)
      (guard (e (#t (condition/report-string e))) (thunk)))
    (define (condition/report-string e)
      (let ((port (open-output-string)))
        (for-each (lambda (x) (display x port) (display " " port))
                  (cons (error-object-message e) (error-object-irritants e)))
        (get-output-string port)))
"#;

/// A self-signed certificate for a name, and its key, as PEM.
fn certificate(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Runs a test's body in a session with the helper procedures, the certificate of `localhost` and
/// its key.
fn with_session(body: impl FnOnce(&mut Session)) {
    let system = System::boot(Options::default(), &mut |_| {}).unwrap();
    let mut session = system.session();
    let (certificate, key) = certificate("localhost");
    eval(&mut session, HELPERS);
    eval(&mut session, &format!("(define certificate \"{certificate}\") (define key \"{key}\")"));
    body(&mut session);
}

fn eval(session: &mut Session, text: &str) -> String {
    match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.join(" "),
        Err(report) => panic!("{report}"),
    }
}

#[test]
fn data_are_echoed_and_the_end_is_announced() {
    with_session(|session| {
        eval(
            session,
            "(define l (tls-listen \"127.0.0.1\" 0 certificate key)) (serve l)
             (define (reach) (tls-connect \"localhost\" (port-of l) certificate))",
        );
        assert_eq!(eval(session, "(talk (reach))"), r#"("one" "two é" #t)"#);
        let many =
            "(map thread-join! (map (lambda (_) (spawn (lambda () (talk (reach))))) '(1 2 3 4)))";
        assert_eq!(eval(session, many), format!("({})", [r#"("one" "two é" #t)"#; 4].join(" ")));
        // More than all buffers together hold, written by one thread while another reads.
        let much = r#"
            (let* ((s (reach)) (in (socket-input-port s)) (out (socket-output-port s 'binary))
                   (line (string->utf8 (string-append (make-string 9999 #\x) "\n")))
                   (writer (spawn (lambda () (let loop ((i 0)) (when (< i 200) (write-bytevector line out) (loop (+ i 1))))
                                             (flush-output-port out) (socket-end! s)))))
              (let loop ((characters 0))
                (let ((line (read-line in)))
                  (if (eof-object? line) (begin (thread-join! writer) characters)
                      (loop (+ characters (string-length line)))))))"#;
        assert_eq!(eval(session, much), (200 * 9999).to_string());
    });
}

#[test]
fn a_peer_with_the_wrong_identity_is_an_error() {
    with_session(|session| {
        eval(session, "(define l (tls-listen \"127.0.0.1\" 0 certificate key)) (serve l)");
        let (stranger, other_key) = certificate("stranger.example");
        eval(
            session,
            &format!("(define stranger \"{stranger}\") (define other-key \"{other_key}\")"),
        );
        for (expression, part) in [
            ("(tls-connect \"localhost\" (port-of l) stranger)", "invalid peer certificate: "),
            ("(tls-connect \"127.0.0.1\" (port-of l) certificate)", "not valid for name"),
            ("(tls-connect \"no name\" 1 certificate)", "no name is no name of a host"),
            (
                "(tls-connect \"localhost\" (port-of l) \"\")",
                "certificate: the text has none (PEM is expected)",
            ),
            ("(tls-listen \"127.0.0.1\" 0 certificate \"\")", "tls-listen: key: "),
            (
                "(tls-listen \"127.0.0.1\" 0 certificate other-key)",
                "tls-listen: certificate or key: ",
            ),
        ] {
            let reason = eval(session, &format!("(reason (lambda () {expression}))"));
            assert!(reason.contains(part), "{expression}: {reason}");
        }
        // The server is still usable.
        assert_eq!(
            eval(session, "(talk (tls-connect \"localhost\" (port-of l) certificate))"),
            r#"("one" "two é" #t)"#
        );
    });
}

#[test]
fn garbage_truncation_and_silence_are_distinguished() {
    with_session(|session| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("(tls-connect \"localhost\" {port} certificate)");
        let answering = |answer: &'static [u8]| {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(WATCHDOG)).unwrap();
                // The client's hello comes first.
                let count = stream.read(&mut [0; 5]).unwrap();
                assert!(count > 0);
                stream.write_all(answer).unwrap();
            })
        };
        let server = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let reason = eval(session, &format!("(reason (lambda () {connect}))"));
        assert!(reason.contains("received corrupt message"), "{reason}");
        server.join().unwrap();
        let server = answering(b"");
        let reason = eval(session, &format!("(reason (lambda () {connect}))"));
        assert!(reason.contains("has gone") || reason.contains("reset"), "{reason}");
        server.join().unwrap();
        // A thread that waits for a silent peer delays no other thread, and can be ended.
        eval(session, &format!("(define waiting (spawn (lambda () {connect})))"));
        let (_silent, _) = listener.accept().unwrap();
        assert_eq!(eval(session, "(thread-join! (spawn (lambda () (+ 40 2))))"), "42");
        eval(session, "(thread-terminate! waiting)");
        let ended = "(guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! waiting))";
        assert_eq!(eval(session, ended), "ended");
        // A connection that ends without an announcement may have been truncated.
        eval(
            session,
            "(define l (tls-listen \"127.0.0.1\" 0 certificate key))
             (define plain (tcp-listen \"127.0.0.1\" 0))
             (define client (spawn (lambda () (tls-connect \"localhost\" (port-of plain) certificate))))
             (define outer (socket-accept plain))
             (define inner (tcp-connect \"127.0.0.1\" (port-of l)))
             (define (copy from to) (spawn (lambda ()
               (let ((in (socket-input-port from 'binary)) (out (socket-output-port to 'binary)))
                 (let loop () (let ((b (read-u8 in))) (unless (eof-object? b) (write-u8 b out) (flush-output-port out) (loop))))))))
             (copy outer inner) (copy inner outer)
             (define served (socket-accept l))
             (define server (spawn (lambda () (read-line (socket-input-port served)))))
             (define s (thread-join! client))
             (define reader (spawn (lambda () (reason (lambda () (read-line (socket-input-port s)))))))
             (socket-close! outer)",
        );
        let reason = eval(session, "(thread-join! reader)");
        assert!(reason.contains("its end was not announced"), "{reason}");
    });
}
