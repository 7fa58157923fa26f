//! The host's scheduler. What it was told of a thread is a cell of that thread, which fails the
//! model if two change it at once.

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
