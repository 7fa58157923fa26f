//! The real word with the level that the host knows for a thread. The host is a cell. A thread that
//! waits for another one yields to it.

#[path = "../../src/processor/reflection/host_level.rs"]
mod host_level;

use core::sync::atomic::AtomicBool;

use crate::prim::atomic::AtomicU8;
use crate::scheduling::Attributes;
pub(crate) use host_level::HostLevel;

/// The host permits everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permissions;

impl Permissions {
    pub(crate) fn attributes(self, level: u8) -> Attributes {
        Attributes { level }
    }
}

/// The word's value while the host is being informed.
pub(crate) const BUSY: u8 = host_level::BUSY;

/// No thread is raised.
pub(crate) static RAISED: AtomicBool = AtomicBool::new(false);

/// The word, which mutants change.
pub(crate) fn word(host_level: &HostLevel) -> &AtomicU8 {
    &host_level.0
}

pub(crate) fn let_others_run() {
    loom::thread::yield_now();
}
