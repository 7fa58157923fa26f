//! Frames in transit, in the order of arrival.

use kyocho_dsm::{Frame, Message};

/// What a link carries: a message and the epoch of its sender.
pub(crate) type Envelope = (u64, Message);

/// A frame in transit.
#[derive(Debug)]
pub(crate) struct FrameInTransit {
    pub(crate) due: u64,
    pub(crate) number: u64,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) frame: Frame<Envelope>,
}

impl PartialEq for FrameInTransit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FrameInTransit {}

impl PartialOrd for FrameInTransit {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FrameInTransit {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}
