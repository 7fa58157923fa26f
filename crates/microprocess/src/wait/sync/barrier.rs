//! Barriers.

use super::{
    wait::{Outcome, Waiter, end_wait, wait},
    wait_queue::WaitQueue,
};
use crate::processor::record::{Kind, Reason};
use crate::schedule::guarded::Guarded;

/// Lets a number of microprocesses wait for one another, as [`std::sync::Barrier`].
///
/// It can be used again as soon as all parties have arrived.
///
/// ```
/// use kyocho_microprocess::{Barrier, run, scope};
///
/// run(|| {
///     let barrier = Barrier::new(3);
///     let leaders = scope(|scope| {
///         let parties = [(); 3].map(|()| scope.spawn(|| barrier.wait().is_leader()));
///         parties.map(|party| usize::from(party.join().unwrap())).iter().sum::<usize>()
///     });
///     assert_eq!(leaders, 1);
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Barrier {
    parties: usize,
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    arrived: usize,
    /// How many times all parties have arrived.
    rounds: u64,
    waiters: WaitQueue,
}

/// The result of [`Barrier::wait`]: exactly one of the parties is the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether the caller was the last to arrive.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier for `parties` microprocesses; 0 counts as 1.
    pub const fn new(parties: usize) -> Self {
        Self {
            parties,
            state: Guarded::new(State { arrived: 0, rounds: 0, waiters: WaitQueue::new() }),
        }
    }

    /// Waits until all parties have called this.
    ///
    /// The last to arrive wakes the others with events masked, a few nanoseconds each.
    pub fn wait(&self) -> BarrierWaitResult {
        let mut state = self.state.enter_at_point();
        state.arrived += 1;
        if state.arrived >= self.parties {
            state.arrived = 0;
            state.rounds = state.rounds.wrapping_add(1);
            while let Some(waiter) = state.waiters.pop() {
                waiter.wake(state.vp(), Outcome::Granted);
            }
            return BarrierWaitResult(true);
        }
        let round = state.rounds;
        let waiter = Waiter::new(state.microprocess(), 0);
        let reason = Reason { kind: Kind::Barrier, object: core::ptr::from_ref(self).addr() };
        let outcome = wait(&self.state, state, |state| &mut state.waiters, &waiter, None, reason);
        if outcome == Outcome::TimedOut {
            // It was killed: the others wait for another party, unless all had arrived already.
            let mut state = self.state.enter();
            if state.rounds == round {
                state.arrived -= 1;
            }
        }
        end_wait(outcome, None);
        BarrierWaitResult(false)
    }
}
