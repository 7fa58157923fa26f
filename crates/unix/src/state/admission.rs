//! The limit of tasks (processes and threads together) of an instance, and the end of making any.
//!
//! If there is a limit, making a task is a served call, so that the server can count. It counts
//! rarely: it looks at all processes, admits as many tasks as were missing to the limit, and looks
//! again when these are used up. That look finds the tasks that have ended in between.
//!
//! **Invariant:** after each look, as many tasks are admitted as were missing to the limit. The
//! look does not see calls that are in progress. There are at most as many of them as tasks, so
//! twice the limit is never exceeded.

use crate::clients::tree;
use kyocho_microprocess::sync::Mutex;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::PoisonError;

/// Admits tasks.
#[derive(Debug)]
pub(crate) struct Admission {
    tasks_max: Option<usize>,
    /// Places that the last look found free and that are not taken yet.
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

    /// No task is admitted from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// # Errors
    /// `AGAIN`, as from the host at a user's limit.
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
