//! The I/O port of a virtual processor: one ring shared with the kernel.
//!
//! ```text
//!   perform ── submit (holder, masked) ──► ring ──► kernel
//!                                                     │
//!   waiter ◄── make runnable ◄── reap (holder, masked) ◄── completion
//! ```
//!
//! A submission enters the kernel at once. What can be done at once is then complete when the call
//! returns and is reaped on the spot, so an operation that need not wait costs one system call and
//! no switch. The others are reaped when the holder serves its attention word and while it idles.
//!
//! # Which flavour of ring
//! A virtual processor moves between kernel threads, so `SINGLE_ISSUER` and with it `DEFER_TASKRUN`
//! are out: they bind a ring to the thread that made it. A request that has to wait is finished by
//! *its submitter's* kernel thread, which the kernel kicks for that, asleep or not
//! (`completion_does_not_wait_for_its_submitter`). With `COOP_TASKRUN` it is not kicked while it
//! runs: if it lost its virtual processor and computes elsewhere, the completion waits for its next
//! clock tick. In return interrupts would be saved, but round trips through a socket pair on one and
//! two virtual processors took the same time either way, so the ring is a plain one.
//!
//! **Invariant:** the kernel owns what an operation points to until its completion is reaped. So
//! nobody returns before, not after a time limit either, and [`quiesce`](Port::quiesce) comes before
//! the stacks of a stopped runtime go.
#![expect(unsafe_code, reason = "the rings are memory shared with the kernel")]

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

/// Submissions the ring takes before they are handed to the kernel; they are, one by one.
const SUBMISSIONS_MAX: u32 = 64;

/// Completions the ring holds; beyond, the kernel keeps them until there is room.
const COMPLETIONS_MAX: u32 = 4096;

/// How long [`Port::quiesce`] waits for the kernel at a time, in seconds.
const QUIESCE_SECONDS: u64 = 1;

/// Ports of runtimes that have stopped: rings are dear to set up. At most one for each virtual
/// processor that ever existed at a time.
static FREE: Mutex<Vec<&'static Port>> = Mutex::new(Vec::new());

/// Whether the kernel gave us no ring when asked.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The I/O of one virtual processor. All but [`wake`](Self::wake) and [`cancel`](Self::cancel) are
/// for the holder, with events masked; nothing here allocates after [`open`](Self::open).
pub(crate) struct Port {
    ring: IoUring,
    wake: Event,
    /// Operations whose completion has not been reaped. Written by the holder alone.
    in_flight: AtomicU32,
    /// Whether the kernel waits for a bell's counter on our behalf. The holder's.
    bell: AtomicU32,
    complete: Complete,
}

/// Gives an operation its result: gets the user data of its submission, and what the kernel reports.
///
/// # Safety
/// The user data is that of a submission to a port with this function, whose completion has not been reaped before.
pub(crate) type Complete = unsafe fn(user_data: u64, result: i32);

/// Values of [`Port::bell`].
mod bell {
    /// Nobody waits.
    pub(super) const UNARMED: u32 = 0;
    /// The kernel does.
    pub(super) const ARMED: u32 = 1;
    /// The kernel cannot (before Linux 6.7): sleeps are short instead.
    pub(super) const REFUSED: u32 = 2;
}

/// The user data of the wait for a bell: that of no operation.
const BELL: u64 = 0;

