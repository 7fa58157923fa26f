//! Nobody inherits a priority here: all have the same.

use crate::record::{MicroprocessRef, Record};
use crate::vp::Vp;

#[derive(Debug)]
pub(crate) struct Donation;

impl Donation {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn settle(
        &self,
        _owner: Option<MicroprocessRef>,
        _first: Option<u8>,
        _vp: &'static Vp,
    ) -> Option<&'static Record> {
        None
    }
}

pub(crate) enum PassedOn {
    Busy,
    To(Option<&'static Record>),
}

pub(crate) trait Source {
    fn try_pass_on(&self, who: &'static Record, vp: &'static Vp) -> PassedOn;
}

pub(crate) struct Wait<'a> {
    pub(crate) source: &'a dyn Source,
}

pub(crate) trait Ranking {
    fn rank_anew(&self, who: &'static Record, vp: &'static Vp) -> Option<&'static Record>;
}

pub(crate) struct Ranked<'a> {
    pub(crate) by: &'a dyn Ranking,
}

pub(crate) fn propagate(_vp: &'static Vp, _record: &'static Record) {}
