//! Input and output that hold no kernel thread while they wait.
//!
//! Every operation goes through the ring its virtual processor shares with the kernel (`io_uring`):
//! one system call if it can be done at once, otherwise the microprocess waits as for any object,
//! and time limits, priorities and the deadlock report work as everywhere. Where rings are refused
//! (an old kernel, some containers), operations are plain calls; a call that sleeps is a Blocked
//! event then, and the virtual processor goes on with another kernel thread. [`mechanism`] tells.
//!
//! [`File`] is here, sockets are in [`net`](crate::calls::net). They implement std's `Read` and `Write`, so
//! that std's buffering, line reading and copying work on them. Name resolution and opening files
//! are the C library's and std's: they block like any foreign code.

pub mod descriptor;
mod file;
mod operation;
mod pending;
mod ring;
pub(crate) mod routing;

pub use file::{File, Standard, stderr, stdin, stdout};
pub(crate) use operation::Operation;
pub use routing::{Route, route, route_of};

use core::fmt;

/// What carries out input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// A ring shared with the kernel, one for each virtual processor.
    Ring,
    /// Plain system calls, each of which holds its kernel thread.
    Calls,
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "io_uring",
            Self::Calls => "plain system calls (io_uring is refused here)",
        })
    }
}

/// What carries out input and output in this process. Sets a ring up to find out, which is kept.
#[must_use]
pub fn mechanism() -> Mechanism {
    match ring::take() {
        None => Mechanism::Calls,
        Some(port) => {
            port.put();
            Mechanism::Ring
        }
    }
}

#[cfg(test)]
mod tests;
