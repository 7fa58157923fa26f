//! Sessions of several users in one system: shared and separate state, their ends, and their
//! bounds.

use super::{boot, on, within_watchdog};
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
fn an_account_opens_as_many_sessions_as_it_may() {
    two(|system, ada, _| {
        let (first, _) = open(&system, &ada);
        let _second = open(&system, &ada);
        let error = system.open_session(&ada, Page::default().ports()).unwrap_err();
        assert_eq!(error.to_string(), "too many sessions: ada may have 2");
        drop(first);
        open(&system, &ada);
    });
}

#[test]
fn files_are_refused_unless_allowed() {
    two(|system, ada, bob| {
        let (mut a, _) = open(&system, &ada);
        for text in [
            "(open-input-file \"/etc/passwd\")",
            "(open-output-file \"/tmp/kyocho-never\")",
            "(load \"/etc/passwd\")",
            "(include \"/etc/passwd\")",
            "(file-exists? \"/etc/passwd\")",
            "(delete-file \"/tmp/kyocho-never\")",
            "(get-environment-variable \"HOME\")",
            "(get-environment-variables)",
            "(import (srfi 170)) (directory-files \"/\")",
        ] {
            let message = eval(&mut a, text);
            assert!(message.contains("this user may not"), "{text}: {message}");
        }
        bob.set_bounds(Bounds { files: true, ..SMALL });
        let (mut b, _) = open(&system, &bob);
        assert_eq!(eval(&mut b, "(file-exists? \"/etc/passwd\")"), "#t");
        let ports = "(let loop ((n 0)) (define p (open-input-file \"/dev/null\")) (loop (+ n 1)))";
        let message = eval(&mut b, ports);
        assert!(message.contains("too many open ports: bob may have 4"), "{message}");
        assert_eq!(
            eval(&mut b, "(gc) (close-port (open-input-file \"/dev/null\")) 'again"),
            "again"
        );
        // If a user loses the right to use files, so do the user's existing sessions.
        let include = "(include \"/dev/null\")";
        assert!(!eval(&mut b, include).contains("may not"));
        bob.set_bounds(SMALL);
        for text in [include, "(file-exists? \"/etc/passwd\")"] {
            let message = eval(&mut b, text);
            assert!(message.contains("this user may not"), "{text}: {message}");
        }
    });
}

/// Evaluates hostile texts in one session while another answers. Nothing remains after the hostile
/// session.
fn survives(texts: &'static [(&'static str, &'static str)]) {
    two(move |system, ada, bob| {
        let ((mut a, _), (mut b, _)) = (open(&system, &ada), open(&system, &bob));
        for (text, expected) in texts {
            let message = eval(&mut a, text);
            assert!(message.contains(expected), "{text}: {message}");
            assert_eq!(eval(&mut b, "(length (iota 1000))"), "1000", "beside {text}");
        }
        drop(a);
        assert_eq!(ada.usage().threads, 0);
        assert_eq!(eval(&mut b, "(gc) 'unhurt"), "unhurt");
    });
}

#[test]
fn an_allocation_storm_ends_in_the_offender() {
    survives(&[
        ("(let loop ((l '())) (loop (cons l l)))", "out of memory"),
        ("(let loop ((l '())) (loop (cons (make-vector 1000) l)))", "out of memory"),
        ("(make-vector 100000000 0)", "out of memory"),
        ("(make-string 100000000 #\\x)", "out of memory"),
        ("(make-bytevector 1000000000 0)", "out of memory"),
        ("(guard (e (#t 'raised)) (let loop ((l '())) (loop (cons l l))))", "raised"),
        (
            "(let loop ((n 0)) (if (< n 3000000) (begin (cons n n) (loop (+ n 1))) 'garbage))",
            "garbage",
        ),
    ]);
}

#[test]
fn memory_outside_the_heap_is_charged_too() {
    survives(&[
        (
            "(let ((p (open-output-string))) (let loop () (write-string \"0123456789\" p) (loop)))",
            "emory",
        ),
        (
            "(define channels '())
             (let loop ()
               (let ((c (make-channel 1000000)))
                 (set! channels (cons c channels))
                 (do ((i 0 (+ i 1))) ((= i 1000000)) (channel-send! c i))
                 (loop)))",
            "out of memory",
        ),
        ("(define channels #f) (gc) (let loop ((n 0)) (+ 1 (loop n)))", "recursion too deep"),
        ("(let loop ((l '())) (loop (cons (make-mutex) l)))", "out of memory"),
    ]);
}

