//! `kyocho jupyter`: a kernel for notebooks (the Jupyter messaging protocol 5.3 over `ZeroMQ`).
//!
//! ```text
//!   front end ──TCP──► kernel thread "jupyter" (tokio, zeromq)
//!     shell: execute, complete, ...  ──requests──► main thread: evaluates, one request after the other
//!     control: interrupt, shutdown   answered where they arrive
//!     iopub: what is shown           ◄──answers──  main thread, and Lisp threads that write
//!     heartbeat: an echo
//! ```

mod connection;
mod install;
mod kernel;
mod message;
mod sockets;

use crate::boot::{Voice, boot_world};
use crate::terminal;
use clap::Subcommand;
use connection::Connection;
use kernel::Kernel;
use kyocho_lisp::system::Options;
use std::path::PathBuf;
use std::process::ExitCode;

/// A kernel for Jupyter notebooks.
#[derive(Debug, Subcommand)]
pub(crate) enum Jupyter {
    /// Make the kernel known to Jupyter; for all users of this machine unless told otherwise.
    Install {
        /// For this user alone.
        #[arg(long, conflicts_with = "prefix")]
        user: bool,
        /// Below this folder, such as a virtual environment's.
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
    },
    /// Run the kernel, as Jupyter does.
    Run {
        /// Where the front end says how to reach it.
        #[arg(value_name = "CONNECTION_FILE")]
        connection: PathBuf,
    },
}

/// `kyocho jupyter`.
pub(crate) fn command(command: &Jupyter, options: Options) -> ExitCode {
    let done = match command {
        Jupyter::Install { user, prefix } => install::install(*user, prefix.as_deref()),
        Jupyter::Run { connection } => run(connection, options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            terminal::complain(&format!("kyocho: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn run(connection: &std::path::Path, options: Options) -> Result<(), String> {
    let connection = Connection::read(connection)?;
    let Some(system) = boot_world(options, Voice::Quiet) else {
        return Err("the kernel does not run".to_owned());
    };
    let (mut kernel, handle) = Kernel::new(&system)?;
    let (requests, answers) = sockets::serve(connection, handle)?;
    kernel.serve(requests, &answers);
    Ok(())
}
