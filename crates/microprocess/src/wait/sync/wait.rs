//! How a microprocess waits for an object, alone or for several at once.
//!
//! ```text
//!   waiter (holds the object's guard)          waker (holds the object's guard)
//!   ---------------------------------          --------------------------------
//!   push its node, park: the guard is          pop a node = claim it
//!   given up once the stack is saved           write the value into its slot, its outcome
//!                                              wake it: from here on the node may be gone
//!   runs again; the node is out of
//!   the queue, the outcome tells why
//! ```
//!
//! After a time limit ran out the waiter enters the guard again and looks at its outcome there: if
//! a waker was faster, the wait succeeded. So a grant is never lost, and a waker never writes to a
//! node that has gone.
//!
//! A `select` stands in several queues with one [`Episode`]. A waker that pops one of its nodes
//! must win the episode first; it does so while it holds the guard of the object, and the selecter
//! takes each remaining node out under that node's guard before it returns: the same two promises.
//!
//! Lock order: an object's guard, then an episode's. No two episodes' guards are held at once.
#![expect(unsafe_code, reason = "nodes on other microprocesses' stacks")]

use core::{
    cell::Cell,
    fmt,
    marker::PhantomPinned,
    ptr::{self, NonNull},
};

use kyocho_sys::prim::cell::UnsafeCell;

use super::wait_queue::{Links, WaitQueue};
use crate::processor::inherit::{Ranked, Ranking};
use crate::processor::record::{MicroprocessRef, Reason, Record};
use crate::processor::vp::Masked;
use crate::schedule::guarded::{Deadline, Guard, Guarded, WakeCause, make_runnable_from};
use crate::schedule::kill_point;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has not: the time limit ran out first, or the waiter was killed.
    TimedOut,
    /// What was waited for is the waiter's.
    Granted,
    /// It can never come: the other side of the channel is gone.
    Disconnected,
}

/// One microprocess in one queue.
pub(crate) struct Waiter {
    pub(super) links: UnsafeCell<Links>,
    who: MicroprocessRef,
    /// Changed in no queue, or by whoever takes it out and queues it anew.
    priority: Cell<u8>,
    /// Tells kinds of waiters apart where one queue holds several; the index of a select's arm.
    token: u32,
    /// Null where the microprocess waits in this queue alone.
    episode: *const Episode,
    /// Where a waker finds or leaves the value that changes hands.
    slot: *mut (),
    outcome: Cell<Outcome>,
    _pinned: PhantomPinned,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Waiter {
    /// `who`, waiting in one queue for no value.
    #[inline]
    pub(crate) fn new(who: MicroprocessRef, token: u32) -> Self {
        Self::with_slot(who, token, ptr::null_mut())
    }

    /// `who`, waiting in one queue with a value's place.
    #[inline]
    pub(crate) fn with_slot(who: MicroprocessRef, token: u32, slot: *mut ()) -> Self {
        Self {
            links: Links::new(),
            who,
            priority: Cell::new(who.priority()),
            token,
            episode: ptr::null(),
            slot,
            outcome: Cell::new(Outcome::TimedOut),
            _pinned: PhantomPinned,
        }
    }

    /// The current microprocess as if it had another priority.
    #[cfg(test)]
    pub(super) fn with_priority(token: u32, priority: u8) -> Self {
        Self { priority: Cell::new(priority), ..Self::new(MicroprocessRef::current(), token) }
    }

    /// The current microprocess as one arm of `episode`, which must outlive the waiter's stay in any
    /// queue.
    pub(crate) fn of_episode(token: u32, slot: *mut (), episode: &Episode) -> Self {
        Self { episode, ..Self::with_slot(MicroprocessRef::current(), token, slot) }
    }

    pub(crate) fn priority(&self) -> u8 {
        self.priority.get()
    }

    /// Gives it another priority; it stands in no queue.
    pub(super) fn set_priority(&self, priority: u8) {
        self.priority.set(priority);
    }

    /// Who waits.
    pub(super) fn who(&self) -> MicroprocessRef {
        self.who
    }

    pub(crate) fn token(&self) -> u32 {
        self.token
    }

    /// How the wait ended, for the waiter itself once it stands in no queue.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.get()
    }

    /// Whether this is an arm of `episode`.
    pub(crate) fn is_arm_of(&self, episode: &Episode) -> bool {
        ptr::eq(self.episode, episode)
    }
}

/// A waiter that has been taken out of its queue for its grant; nobody else can claim it.
#[must_use = "a claimed waiter that is not woken waits for ever"]
pub(crate) struct Claimed {
    waiter: NonNull<Waiter>,
    parked: bool,
}

impl Claimed {
    /// Claims `waiter`, unless another arm of its episode was faster or its runtime has stopped.
    #[inline]
    pub(super) fn claim(waiter: &Waiter) -> Option<Self> {
        if waiter.who.is_abandoned() {
            return None;
        }
        // SAFETY: null, or the episode of a queued waiter, which outlives its stay in the queue.
        let parked = match unsafe { waiter.episode.as_ref() } {
            None => true,
            Some(episode) => episode.claim(waiter.token)?,
        };
        Some(Self { waiter: NonNull::from(waiter), parked })
    }

    fn waiter(&self) -> &Waiter {
        // SAFETY: a claimed waiter stays where it is until `wake`, or until the guard under which
        // it was claimed is left, which the claimer does after `wake`.
        unsafe { self.waiter.as_ref() }
    }

