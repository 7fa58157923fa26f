//! Connections of editors to `kyocho serve --listen nrepl:..`, by the test's own client and by a
//! library.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]

#[path = "nrepl/client.rs"]
mod client;
mod python;

use client::{Client, Server, status};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

#[test]
fn an_editor_evaluates_in_sessions_of_its_own() {
    let server = Server::start();
    let mut client = server.connect();
    let (one, two) = (client.open(), client.open());
    assert_eq!(client.eval(&one, "(define x 42) x (* 2 x)"), ["42", "84"]);
    let answers = client.ask(&[("op", "eval"), ("code", "x"), ("session", &two)]);
    let [reply, done] = &answers[..] else { panic!("{answers:?}") };
    assert!(reply.text("err").contains("unbound variable: x"), "{reply:?}");
    assert_eq!(status(done), ["eval-error", "done"]);
    assert!(done.text("ex").starts_with("unbound variable"));
    let answers =
        client.ask(&[("op", "eval"), ("code", "(display \"né\") (newline) 'v"), ("session", &one)]);
    let written: Vec<&str> = answers
        .iter()
        .filter(|answer| answer.get("out").is_some())
        .map(|a| a.text("out"))
        .collect();
    assert_eq!(written.concat(), "né\n");
    assert_eq!(answers[answers.len() - 2].text("value"), "v");
    assert_eq!(client.one(&[("op", "ls-sessions")]).items("sessions").len(), 2);
    assert_eq!(
        status(&client.one(&[("op", "close"), ("session", &two)])),
        ["session-closed", "done"]
    );
    let gone = client.one(&[("op", "eval"), ("code", "1"), ("session", &two)]);
    assert_eq!(status(&gone), ["error", "unknown-session", "done"]);
    // `exit` also ends a session.
    client.ask(&[("op", "eval"), ("code", "(exit)"), ("session", &one)]);
    assert_eq!(client.one(&[("op", "ls-sessions")]).items("sessions").len(), 0);
    // Requests without a session use one of the connection.
    client.ask(&[("op", "eval"), ("code", "(define y 7)")]);
    let answers = client.ask(&[("op", "eval"), ("code", "y")]);
    assert_eq!(answers[0].text("value"), "7");
    let mut other = server.connect();
    assert!(other.ask(&[("op", "eval"), ("code", "y")])[0].text("err").contains("unbound"));
}

/// The next two answers with a status, in any order: the request's number, and the status.
fn two_ends(client: &mut Client) -> Vec<(String, Vec<String>)> {
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let answer = client.value().unwrap();
        if answer.get("status").is_some() {
            ends.push((answer.text("id").to_owned(), status(&answer)));
        }
    }
    ends
}

#[test]
fn running_evaluations_are_interrupted() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    let idle = client.one(&[("op", "interrupt"), ("session", &session)]);
    assert_eq!(status(&idle), ["session-idle", "done"]);
    let code = "(display 'on) (newline) (let loop () (loop))";
    let running = client.send(&[("op", "eval"), ("code", code), ("session", &session)]);
    let begun = client.value().unwrap();
    assert_eq!((begun.text("out"), begun.text("id")), ("on\n", running.as_str()));
    let other = client.one(&[("op", "interrupt"), ("session", &session), ("interrupt-id", "none")]);
    assert_eq!(status(&other), ["error", "interrupt-id-mismatch", "done"]);
    client.send(&[("op", "interrupt"), ("session", &session), ("interrupt-id", &running)]);
    // The answer to the interrupt and the end of the evaluation come in any order.
    let ends = two_ends(&mut client);
    assert!(
        ends.contains(&(running, vec!["interrupted".to_owned(), "done".to_owned()])),
        "{ends:?}"
    );
    assert_eq!(client.eval(&session, "'still-there"), ["still-there"]);
}

