//! Sections, in which a thread of a model is anyway.

use crate::vp::{VP, Vp};

pub(crate) struct Section {
    pub(crate) vp: &'static Vp,
}

impl Section {
    pub(crate) fn leave(self) {}
}

pub(crate) fn mask() -> Section {
    Section { vp: &VP }
}