    /// Where the value lies or goes.
    pub(crate) fn slot<T>(&self) -> *mut T {
        self.waiter().slot.cast()
    }

    pub(crate) fn who(&self) -> MicroprocessRef {
        self.waiter().who
    }

    #[cfg(test)]
    pub(super) fn token(&self) -> u32 {
        self.waiter().token
    }

    /// Lets the waiter go on with `outcome`. To be called on `vp` before the object's guard is left.
    #[inline]
    pub(crate) fn wake(self, vp: Masked<'_>, outcome: Outcome) {
        let who = self.who();
        self.waiter().outcome.set(outcome);
        if self.parked {
            make_runnable_from(vp, who);
        }
    }
}

/// Stands the current microprocess, as `waiter`, in a queue of `object` until it is granted
/// something or `deadline` passes.
///
/// `queue` chooses the queue among the object's data. The guard is given up while waiting.
///
/// [`Outcome::TimedOut`] without a `deadline` means that the caller is killed; with one it may. The caller then
/// undoes what it has to and goes to a kill point: [`end_wait`].
#[inline(always)]
pub(crate) fn wait<S>(
    object: &Guarded<S>,
    guard: Guard<'_, S>,
    queue: impl Fn(&mut S) -> &mut WaitQueue,
    waiter: &Waiter,
    deadline: Option<Deadline>,
    reason: Reason,
) -> Outcome {
    wait_after(object, guard, queue, waiter, deadline, reason, || {})
}

/// The same; calls `once_queued` between queueing and parking, under the guard.
#[inline(always)]
pub(crate) fn wait_after<S>(
    object: &Guarded<S>,
    mut guard: Guard<'_, S>,
    queue: impl Fn(&mut S) -> &mut WaitQueue,
    waiter: &Waiter,
    deadline: Option<Deadline>,
    reason: Reason,
    once_queued: impl FnOnce(),
) -> Outcome {
    // SAFETY: `waiter` is fresh or has left its queue; it is borrowed until this function returns,
    // and by then it is in no queue: a waker took it out, or we do after the time ran out.
    unsafe { queue(&mut guard).push(waiter) };
    once_queued();
    let place = InQueue { object, waiter, queue: &queue };
    let ranked = Ranked { by: &place };
    waiter.who.0.begin_ranked(&ranked);
    let cause = match deadline {
        None => guard.park(reason),
        Some(deadline) => guard.park_until(deadline, reason),
    };
    waiter.who.0.end_ranked();
    if cause == WakeCause::TimedOut {
        queue(&mut object.enter()).remove(waiter);
    }
    waiter.outcome()
}

/// A place in a queue of `object`.
struct InQueue<'a, S, Q> {
    object: &'a Guarded<S>,
    waiter: &'a Waiter,
    queue: &'a Q,
}

impl<S, Q: Fn(&mut S) -> &mut WaitQueue> Ranking for InQueue<'_, S, Q> {
    fn rank_anew(&self, who: &'static Record, _: Masked<'_>) -> Option<&'static Record> {
        let mut state = self.object.enter();
        (self.queue)(&mut state).rank_anew(self.waiter, who.effective_level());
        None
    }
}

/// The kill point behind a wait; tells whether it was granted.
///
/// A wait without a time limit is, or this does not return.
#[inline(always)]
pub(crate) fn end_wait(outcome: Outcome, deadline: Option<Deadline>) -> bool {
    if outcome == Outcome::TimedOut {
        kill_point::after_wait(deadline);
    }
    outcome == Outcome::Granted
}

/// One `select`: a wait in several queues of which at most one grants.
#[derive(Debug)]
pub struct Episode {
    state: Guarded<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The arms are being queued; a claim now makes the park return at once.
    Registering,
    /// Parked: whoever claims must wake.
    Parked,
    /// The arm of this index won.
    Claimed(u32),
    /// Nobody claimed in time, and nobody can any more.
    Closed,
}

impl Episode {
    pub(crate) const fn new() -> Self {
        Self { state: Guarded::new(Phase::Registering) }
    }

    /// Wins the episode for arm `token`; tells whether the selecter is parked.
    fn claim(&self, token: u32) -> Option<bool> {
        let mut phase = self.state.enter();
        let parked = match *phase {
            Phase::Registering => false,
            Phase::Parked => true,
            Phase::Claimed(_) | Phase::Closed => return None,
        };
        *phase = Phase::Claimed(token);
        Some(parked)
    }

    /// Parks until an arm is claimed or `deadline` passes; returns the arm. All arms are queued.
    pub(crate) fn park(&self, deadline: Option<Deadline>, reason: Reason) -> Option<u32> {
        let mut phase = self.state.enter();
        if *phase == Phase::Registering {
            *phase = Phase::Parked;
            match deadline {
                None => {
                    phase.park(reason);
                }
                Some(deadline) => {
                    phase.park_until(deadline, reason);
                }
            }
        } else {
            drop(phase);
        }
        self.close()
    }

    /// Ends the episode: from now on nobody claims it. Returns the arm that was claimed before.
    pub(crate) fn close(&self) -> Option<u32> {
        let mut phase = self.state.enter();
        if let Phase::Claimed(token) = *phase {
            return Some(token);
        }
        *phase = Phase::Closed;
        None
    }
}
