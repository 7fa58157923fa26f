//! Input and output that hold no kernel thread while they wait.
//!
//! Every operation that may wait for data goes through the ring that its virtual processor shares
//! with the kernel (`io_uring`). An operation that need not wait costs one system call. Otherwise
//! the microprocess waits as for any other object: time limits, priorities and the deadlock report
//! work as usual. If rings are refused (by an old kernel or some containers), operations are plain
//! system calls. A call that sleeps is then a Blocked event, and the virtual processor continues
//! with another kernel thread. [`mechanism`] returns which of the two is used.
//!
//! [`File`] is here, sockets are in [`net`](crate::calls::net). They implement std's `Read` and
//! `Write`, so std's buffering, line reading and copying work on them. Names are resolved by the C
//! library, and files are opened, measured and truncated by std; these calls block like foreign code.

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

/// How input and output are performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// A ring shared with the kernel, one for each virtual processor.
    Ring,
    /// Plain system calls, each of which occupies its kernel thread.
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

/// How input and output are performed in this process. Sets up a ring to find out, and keeps it.
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
