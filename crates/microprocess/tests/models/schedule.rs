//! Sections. A thread of a model is always in one.

use crate::record::Record;
use crate::vp::{Masked, Vp};
pub(crate) use crate::{guarded, kill_point};

pub(crate) struct Section {
    pub(crate) vp: &'static Vp,
}

impl Section {
    pub(crate) fn masked(&self) -> Masked<'_> {
        Masked::of(self.vp)
    }

    pub(crate) fn leave(self) {}
}

pub(crate) fn mask() -> Section {
    Section { vp: Record::own_vp() }
}

pub(crate) fn yield_now() {
    loom::thread::yield_now();
}
