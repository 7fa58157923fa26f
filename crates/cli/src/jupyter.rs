//! `kyocho jupyter`: registers the kernel for notebooks, and runs it.

use crate::boot::{BootOutput, boot_world};
use crate::serve::CONSOLE;
use crate::terminal;
use clap::Subcommand;
use kyocho_lisp::system::Options;
use kyocho_server::jupyter::{Notebook, install};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The commands of `kyocho jupyter`.
#[derive(Debug, Subcommand)]
pub(crate) enum Jupyter {
    /// Register the kernel with Jupyter, for all users of this machine.
    Install {
        /// Register it for you only.
        #[arg(long, conflicts_with = "prefix")]
        user: bool,
        /// Register it below this folder, such as that of a virtual environment.
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
    },
    /// Run the kernel. Jupyter starts this command.
    Run {
        /// The connection file: the sockets on which the front end expects the kernel.
        #[arg(value_name = "CONNECTION_FILE")]
        connection: PathBuf,
    },
}

/// `kyocho jupyter`.
pub(crate) fn command(command: &Jupyter, options: Options) -> ExitCode {
    let done = match command {
        Jupyter::Install { user, prefix } => make_known(*user, prefix.as_deref()),
        Jupyter::Run { connection } => run(connection, options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("kyocho: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn make_known(for_user: bool, prefix: Option<&Path>) -> io::Result<()> {
    let path = install(for_user, prefix)?;
    terminal::line(&format!(
        "{} written: `jupyter notebook` offers \"Scheme (Kyocho)\"",
        path.display()
    ));
    Ok(())
}

fn run(connection: &Path, options: Options) -> io::Result<()> {
    let notebook = Notebook::read(connection)?;
    let Some(system) = boot_world(options, BootOutput::Quiet) else {
        return Err(io::Error::other("the kernel cannot start"));
    };
    notebook.serve(&system, CONSOLE)
}
