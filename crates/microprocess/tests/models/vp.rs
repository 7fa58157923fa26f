//! A virtual processor, of which each thread of a model has its own.

use crate::record::{MicroprocessRef, Record};

#[derive(Debug)]
pub(crate) struct Vp {
    pub(crate) current: Current,
}

pub(crate) static VP: Vp = Vp { current: Current };

/// Who runs there: whoever asks.
#[derive(Debug)]
pub(crate) struct Current;

impl Current {
    pub(crate) fn get(&self) -> Option<&'static Record> {
        Some(MicroprocessRef::current().0)
    }
}