#[test]
fn an_editor_loads_completes_looks_up_and_shows_stacks() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    let file = "(define (inner x) (+ 1 (car x)))\n(define (outer x) (list (inner x)))\n'loaded";
    let request = [
        ("op", "load-file"),
        ("file", file),
        ("file-path", "/home/ada/f.scm"),
        ("session", &*session),
    ];
    assert_eq!(client.ask(&request)[0].text("value"), "loaded");
    assert_eq!(
        status(&client.one(&[("op", "stacktrace"), ("session", &session)])),
        ["no-error", "done"]
    );
    client.eval(&session, "(list (outer 5))");
    let failed = client.one(&[("op", "stacktrace"), ("session", &session)]);
    assert!(failed.text("message").starts_with("car: first argument must be a pair"));
    let frames = failed.items("stacktrace");
    let places: Vec<_> =
        frames.iter().take(2).map(|f| (f.text("name"), f.text("file"), f.text("line"))).collect();
    assert_eq!(places, [("inner", "/home/ada/f.scm", "1"), ("outer", "/home/ada/f.scm", "2")]);
    let names = client.one(&[("op", "completions"), ("prefix", "oute"), ("session", &session)]);
    let names: Vec<&str> = names.items("completions").iter().map(|n| n.text("candidate")).collect();
    assert_eq!(names, ["outer"]);
    let known = client.one(&[("op", "lookup"), ("sym", "outer"), ("session", &session)]);
    let info = known.get("info").unwrap();
    let reply = ["doc", "arglists", "arglists-str"].map(|key| info.text(key));
    assert_eq!(reply, ["#<procedure outer>", "((x))", "(x)"]);
    let evil = client.one(&[("op", "lookup"), ("sym", "(exit 3)"), ("session", &session)]);
    assert_eq!(status(&evil), ["no-info", "done"]);
    let described = client.one(&[("op", "describe")]);
    for operation in ["eval", "stdin", "interrupt", "load-file"] {
        assert!(described.get("ops").unwrap().get(operation).is_some(), "{described:?}");
    }
    let version = described.get("versions").unwrap().get("nrepl").unwrap();
    assert_eq!((version.text("major"), version.text("version-string")), ("1", "1.0.0"));
    assert_eq!(described.get("aux").unwrap().text("current-ns"), "kyocho");
    let unknown = client.one(&[("op", "no-such-op")]);
    assert_eq!(status(&unknown), ["error", "unknown-op", "done"]);
    assert_eq!(unknown.text("op"), "no-such-op");
    assert_eq!(
        status(&client.one(&[("op", "eval"), ("session", &session)])),
        ["error", "no-code", "done"]
    );
}

#[test]
fn a_procedure_is_looked_up_with_the_names_of_its_parameters() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    client.eval(
        &session,
        "(define (plain first second) (set! first 1) (let ((third second)) (list first third)))
         (define (none) 1)
         (define (some . all) all)
         (define (more a b . rest) (lambda () (set! rest 1) a))
         (define many (case-lambda ((x) x) ((a b . c) c)))
         (define renamed plain)
         (define-syntax swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t)))))
         (define five 5)",
    );
    let mut lists = |op, key, name| {
        let known = client.one(&[("op", op), (key, name), ("session", &session)]);
        let info = known.get("info").unwrap();
        info.get("arglists-str").map(|_| info.text("arglists-str").to_owned())
    };
    for (name, expected) in [
        ("plain", Some("(first second)")),
        ("renamed", Some("(first second)")),
        ("none", Some("()")),
        ("some", Some("all")),
        ("more", Some("(a b . rest)")),
        ("many", Some("(x)\n(a b . c)")),
        // Procedures of the prelude, whose parameter names are internal; others have no parameter
        // lists.
        ("vector-head", Some("(v end)")),
        ("car", None),
        ("swap!", None),
        ("five", None),
    ] {
        assert_eq!(lists("lookup", "sym", name).as_deref(), expected, "{name}");
        assert_eq!(lists("info", "symbol", name).as_deref(), expected, "{name}");
    }
}

