//! Orders to microprocesses without a stack.

use std::sync::Arc;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{Gone, await_suspension, everywhere};
use crate::record::State;
use crate::{Builder, Stackless, Step, yield_now};

/// Steps for ever; counts.
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
fn stackless_ones_are_killed_and_suspended_between_steps() {
    everywhere("stackless", || {
        for answer in [Step::Yield, Step::Park] {
            order_between_steps(answer, Step::Done);
            order_between_steps(answer, Step::Yield);
        }
    });
}
