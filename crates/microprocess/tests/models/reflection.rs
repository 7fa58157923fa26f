//! The real word that says what the host was told of a thread. The host is a cell. Waits for what
//! another thread is about to do.

#[path = "../../src/processor/reflection/told.rs"]
mod told;

use core::sync::atomic::AtomicBool;

use crate::prim::atomic::AtomicU8;
use crate::scheduling::Attributes;
pub(crate) use told::Told;

/// The host permits everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means;

impl Means {
    pub(crate) fn attributes(self, level: u8) -> Attributes {
        Attributes { level }
    }
}

/// The word's value while the host is being told.
pub(crate) const BUSY: u8 = told::BUSY;

/// No thread is raised.
pub(crate) static RAISED: AtomicBool = AtomicBool::new(false);

/// The word, which mutants change.
pub(crate) fn word(told: &Told) -> &AtomicU8 {
    &told.0
}

pub(crate) fn let_others_run() {
    loom::thread::yield_now();
}
