//! The bounds of an account: sessions, memory, threads, priorities, processor time, permissions.

use super::{Page, SMALL, eval, in_background, interrupted, nap, open, two};
use crate::system::tests::{boot, on, within_watchdog};
use kyocho_heap::account::{Account, Bounds};
use kyocho_sys::prim::atomic::Ordering;
use std::sync::Arc;

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
        // A busy host may stop the virtual processor for longer than the lead that an account can
        // have, so not every comparison shows the shares. Without shares none does.
        loop {
            // The test's own thread may come late to this, after much more than one turn.
            let begin_ns = [&one, &four].map(ran_ns);
            while ran_ns(&four) - begin_ns[1] < WORK_NS {
                nap();
            }
            let (little, much) = (ran_ns(&one) - begin_ns[0], ran_ns(&four) - begin_ns[1]);
            // A quarter by the shares; three times as much by the number of threads.
            if (much / 16..much).contains(&little) {
                break;
            }
        }
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
