//! Waiting of a microprocess for one object, or for several at once.
//!
//! ```text
//!   waiter (holds the object's guard)          waker (holds the object's guard)
//!   ---------------------------------          --------------------------------
//!   push its node, park: the guard is          pop a node = claim it
//!   given up once the stack is saved           write the value into its slot, its outcome
//!                                              wake it: from here on the node may be gone
//!   runs again; the node is out of
//!   the queue, the outcome says why
//! ```
//!
//! After a time limit has passed, the waiter enters the guard again and reads its outcome there: if
//! a waker was faster, the wait succeeded. So a grant is never lost, and a waker never writes to a
//! node that no longer exists.
//!
//! A `select` is in several queues with one [`Episode`]. A waker that pops one of its nodes must
//! first win the episode, and does so while it holds the guard of the object. Before the `select`
//! returns, it removes each remaining node under the guard of the object in whose queue the node
//! is. So the same two promises hold.
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

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not granted: the time limit passed first, or the waiter was killed.
    TimedOut,
    /// The waiter owns what it waited for.
    Granted,
    /// It can never be granted: the other side of the channel is dropped, or the channel is closed.
    Disconnected,
}

/// A microprocess in a queue.
pub(crate) struct Waiter {
    pub(super) links: UnsafeCell<Links>,
    microprocess: MicroprocessRef,
    /// Changed while it is in no queue, or by the thread that dequeues it and queues it anew.
    priority: Cell<u8>,
    /// Distinguishes kinds of waiters in one queue. For an arm of a select: its index.
    token: u32,
    /// Null if the microprocess waits only in this queue.
    episode: *const Episode,
    /// Where a waker reads or writes the value that changes its owner.
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
    /// `microprocess` as a waiter in one queue, for no value.
    #[inline]
    pub(crate) fn new(microprocess: MicroprocessRef, token: u32) -> Self {
        Self::with_slot(microprocess, token, ptr::null_mut())
    }

    /// `microprocess` as a waiter in one queue, with a place for a value.
    #[inline]
    pub(crate) fn with_slot(microprocess: MicroprocessRef, token: u32, slot: *mut ()) -> Self {
        Self {
            links: Links::new(),
            microprocess,
            priority: Cell::new(microprocess.priority()),
            token,
            episode: ptr::null(),
            slot,
            outcome: Cell::new(Outcome::TimedOut),
            _pinned: PhantomPinned,
        }
    }

    /// The current microprocess as a waiter with another priority.
    #[cfg(test)]
    pub(super) fn with_priority(token: u32, priority: u8) -> Self {
        Self { priority: Cell::new(priority), ..Self::new(MicroprocessRef::current(), token) }
    }

    /// The current microprocess as an arm of `episode`, which must outlive the waiter's time in any
    /// queue.
    pub(crate) fn of_episode(token: u32, slot: *mut (), episode: &Episode) -> Self {
        Self { episode, ..Self::with_slot(MicroprocessRef::current(), token, slot) }
    }

    pub(crate) fn priority(&self) -> u8 {
        self.priority.get()
    }

    /// Sets its priority; it is in no queue.
    pub(super) fn set_priority(&self, priority: u8) {
        self.priority.set(priority);
    }

    /// The microprocess that waits.
    pub(super) fn microprocess(&self) -> MicroprocessRef {
        self.microprocess
    }

    pub(crate) fn token(&self) -> u32 {
        self.token
    }

    /// The outcome of the wait. Read by the waiter itself, once it is in no queue.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome.get()
    }

    /// Whether this is an arm of `episode`.
    pub(crate) fn is_arm_of(&self, episode: &Episode) -> bool {
        ptr::eq(self.episode, episode)
    }
}

/// A waiter that was dequeued to be granted its wait. No other thread can claim it.
#[must_use = "a claimed waiter must be woken"]
pub(crate) struct Claimed {
    waiter: NonNull<Waiter>,
    parked: bool,
}

