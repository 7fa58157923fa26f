//! Whoever collects is killed, or fails, at each step of a collection in turn: the next one is whole, and programs go on.

use super::{boot, last, on, within_watchdog};
use crate::service::markers::ENOUGH;
use crate::system::{Options, Session, System, Torture};
use core::hint::black_box;
use core::time::Duration;
use kyocho_heap::heap::faults::Faults;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::Instant;
use std::panic::resume_unwind;
use std::sync::Arc;

/// Far longer than a killed loop that calls nobody is let run: eight time slices.
const LONG: Duration = Duration::from_millis(120);

/// It ends where it stands.
fn unwind() {
    resume_unwind(Box::new("a fault"));
}

/// It is killed, and computes for long before it comes to a kill point.
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

/// Rows beside each other that are replaced at different times: blocks with holes.
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

/// What freed memory held is overwritten; no collection comes but those that are asked for.
fn tortured(count: usize, beside: bool) -> System {
    let torture = Torture { every: 1 << 40, phase: 0, beside };
    boot(Options { memory_max_bytes: 64 << 20, torture: Some(torture), ..on(count) })
}

/// Collections go on, and nothing was lost.
fn goes_on(session: &mut Session, what: &str) {
    for step in [2, 3] {
        let text = format!("(gc) (renew {step}) (build 30000)");
        assert_eq!(last(session, &text), "30000", "{what}");
        assert_eq!(last(session, "(gc) (count)"), "3000", "{what}");
    }
}

/// Lets the fault come at step 0, 1, 2 and so on of a collection, until one has fewer.
fn at_every_step(beside: bool, name: &str, fault: fn()) {
    for count in [1, 2] {
        let system = tortured(count, beside);
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
            goes_on(&mut session, &format!("{name} at {step}, beside {beside}, on {count}"));
            step += 1;
        }
        assert!(step > 10, "{name}: a collection has more steps than {step}");
    }
}

#[test]
fn a_collector_that_fails_at_any_step_is_followed_by_one_that_does_not() {
    for beside in [false, true] {
        within_watchdog(move || at_every_step(beside, "failed", unwind));
    }
}

#[test]
fn a_collector_that_is_killed_far_from_a_kill_point_is_not_abandoned() {
    for beside in [false, true] {
        within_watchdog(move || at_every_step(beside, "killed", be_killed));
    }
}

/// Lets a collection beside the threads fail at a step; whether it came so far. The next attempt finds that none goes on.
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
fn what_is_opened_is_noted_for_no_collection_that_was_given_up() {
    within_watchdog(|| {
        let system = tortured(1, true);
        let mut session = system.session();
        assert_eq!(last(&mut session, TABLE), "begun");
        let steps = (0..).take_while(|&step| fail_beside(&system, &mut session, step)).count();
        assert!(steps > 10, "a collection has more steps than {steps}");
    });
}

/// Lets the fault come at some steps of whoever helps to mark.
fn at_a_marker(name: &str, fault: fn()) {
    let system = tortured(ENOUGH, false);
    let mut session = system.session();
    assert_eq!(last(&mut session, TABLE), "begun");
    let faults: &Faults = system.kernel.heap.helpers_faults();
    for step in [0, 1, 5] {
        faults.arm(step, fault);
        // Whether a marker comes in time is the host's choice.
        while faults.is_armed() {
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected", "{name}");
        }
        goes_on(&mut session, &format!("a marker {name} at {step}"));
    }
}

#[test]
fn a_marker_that_ends_in_the_middle_leaves_its_work_to_others() {
    within_watchdog(|| at_a_marker("failed", unwind));
    within_watchdog(|| at_a_marker("killed", be_killed));
}