/// How long a port sleeps at a time where the kernel cannot wait for a bell.
const BELL_REFUSED_NS: u64 = 1_000_000;

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl Port {
    /// A port that belongs to no virtual processor: one that is left from an earlier runtime, or a
    /// new one that hands results to `complete`, of which a process has one; `None` where there are no rings.
    pub(crate) fn take(complete: Complete) -> Option<&'static Self> {
        if REFUSED.load(Ordering::Relaxed) {
            return None;
        }
        let left = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let port = left.or_else(|| Self::open(complete).map(|port| &*Box::leak(Box::new(port))));
        REFUSED.store(port.is_none(), Ordering::Relaxed);
        port
    }

    /// Keeps a port for the next who needs one. Nothing is in flight on it.
    pub(crate) fn put(&'static self) {
        debug_assert!(!self.is_pending(), "a port is left when it is quiet");
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Sets a ring up; `None` where the kernel, or who confines us, refuses.
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
        // Without them a completion could be lost (5.5), or a request refer to freed arguments (5.5).
        let usable = ring.params().is_feature_nodrop() && ring.params().is_feature_submit_stable();
        usable.then_some(Self {
            ring,
            wake,
            in_flight: AtomicU32::new(0),
            bell: AtomicU32::new(bell::UNARMED),
            complete,
        })
    }

    /// Whether operations are in flight: waiting for them is no deadlock.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    fn count(&self, change: i32) {
        let now = self.in_flight.load(Ordering::Relaxed).wrapping_add_signed(change);
        self.in_flight.store(now, Ordering::Relaxed);
    }

    /// Starts the operation `entry`, whose user data means something to [`Complete`].
    ///
    /// # Safety
    /// What the user data means and all that `entry` points to stay valid until the completion is reaped. The
    /// caller holds the virtual processor, with events masked.
    pub(crate) unsafe fn submit(&self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the holder alone uses the ring's user side.
            let mut queue = unsafe { self.ring.submission_shared() };
            // SAFETY: the caller's promise.
            if unsafe { queue.push(entry) }.is_ok() {
                break;
            }
            drop(queue);
            // Full of what the kernel did not take for now: see `flush`.
            self.flush();
            self.reap();
        }
        self.count(1);
        self.flush();
    }

    /// Hands submissions to the kernel. What it does not take for want of a resource stays in the
    /// ring and is handed over with the next one, or when the port is reaped.
    fn flush(&self) {
        if fault::check(Call::Ring).is_ok() {
            drop(self.ring.submit());
        }
    }

    /// Whether submissions are left that the kernel has not taken.
    fn has_unsubmitted(&self) -> bool {
        // SAFETY: the holder alone uses the ring's user side.
        !unsafe { self.ring.submission_shared() }.is_empty()
    }

    /// Gives completed operations their result and makes their waiters runnable.
    pub(crate) fn reap(&self) {
        if !self.is_pending() && self.bell.load(Ordering::Relaxed) != bell::ARMED {
            return;
        }
        if self.has_unsubmitted() {
            self.flush();
        }
        // SAFETY: the holder alone uses the ring's user side.
        let completions = unsafe { self.ring.completion_shared() };
        for completion in completions {
            if completion.user_data() == BELL {
                self.disarmed(completion.result());
                continue;
            }
            self.count(-1);
            // SAFETY: the user data of a submission, whose completion is reaped here.
            unsafe { (self.complete)(completion.user_data(), completion.result()) };
        }
    }

    /// Has the kernel complete something when `counter`, which read `count`, is woken.
    fn arm(&self, counter: &'static AtomicU32, count: u32) {
        if self.bell.load(Ordering::Relaxed) != bell::UNARMED {
            return;
        }
        /// `FUTEX2_SIZE_U32`, on shared memory.
        const SHARED_WORD: u32 = 2;
        let every_bit = u64::from(u32::MAX);
        let wait =
            opcode::FutexWait::new(counter.as_ptr(), u64::from(count), every_bit, SHARED_WORD);
        // SAFETY: the holder alone uses the ring's user side.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: the counter lives for ever.
        if unsafe { queue.push(&wait.build().user_data(BELL)) }.is_ok() {
            self.bell.store(bell::ARMED, Ordering::Relaxed);
        }
        drop(queue);
        self.flush();
    }

    /// The kernel waits no longer, or never did.
    fn disarmed(&self, result: i32) {
        let state = if result == -libc::EINVAL { bell::REFUSED } else { bell::UNARMED };
        self.bell.store(state, Ordering::Relaxed);
    }

    /// Sleeps until an operation completes, [`wake`](Self::wake) is called, `bell` (a counter, and what it read) is rung, or
    /// `deadline` passes. The virtual processor has nothing else to do, and [`reap`](Self::reap)s once it is awake.
    pub(crate) fn wait(&self, deadline: Option<Deadline>, bell: Option<(&'static AtomicU32, u32)>) {
        if let Some((counter, count)) = bell {
            self.arm(counter, count);
        }
        let is_deaf = bell.is_some() && self.bell.load(Ordering::Relaxed) != bell::ARMED;
        let soon = || Deadline::at_ns(monotonic_ns() + BELL_REFUSED_NS);
        let deadline =
            if is_deaf { deadline.min(Some(soon())).or_else(|| Some(soon())) } else { deadline };
        let timeout = deadline
            .map(|deadline| Duration::from_nanos(deadline.ns().saturating_sub(monotonic_ns())));
        if self.has_unsubmitted() {
            self.flush();
        }
        // A signal or an error ends the wait early, which the caller takes as nothing to do yet.
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

    /// Ends a [`wait`](Self::wait), or the next one. From any kernel thread.
    pub(crate) fn wake(&self) {
        // An event counter takes every notification.
        let _ = self.wake.notify();
    }

    /// Asks the kernel to give up the operation with this user data. From any kernel thread: the call does
    /// not touch the ring's user side.
    pub(crate) fn cancel(&self, user_data: u64) {
        let wanted = CancelBuilder::user_data(user_data);
        // Done already, or beyond recall: its completion comes in either case.
        drop(self.ring.submitter().register_sync_cancel(Some(Timespec::new()), wanted));
    }

    /// Asks the kernel to give all operations up. From any kernel thread, as [`cancel`](Self::cancel).
    pub(crate) fn cancel_all(&self) {
        let limit = Timespec::new().sec(QUIESCE_SECONDS);
        drop(self.ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any()));
    }

    /// Gives up what is in flight and waits until the kernel has let go of all of it.
    pub(crate) fn quiesce(&self) {
        while self.is_pending() {
            self.cancel_all();
            self.wait(Deadline::after(Duration::from_secs(QUIESCE_SECONDS)), None);
            self.reap();
        }
    }
}
