//! What the host was told about one kernel thread, and by whom it may be told something else.
//!
//! ```text
//!   normal, a level ──tell──► BUSY ── sched_setattr ──► the level     the monitor, or the heir of a virtual processor; else: later
//!                   ──untold─► BUSY ── sched_setattr, start a process ──► normal     the thread itself; waits for who tells
//! ```
//!
//! **Invariant:** who holds `BUSY` is alone in telling the host of this thread. (`tests/models/told.rs` runs this file in every order.)

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};
use kyocho_sys::scheduling::set_attributes;
use kyocho_sys::task::ThreadId;

use super::Means;
use crate::data::priority::Priority;
use crate::protocol::pause::{RAISED, let_others_run};

/// What a thread that is being told something was told.
pub(super) const BUSY: u8 = u8::MAX;
/// What one was told that is of the class of who made it.
const INHERITED: u8 = u8::MAX - 1;

/// What the host was last told about one kernel thread: a level, or one of the above.
#[derive(Debug)]
pub(crate) struct Told(pub(super) AtomicU8);

impl Told {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(Priority::NORMAL.level()))
    }

    /// Nothing, or what its maker was told: where there are `means`, perhaps by another runtime.
    pub(crate) fn begin(&self, means: Option<Means>) {
        let inherits = means.is_some() && RAISED.load(Ordering::Relaxed);
        self.0
            .store(if inherits { INHERITED } else { Priority::NORMAL.level() }, Ordering::Relaxed);
    }

    pub(super) fn is(&self, level: u8) -> bool {
        self.0.load(Ordering::Relaxed) == level
    }

    /// Tells the host that `thread`, whose this is, runs what has `level`. Not while somebody else does: the monitor comes again.
    pub(crate) fn tell(&self, thread: Option<ThreadId>, level: u8, means: Means) {
        let Some(thread) = thread.filter(|_| !self.is(level)) else { return };
        if self.0.swap(BUSY, Ordering::Acquire) == BUSY {
            return;
        }
        // Refused since it was permitted: then it stays as it is.
        let _as_it_was = set_attributes(thread, means.attributes(level));
        self.0.store(level, Ordering::Release);
    }

    /// Runs `body`, which starts a process, with nothing told about the calling thread `thread`.
    ///
    /// Waits for who is telling the host something: what that says would be the process's too.
    pub(crate) fn untold<T>(&self, thread: ThreadId, means: Means, body: impl FnOnce() -> T) -> T {
        let normal = Priority::NORMAL.level();
        let mut last = self.0.swap(BUSY, Ordering::Acquire);
        while last == BUSY {
            let_others_run();
            last = self.0.swap(BUSY, Ordering::Acquire);
        }
        if last != normal {
            // Refused since it was permitted: then the process is as the thread.
            let _as_it_was = set_attributes(thread, means.attributes(normal));
        }
        let value = body();
        self.0.store(normal, Ordering::Release);
        value
    }

    /// Makes the only thread of a process that was forked nobody special, whatever was being told at the fork. Safe in a signal handler.
    pub(super) fn end_in_child(&self, means: Means) {
        let normal = Priority::NORMAL.level();
        // Refused since it was permitted: then it stays as it was.
        let _as_it_was = set_attributes(ThreadId::current(), means.attributes(normal));
        self.0.store(normal, Ordering::Relaxed);
    }
}
