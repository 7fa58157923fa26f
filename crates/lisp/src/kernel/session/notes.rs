//! Events of threads for a policy of the scheduler.

use super::thread::{LispThread, WAITING};
use crate::kernel::lock;
use kyocho_heap::account::Account;
use kyocho_microprocess::Priority;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of threads in one question.
const ROWS_MAX: usize = 1024;
/// Maximum number of threads with unreported events. If there are that many, further threads are
/// reported when they run next.
const NOTES_MAX: usize = 1 << 16;

/// A thread with events since the last question.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) account: Arc<Account>,
    pub(crate) state: &'static str,
    /// Its running time since it was last reported.
    pub(crate) ran_ns: u64,
    /// Its own priority, which a policy's order replaces.
    pub(crate) own: Priority,
}

/// Threads with events: they became ready, blocked, ran, or ended.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    wanted: AtomicBool,
    threads: Mutex<Vec<Arc<LispThread>>>,
}

impl Notes {
    pub(crate) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
        for thread in core::mem::take(&mut *lock(&self.threads)) {
            thread.noted.store(false, Ordering::Release);
        }
    }

    /// Whether there is a policy to report to.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.threads).is_empty()
    }

    /// Records an event of the thread.
    pub(crate) fn note(&self, thread: &Arc<LispThread>) {
        if thread.is_policy() || thread.noted.load(Ordering::Acquire) {
            return;
        }
        let mut threads = lock(&self.threads);
        if threads.len() < NOTES_MAX && !thread.noted.swap(true, Ordering::AcqRel) {
            threads.push(Arc::clone(thread));
        }
    }

    pub(crate) fn take(&self) -> Vec<Row> {
        let mut threads = lock(&self.threads);
        let count = threads.len().min(ROWS_MAX);
        let reported: Vec<_> = threads.drain(..count).collect();
        drop(threads);
        reported.iter().map(Row::of).collect()
    }
}

impl Row {
    fn of(thread: &Arc<LispThread>) -> Self {
        // Events from here on are recorded again.
        thread.noted.store(false, Ordering::Release);
        let (ended, own) = {
            let inner = lock(&thread.inner);
            (inner.status.has_ended(), inner.priority)
        };
        let waits = thread.state.load(Ordering::Acquire) == WAITING;
        let state = match waits && !thread.woken.load(Ordering::Acquire) {
            _ if ended => "ended",
            true => "blocked",
            false => "ready",
        };
        let (ran_ns, account) = (thread.take_unreported_ns(), Arc::clone(&thread.session.account));
        Self { number: thread.id, account, state, ran_ns, own }
    }
}