impl Claimed {
    /// Claims `waiter`, unless another arm of its episode was faster or its runtime has stopped.
    #[inline]
    pub(super) fn claim(waiter: &Waiter) -> Option<Self> {
        if waiter.microprocess.is_abandoned() {
            return None;
        }
        // SAFETY: null, or the episode of a queued waiter, which outlives the waiter's time in the
        // queue.
        let parked = match unsafe { waiter.episode.as_ref() } {
            None => true,
            Some(episode) => episode.claim(waiter.token)?,
        };
        Some(Self { waiter: NonNull::from(waiter), parked })
    }

    fn waiter(&self) -> &Waiter {
        // SAFETY: a claimed waiter does not move until `wake`, or until the guard is left under
        // which it was claimed. The claimer leaves that guard after `wake`.
        unsafe { self.waiter.as_ref() }
    }

    /// Where the value is, or goes.
    pub(crate) fn slot<T>(&self) -> *mut T {
        self.waiter().slot.cast()
    }

    pub(crate) fn microprocess(&self) -> MicroprocessRef {
        self.waiter().microprocess
    }

    #[cfg(test)]
    pub(super) fn token(&self) -> u32 {
        self.waiter().token
    }

    /// Ends the wait with `outcome`. Call on `vp`, before the object's guard is left.
    #[inline]
    pub(crate) fn wake(self, vp: Masked<'_>, outcome: Outcome) {
        let microprocess = self.microprocess();
        self.waiter().outcome.set(outcome);
        if self.parked {
            make_runnable_from(vp, microprocess);
        }
    }
}

/// Queues the current microprocess, as `waiter`, in a queue of `object`; waits until it is granted
/// or `deadline` passes.
///
/// `queue` selects the queue in the object's data. The guard is given up while waiting.
///
/// [`Outcome::TimedOut`] without a `deadline` means that the caller was killed; with a `deadline`
/// that is possible. The caller then cleans up and goes to a kill point: [`end_wait`].
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
    // SAFETY: `waiter` is new or has left its queue. It is borrowed until this function returns. By
    // then it is in no queue: a waker removed it, or this function does after the deadline.
    unsafe { queue(&mut guard).push(waiter) };
    once_queued();
    let place = InQueue { object, waiter, queue: &queue };
    let ranked = Ranked { by: &place };
    waiter.microprocess.0.begin_ranked(&ranked);
    let cause = match deadline {
        None => guard.park(reason),
        Some(deadline) => guard.park_until(deadline, reason),
    };
    waiter.microprocess.0.end_ranked();
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
    fn rank_anew(&self, record: &'static Record, _: Masked<'_>) -> Option<&'static Record> {
        let mut state = self.object.enter();
        (self.queue)(&mut state).rank_anew(self.waiter, record.effective_level());
        None
    }
}

/// The kill point at the end of a wait; returns whether the wait was granted.
///
/// A wait without a time limit was granted, or this does not return.
#[inline(always)]
pub(crate) fn end_wait(outcome: Outcome, deadline: Option<Deadline>) -> bool {
    if outcome == Outcome::TimedOut {
        kill_point::after_wait(deadline);
    }
    outcome == Outcome::Granted
}

/// One `select`: a wait in several queues, at most one of which grants it.
#[derive(Debug)]
pub struct Episode {
    state: Guarded<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The arms are being queued. A claim now makes the park return at once.
    Registering,
    /// Parked: a thread that claims an arm must wake the microprocess.
    Parked,
    /// The arm with this index won.
    Claimed(u32),
    /// No arm was claimed in time, and none can be any more.
    Closed,
}

impl Episode {
    pub(crate) const fn new() -> Self {
        Self { state: Guarded::new(Phase::Registering) }
    }

    /// Wins the episode for arm `token`; returns whether the selecting microprocess is parked.
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

    /// Parks until an arm is claimed or `deadline` passes; returns the arm. All arms must be
    /// queued.
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

    /// Ends the episode: no arm can be claimed from now on. Returns the arm that was claimed
    /// before.
    pub(crate) fn close(&self) -> Option<u32> {
        let mut phase = self.state.enter();
        if let Phase::Claimed(token) = *phase {
            return Some(token);
        }
        *phase = Phase::Closed;
        None
    }
}