#[test]
fn a_cloned_session_begins_with_a_copy_and_is_independent() {
    let server = Server::start();
    let mut client = server.connect();
    let one = client.open();
    client.eval(
        &one,
        "(define-record-type point (make-point x) point? (x point-x set-point-x!))
         (define-syntax twice (syntax-rules () ((_ e) (* 2 e))))
         (define p (make-point 5))
         (define table (make-hash-table equal?))
         (hash-table-set! table '(1) 'one)
         (define by-address (make-hash-table (lambda (a b) (eq? a b)) eq-hash))
         (hash-table-set! by-address p 'found)
         (define (up!) (set-point-x! p (+ 1 (point-x p))) (point-x p))",
    );
    let cloned = client.one(&[("op", "clone"), ("session", &one)]);
    assert_eq!(cloned.text("session"), one);
    let two = cloned.text("new-session").to_owned();
    let of_both = "(list (up!) (twice 4) (hash-table-ref table (list 1)) (hash-table-ref by-address p) (first '(a)))";
    assert_eq!(client.eval(&two, of_both), ["(6 8 one found a)"]);
    assert_eq!(client.eval(&two, "(define only-here 1) (set! p (make-point 40)) (up!)"), ["41"]);
    // Sessions do not affect each other.
    assert_eq!(client.eval(&one, "(list (point-x p) (up!))"), ["(5 6)"]);
    let reply = client.ask(&[("op", "eval"), ("code", "only-here"), ("session", &one)]);
    assert!(reply[0].text("err").contains("unbound"), "{reply:?}");
    // A copy of the copy, and a copy of a session without definitions.
    let three = client.one(&[("op", "clone"), ("session", &two)]).text("new-session").to_owned();
    assert_eq!(client.eval(&three, "(list only-here (up!))"), ["(1 42)"]);
    let fresh = client.open();
    let four = client.one(&[("op", "clone"), ("session", &fresh)]).text("new-session").to_owned();
    assert_eq!(client.eval(&four, "(define x 3) (* x x)"), ["9"]);
}

#[test]
fn a_session_is_copied_after_its_earlier_requests_or_the_answer_says_why_not() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    let unknown = client.one(&[("op", "clone"), ("session", "none")]);
    assert_eq!(status(&unknown), ["error", "unknown-session", "done"]);
    // What an image cannot contain, a copy cannot contain either.
    client
        .eval(&session, "(define t (thread-start! (make-thread (lambda () (thread-sleep! 600)))))");
    let refused = client.one(&[("op", "clone"), ("session", &session)]);
    assert_eq!(status(&refused), ["error", "done"]);
    assert!(refused.text("err").contains("`t` holds a thread"), "{refused:?}");
    let sessions =
        |client: &mut Client| client.one(&[("op", "ls-sessions")]).items("sessions").len();
    assert_eq!(sessions(&mut client), 1, "there is none that has not begun");
    client.eval(&session, "(define t 5)");
    // Requests that wait behind an evaluation, which can be interrupted meanwhile.
    let code = "(define x 7) (display 'on) (newline) (let loop () (loop))";
    let running = client.send(&[("op", "eval"), ("code", code), ("session", &session)]);
    assert_eq!(client.value().unwrap().text("out"), "on\n");
    let cloning = client.send(&[("op", "clone"), ("session", &session)]);
    client.send(&[("op", "interrupt"), ("session", &session), ("interrupt-id", &running)]);
    let copy = loop {
        let answer = client.value().unwrap();
        if answer.text("id") == cloning {
            break answer.text("new-session").to_owned();
        }
    };
    assert_eq!(client.eval(&copy, "(list t x)"), ["(5 7)"]);
    assert_eq!(sessions(&mut client), 2);
    assert_eq!(client.one(&[("op", "ls-middleware")]).items("middleware"), []);
}

/// A program reads, the server asks the editor for input, and the editor sends it.
#[test]
fn a_program_reads_what_its_user_sends() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    let asks = "(display \"name? \") (list (read-line) (read))";
    let asking = client.send(&[("op", "eval"), ("code", asks), ("session", &session)]);
    let reply = client.value().unwrap();
    assert_eq!((reply.text("out"), reply.text("id")), ("name? ", asking.as_str()));
    let waits = client.value().unwrap();
    assert_eq!(
        (status(&waits), waits.text("id")),
        (vec!["need-input".to_owned()], asking.as_str())
    );
    // Half of the input: the program waits again.
    let half = client.send(&[("op", "stdin"), ("stdin", "Ádá\n(a"), ("session", &session)]);
    let mut ends = [client.value().unwrap(), client.value().unwrap()];
    ends.sort_by_key(|end| end.text("id").parse::<u32>().unwrap());
    assert_eq!((status(&ends[0]), ends[0].text("id")), (vec!["need-input".to_owned()], &*asking));
    assert_eq!((status(&ends[1]), ends[1].text("id")), (vec!["done".to_owned()], &*half));
    client.send(&[("op", "stdin"), ("stdin", " b)\n"), ("session", &session)]);
    let mut values = Vec::new();
    for _ in 0..3 {
        let answer = client.value().unwrap();
        values.extend(answer.get("value").map(|_| answer.text("value").to_owned()));
    }
    assert_eq!(values, ["(\"Ádá\" (a b))"]);
    // Input that was sent earlier is there, so the editor is not asked. An empty text is an end of
    // file, after which more may follow.
    for text in ["rest\n", "last", "", "more\n"] {
        client.one(&[("op", "stdin"), ("stdin", text), ("session", &session)]);
    }
    let reads = "(list (read-line) (read-line) (read-line) (eof-object? (read-line)) (read-line))";
    assert_eq!(client.eval(&session, reads), ["(\"\" \"rest\" \"last\" #t \"more\")"]);
    assert_eq!(client.eval(&session, "(char-ready?)"), ["#f"]);
}

