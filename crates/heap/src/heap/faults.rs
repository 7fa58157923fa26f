//! Fault injection for tests: the kernel thread that collects may be killed, or panic, at any step
//! of a collection.
//!
//! Outside of tests no fault is armed, and a step costs a load and a branch.

use super::Heap;
use core::fmt;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The injected fault.
type Fault = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Armed {
    fault: Option<Fault>,
    /// Steps until the fault.
    left: usize,
}

/// An armed fault, if any.
#[derive(Default)]
pub struct Faults {
    is_armed: AtomicBool,
    armed: Mutex<Armed>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

impl Heap {
    /// For tests: the faults of helpers.
    ///
    /// # Panics
    /// If the heap has no helpers.
    #[must_use]
    pub fn helpers_faults(&self) -> &Faults {
        &self.team.as_ref().expect("there are helpers").faults
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms a fault: it occurs once, after `left` steps.
    pub fn arm(&self, left: usize, fault: impl Fn() + Send + Sync + 'static) {
        *self.lock() = Armed { fault: Some(Arc::new(fault)), left };
        self.is_armed.store(true, Ordering::Release);
    }

    /// Whether the fault has not occurred yet.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.lock().fault.is_some()
    }

    /// Called when a step begins.
    #[inline]
    pub(crate) fn step(&self) {
        if self.is_armed.load(Ordering::Acquire) {
            self.armed_step();
        }
    }

    #[cold]
    fn armed_step(&self) {
        let due = {
            let mut armed = self.lock();
            let is_due = armed.left == 0;
            armed.left = armed.left.saturating_sub(1);
            if is_due {
                self.is_armed.store(false, Ordering::Release);
                armed.fault.take()
            } else {
                None
            }
        };
        if let Some(fault) = due {
            fault();
        }
    }
}
