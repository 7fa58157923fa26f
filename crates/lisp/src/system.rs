//! The Lisp Server as a whole: booting it, programs, sessions.
//!
//! ```text
//! caller's kernel thread --request--> getty (a microprocess) --starts--> Lisp thread
//!                        <---ended---                       <--unpark---
//! ```
//!
//! The runtime lives on a kernel thread of its own, so that whoever boots a system keeps his.

pub(crate) mod boot;
pub(crate) mod control;
pub(crate) mod debugger;
pub(crate) mod forms;
pub(crate) mod keeper;
pub(crate) mod kernel;
pub(crate) mod lisp_session;
mod procedures;
pub mod session;
pub(crate) mod statistics;
#[cfg(test)]
pub(crate) mod tests;

pub use crate::image::WorldCopy;
pub use crate::report::Report;
pub use kyocho_heap::heap::{CellCache, Statistics, Torture};
pub use kyocho_syntax::growing::{Completeness, completeness};
pub use session::{Evaluation, Session, SessionHandle, Unread};

use kyocho_heap::account::{Account, Exceeded};
use kyocho_heap::number::INTEGER_BITS_MAX;
use kyocho_library::port::SessionPorts;

use boot::{Job, Text};
use core::fmt;
use core::time::Duration;
use forms::read_all;
use kernel::{Ended, Kernel, lock};
use kyocho_microprocess::Priority;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// What a process exits with whose standard output nobody reads any more: what a shell sees of one
/// that SIGPIPE (13) ended.
pub const CLOSED_OUTPUT_EXIT: u8 = 128 + 13;

/// Which evaluator runs programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Engine {
    /// The compiler and the register machine.
    #[default]
    Machine,
    /// The paper's deep-binding evaluator.
    Deep,
}

/// How a system is booted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which evaluator.
    pub engine: Engine,
    /// Cells a thread takes at a time.
    pub cell_cache: CellCache,
    /// The heap never takes more.
    pub memory_max_bytes: usize,
    /// A thread's stack never takes more, nor a quarter of the heap.
    pub stack_max_bytes: usize,
    /// Virtual processors; as many as the process has CPUs where none is said.
    pub virtual_processors: Option<usize>,
    /// How long a thread runs while equals wait, 1 ms to 1 s; 5 ms where none is said.
    pub time_slice: Option<Duration>,
    /// No exact integer has more bits, in the whole process.
    pub integer_bits_max: u64,
    /// Whether other processes of the user may list and control the threads: see [`kyocho_microprocess::control`].
    pub control: bool,
    /// Folders where libraries are looked for.
    pub library_path: Vec<PathBuf>,
    /// Archives whose libraries can be imported: see [`kyocho_library::package`].
    pub packages: Vec<PathBuf>,
    /// The world to begin with: [`System::load_image`] of it.
    pub image: Option<PathBuf>,
    /// For tests: collections that only a count asks for.
    pub torture: Option<Torture>,
    /// For tests: a collection comes at every so many times that a thread is outside of Lisp; 0: at none.
    pub torture_outside: u64,
    /// The program, for `command-line`.
    pub script: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Machine,
            cell_cache: CellCache::Auto,
            memory_max_bytes: 4 << 30,
            stack_max_bytes: 256 << 20,
            virtual_processors: None,
            time_slice: None,
            integer_bits_max: INTEGER_BITS_MAX,
            control: false,
            library_path: Vec::new(),
            packages: Vec::new(),
            image: None,
            torture: None,
            torture_outside: 0,
            script: None,
            arguments: Vec::new(),
        }
    }
}

/// A service that has come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLine {
    /// Its name.
    pub name: &'static str,
    /// What does it, with which mechanism.
    pub detail: String,
}

/// Why a system could not be booted.
#[derive(Debug)]
#[non_exhaustive]
pub enum BootError {
    /// The host has no memory or threads for it.
    Host(std::io::Error),
    /// The prelude failed: the report says where.
    Prelude(Report),
    /// The package at this path is none, for this reason.
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
    /// What the process should exit with.
    pub exit_code: u8,
    /// The error that ended it.
    pub report: Option<Report>,
}

impl Outcome {
    /// The reader of standard output has gone: nothing is wrong, nobody needs to be told.
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
    /// Writes out what ports hold. What the host refuses now is lost: the process ends.
    pub fn flush_ports(&self) {
        let _ = kyocho_library::port::flush_all();
    }
}

impl System {
    /// Boots a system; `on_service` is told of each service as it comes up.
    ///
    /// # Errors
    /// When the host has no room for it.
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

    /// Gives the process's own session the world that an image holds; `(save-image)` saves there. Waits in the kernel.
    ///
    /// # Errors
    /// The file is no image, or not this user's, or this build's: the report says so. The system is as before.
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

    /// A session of whoever runs the process: without bounds, its ports the process's own. There should be one at a
    /// time: what runs in it shares libraries, and an interrupt reaches whatever is evaluated.
    #[must_use]
    pub fn session(&self) -> Session {
        let base = Arc::clone(&self.kernel.base);
        Session::new(Arc::clone(&self.kernel), self.jobs.clone(), base)
    }

    /// A session of a user: its environment, libraries, ports and threads are its own, and charged to the account. Sessions
    /// evaluate side by side.
    ///
    /// # Errors
    /// The account has as many as it may.
    pub fn open_session(
        &self,
        account: &Arc<Account>,
        ports: SessionPorts,
    ) -> Result<Session, Exceeded> {
        let session = self.kernel.open(account, ports.into_ports())?;
        Ok(Session::new(Arc::clone(&self.kernel), self.jobs.clone(), session))
    }

    /// No session connects to this address of the process's own from now on, however it writes it: one that did would be another user there.
    pub fn keep_sessions_from(&self, address: core::net::SocketAddr) {
        self.kernel.doors.add(address);
    }

    /// What is known of the heap.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.kernel.heap.statistics()
    }

    /// The longest time since the last call that all Lisp threads were stopped, from the request to
    /// them until they may run again. Unlike a collection's pause it counts the wait until the last
    /// of them has come to a safepoint.
    pub fn take_longest_stop(&self) -> Duration {
        self.kernel.threads.take_longest_stop()
    }

    /// How many top-level locations there are: the system's, and those of sessions that are not collected yet.
    #[must_use]
    pub fn locations(&self) -> usize {
        self.kernel.base.globals().count()
    }

    /// Runs a service as a microprocess of the system, a child of init, and again whenever it is killed or panics, until it returns.
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
            // Who asked has gone: he does not mind.
            let _ = started.send(keeper::keep(&name, Priority::NORMAL, body));
        };
        let ended = || std::io::Error::other("the runtime has ended");
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        wait.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// What a signal's thread needs to end the process decently.
    #[must_use]
    pub fn shutdown_handle(&self) -> Shutdown {
        Shutdown { _private: () }
    }
}
