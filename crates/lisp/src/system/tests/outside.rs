//! A collection completes each time a thread is outside Lisp. Values that the thread needs
//! afterwards must be roots meanwhile.

use super::sessions::nap;
use super::{boot, last, on, within_watchdog};
use crate::system::{CellCache, Options, System, Torture};
use kyocho_sys::prim::atomic::Ordering;

/// Freed memory is overwritten. Each thread has enough cells that its objects are not adjacent to
/// those of others.
fn tortured(count: usize) -> System {
    boot(Options {
        cell_cache: CellCache::Fixed(4096),
        stack_max_bytes: 1 << 20,
        torture: Some(Torture { every: 1 << 40, phase: 0, concurrent: false }),
        ..on(count)
    })
}

/// Evaluates `begin` in a session. Evaluates `look` when only the main thread is left.
fn after_the_end(begin: &'static str, look: &'static str, expected: &'static str) {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = tortured(count);
            let mut session = system.session();
            assert_eq!(last(&mut session, "(import (kyocho dsm)) 'ready"), "ready");
            system.kernel.torture_outside.store(1, Ordering::Relaxed);
            let collections = || system.kernel.heap.statistics().collections;
            let before = collections();
            assert_eq!(last(&mut session, begin), "begun");
            while !system.kernel.threads.started().is_empty() {
                nap();
            }
            assert!(collections() > before, "no collection came while a thread was outside");
            assert_eq!(last(&mut session, look), expected, "on {count}");
        });
    }
}

const REASON: &str = "
    (guard (e (#t (let ((reason (uncaught-exception-reason e)))
                    (list (error-object? reason) (error-object-message reason)))))
      (thread-join! t))";

#[test]
fn an_exception_raised_with_the_reserve_used_up_reaches_the_joiner() {
    let begin = "
        (define (deep) (+ 1 (deep)))
        (define (again e) (make-vector 100 0) (deep))
        (define t (spawn (lambda () (with-exception-handler again deep))))
        'begun";
    after_the_end(begin, REASON, "(#t \"recursion too deep\")");
}

#[test]
fn an_exception_survives_the_threads_after_procedures() {
    let begin = "
        (define (deep) (+ 1 (deep)))
        (define (again e) (make-vector 100 0) (deep))
        (define (work) (with-exception-handler again deep))
        (define t (spawn (lambda () (dynamic-wind values work (lambda () (make-vector 100 1))))))
        'begun";
    after_the_end(
        begin,
        "(guard (e (#t (terminated-thread-exception? e))) (thread-join! t))",
        "#f",
    );
    after_the_end(begin, REASON, "(#t \"recursion too deep\")");
}

#[test]
fn a_result_survives_the_release_of_shared_locks() {
    let begin = "
        (define t (spawn (lambda () (shared-acquire! 3 #t #f) (make-vector 100 0) (iota 100 1/2))))
        'begun";
    after_the_end(begin, "(equal? (thread-join! t) (iota 100 1/2))", "#t");
}