#[test]
fn a_thread_bomb_ends_in_the_offender() {
    survives(&[
        (
            "(let loop () (spawn (lambda () (thread-sleep! 1000))) (loop))",
            "too many threads: ada may have 20",
        ),
        ("'there-is-room-for-an-evaluation", "there-is-room"),
    ]);
}

#[test]
fn a_priority_beyond_the_bound_is_refused() {
    survives(&[
        ("(thread-priority-set! (current-thread) 63)", "0 <= priority <= 31"),
        ("(thread-priority-set! (current-thread) 3) 'humbler", "humbler"),
    ]);
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

#[test]
fn users_have_the_processors_in_proportion_to_their_shares() {
    const THREE: &str = "(do ((i 0 (+ i 1))) ((= i 3)) (spawn (lambda () (let loop () (loop)))))";
    /// The running time of the second user during the comparison: many turns.
    const WORK_NS: u64 = 1_000_000_000;
    within_watchdog(|| {
        let system = boot(on(1));
        let [one, four] = [1, 4].map(|share| Account::new("user", Bounds { share, ..SMALL }));
        let ((mut a, _), (b, _)) = (open(&system, &one), open(&system, &four));
        eval(&mut a, THREE);
        let interrupt = b.handle();
        let looping = in_background(b, "(let loop () (loop))");
        let ran_ns = |account: &Arc<Account>| {
            let all = system.kernel.threads.started();
            let own = all.iter().filter(|thread| Arc::ptr_eq(&thread.session.account, account));
            own.map(|thread| thread.ran_ns.load(Ordering::Relaxed)).sum::<u64>()
        };
        while ran_ns(&four) == 0 {
            nap();
        }
        // The test's own thread may come late to this, after much more than one turn.
        let begin_ns = [&one, &four].map(ran_ns);
        while ran_ns(&four) - begin_ns[1] < WORK_NS {
            nap();
        }
        let (little, much) = (ran_ns(&one) - begin_ns[0], ran_ns(&four) - begin_ns[1]);
        // A quarter by the shares; three times as much by the number of threads.
        assert!(little < much, "{little} beside {much}");
        assert!(little > much / 16, "{little} beside {much}");
        interrupted(&interrupt, looping);
    });
}

#[test]
fn sockets_and_programs_need_permission() {
    two(|system, ada, bob| {
        let (mut a, _) = open(&system, &ada);
        for text in ["(run \"true\")", "(import (kyocho unix)) (run \"true\")"] {
            let message = eval(&mut a, text);
            assert!(
                message.contains("unbound") || message.contains("this user may not"),
                "{message}"
            );
        }
        assert!(eval(&mut a, "(unix-connect \"/tmp/none\")").contains("this user may not"));
        let listen = "(let loop ((n 0)) (define l (tcp-listen \"127.0.0.1\" 0)) (loop (+ n 1)))";
        let message = eval(&mut a, listen);
        assert!(message.contains("too many sockets: ada may have 3"), "{message}");
        assert_eq!(
            eval(&mut a, "(gc) (socket-close! (tcp-listen \"127.0.0.1\" 0)) 'again"),
            "again"
        );
        bob.set_bounds(Bounds { files: true, ports_max: 8, ..SMALL });
        let (mut b, _) = open(&system, &bob);
        let programs = "(import (kyocho unix))
            (let loop () (start-programs '((\"sleep\" \"30\")) #f #f #f '()) (loop))";
        let message = eval(&mut b, programs);
        assert!(message.contains("too many open ports: bob may have 8"), "{message}");
        assert_eq!(eval(&mut b, "(gc) (run/string \"printf\" \"again\")"), "\"again\"");
        // No thread takes memory from now on.
        eval(&mut a, "(define l (tcp-listen \"127.0.0.1\" 0))");
        eval(&mut b, "(start-programs '((\"sleep\" \"1000\")) #f #f #f '())");
        assert!(ada.usage().sockets > 0 && bob.usage().ports > 0);
        drop((a, b));
        while (ada.usage().sockets, bob.usage().ports) != (0, 0) {
            nap();
        }
    });
}
