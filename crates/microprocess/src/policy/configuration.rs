//! The settings that may be changed at run time, by one microprocess at a time.

use core::ptr;
use std::sync::{Mutex, PoisonError};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::policy::scheduler::Factory;
use crate::processor::shared::Shared;
use crate::wait::sync::Mutex as RuntimeMutex;

/// The changeable configuration of one runtime.
pub(crate) struct Configuration {
    of: &'static Shared,
    /// Makes user schedulers for virtual processors. `None` means the built-in scheduler, or the
    /// schedulers that the runtime was built with. Locked while schedulers or the number of virtual
    /// processors are changed.
    scheduler: RuntimeMutex<Option<Factory>>,
    /// The number of microprocesses that change something or wait for the lock.
    changing: AtomicUsize,
}

impl Configuration {
    /// Calls `change` while no other microprocess changes anything. Only a microprocess may call
    /// it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Option<Factory>)) {
        self.changing.fetch_add(1, Ordering::SeqCst);
        let mut scheduler = self.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut scheduler);
        drop(scheduler);
        self.changing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The configurations made so far, one for each `Shared`.
static ALL: Mutex<Vec<&'static Configuration>> = Mutex::new(Vec::new());

/// The configuration of a runtime, made at the first call. Allocates.
pub(crate) fn of(shared: &'static Shared) -> &'static Configuration {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|known| ptr::eq(known.of, shared)) {
        return known;
    }
    let scheduler = RuntimeMutex::new(None);
    let changing = AtomicUsize::new(0);
    let made: &'static Configuration =
        Box::leak(Box::new(Configuration { of: shared, scheduler, changing }));
    all.push(made);
    made
}

/// Called when the run of `shared` has ended. If it ended in the middle of a change, the next run
/// with `shared` gets another configuration.
pub(crate) fn leave(shared: &'static Shared) {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|known| !ptr::eq(known.of, shared) || known.changing.load(Ordering::SeqCst) == 0);
}
