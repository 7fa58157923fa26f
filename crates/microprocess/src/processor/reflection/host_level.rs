//! The level that the host knows for one kernel thread, and which thread may change it.
//!
//! ```text
//!   normal, a level ─ inform ────────► BUSY ── sched_setattr ──► the level
//!                                          by the monitor, or the new holder; if busy: later
//!                   ── while_normal ─► BUSY ── sched_setattr, start a process ──► normal
//!                                          by the thread itself; waits if busy
//! ```
//!
//! **Invariant:** only the thread that has set `BUSY` changes the host's attributes of this thread.
//! (`tests/models/host_level.rs` checks this file in every order of memory accesses.)

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};
use kyocho_sys::scheduling::set_attributes;
use kyocho_sys::task::ThreadId;

use super::Permissions;
use crate::data::priority::Priority;
use crate::protocol::pause;

/// The value while the host's attributes of the thread are being changed.
pub(super) const BUSY: u8 = u8::MAX;
/// The value for a thread that inherited the class of the thread that made it.
const INHERITED: u8 = u8::MAX - 1;

/// The level that the host was last given for one kernel thread, or one of the values above.
#[derive(Debug)]
pub(crate) struct HostLevel(pub(super) AtomicU8);

impl HostLevel {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(Priority::NORMAL.level()))
    }

    /// Resets the value for a new thread: to the normal level, or to [`INHERITED`] if there are
    /// `permissions` and some thread of the process was ever raised. The maker, which starts this
    /// thread, may then be raised, even by another runtime.
    pub(crate) fn begin(&self, permissions: Option<Permissions>) {
        let inherits = permissions.is_some() && pause::RAISED.load(Ordering::Relaxed);
        self.0
            .store(if inherits { INHERITED } else { Priority::NORMAL.level() }, Ordering::Relaxed);
    }

    pub(super) fn is(&self, level: u8) -> bool {
        self.0.load(Ordering::Relaxed) == level
    }

    /// Informs the host that `thread`, to which this belongs, runs `level`. Does nothing while
    /// another thread changes it: the monitor will try again.
    pub(crate) fn inform(&self, thread: Option<ThreadId>, level: u8, permissions: Permissions) {
        let Some(thread) = thread.filter(|_| !self.is(level)) else { return };
        if self.0.swap(BUSY, Ordering::Acquire) == BUSY {
            return;
        }
        // If the host refuses now what it permitted, the attributes stay as they were.
        let _as_it_was = set_attributes(thread, permissions.attributes(level));
        self.0.store(level, Ordering::Release);
    }

    /// Runs `body`, which starts a process, while the calling thread `thread` is at the normal
    /// level.
    ///
    /// Waits if another thread is changing the attributes: the new process would inherit the
    /// result.
    #[cfg(feature = "io")]
    pub(crate) fn while_normal<T>(
        &self,
        thread: ThreadId,
        permissions: Permissions,
        body: impl FnOnce() -> T,
    ) -> T {
        let normal = Priority::NORMAL.level();
        let mut last = self.0.swap(BUSY, Ordering::Acquire);
        while last == BUSY {
            pause::let_others_run();
            last = self.0.swap(BUSY, Ordering::Acquire);
        }
        if last != normal {
            // If the host refuses now what it permitted, the process inherits the thread's
            // attributes.
            let _as_it_was = set_attributes(thread, permissions.attributes(normal));
        }
        let value = body();
        self.0.store(normal, Ordering::Release);
        value
    }

    /// Resets the only thread of a forked process to the normal level, even if a change was in
    /// progress at the fork. Safe in a signal handler.
    pub(super) fn end_in_child(&self, permissions: Permissions) {
        let normal = Priority::NORMAL.level();
        // If the host refuses now what it permitted, the attributes stay as they were.
        let _as_it_was = set_attributes(ThreadId::current(), permissions.attributes(normal));
        self.0.store(normal, Ordering::Relaxed);
    }
}
