//! A kernel for notebooks (the Jupyter messaging protocol 5.3 over `ZeroMQ`).
//!
//! ```text
//!   front end ──TCP──► kernel thread "jupyter" (tokio, zeromq)
//!     shell: execute, complete, ...  ──requests──► main thread: evaluates, one request after the
//!                                                  other
//!     control: interrupt, shutdown   answered by the kernel thread
//!     iopub: output, values, errors  ◄──answers──  main thread, and Lisp threads that write
//!     heartbeat: an echo
//! ```
//!
//! It is not a door of a server. A front end starts one process for each notebook, with one session
//! that belongs to the user of the front end. A file of the front end lists the five ports on which
//! the process must listen.

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

/// Registers the kernel with Jupyter: for this user only, below `prefix`, or for all users of this
/// machine. Returns the path of the written file.
///
/// # Errors
/// The folder cannot be written, or the user has no home folder.
pub fn install(for_user: bool, prefix: Option<&Path>) -> io::Result<PathBuf> {
    install::install(for_user, prefix).map_err(io::Error::other)
}

/// The sockets on which a front end expects the kernel of a notebook.
#[derive(Debug)]
pub struct Notebook(Connection);

impl Notebook {
    /// Reads a connection file, which lists the sockets.
    ///
    /// # Errors
    /// The file cannot be read, is not a connection file, or requires something that is not
    /// supported.
    pub fn read(connection_file: &Path) -> io::Result<Self> {
        Connection::read(connection_file).map(Self).map_err(io::Error::other)
    }

    /// Serves the notebook with a session of this system, on the calling kernel thread. Returns
    /// when the front end or the session ends.
    ///
    /// # Errors
    /// The host refuses a thread or random numbers, or there is no memory for a session.
    pub fn serve(self, system: &System, console: Console) -> io::Result<()> {
        let (mut kernel, handle) = Kernel::new(system).map_err(io::Error::other)?;
        let served = sockets::serve(self.0, handle, console).map_err(io::Error::other)?;
        let (requests, answers) = served;
        kernel.serve(requests, &answers);
        Ok(())
    }
}
