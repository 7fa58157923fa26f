//! Every bound procedure, called as a hostile program would: with too few and too many arguments,
//! and with arguments of every wrong type. Each call returns, raises, or can be interrupted. None
//! damages the process or the session.
#![expect(
    clippy::print_stderr,
    reason = "the watchdog reports which call hangs before it ends the process"
)]

use core::time::Duration;
use kyocho_lisp::system::{Options, SessionHandle, System};
use kyocho_sys::prim::thread;
use std::sync::mpsc;

/// Calls of each procedure for each number of arguments from two on.
const CALLS: usize = 25;
/// A call that takes longer is interrupted, as a user would do.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time limit for an interrupted call, after which the process ends.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Procedures that cannot be tested this way. They end the program, change state of the whole
/// process, or leave files behind. Others sleep for as long as their argument says, call their
/// argument outside the handlers of this test, or continue an earlier failed evaluation. Some leave
/// threads behind that observe all other threads; dozens of these would share the memory that calls
/// here exhaust.
const LEFT_OUT: &[&str] = &[
    "exit",
    "emergency-exit",
    "thread-sleep!",
    "raw-sleep",
    "top",
    "dynamic-wind",
    "create-temp-file",
    "set-umask!",
    "nice",
    "use-value",
    "retry",
    "profile",
    "profile-start!",
];

const POOL: &str = r#"
(define cycle (list 1 2 3))
(set-cdr! (cddr cycle) cycle)
(define closed (open-input-string "closed"))
(close-port closed)
(define closed-output (open-output-bytevector))
(close-port closed-output)
(define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y))
(define again (call-with-current-continuation (lambda (k) k)))
(define pool
 (vector-append
  (vector 0 -1 1 2 255 256 (expt 10 40) (- (expt 10 40)) (expt 2 61) (- (expt 2 62)) 1/2 -1.5 1e300 +nan.0 -inf.0
          "" "no/abc" "/nowhere/at/all" #\x #\null #\x10ffff '() '(1) '(1 . 2) '((a . 1) (b . 2)) cycle)
  (vector 'symbol #t #f (vector) (vector 1 2 3) (bytevector) (bytevector 255 1) closed closed-output
          (open-input-string "text") (open-output-string) (open-input-bytevector (bytevector 1 2))
          (lambda () 1) (lambda (x) x) (lambda (x y) #t) (lambda x (raise 'odd)) car (make-point 1 2)
          (make-parameter 1) (delay 1) (eof-object) (if #f #f))
  (vector (interaction-environment)
          (make-hash-table) (make-mutex) (make-condition-variable) (make-thread (lambda () 1)))))
(define seed 20260721)
(define (any-of)
  (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648))
  (vector-ref pool (modulo (quotient seed 64) (vector-length pool))))
(define last-call #f)
(define (call f arguments)
  (set! last-call arguments)
  (parameterize ((current-output-port (open-output-string)))
    (guard (e (#t (error-object? e))) (apply f arguments))))
(define (probe f count)
  (call f '())
  (vector-for-each (lambda (x) (call f (list x))) pool)
  (do ((i 0 (+ i 1))) ((= i count))
    (call f (list (any-of) (any-of)))
    (call f (list (any-of) (any-of) (any-of)))
    (call f (list (any-of) (any-of) (any-of) (any-of)))))
"#;

/// Interrupts the current call if there was no news for `PATIENCE`. Ends the process if that does
/// not help.
fn watch(news: &mpsc::Receiver<String>, interrupt: &SessionHandle) {
    let mut name = String::new();
    let mut silent = Duration::ZERO;
    loop {
        match news.recv_timeout(PATIENCE) {
            Ok(next) => {
                name = next;
                silent = Duration::ZERO;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                eprintln!("{name}: interrupted");
                interrupt.interrupt();
                silent += PATIENCE;
            }
        }
        if silent > WATCHDOG {
            eprintln!("{name} cannot be interrupted");
            std::process::exit(3);
        }
    }
}

#[test]
fn no_arguments_break_a_procedure() {
    let options =
        Options { memory_max_bytes: 32 << 20, virtual_processors: Some(2), ..Options::default() };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    session.eval(POOL, "pool").unwrap();
    let (news, heard) = mpsc::channel();
    let interrupt = session.handle();
    let watchdog = thread::spawn(move || watch(&heard, &interrupt));
    let own = ["probe", "call", "any-of", "again", "seed", "pool", "last-call"];
    let mut broken = Vec::new();
    for name in session.names("") {
        if LEFT_OUT.contains(&name.as_str()) || own.contains(&name.as_str()) {
            continue;
        }
        news.send(name.clone()).unwrap();
        let is_procedure = format!("(procedure? |{name}|)");
        if !session.eval(&is_procedure, "probe").is_ok_and(|seen| seen.values == ["#t"]) {
            continue; // A special form, which the fuzzers test.
        }
        if let Err(report) = session.eval(&format!("(probe |{name}| {CALLS})"), "probe")
            && report.message() != "interrupted"
        {
            broken.push(format!("{name}: {report}"));
        }
        assert_eq!(session.exit_code(), None, "{name} ended the session");
        // An interrupt sent before the probe ended may arrive now.
        let mut sum = || session.eval("(+ 1 2)", "probe").map(|seen| seen.values);
        let alive = sum().or_else(|report| match report.message() {
            "interrupted" => sum(),
            _ => Err(report),
        });
        assert_eq!(alive.unwrap(), ["3"], "after {name}");
    }
    drop(news);
    watchdog.join().unwrap();
    assert!(broken.is_empty(), "{broken:#?}");
}
