//! What may be changed while a runtime runs, by one microprocess at a time.

use core::ptr;
use std::sync::{Mutex, PoisonError};

use crate::policy::scheduler::Factory;
use crate::processor::shared::Shared;
use crate::wait::sync::Mutex as RuntimeMutex;

/// What may be changed of one runtime.
pub(crate) struct Configuration {
    of: &'static Shared,
    /// Makes user schedulers for virtual processors; `None`: the built-in one, or those that it was built with. Held while
    /// schedulers or the number of virtual processors are changed.
    pub(crate) scheduler: RuntimeMutex<Option<Factory>>,
}

/// Those that were asked for, one for each shared part of a runtime.
static ALL: Mutex<Vec<&'static Configuration>> = Mutex::new(Vec::new());

/// The configuration of a runtime, made when it is first asked for. Allocates.
pub(crate) fn of(shared: &'static Shared) -> &'static Configuration {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|known| ptr::eq(known.of, shared)) {
        return known;
    }
    let scheduler = RuntimeMutex::new(None);
    let made: &'static Configuration = Box::leak(Box::new(Configuration { of: shared, scheduler }));
    all.push(made);
    made
}
