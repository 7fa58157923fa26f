//! Calls to the host that hold no virtual processor while they wait.

pub(crate) mod future;
pub mod io;
pub mod net;
pub mod process;
pub mod signals;
