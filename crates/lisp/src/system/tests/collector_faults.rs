//! The collector is killed, or panics, at each step of a collection in turn. The next collection
//! must be complete, and programs must continue.

use super::{boot, last, on, within_watchdog};
use crate::kernel::service::markers::ENOUGH;
use crate::system::{Options, Session, System, Torture};
use core::hint::black_box;
use core::time::Duration;
use kyocho_heap::heap::faults::Faults;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::Instant;
use std::panic::resume_unwind;
use std::sync::Arc;

/// Far longer than a killed loop without calls may run, which is eight time slices.
const LONG: Duration = Duration::from_millis(120);

/// Ends the thread at once.
fn unwind() {
    resume_unwind(Box::new("a fault"));
}

/// Kills the thread, which then computes for long before it reaches a kill point.
#[inline(never)]
fn be_killed() {
    let _gone = Microprocess::current().kill();
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        for n in 0..10_000 {
            black_box(n);
        }
    }
}

/// Adjacent rows that are replaced at different times, which leaves blocks with holes.
const TABLE: &str = "
    (define size 3000)
    (define table (make-vector size))
    (define (row i) (list i (vector i (list i)) (make-vector 20 i)))
    (define (renew step) (do ((i 0 (+ i step))) ((>= i size)) (vector-set! table i (row i))))
    (define (whole? i row)
      (and (= i (car row) (vector-ref (cadr row) 0) (car (vector-ref (cadr row) 1)))
           (equal? (caddr row) (make-vector 20 i))))
    (define (count)
      (let loop ((i 0) (n 0)) (if (= i size) n (loop (+ i 1) (if (whole? i (vector-ref table i)) (+ n 1) n)))))
    (define (build n) (let loop ((i 0) (l '())) (if (< i n) (loop (+ i 1) (cons i l)) (length l))))
    (renew 1)
    (gc)
    'begun";

/// Freed memory is overwritten, and collections run only on request.
fn tortured(count: usize, concurrent: bool) -> System {
    let torture = Torture { every: 1 << 40, phase: 0, concurrent };
    boot(Options { memory_max_bytes: 64 << 20, torture: Some(torture), ..on(count) })
}

/// Checks that collections still work and that no object was lost.
fn continues(session: &mut Session, what: &str) {
    for step in [2, 3] {
        let text = format!("(gc) (renew {step}) (build 30000)");
        assert_eq!(last(session, &text), "30000", "{what}");
        assert_eq!(last(session, "(gc) (count)"), "3000", "{what}");
    }
}

/// Injects the fault at step 0, 1, 2 and so on of a collection, until a collection has fewer steps.
fn at_every_step(concurrent: bool, name: &str, fault: fn()) {
    for count in [1, 2] {
        let system = tortured(count, concurrent);
        let mut session = system.session();
        assert_eq!(last(&mut session, TABLE), "begun");
        let faults = &system.kernel.heap.faults;
        let mut step = 0;
        loop {
            faults.arm(step, fault);
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected", "{name} at {step}");
            if faults.is_armed() {
                break;
            }
            continues(
                &mut session,
                &format!("{name} at {step}, concurrent: {concurrent}, on {count}"),
            );
            step += 1;
        }
        assert!(step > 10, "{name}: a collection has more steps than {step}");
    }
}

#[test]
fn after_a_failure_at_any_step_the_next_collection_succeeds() {
    for concurrent in [false, true] {
        within_watchdog(move || at_every_step(concurrent, "failed", unwind));
    }
}

#[test]
fn a_collector_killed_far_from_a_kill_point_is_not_abandoned() {
    for concurrent in [false, true] {
        within_watchdog(move || at_every_step(concurrent, "killed", be_killed));
    }
}

/// Makes a concurrent collection fail at a step. Returns whether it reached the step. The next
/// attempt finds no collection in progress.
fn fail_beside(system: &System, session: &mut Session, step: usize) -> bool {
    let (heap, [failed, noted]) =
        (&system.kernel.heap, [0; 2].map(|_| Arc::new(AtomicBool::default())));
    let (of_fault, [fails, notes]) = (Arc::clone(heap), [&failed, &noted].map(Arc::clone));
    heap.faults.arm(step, move || {
        fails.store(true, Ordering::SeqCst);
        let (heap, notes) = (Arc::clone(&of_fault), Arc::clone(&notes));
        of_fault.faults.arm(0, move || notes.store(heap.is_in_cycle(), Ordering::SeqCst));
        unwind();
    });
    assert_eq!(last(session, "(gc) 'collected"), "collected", "at {step}");
    assert_eq!(last(session, "(gc) 'collected"), "collected", "at {step}");
    assert!(!noted.load(Ordering::SeqCst), "at {step}");
    failed.load(Ordering::SeqCst)
}

#[test]
fn runs_are_not_recorded_for_an_aborted_collection() {
    within_watchdog(|| {
        let system = tortured(1, true);
        let mut session = system.session();
        assert_eq!(last(&mut session, TABLE), "begun");
        let steps = (0..).take_while(|&step| fail_beside(&system, &mut session, step)).count();
        assert!(steps > 10, "a collection has more steps than {steps}");
    });
}

/// Injects the fault at some steps of a helper.
fn at_a_marker(name: &str, fault: fn()) {
    let system = tortured(ENOUGH, false);
    let mut session = system.session();
    assert_eq!(last(&mut session, TABLE), "begun");
    let faults: &Faults = system.kernel.heap.helpers_faults();
    for step in [0, 1, 5] {
        faults.arm(step, fault);
        // The host decides whether a marker starts in time.
        while faults.is_armed() {
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected", "{name}");
        }
        continues(&mut session, &format!("a marker {name} at {step}"));
    }
}

#[test]
fn others_take_over_the_work_of_a_marker_that_ends() {
    within_watchdog(|| at_a_marker("failed", unwind));
    within_watchdog(|| at_a_marker("killed", be_killed));
}
