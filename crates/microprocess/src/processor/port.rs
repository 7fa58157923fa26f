//! The I/O port of a virtual processor: one ring shared with the kernel.
//!
//! ```text
//!   perform ── submit (holder, masked) ──► ring ──► kernel
//!                                                     │
//!   waiter ◄── make runnable ◄── reap (holder, masked) ◄── completion
//! ```
//!
//! A submission enters the kernel at once. An operation that need not wait is complete when that
//! call returns, and is reaped immediately: it costs one system call and no switch. Others are
//! reaped when the holder serves its attention word, and while it idles.
//!
//! # Which options of the ring
//! A virtual processor moves between kernel threads. That rules out `SINGLE_ISSUER`, and with it
//! `DEFER_TASKRUN`: they bind a ring to the thread that made it. A request that must wait is
//! completed by the kernel thread that *submitted* it, which the kernel interrupts for that, asleep
//! or not (`completion_does_not_wait_for_its_submitter`). With `COOP_TASKRUN` the kernel does not
//! interrupt a running submitter. If that thread has lost its virtual processor and computes, the
//! completion waits for its next clock tick. `COOP_TASKRUN` would save interrupts, but makes no
//! round trip through a socket pair faster. So the ring has no options.
//!
//! **Invariant:** the kernel owns what an operation points to until its completion is reaped. So no
//! operation returns before that, not even after a time limit. [`quiesce`](Port::quiesce) is called
//! before the stacks of a stopped runtime are freed.
#![expect(unsafe_code, reason = "the rings are in memory shared with the kernel")]

use core::{fmt, time::Duration};
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::{Mutex, PoisonError},
};

use io_uring::{IoUring, opcode, squeue, types::CancelBuilder, types::Timespec};
use kyocho_sys::{
    event::Event,
    fault::{self, Call},
    poll::{self, Interest},
    prim::{
        atomic::{AtomicBool, AtomicU32, Ordering},
        clock::monotonic_ns,
    },
};

use crate::data::deadline::Deadline;

/// The most submissions that the ring holds. They are handed to the kernel one by one.
const SUBMISSIONS_MAX: u32 = 64;

/// The most completions that the ring holds. The kernel keeps further ones until there is room.
const COMPLETIONS_MAX: u32 = 4096;

/// How long [`Port::quiesce`] waits for the kernel at a time, in seconds.
const QUIESCE_SECONDS: u64 = 1;

/// Ports of runtimes that have stopped, for reuse: a ring is expensive to set up. At most one for
/// each virtual processor that has existed at the same time.
static FREE: Mutex<Vec<&'static Port>> = Mutex::new(Vec::new());

/// Whether the kernel has refused a ring.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The I/O port of one virtual processor. [`wake`](Self::wake), [`cancel`](Self::cancel) and
/// [`cancel_all`](Self::cancel_all) may be called from any kernel thread. While a virtual processor
/// has the port, its holder calls the other methods, with events masked. Those allocate nothing.
pub(crate) struct Port {
    ring: IoUring,
    wake: Event,
    /// Operations whose completion has not been reaped. Written only by the holder.
    in_flight: AtomicU32,
    /// Whether the kernel waits for a bell's counter on behalf of this port. Used by the holder.
    bell: AtomicU32,
    complete: Complete,
}

/// Stores the result of an operation. Receives the user data of the submission, and the kernel's
/// result.
///
/// # Safety
/// The user data comes from a submission to a port with this function, and its completion is reaped
/// now, for the first time.
pub(crate) type Complete = unsafe fn(user_data: u64, result: i32);

/// Values of [`Port::bell`].
mod bell {
    /// No wait is submitted.
    pub(super) const UNARMED: u32 = 0;
    /// The kernel waits.
    pub(super) const ARMED: u32 = 1;
    /// The kernel cannot wait for a futex (before Linux 6.7): the port sleeps for short times
    /// instead.
    pub(super) const REFUSED: u32 = 2;
}

/// The user data of the wait for a bell. No operation has this value.
const BELL: u64 = 0;

