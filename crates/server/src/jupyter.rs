//! A kernel for notebooks (the Jupyter messaging protocol 5.3 over `ZeroMQ`).
//!
//! ```text
//!   front end ──TCP──► kernel thread "jupyter" (tokio, zeromq)
//!     shell: execute, complete, ...  ──requests──► main thread: evaluates, one request after the other
//!     control: interrupt, shutdown   answered where they arrive
//!     iopub: what is shown           ◄──answers──  main thread, and Lisp threads that write
//!     heartbeat: an echo
//! ```
//!
//! It is no door of a server. A front end starts one process for each notebook, which has one session, of its user, and says in a
//! file at which five ports that process listens.

mod connection;
mod install;
mod kernel;
mod message;
mod sockets;

use crate::console::Console;
use connection::Connection;
use kernel::Kernel;
use kyocho_lisp::system::System;
use std::io;
use std::path::{Path, PathBuf};

/// Makes the kernel known to Jupyter: for this user alone, below `prefix`, or for all users of this machine. Returns the path of the file
/// that it writes.
///
/// # Errors
/// The folder cannot be written; there is no home.
pub fn install(for_user: bool, prefix: Option<&Path>) -> io::Result<PathBuf> {
    install::install(for_user, prefix).map_err(io::Error::other)
}

/// Where a front end expects a kernel.
#[derive(Debug)]
pub struct Notebook(Connection);

impl Notebook {
    /// Reads the file in which a front end says where it expects the kernel.
    ///
    /// # Errors
    /// The host's; the file is no connection file, or wants something that the kernel does not have.
    pub fn read(connection_file: &Path) -> io::Result<Self> {
        Connection::read(connection_file).map(Self).map_err(io::Error::other)
    }

    /// Serves the notebook with a session of this system, on the calling kernel thread, until the front end or the session ends.
    ///
    /// # Errors
    /// The host's; there is no memory for a session.
    pub fn serve(self, system: &System, console: Console) -> io::Result<()> {
        let (mut kernel, handle) = Kernel::new(system).map_err(io::Error::other)?;
        let served = sockets::serve(self.0, handle, console).map_err(io::Error::other)?;
        let (requests, answers) = served;
        kernel.serve(requests, &answers);
        Ok(())
    }
}
