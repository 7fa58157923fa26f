//! Very large numbers, strings and nested data in one user's session, in a system that bounds
//! integers as `kyocho serve` does. Each operation ends by itself or by an interrupt, and another
//! user's session answers meanwhile. The bound holds for the whole process, so this test has a
//! process of its own.
#![expect(clippy::disallowed_methods, reason = "a watchdog sleeps on a kernel thread of its own")]
#![expect(clippy::unwrap_used, reason = "an unwrap in a helper fails the test")]

use core::time::Duration;
use kyocho_lisp::account::{Account, Bounds};
use kyocho_lisp::port::SessionPorts;
use kyocho_lisp::system::{Options, Session, System};
use kyocho_sys::prim::thread;
use std::io;

/// Far more than the whole test takes.
const WATCHDOG: Duration = Duration::from_secs(300);

const TEXTS: &[&str] = &[
    "(let loop ((n 3)) (loop (* n n)))",
    "(expt 7 10000000)",
    "(number->string (expt 7 90000))",
    "(string->number (make-string 900000 #\\7))",
    "(let ((n (expt 7 90000))) (gcd n (+ n 1)))",
    "(exact-integer-sqrt (expt 7 90000))",
    "(arithmetic-shift 1 100000000)",
    "(let ((s (make-string 4000000 #\\a))) (string-contains s (string-append (make-string 2000000 #\\a) \"b\")))",
    "(apply string-append (make-list 1000000 (make-string 1000 #\\x)))",
    "(read (open-input-string (make-string 1000000 #\\()))",
    "(read (open-input-string (make-string 1000000 #\\')))",
    "(eval (read (open-input-string (string-append (make-string 5000 #\\() (make-string 5000 #\\))))) (interaction-environment))",
    "(string->symbol (make-string 1000000 #\\x))",
    "(let loop ((i 0)) (string->symbol (string-append (make-string 10000 #\\x) (number->string i))) (loop (+ i 1)))",
];

fn open(system: &System, name: &str) -> Session {
    let bounds = Bounds { memory_bytes_max: 64 << 20, threads_max: 10, ..Bounds::NONE };
    let ports =
        SessionPorts { input: None, output: Box::new(io::sink()), error: Box::new(io::sink()) };
    system.open_session(&Account::new(name, bounds), ports).unwrap()
}

fn last(session: &mut Session, text: &str) -> String {
    let evaluation = session.eval(text, "test").unwrap();
    evaluation.values.last().cloned().unwrap_or_default()
}

#[test]
fn giants_end_in_the_offender() {
    thread::spawn(|| {
        thread::sleep(WATCHDOG);
        eprintln!("the watchdog ends the process");
        std::process::exit(3);
    });
    let options =
        Options { integer_bits_max: 1 << 18, virtual_processors: Some(2), ..Options::default() };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let (mut offender, mut other) = (open(&system, "ada"), open(&system, "bob"));
    for text in TEXTS {
        let interrupt = offender.handle();
        let running = thread::spawn(move || {
            // Most of them fail, some return a value.
            let _ = offender.eval(text, "test");
            offender
        });
        assert_eq!(last(&mut other, "(gc) (length (iota 1000))"), "1000", "beside {text}");
        while !running.is_finished() {
            interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
        offender = running.join().unwrap();
        assert_eq!(last(&mut offender, "'on"), "on", "after {text}");
    }
    let error = offender.eval("(expt 7 10000000)", "test").unwrap_err();
    assert!(error.message().contains("more than 262144 bits"), "{error}");
}
