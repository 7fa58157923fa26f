//! How many tasks, processes and threads together, an instance may have; and that it makes none while it ends.
//!
//! Where there is a limit, making one is a served call, so that the server can count. It counts by looking, and rarely: what it finds free it gives out one by one, and looks again
//! when that is used up. Tasks that end in between are found then.
//!
//! **Invariant:** behind each look, as many are let through as were missing to the limit. Calls under way during the look are not seen by it: there are
//! at most as many as there are tasks, so twice the limit is never exceeded.

use crate::clients::tree;
use kyocho_microprocess::sync::Mutex;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::PoisonError;

/// Who may be made.
#[derive(Debug)]
pub(crate) struct Admission {
    tasks_max: Option<usize>,
    /// Free places found by the last look and not given out yet.
    free: Mutex<usize>,
    closed: AtomicBool,
}

impl Admission {
    pub(crate) fn new(tasks_max: Option<usize>) -> Self {
        Self { tasks_max, free: Mutex::new(0), closed: AtomicBool::new(false) }
    }

    /// Whether tasks have a limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.tasks_max.is_some()
    }

    /// Nobody is let in from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// # Errors
    /// `AGAIN`, as from the host at a limit of the user's.
    pub(crate) fn admit(&self) -> Result<(), Errno> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Errno::AGAIN);
        }
        let Some(tasks_max) = self.tasks_max else { return Ok(()) };
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if *free == 0 {
            *free = tasks_max.saturating_sub(tree::tasks());
        }
        *free = free.checked_sub(1).ok_or(Errno::AGAIN)?;
        Ok(())
    }
}
