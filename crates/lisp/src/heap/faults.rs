//! Where tests have somebody who collects fail: each step of a collection is one at which he may be killed, or panic.

use super::Heap;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What befalls who comes to the step.
type Fault = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Armed {
    fault: Option<Fault>,
    /// Steps until then.
    left: usize,
}

/// A fault that waits for its step.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Armed>);

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faults")
    }
}

impl Heap {
    /// What befalls who helps.
    pub(crate) fn helpers_faults(&self) -> &Faults {
        &self.team.as_ref().expect("there are helpers").faults
    }
}

impl Faults {
    /// After so many steps this happens, once.
    pub(crate) fn arm(&self, left: usize, fault: impl Fn() + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Armed { fault: Some(Arc::new(fault)), left };
    }

    /// Whether it is still to come.
    pub(crate) fn is_armed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fault.is_some()
    }

    /// Somebody begins a step.
    pub(crate) fn step(&self) {
        let due = {
            let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = armed.left == 0;
            armed.left = armed.left.saturating_sub(1);
            if is_due { armed.fault.take() } else { None }
        };
        if let Some(fault) = due {
            fault();
        }
    }
}
