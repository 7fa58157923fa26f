//! Top-level locations are freed with their last user.

use super::sessions::{eval, open, two};
use super::{boot, on, within_watchdog};
use crate::system::{Options, Session, System, Torture};
use kyocho_syntax::location::LOCATION_BYTES;
use std::io::Write;

/// The number of locations after a collection of the garbage.
fn collected(system: &System, session: &mut Session) -> usize {
    // Each collection frees the object that kept the next alive: a thread its session, an
    // environment its names, names the code.
    for _ in 0..4 {
        assert_eq!(eval(session, "(gc)"), "");
    }
    system.locations()
}

/// Collects until at most `before` locations are left. Threads of a closed session end
/// asynchronously, on a busy machine after many collections. If locations are never freed, the
/// watchdog fails the test.
fn shrinks_to(before: usize, system: &System, session: &mut Session) {
    let mut collections = 0;
    while collected(system, session) > before {
        collections += 1;
        if collections == 100 {
            writeln!(std::io::stderr(), "{} locations, {before} before", system.locations())
                .unwrap();
        }
    }
}

#[test]
fn definitions_and_libraries_of_a_session_are_freed_with_it() {
    const DEEDS: &str = "
        (define-library (mine) (export twice keep) (import (scheme base))
          (begin (define (twice x) (* 2 x)) (define (keep) (list twice keep))))
        (import (mine) (kyocho mailbox))
        (define-record-type point (make-point x) point? (x point-x))
        (define (again n) (if (= n 0) again (again (- n 1))))
        (define here (interaction-environment))
        (define worker (spawn (lambda () (thread-sleep! 1000) (again 1))))
        (define-values (a b) (values again (make-point here)))
        (twice (point-x (make-point 21)))";
    two(|system, ada, bob| {
        let (mut watcher, _) = open(&system, &bob);
        let before = collected(&system, &mut watcher);
        for _ in 0..200 {
            let (mut session, _) = open(&system, &ada);
            assert_eq!(eval(&mut session, DEEDS), "42");
            drop(session);
            // Closing a session terminates its threads and does not wait for them; ada may have 20
            // threads.
            while ada.usage().threads > 0 {
                eval(&mut watcher, "(thread-yield!)");
            }
        }
        shrinks_to(before, &system, &mut watcher);
    });
}

#[test]
fn the_names_of_an_environment_are_freed_with_it() {
    const ENVIRONMENTS: &str = "
        (do ((i 0 (+ i 1))) ((= i 300))
          (eval '(begin (define (f n) (if (= n 0) g (f (- n 1))))
                        (define g (lambda () (f unknown)))
                        (f 3))
                (environment '(scheme base))))
        'done";
    two(|system, ada, _| {
        let (mut session, _) = open(&system, &ada);
        assert_eq!(eval(&mut session, ENVIRONMENTS), "done");
        let before = collected(&system, &mut session);
        assert_eq!(eval(&mut session, ENVIRONMENTS), "done");
        shrinks_to(before, &system, &mut session);
    });
}

#[test]
fn a_replaced_definition_is_freed() {
    two(|system, ada, _| {
        let (mut session, _) = open(&system, &ada);
        eval(&mut session, "(define x (list 1)) (define (f) x)");
        let before = collected(&system, &mut session);
        eval(&mut session, "(define y (list 2)) (define-syntax y (syntax-rules () ((_) 3)))");
        assert_eq!(eval(&mut session, "(y)"), "3");
        shrinks_to(before, &system, &mut session);
    });
}

#[test]
fn code_keeps_the_locations_that_it_refers_to() {
    const COUNTER: &str = "
        (define next
          (eval '(begin (define n (list 0))
                        (define (up) (list (+ 1 (car n))))
                        (lambda () (set! n (up)) n))
                (environment '(scheme base))))
        (next)";
    within_watchdog(|| {
        // Freed memory is overwritten.
        let torture = Some(Torture { every: u64::MAX, phase: 1, concurrent: false });
        let system = boot(Options { torture, ..on(1) });
        let mut session = system.session();
        assert_eq!(eval(&mut session, COUNTER), "(1)");
        for expected in ["(2)", "(3)", "(4)"] {
            collected(&system, &mut session);
            assert_eq!(eval(&mut session, "(next)"), expected);
        }
    });
}

#[test]
fn locations_are_charged_to_their_account() {
    two(|system, ada, _| {
        let (mut session, _) = open(&system, &ada);
        let before = (collected(&system, &mut session), ada.usage().live_bytes);
        let text: String = (0..10_000).map(|i| format!("(define charged-{i} 0)")).collect();
        eval(&mut session, &text);
        let after = (collected(&system, &mut session), ada.usage().live_bytes);
        assert_eq!(after.0, before.0 + 10_000);
        assert!(after.1 >= before.1 + 10_000 * LOCATION_BYTES, "{before:?} {after:?}");
    });
}
