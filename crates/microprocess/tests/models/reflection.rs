//! The real word that says what the host was told of a thread; the host is a cell. Waiting for what another thread is about to do.

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

/// What the word of who is being told of says.
pub(crate) const BUSY: u8 = told::BUSY;

/// Nobody is.
pub(crate) static RAISED: AtomicBool = AtomicBool::new(false);

/// What mutants of it change.
pub(crate) fn word(told: &Told) -> &AtomicU8 {
    &told.0
}

pub(crate) fn let_others_run() {
    loom::thread::yield_now();
}
