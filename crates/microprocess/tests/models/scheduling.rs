//! The host's scheduler: what it was told of a thread is a cell of that one, which whoever is to be alone in telling may change.

use core::convert::Infallible;

use crate::task::ThreadId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    pub level: u8,
}

pub fn set_attributes(thread: ThreadId, attributes: Attributes) -> Result<(), Infallible> {
    thread.0.set(attributes.level);
    Ok(())
}
