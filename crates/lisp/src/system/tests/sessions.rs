//! Sessions of several users in one system: shared and separate state, and their ends.

mod bounds;

use super::{boot, on, within_watchdog};
use crate::kernel::session::thread::LispThread;
use crate::system::{Session, SessionHandle, System};
use core::time::Duration;
use kyocho_heap::account::{Account, Bounds, Usage};
use kyocho_library::port::SessionPorts;
use kyocho_microprocess::Priority;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::JoinHandle;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// The output of a session.
#[derive(Clone, Default)]
pub(super) struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn ports(&self) -> SessionPorts {
        SessionPorts { input: None, output: Box::new(self.clone()), error: Box::new(self.clone()) }
    }
}

/// The bounds of a test user.
pub(super) const SMALL: Bounds = Bounds {
    memory_bytes_max: 32 << 20,
    threads_max: 20,
    ports_max: 4,
    sockets_max: 3,
    sessions_max: 2,
    priority_max: Priority::NORMAL,
    share: 1,
    files: false,
    operator: false,
};

pub(super) fn open(system: &System, account: &Arc<Account>) -> (Session, Page) {
    let page = Page::default();
    (system.open_session(account, page.ports()).unwrap(), page)
}

/// The last value, or the message of the error.
pub(super) fn eval(session: &mut Session, text: &str) -> String {
    match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.last().cloned().unwrap_or_default(),
        Err(report) => format!("error {}", report.message()),
    }
}

/// The number that `(ps)` shows for the thread called `name`.
pub(super) fn number_of(session: &mut Session, page: &Page, name: &str) -> String {
    eval(session, "(ps)");
    session.flush_output();
    let text = page.text();
    let line = text.lines().rev().find(|line| line.contains(&format!(" {name}")));
    let number = line.and_then(|line| line.split_whitespace().next()).unwrap();
    assert!(number.parse::<u64>().is_ok(), "{name} has failed: {text}");
    number.to_owned()
}

/// Evaluates on a separate kernel thread.
pub(super) fn in_background(
    mut session: Session,
    text: &'static str,
) -> JoinHandle<(Session, String)> {
    kyocho_sys::thread::start("eval", 1 << 20, move || {
        let value = eval(&mut session, text);
        (session, value)
    })
    .unwrap()
}

/// Two sessions with two small accounts, on two virtual processors.
pub(super) fn two(body: impl FnOnce(System, Arc<Account>, Arc<Account>) + Send + 'static) {
    within_watchdog(|| {
        let system = boot(on(2));
        body(system, Account::new("ada", SMALL), Account::new("bob", SMALL));
    });
}

#[test]
fn threads_without_a_name_are_named_after_their_procedure() {
    two(|system, ada, _| {
        let (mut session, page) = open(&system, &ada);
        eval(&mut session, "(define (worker) (thread-sleep! 1000)) (spawn worker)");
        eval(&mut session, "(spawn (lambda () (worker) 1)) (spawn (lambda () (worker) 2) 'named)");
        let numbers = ["worker", "lambda at test:1:", "named"]
            .map(|name| number_of(&mut session, &page, name));
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2], "{numbers:?}");
        assert_eq!(eval(&mut session, "(thread-name (make-thread worker))"), "worker");
        assert_eq!(eval(&mut session, "(thread-name (make-thread (lambda () 1)))"), "#f");
    });
}

#[test]
fn definitions_are_visible_only_in_their_session() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        assert_eq!(eval(&mut a, "(define x 1) (define (car l) 'mine) (car '(2))"), "mine");
        assert_eq!(eval(&mut b, "(car '(2))"), "2");
        assert!(eval(&mut b, "x").starts_with("error unbound variable: x"));
        assert_eq!(
            eval(
                &mut a,
                "(define-library (m) (export y) (import (scheme base)) (begin (define y 3)))"
            ),
            ""
        );
        assert_eq!(eval(&mut a, "(import (m)) y"), "3");
        assert!(eval(&mut b, "(import (m)) y").starts_with("error"));
        assert!(eval(&mut b, "(eval 'x (interaction-environment))").starts_with("error"));
        assert!(eval(&mut b, "(%set-parameters! '())").starts_with("error unbound variable"));
    });
}

