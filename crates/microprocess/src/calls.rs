//! Calls to the host that hold no virtual processor while they wait.

pub(crate) mod future;
#[cfg(feature = "io")]
pub mod io;
#[cfg(feature = "net")]
pub mod net;
#[cfg(feature = "io")]
pub mod process;
#[cfg(feature = "io")]
pub mod signals;
