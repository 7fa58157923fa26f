//! A thread, as the host knows it.

use crate::prim::cell::Cell;

/// The level that the host was last given.
#[derive(Debug, Clone, Copy)]
pub struct ThreadId(pub &'static Cell<u8>);

impl ThreadId {
    pub fn current() -> Self {
        unreachable!("no process of a model is forked")
    }
}
