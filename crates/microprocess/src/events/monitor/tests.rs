//! Which attention bits a busy virtual processor gets and when it is interrupted. Time is an
//! argument.

use std::sync::{Arc, mpsc};

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};
use kyocho_sys::prim::thread;

use super::{HOG_NS, LOOK_MIN_NS, PATIENCE_NS, SLICE_NS, Watch};
use crate::processor::record::State;
use crate::processor::vp::{NEVER_NS, attention};
use crate::{Detection, Microprocess, Runtime};

const START_NS: u64 = 1_000_000_000;

#[test]
fn processor_that_switches_is_not_interrupted() {
    let mut watch = Watch::default();
    for turn in 0..100 {
        let now_ns = START_NS + turn * SLICE_NS;
        let decision = watch.decide(now_ns, turn, NEVER_NS, 0);
        assert_eq!((decision.tell, decision.interrupt), (0, false));
        assert_eq!(decision.look_ns, now_ns + SLICE_NS);
    }
}

#[test]
fn processor_that_does_not_switch_is_interrupted_each_slice() {
    let mut watch = Watch::default();
    let mut now_ns = START_NS;
    let mut interrupts = Vec::new();
    while now_ns < START_NS + 4 * SLICE_NS {
        let decision = watch.decide(now_ns, 7, NEVER_NS, 0);
        if decision.interrupt {
            assert_eq!(decision.tell, attention::PREEMPT);
            interrupts.push(now_ns - START_NS);
        }
        assert!(decision.look_ns > now_ns, "the next check is later");
        now_ns = decision.look_ns;
    }
    assert_eq!(interrupts, [SLICE_NS, 2 * SLICE_NS, 3 * SLICE_NS]);
}

#[test]
fn each_of_several_has_a_whole_slice_however_short() {
    const SHORT_NS: u64 = 2_000_000;
    let mut watch = Watch { slice_ns: Some(SHORT_NS), ..Watch::default() };
    let (mut now_ns, mut switches) = (START_NS, 7);
    let mut interrupts = Vec::new();
    while now_ns < START_NS + 4 * SHORT_NS {
        let decision = watch.decide(now_ns, switches, NEVER_NS, 0);
        if decision.interrupt {
            interrupts.push(now_ns - START_NS);
            switches += 1;
        }
        now_ns = decision.look_ns;
    }
    assert_eq!(interrupts, [SHORT_NS, 2 * SHORT_NS, 3 * SHORT_NS]);
}

#[test]
fn microprocess_that_begins_by_itself_after_an_interrupt_has_a_whole_slice() {
    let mut watch = Watch::default();
    watch.decide(START_NS, 7, NEVER_NS, 0);
    assert!(watch.decide(START_NS + SLICE_NS, 7, NEVER_NS, 0).interrupt);
    let now_ns = START_NS + 2 * SLICE_NS;
    let decision = watch.decide(now_ns, 9, NEVER_NS, 0);
    assert_eq!((decision.interrupt, decision.look_ns), (false, now_ns + SLICE_NS));
}

#[test]
fn due_timer_is_signalled_and_interrupts_if_it_is_not_noticed() {
    let mut watch = Watch::default();
    let deadline_ns = START_NS + HOG_NS / 2;
    assert_eq!(watch.decide(START_NS, 1, deadline_ns, 0).look_ns, deadline_ns);
    let told = watch.decide(deadline_ns, 1, deadline_ns, 0);
    assert_eq!((told.tell, told.interrupt), (attention::TIMERS, false));
    assert_eq!(told.look_ns, deadline_ns + PATIENCE_NS);
    let insisted = watch.decide(told.look_ns, 1, deadline_ns, attention::TIMERS);
    assert!(insisted.interrupt);
}

#[test]
fn hog_is_interrupted_at_once() {
    let mut watch = Watch::default();
    let deadline_ns = START_NS + 2 * HOG_NS;
    watch.decide(START_NS, 1, deadline_ns, 0);
    assert!(watch.decide(deadline_ns, 1, deadline_ns, 0).interrupt);
}

#[test]
fn bit_that_is_noticed_in_time_causes_no_interrupt() {
    let mut watch = Watch::default();
    let deadline_ns = START_NS + HOG_NS / 2;
    watch.decide(START_NS, 1, deadline_ns, 0);
    watch.decide(deadline_ns, 1, deadline_ns, 0);
    // It has handled its timers, and switched.
    assert!(!watch.decide(deadline_ns + PATIENCE_NS, 2, NEVER_NS, 0).interrupt);
}

#[test]
fn checks_become_rarer_while_no_holder_sleeps() {
    let mut watch = Watch::default();
    assert_eq!(watch.next_look(true, SLICE_NS), LOOK_MIN_NS);
    let rarer: Vec<u64> = (0..10).map(|_| watch.next_look(false, SLICE_NS)).collect();
    assert!(rarer.is_sorted() && rarer[9] == SLICE_NS);
    assert_eq!(watch.next_look(true, SLICE_NS), LOOK_MIN_NS);
}

/// Sleeps in the kernel without calling the runtime.
#[expect(unsafe_code, reason = "a call of the C library")]
fn sleep_in_the_kernel() {
    // SAFETY: touches no memory.
    unsafe { libc::usleep(30_000) };
}

/// Runs a microprocess that sleeps in the kernel and then makes no call. Nothing else would wake
/// the monitor.
fn come_back_to_a_loop(detection: Detection) {
    let stop = Arc::new(AtomicU32::new(0));
    let stopped = Arc::clone(&stop);
    let (tell, told) = mpsc::channel();
    let main = move || {
        tell.send(Microprocess::current()).unwrap();
        sleep_in_the_kernel();
        while stopped.load(Ordering::SeqCst) == 0 {}
    };
    let runtime = Runtime::builder().virtual_processors(1).detection(detection).build();
    let run = thread::spawn(move || runtime.run(main));
    let hog: Microprocess = told.recv().unwrap();
    let until = |is_blocked: bool| {
        while (hog.record().state.get() == State::Blocked) != is_blocked {
            thread::yield_now();
        }
    };
    until(true);
    until(false);
    stop.store(1, Ordering::SeqCst);
    run.join().unwrap().unwrap();
}

#[test]
fn microprocess_that_returns_from_the_kernel_without_a_call_runs_again() {
    come_back_to_a_loop(Detection::Sentinel);
    come_back_to_a_loop(Detection::Monitor);
}
