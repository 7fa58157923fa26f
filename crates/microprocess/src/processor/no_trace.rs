//! The recording of timelines in a build without feature `trace`: nothing is recorded.

use crate::data::detection::Detection;
use crate::processor::record::Record;
use crate::processor::shared::Shared;

/// What happened at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Runs,
    Idles,
    Blocked,
    Unblocked,
    Preempted,
    Resumed,
    Changed,
}

/// The recording of one virtual processor: always off.
pub(crate) struct Trace;

impl Trace {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn turn_off(&self) {}

    pub(crate) fn note(&self, _: What, _: Option<&'static Record>) {}
}

/// A runtime starts.
pub(crate) fn join(_: &'static Shared) {}

/// A run begins.
pub(crate) fn begin_run(_: usize, _: Detection) {}

/// A run has ended.
pub(crate) fn end_run(_: bool) {}
