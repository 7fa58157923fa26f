//! The host's scheduler. The attributes that it was last given for a thread are a cell of that
//! thread. The model fails if two threads change the cell at once.

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