/// How long a port sleeps at a time if the kernel cannot wait for a bell.
const BELL_REFUSED_NS: u64 = 1_000_000;

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl Port {
    /// A port that belongs to no virtual processor: one left from an earlier runtime, or a new one
    /// that passes results to `complete`. A process has a single such function. `None` if rings are
    /// not available.
    pub(crate) fn take(complete: Complete) -> Option<&'static Self> {
        if REFUSED.load(Ordering::Relaxed) {
            return None;
        }
        let left = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let port = left.or_else(|| Self::open(complete).map(|port| &*Box::leak(Box::new(port))));
        REFUSED.store(port.is_none(), Ordering::Relaxed);
        port
    }

    /// Keeps the port for reuse. No operation is in flight on it.
    pub(crate) fn put(&'static self) {
        debug_assert!(!self.is_pending(), "a port is returned only without pending operations");
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Sets up a ring; `None` if the kernel or a sandbox refuses it.
    pub(crate) fn open(complete: Complete) -> Option<Self> {
        fault::check(Call::Ring).ok()?;
        let wake = Event::new().ok()?;
        let ring = IoUring::builder()
            .dontfork()
            .setup_clamp()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS_MAX)
            .build(SUBMISSIONS_MAX)
            .ok()?;
        // Without these features a completion could be lost, or a request could refer to freed
        // arguments (both Linux 5.5).
        let usable = ring.params().is_feature_nodrop() && ring.params().is_feature_submit_stable();
        usable.then_some(Self {
            ring,
            wake,
            in_flight: AtomicU32::new(0),
            bell: AtomicU32::new(bell::UNARMED),
            complete,
        })
    }

    /// Whether operations are in flight. A wait for one is no deadlock.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    fn count(&self, change: i32) {
        let now = self.in_flight.load(Ordering::Relaxed).wrapping_add_signed(change);
        self.in_flight.store(now, Ordering::Relaxed);
    }

    /// Starts the operation `entry`. [`Complete`] will receive its user data.
    ///
    /// # Safety
    /// What the user data refers to, and all that `entry` points to, must stay valid until the
    /// completion is reaped. The caller holds the virtual processor, with events masked.
    pub(crate) unsafe fn submit(&self, entry: &squeue::Entry) {
        loop {
            // SAFETY: only the holder uses the ring's user side.
            let mut queue = unsafe { self.ring.submission_shared() };
            // SAFETY: the caller's promise.
            if unsafe { queue.push(entry) }.is_ok() {
                break;
            }
            drop(queue);
            // The ring is full of submissions that the kernel has not taken: see `flush`.
            self.flush();
            self.reap();
        }
        self.count(1);
        self.flush();
    }

    /// Hands submissions to the kernel. If the kernel lacks a resource for one, it stays in the
    /// ring. It is handed over with the next one, or when the port is reaped.
    fn flush(&self) {
        if fault::check(Call::Ring).is_ok() {
            drop(self.ring.submit());
        }
    }

    /// Whether there are submissions that the kernel has not taken.
    fn has_unsubmitted(&self) -> bool {
        // SAFETY: only the holder uses the ring's user side.
        !unsafe { self.ring.submission_shared() }.is_empty()
    }

    /// Passes on the results of completed operations, and makes their waiters runnable.
    pub(crate) fn reap(&self) {
        if !self.is_pending() && self.bell.load(Ordering::Relaxed) != bell::ARMED {
            return;
        }
        if self.has_unsubmitted() {
            self.flush();
        }
        // SAFETY: only the holder uses the ring's user side.
        let completions = unsafe { self.ring.completion_shared() };
        for completion in completions {
            if completion.user_data() == BELL {
                self.disarmed(completion.result());
                continue;
            }
            self.count(-1);
            // SAFETY: the user data of a submission whose completion is reaped here.
            unsafe { (self.complete)(completion.user_data(), completion.result()) };
        }
    }

    /// Makes the kernel complete a request when `counter`, which had the value `count`, is woken.
    fn arm(&self, counter: &'static AtomicU32, count: u32) {
        if self.bell.load(Ordering::Relaxed) != bell::UNARMED {
            return;
        }
        /// `FUTEX2_SIZE_U32`, on shared memory.
        const SHARED_WORD: u32 = 2;
        let every_bit = u64::from(u32::MAX);
        let wait =
            opcode::FutexWait::new(counter.as_ptr(), u64::from(count), every_bit, SHARED_WORD);
        // SAFETY: only the holder uses the ring's user side.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: the counter is never freed.
        if unsafe { queue.push(&wait.build().user_data(BELL)) }.is_ok() {
            self.bell.store(bell::ARMED, Ordering::Relaxed);
        }
        drop(queue);
        self.flush();
    }

    /// The kernel's wait has ended, or was refused.
    fn disarmed(&self, result: i32) {
        let state = if result == -libc::EINVAL { bell::REFUSED } else { bell::UNARMED };
        self.bell.store(state, Ordering::Relaxed);
    }

    /// Sleeps until an operation completes, [`wake`](Self::wake) is called, `bell` (a counter and
    /// its former value) is rung, or `deadline` passes. The virtual processor has nothing else to
    /// do, and calls [`reap`](Self::reap) once it is awake.
    pub(crate) fn wait(&self, deadline: Option<Deadline>, bell: Option<(&'static AtomicU32, u32)>) {
        if let Some((counter, count)) = bell {
            self.arm(counter, count);
        }
        let sleeps_shortly = bell.is_some() && self.bell.load(Ordering::Relaxed) != bell::ARMED;
        let soon = || Deadline::at_ns(monotonic_ns() + BELL_REFUSED_NS);
        let deadline = if sleeps_shortly {
            deadline.min(Some(soon())).or_else(|| Some(soon()))
        } else {
            deadline
        };
        let timeout = deadline
            .map(|deadline| Duration::from_nanos(deadline.ns().saturating_sub(monotonic_ns())));
        if self.has_unsubmitted() {
            self.flush();
        }
        // A signal or an error ends the wait early. The caller then finds nothing to do, and waits
        // again.
        let _ = poll::wait(
            [(self.ring_descriptor(), Interest::Read), (self.wake.as_fd(), Interest::Read)],
            timeout,
        );
        let _ = self.wake.drain();
    }

    fn ring_descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring owns its descriptor and lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Ends the present [`wait`](Self::wait), or the next one. May be called from any kernel
    /// thread.
    pub(crate) fn wake(&self) {
        // An event counter accepts every notification.
        let _ = self.wake.notify();
    }

    /// Asks the kernel to cancel the operation with this user data. May be called from any kernel
    /// thread: the call does not use the ring's user side.
    pub(crate) fn cancel(&self, user_data: u64) {
        let wanted = CancelBuilder::user_data(user_data);
        // If the operation is done, or can no longer be cancelled, it completes all the same.
        drop(self.ring.submitter().register_sync_cancel(Some(Timespec::new()), wanted));
    }

    /// Asks the kernel to cancel all operations. May be called from any kernel thread, as
    /// [`cancel`](Self::cancel).
    pub(crate) fn cancel_all(&self) {
        let limit = Timespec::new().sec(QUIESCE_SECONDS);
        drop(self.ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any()));
    }

    /// Cancels what is in flight, and waits until the kernel has released all of it.
    pub(crate) fn quiesce(&self) {
        while self.is_pending() {
            self.cancel_all();
            self.wait(Deadline::after(Duration::from_secs(QUIESCE_SECONDS)), None);
            self.reap();
        }
    }
}