#[test]
fn a_session_cannot_change_shared_definitions() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        assert!(eval(&mut a, "(set! car cdr)").starts_with("error"));
        assert!(eval(&mut a, "(eval '(define car cdr) (system-environment))").starts_with("error"));
        assert_eq!(eval(&mut b, "(map car '((1) (2)))"), "(1 2)");
    });
}

#[test]
fn each_session_has_its_own_output() {
    two(|system, ada, bob| {
        let ((mut a, page_a), (mut b, page_b)) = (open(&system, &ada), open(&system, &bob));
        eval(&mut a, "(display 'for-ada) (newline)");
        eval(&mut b, "(thread-join! (spawn (lambda () (display 'for-bob) (newline))))");
        eval(&mut b, "(spawn (lambda () (raise 'unheard))) (thread-sleep! 0.01)");
        a.flush_output();
        b.flush_output();
        assert_eq!(page_a.text(), "for-ada\n");
        assert!(page_b.text().starts_with("for-bob\n"), "{}", page_b.text());
        assert!(page_b.text().contains("unheard"), "{}", page_b.text());
    });
}

/// Panics once, when something is written.
struct Trap(bool);

impl Write for Trap {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if core::mem::replace(&mut self.0, false) {
            std::panic::resume_unwind(Box::new("the port of a test"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_ends_only_its_own_thread() {
    two(|system, ada, bob| {
        let ports = SessionPorts {
            input: None,
            output: Box::new(Trap(true)),
            error: Box::new(Page::default()),
        };
        let mut a = system.open_session(&ada, ports).unwrap();
        let (mut b, _) = open(&system, &bob);
        assert_eq!(eval(&mut a, "(begin (display 1) (newline))"), "error internal error: Broken");
        // No collection waits for it.
        let storm =
            "(let loop ((n 0)) (if (< n 1000000) (begin (make-vector 10 n) (loop (+ n 1))) n))";
        assert_eq!(eval(&mut b, storm), "1000000");
        assert_eq!(eval(&mut a, "(+ 1 2)"), "3");
    });
}

#[test]
fn sessions_evaluate_side_by_side() {
    two(|system, ada, bob| {
        let ((a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let interrupt = a.handle();
        let loops = in_background(a, "(let loop () (loop))");
        assert_eq!(eval(&mut b, "(+ 40 2)"), "42");
        let (mut a, value) = interrupted(&interrupt, loops);
        assert_eq!(value, "error interrupted");
        assert_eq!(eval(&mut a, "'still-there"), "still-there");
    });
}

/// Leaves the processor to other threads.
#[expect(clippy::disallowed_methods, reason = "this kernel thread does not belong to the runtime")]
pub(super) fn nap() {
    kyocho_sys::prim::thread::sleep(Duration::from_millis(1));
}

/// Interrupts until the evaluation has ended. The evaluation may not have begun at first.
pub(super) fn interrupted(
    interrupt: &SessionHandle,
    running: JoinHandle<(Session, String)>,
) -> (Session, String) {
    while !running.is_finished() {
        interrupt.interrupt();
        nap();
    }
    running.join().unwrap()
}

#[test]
fn deadlocks_are_detected_for_each_session() {
    two(|system, ada, bob| {
        let ((a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        let loops = a.handle();
        let running = in_background(a, "(let loop () (loop))");
        let message = eval(&mut b, "(channel-receive (make-channel))");
        assert!(message.starts_with("error deadlock"), "{message}");
        assert_eq!(message.lines().count(), 2, "it lists only threads of this session: {message}");
        interrupted(&loops, running);
    });
}

/// A thread that ends as the last one of an evaluation may report a deadlock when the next
/// evaluation has begun.
#[test]
fn a_deadlock_that_is_reported_late_is_none() {
    two(|system, ada, _| {
        let (a, _) = open(&system, &ada);
        let text = "(thread-join! (spawn (lambda () (let loop () (loop))) 'loops))";
        let running = in_background(a, text);
        let kernel = &system.kernel;
        let find = |is_it: fn(&LispThread) -> bool| loop {
            let found = kernel.threads.started().into_iter().find(|thread| is_it(thread));
            if found.is_some() || running.is_finished() {
                break found;
            }
            nap();
        };
        let waits = |thread: &LispThread| thread.parked.load(Ordering::Acquire);
        let main = find(waits).unwrap();
        let loops = find(|thread| thread.name() == "loops").unwrap();
        main.session.report_deadlock(kernel, &loops);
        // It has checked what it waits for.
        find(waits);
        loops.terminate();
        let (_a, message) = running.join().unwrap();
        assert!(message.contains("terminated"), "{message}");
    });
}

#[test]
fn exit_ends_one_session() {
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        eval(&mut a, "(exit 3)");
        assert_eq!(a.exit_code(), Some(3));
        assert_eq!(eval(&mut b, "'on"), "on");
        assert_eq!(b.exit_code(), None);
    });
}

#[test]
fn a_session_that_ends_leaves_nothing_behind() {
    const THREADS: &str = "
        (define m (make-mutex)) (mutex-lock! m #f #f)
        (define threads
          (map spawn
               (list (lambda () (let loop () (loop)))
                     (lambda () (thread-sleep! 1000))
                     (lambda () (raw-sleep 1000))
                     (lambda () (mutex-lock! m))
                     (lambda () (channel-receive (make-channel)))
                     (lambda () (dynamic-wind values
                                              (lambda () (thread-sleep! 1000))
                                              (lambda () (let loop () (loop))))))))
        (define big (make-vector 100000 1))
        'started";
    two(|system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        assert_eq!(eval(&mut a, THREADS), "started");
        assert_eq!(ada.usage().threads, 6);
        eval(&mut b, "(gc)");
        assert!(ada.usage().live_bytes > 800_000, "{:?}", ada.usage());
        drop(a);
        assert_eq!(ada.usage(), Usage::default());
        let before = system.statistics().last.live_bytes;
        eval(&mut b, "(gc)");
        assert!(
            system.statistics().last.live_bytes + 800_000 < before + 1,
            "its vector is garbage"
        );
    });
}

#[test]
fn a_user_sees_and_controls_only_its_own_threads() {
    two(|system, ada, bob| {
        let ((mut a, page_a), (mut b, page_b)) = (open(&system, &ada), open(&system, &bob));
        eval(&mut a, "(define t (spawn (lambda () (thread-sleep! 1000)) 'hers))");
        eval(&mut b, "(define t (spawn (lambda () (thread-sleep! 1000)) 'his))");
        let hers = number_of(&mut a, &page_a, "hers");
        assert!(number_of(&mut b, &page_b, "his") != hers);
        assert!(!page_b.text().contains("hers"), "{}", page_b.text());
        assert_eq!(eval(&mut b, "(length (threads))"), "2");
        for order in ["kill", "suspend", "resume"] {
            let message = eval(&mut b, &format!("({order} {hers})"));
            assert_eq!(message, format!("error {order}: you have no such thread: {hers}"));
        }
        assert_eq!(eval(&mut a, &format!("(set-priority! {hers} 5) (thread-priority t)")), "5");
        let ended = "(guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))";
        assert_eq!(eval(&mut a, &format!("(kill {hers}) {ended}")), "ended");
    });
}

#[test]
fn a_suspended_thread_ends_with_its_session() {
    two(|system, ada, _| {
        let (mut a, page) = open(&system, &ada);
        eval(&mut a, "(spawn (lambda () (let loop () (loop))) 'stands) (thread-sleep! 0.01)");
        let id = number_of(&mut a, &page, "stands");
        assert_eq!(eval(&mut a, &format!("(suspend {id})")), "#t");
        drop(a);
        assert_eq!(ada.usage().threads, 0);
    });
}
