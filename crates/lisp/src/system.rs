//! The Lisp Server as a whole: boot, programs, sessions.
//!
//! ```text
//! caller's kernel thread --request--> init (a microprocess) --starts--> main Lisp thread
//!                        <---------------- ended, in its last step -------------------
//! ```
//!
//! The runtime has kernel threads of its own. The caller's never becomes one of them.

pub(crate) mod boot;
pub(crate) mod control;
pub(crate) mod debugger;
pub(crate) mod forms;
pub(crate) mod keeper;
pub(crate) mod procedures;
pub mod session;
mod statistics;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::image::WorldCopy;
pub use crate::options::{Engine, Options};
pub use crate::report::Report;
pub use kyocho_heap::heap::{CellCache, Statistics, Torture};
pub use kyocho_syntax::growing::{Completeness, completeness};
pub use session::{Evaluation, Session, SessionHandle, Unread};

use crate::kernel::{Ended, Kernel, lock};
use kyocho_heap::account::{Account, Exceeded};
use kyocho_library::port::SessionPorts;

use boot::{Job, Text};
use core::fmt;
use core::time::Duration;
use forms::read_all;
use kyocho_microprocess::Priority;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// Exit code of a process whose standard output was closed by its reader: as a shell reports a
/// process that SIGPIPE (13) ended.
pub const CLOSED_OUTPUT_EXIT: u8 = 128 + 13;

/// A service that has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLine {
    /// Its name.
    pub name: &'static str,
    /// What it does, and with which mechanism.
    pub detail: String,
}

/// Why a system could not boot.
#[derive(Debug)]
#[non_exhaustive]
pub enum BootError {
    /// The host lacks memory or threads.
    Host(std::io::Error),
    /// The prelude failed. The report has the position.
    Prelude(Report),
    /// The archive at this path is not a package, for this reason.
    Package(PathBuf, String),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => write!(f, "the host refuses: {error}"),
            Self::Prelude(report) => write!(f, "the prelude does not run: {report}"),
            Self::Package(path, reason) => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl core::error::Error for BootError {}

/// A booted system. It lives until the process ends.
#[derive(Debug)]
pub struct System {
    pub(crate) kernel: Arc<Kernel>,
    jobs: mpsc::Sender<Job>,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit code for the process.
    pub exit_code: u8,
    /// The error that ended it.
    pub report: Option<Report>,
}

impl Outcome {
    /// The reader of standard output has closed it. This is not an error, and is not reported.
    const fn closed_output() -> Self {
        Self { exit_code: CLOSED_OUTPUT_EXIT, report: None }
    }
}

/// Flushes ports from outside Lisp, before the process ends.
#[derive(Clone, Debug)]
pub struct Shutdown {
    _private: (),
}

impl Shutdown {
    /// Flushes all ports. Output that the host does not accept now is lost, because the process
    /// ends.
    pub fn flush_ports(&self) {
        let _ = kyocho_library::port::flush_all();
    }
}

impl System {
    /// Boots a system. Calls `on_service` for each service that has started.
    ///
    /// # Errors
    /// The host lacks memory or threads, the prelude fails, or an archive is not a package.
    pub fn boot(
        options: Options,
        on_service: &mut dyn FnMut(&ServiceLine),
    ) -> Result<Self, BootError> {
        let (kernel, jobs) = boot::boot(options, on_service)?;
        Ok(Self { kernel, jobs })
    }

