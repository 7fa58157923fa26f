//! Orders to microprocesses without a stack.

use core::hint::spin_loop;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::sleep;

use super::{FOR_EVER, Gone, await_suspension, everywhere};
use crate::processor::record::State;
use crate::yield_now;
use crate::{Builder, Microprocess, Stackless, Step};

/// Steps for ever, and counts the steps.
struct Machine {
    steps: Arc<AtomicU32>,
    dropped: Arc<AtomicBool>,
    answer: Step,
    last_wish: Step,
}

impl Stackless for Machine {
    fn step(&mut self) -> Step {
        self.steps.fetch_add(1, Ordering::SeqCst);
        self.answer
    }

    fn killed(&mut self) -> Step {
        self.answer = Step::Done;
        self.last_wish
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

fn order_between_steps(answer: Step, last_wish: Step) {
    let (steps, dropped) = (Arc::default(), Arc::default());
    let machine =
        Machine { steps: Arc::clone(&steps), dropped: Arc::clone(&dropped), answer, last_wish };
    let target = Builder::new().spawn_stackless(Box::new(machine)).unwrap();
    while steps.load(Ordering::SeqCst) == 0 {
        yield_now();
    }
    target.suspend().unwrap();
    if answer == Step::Yield {
        await_suspension(target);
    }
    let before = steps.load(Ordering::SeqCst);
    yield_now();
    assert_eq!(steps.load(Ordering::SeqCst), before);
    target.kill().unwrap();
    while !dropped.load(Ordering::SeqCst) || target.record().state.get() != State::Free {
        yield_now();
    }
    let wished = u32::from(last_wish == Step::Yield);
    assert_eq!(steps.load(Ordering::SeqCst), before + wished);
    assert_eq!(target.kill(), Err(Gone));
}

#[test]
fn stackless_microprocesses_are_killed_and_suspended_between_steps() {
    everywhere("stackless", || {
        for answer in [Step::Yield, Step::Park] {
            order_between_steps(answer, Step::Done);
            order_between_steps(answer, Step::Yield);
        }
    });
}

/// Is killed in the middle of a step, waits until its home has handled the order, and parks all the
/// same.
struct Late {
    heard: Arc<AtomicBool>,
}

impl Stackless for Late {
    fn step(&mut self) -> Step {
        let me = Microprocess::current();
        me.kill().unwrap();
        while me.poll_word().load(Ordering::SeqCst) == 0 {
            spin_loop();
        }
        Step::Park
    }

    fn killed(&mut self) -> Step {
        self.heard.store(true, Ordering::SeqCst);
        Step::Done
    }
}

#[test]
fn kill_during_the_step_that_parks_is_delivered() {
    everywhere("killed and parked", || {
        let heard = Arc::new(AtomicBool::new(false));
        let late = Late { heard: Arc::clone(&heard) };
        Builder::new().spawn_stackless(Box::new(late)).unwrap();
        while !heard.load(Ordering::SeqCst) {
            yield_now();
        }
    });
}

/// Enters the kernel shortly after an order, so that the first signal comes before the call. Then
/// it enters the kernel again and again, without a call of the runtime.
struct EntersKernelAgain {
    begun: Arc<AtomicBool>,
    interrupted: Arc<AtomicU32>,
    ended: Arc<AtomicBool>,
    may_end: bool,
}

/// How many calls it makes that only a signal ends.
const CALLS: u32 = 4;
/// How long it sleeps when it is called with an order: many times the interval between signals.
const QUIET_NS: u64 = 50_000_000;

impl Stackless for EntersKernelAgain {
    fn step(&mut self) -> Step {
        if self.may_end {
            let woken = sleep::until(monotonic_ns() + QUIET_NS);
            assert_eq!(woken, Ok(()), "no signal comes after the order was delivered");
            return Step::Done;
        }
        self.begun.store(true, Ordering::SeqCst);
        let me = Microprocess::current();
        while !(me.record().orders.ends_calls() && me.is_wanted()) {
            spin_loop();
        }
        for _ in 0..CALLS {
            assert_eq!(sleep::until(FOR_EVER.as_nanos() as u64), Err(Errno::INTR));
            self.interrupted.fetch_add(1, Ordering::SeqCst);
        }
        self.may_end = true;
        Step::Yield
    }

    fn killed(&mut self) -> Step {
        self.step()
    }
}

impl Drop for EntersKernelAgain {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

fn end_calls_that_begin_after_the_order(order: fn(&Microprocess) -> Result<(), Gone>) {
    let (begun, interrupted, ended) = (Arc::default(), Arc::default(), Arc::default());
    let machine = EntersKernelAgain {
        begun: Arc::clone(&begun),
        interrupted: Arc::clone(&interrupted),
        ended: Arc::clone(&ended),
        may_end: false,
    };
    let target = Builder::new().spawn_stackless(Box::new(machine)).unwrap();
    let until = |what: &AtomicBool| {
        while !what.load(Ordering::SeqCst) {
            crate::sleep(core::time::Duration::from_micros(100));
        }
    };
    until(&begun);
    order(&target).unwrap();
    until(&ended);
    assert_eq!(interrupted.load(Ordering::SeqCst), CALLS);
}

#[test]
fn system_calls_that_begin_after_an_order_end_too() {
    everywhere("enters the kernel again", || {
        end_calls_that_begin_after_the_order(Microprocess::kill);
        end_calls_that_begin_after_the_order(Microprocess::want);
    });
}

/// Has long steps, even if its virtual processor is needed, and longer ones after an order.
struct Lasting {
    inside: Arc<AtomicBool>,
    ordered: Arc<AtomicBool>,
}

/// Several time slices.
const STEP_NS: u64 = 30_000_000;

impl Stackless for Lasting {
    fn step(&mut self) -> Step {
        self.inside.store(true, Ordering::SeqCst);
        while !self.ordered.load(Ordering::SeqCst) {
            spin_loop();
        }
        let begun_ns = monotonic_ns();
        while monotonic_ns() < begun_ns + STEP_NS {
            spin_loop();
        }
        self.inside.store(false, Ordering::SeqCst);
        Step::Yield
    }

    fn killed(&mut self) -> Step {
        Step::Done
    }
}

#[test]
fn preempted_step_ends_before_the_microprocess_is_suspended() {
    everywhere("lasting", || {
        let (inside, ordered) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let lasting = Lasting { inside: Arc::clone(&inside), ordered: Arc::clone(&ordered) };
        let target = Builder::new().spawn_stackless(Box::new(lasting)).unwrap();
        while !inside.load(Ordering::SeqCst) {
            crate::sleep(core::time::Duration::from_micros(100));
        }
        target.suspend().unwrap();
        ordered.store(true, Ordering::SeqCst);
        await_suspension(target);
        assert!(
            !inside.load(Ordering::SeqCst),
            "it is not suspended inside a step, since others may wait for what it holds"
        );
        target.kill().unwrap();
    });
}