#[test]
fn sessions_waiting_for_input_can_be_interrupted_and_closed_and_too_much_is_refused() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    let read = [("op", "eval"), ("code", "(read-line)"), ("session", &*session)];
    let reading = client.send(&read);
    assert_eq!(status(&client.value().unwrap()), ["need-input"]);
    client.send(&[("op", "interrupt"), ("session", &session), ("interrupt-id", &reading)]);
    let ends = two_ends(&mut client);
    let interrupted = (reading, vec!["interrupted".to_owned(), "done".to_owned()]);
    assert!(ends.contains(&interrupted), "{ends:?}");
    let much = "x".repeat(70_000);
    let refused = client.one(&[("op", "stdin"), ("stdin", &much), ("session", &session)]);
    assert_eq!(status(&refused), ["error", "stdin-full", "done"]);
    client.one(&[("op", "stdin"), ("stdin", "line\n"), ("session", &session)]);
    assert_eq!(client.eval(&session, "(read-line)"), ["\"line\""]);
    let unknown = client.one(&[("op", "stdin"), ("stdin", "x"), ("session", "none")]);
    assert_eq!(status(&unknown), ["error", "unknown-session", "done"]);
    let empty = client.one(&[("op", "stdin"), ("session", &session)]);
    assert_eq!(status(&empty), ["error", "no-stdin", "done"]);
    // A waiting session is closed. Its connection still serves others.
    client.send(&read);
    assert_eq!(status(&client.value().unwrap()), ["need-input"]);
    let closing = client.send(&[("op", "close"), ("session", &session)]);
    let ends = two_ends(&mut client);
    assert!(ends.contains(&(closing, vec!["session-closed".to_owned(), "done".to_owned()])));
    let other = client.open();
    assert_eq!(client.eval(&other, "'there"), ["there"]);
}

#[test]
fn garbage_and_lost_connections_do_not_affect_others() {
    let server = Server::start();
    let mut client = server.connect();
    let session = client.open();
    for garbage in
        [&b"GET / HTTP/1.0\r\n\r\n"[..], b"d2:op", b"li1e", b"99999999999:", b"i-e", b"de"]
    {
        let mut bad = server.connect();
        bad.one(&[("op", "describe")]);
        bad.stream.write_all(garbage).unwrap();
        bad.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        bad.reader.read_to_end(&mut rest).unwrap();
        assert_eq!(client.eval(&session, "'unhurt"), ["unhurt"], "beside {garbage:?}");
    }
    // As many sessions as a user may have, repeatedly: each ends with its connection.
    for _ in 0..20 {
        let mut other = server.connect();
        let own = other.open();
        other.send(&[("op", "eval"), ("code", "(let loop () (loop))"), ("session", &own)]);
    }
    while client.ask(&[("op", "clone")])[0].get("new-session").is_none() {}
    assert!(Path::new("/proc").join(server.process.id().to_string()).exists());
}

#[test]
fn a_client_without_the_token_is_disconnected() {
    let server = Server::start();
    for wrong in [String::new(), "0".repeat(server.token.len()), server.token[1..].to_owned()] {
        let mut stranger = server.connect();
        stranger.token = wrong;
        let refused = stranger.one(&[("op", "eval"), ("code", "(display 'evaluated)")]);
        assert_eq!(status(&refused), ["error", "unauthorized", "done"]);
        // There is no second attempt.
        stranger.token = server.token.clone();
        let _ = stranger.stream.write_all(b"d2:op8:describee");
        let mut rest = Vec::new();
        let _ = stranger.reader.read_to_end(&mut rest);
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
    let mut client = server.connect();
    let session = client.open();
    client.token = String::new();
    assert_eq!(client.eval(&session, "(* 6 7)"), ["42"], "once is enough");
}

/// An unmodified client library, as an editor uses it.
#[test]
fn a_client_library_evaluates_loads_completes_looks_up_and_interrupts() {
    let python = match python::python_with("nrepl", "nrepl-python-client==0.0.3") {
        Ok(python) => python,
        Err(why) => {
            kyocho_sys::skip::skip(
                "a_client_library_evaluates_loads_completes_looks_up_and_interrupts",
                &why,
            );
            return;
        }
    };
    let server = Server::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nrepl/client.py");
    let output =
        Command::new(python).arg(script).args([&server.address, &server.token]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
}