    /// Runs a program to its end.
    pub fn run_file(&mut self, path: &Path) -> Outcome {
        let text =
            match kyocho_syntax::source::read_file(path, kyocho_syntax::datum::Span::default()) {
                Ok(text) => text,
                Err(error) => {
                    let report = Report::outside(error.to_string());
                    return Outcome { exit_code: 1, report: Some(report) };
                }
            };
        let data = read_all(&text, &path.to_string_lossy());
        let environment = {
            let mut world = lock(&self.kernel.base.world);
            if let Some(folder) = path.parent() {
                world.add_library_folder(folder);
            }
            let first = data.front().and_then(|datum| datum.as_ref().ok());
            let made = || world.program_environment(first);
            self.kernel.base.restored().unwrap_or_else(made)
        };
        let ended = boot::evaluate(&self.jobs, &self.kernel.base, Text::program(environment, data));
        let outcome = match ended {
            Ended::Values(_) => Outcome { exit_code: 0, report: None },
            Ended::Exit(code) => Outcome { exit_code: code as u8, report: None },
            Ended::Report(report) if report.is_closed_output() => Outcome::closed_output(),
            Ended::Report(report) => Outcome { exit_code: 1, report: Some(report) },
        };
        match kyocho_library::port::flush_all() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && outcome.exit_code == 0 => {
                Outcome::closed_output()
            }
            Err(error) if outcome.exit_code == 0 => Outcome {
                exit_code: 1,
                report: Some(Report::outside(format!("output was lost: {error}"))),
            },
            _ => outcome,
        }
    }

    /// Loads an image into the process's own session; `(save-image)` then saves to its file. Blocks
    /// in the kernel.
    ///
    /// # Errors
    /// The file cannot be read, is not an image or is damaged, or belongs to another user or build.
    /// The report says which. The system is unchanged.
    pub fn load_image(&mut self, path: &Path) -> Result<(), Report> {
        let base = &self.kernel.base;
        match boot::evaluate(&self.jobs, base, Text::image(base, path)) {
            Ended::Report(report) => Err(report),
            Ended::Values(_) | Ended::Exit(_) => {
                base.set_image(path);
                Ok(())
            }
        }
    }

    /// A session of the user that runs the process, without bounds, and with the ports of the
    /// process. There should be one at a time: its libraries are shared, and an interrupt reaches
    /// every evaluation in it.
    #[must_use]
    pub fn session(&self) -> Session {
        let base = Arc::clone(&self.kernel.base);
        Session::new(Arc::clone(&self.kernel), self.jobs.clone(), base)
    }

    /// A session of a user. It has its own environment, libraries, ports and threads, which are
    /// charged to the account. Sessions evaluate concurrently.
    ///
    /// # Errors
    /// The account's bound on sessions is reached.
    pub fn open_session(
        &self,
        account: &Arc<Account>,
        ports: SessionPorts,
    ) -> Result<Session, Exceeded> {
        let session = self.kernel.open(account, ports.into_ports())?;
        Ok(Session::new(Arc::clone(&self.kernel), self.jobs.clone(), session))
    }

    /// Forbids sessions to connect to this address of the process itself, however the address is
    /// written. A session that did would act as another user there.
    pub fn keep_sessions_from(&self, address: core::net::SocketAddr) {
        self.kernel.forbidden_addresses.add(address);
    }

    /// Statistics of the heap.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.kernel.heap.statistics()
    }

    /// The longest time since the last call for which all Lisp threads were stopped. It runs from
    /// the request to stop until they may run again. So, unlike a collection's pause, it includes
    /// the wait until the last thread has reached a safepoint.
    pub fn take_longest_stop(&self) -> Duration {
        self.kernel.threads.take_longest_stop()
    }

    /// Number of top-level locations: those of the system, and those of sessions that are not yet
    /// collected.
    #[must_use]
    pub fn locations(&self) -> usize {
        self.kernel.base.globals().count()
    }

    /// Runs a service as a microprocess of the system, a child of init. It is started again
    /// whenever it is killed or panics, until it returns.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn spawn_service(
        &self,
        name: &str,
        body: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<()> {
        let (started, wait) = mpsc::channel();
        let name = name.to_owned();
        let job = move |_: &Arc<Kernel>| {
            // If the requester has gone, the result is not needed.
            let _ = started.send(keeper::keep(&name, Priority::NORMAL, body));
        };
        let ended = || std::io::Error::other("the runtime has ended");
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        wait.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// A handle for the thread that handles signals, which flushes ports before the process ends.
    #[must_use]
    pub fn shutdown_handle(&self) -> Shutdown {
        Shutdown { _private: () }
    }
}
