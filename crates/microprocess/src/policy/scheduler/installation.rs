//! Installs a user scheduler while the runtime runs.

use core::fmt;
use std::sync::Arc;

use super::{Fault, Scheduler};
use crate::data::priority::Priority;
use crate::policy::configuration;
use crate::processor::ready::{self, Installed};
use crate::processor::vp::attention;
use crate::schedule::mask;

type Make = dyn Fn(usize) -> Box<dyn Scheduler> + Send + Sync;

/// Makes user schedulers, one for each virtual processor.
#[derive(Clone)]
pub(crate) struct Factory(Arc<Make>);

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").finish_non_exhaustive()
    }
}

impl Factory {
    pub(crate) fn new(make: impl Fn(usize) -> Box<dyn Scheduler> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// A scheduler for virtual processor `index`. Allocates.
    pub(crate) fn make(&self, index: usize) -> Box<Installed> {
        Installed::new(Some((self.0)(index)))
    }
}

/// Replaces the scheduler of every virtual processor of the caller's runtime. `make` is called with
/// the index of each, and makes its scheduler.
///
/// The caller's virtual processor changes before this returns, the others at their next scheduling
/// points. Runnable microprocesses move to the new scheduler in the order in which they would have
/// run.
///
/// # Panics
/// The caller is not a microprocess.
pub fn install(make: impl Fn(usize) -> Box<dyn Scheduler> + Send + Sync + 'static) {
    replace(Some(Factory::new(make)));
}

/// Restores the built-in scheduler: 64 fixed priorities, first come, first served.
///
/// # Panics
/// The caller is not a microprocess.
pub fn remove() {
    replace(None);
}

fn replace(factory: Option<Factory>) {
    let section = mask();
    let shared = section.vp.shared();
    section.leave();
    configuration::of(shared).change(|scheduler| {
        for vp in shared.vps() {
            let fresh = factory.as_ref().map(|factory| factory.make(vp.index));
            vp.queue_control().offer(fresh.unwrap_or_else(|| Installed::new(None)));
            vp.alert(attention::INSTALL);
        }
        *scheduler = factory;
    });
    ready::free_retired();
}

/// Which scheduler a virtual processor has, and whether one failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the user scheduler of the caller's virtual processor; `None` for the built-in
    /// one.
    pub name: Option<&'static str>,
    /// The priority of the most urgent microprocess that waits for the caller's virtual processor.
    pub best: Option<Priority>,
    /// Why a user scheduler was removed from any virtual processor, since one was last installed
    /// there.
    pub fault: Option<Fault>,
}

/// Which scheduler the caller's virtual processor has, and whether one failed.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn report() -> Report {
    let section = mask();
    let vp = section.masked();
    let name = vp.queue().name();
    let best = vp.queue().highest().and_then(Priority::new);
    let fault = vp.shared().vps().iter().find_map(|vp| vp.queue_control().fault());
    section.leave();
    Report { name, best, fault }
}
