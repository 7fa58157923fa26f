//! What a user asks of an instance, and how it ended or why there was none.

use core::fmt;
use core::time::Duration;
use kyocho_sys::error::Errno;
use std::ffi::OsString;
use std::path::PathBuf;

/// The system whose calls programs make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Personality {
    /// Linux on x86-64.
    #[default]
    Linux,
    /// FreeBSD on amd64.
    FreeBsd,
}

/// The network that an instance has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// None, except between its own processes.
    None,
    /// The host's loopback interface.
    Loopback,
    /// All of the host's interfaces.
    #[default]
    Host,
}

/// The properties of an instance.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The host directory that becomes its root; `None`: the host's root.
    pub root: Option<PathBuf>,
    /// The other directories that are mounted in it.
    pub mounts: Vec<MountPoint>,
    /// Its network.
    pub network: Network,
    /// The system whose programs it runs.
    pub personality: Personality,
    /// Most bytes of address space of each process. Also the most bytes of all segments of shared
    /// memory together, and of all memory files and files in `/dev/shm` together.
    pub memory_max_bytes: Option<u64>,
    /// Most descriptors of each process.
    pub descriptors_max: Option<u64>,
    /// Most processes and threads together.
    pub tasks_max: Option<usize>,
    /// Most processor time of all processes together.
    pub cpu_max: Option<Duration>,
    /// Whether each system call is shown on standard error.
    pub trace: bool,
    /// Whether calls that are not implemented are listed on standard error at the end.
    pub name_missing: bool,
}

impl Options {
    /// The limits that the host keeps.
    pub(crate) fn limits(&self) -> Vec<(u32, u64)> {
        /// The least limit that prevents core files. The host would write one into the current
        /// directory of the process, even on a mount for reading. At a limit of exactly 1 it also
        /// starts no program for them.
        const NO_CORE: Option<u64> = Some(1);
        let limits = [
            (libc::RLIMIT_AS, self.memory_max_bytes),
            (libc::RLIMIT_NOFILE, self.descriptors_max),
            (libc::RLIMIT_CORE, NO_CORE),
        ];
        limits.iter().filter_map(|&(resource, most)| Some((resource, most?))).collect()
    }
}

/// A host directory somewhere in an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    /// The host directory.
    pub source: PathBuf,
    /// The absolute path at which it is visible.
    pub target: PathBuf,
    /// Whether its files can be changed.
    pub writable: bool,
}

/// Why an instance could not be started, or was lost.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The root or a mount cannot be used.
    Mount(PathBuf, Errno),
    /// There is no such program.
    NotFound(OsString),
    /// The program cannot be executed, and why.
    NotExecutable(OsString, String),
    /// The host does not permit something that is needed, and what.
    Host(&'static str, Errno),
    /// A process of the server's own was killed, and everything that ran with it was ended.
    Lost(&'static str),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(path, errno) => write!(f, "cannot use {}: {errno}", path.display()),
            Self::NotFound(program) => write!(f, "{}: not found", program.display()),
            Self::NotExecutable(program, why) => {
                write!(f, "{}: cannot execute: {why}", program.display())
            }
            Self::Host(what, errno) => write!(f, "this host does not permit {what}: {errno}"),
            Self::Lost(who) => {
                write!(f, "kyocho unix: the {who} was killed; its programs were ended")
            }
        }
    }
}

impl core::error::Error for StartError {}

/// How the first program of an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It exited with this status.
    Exited(u8),
    /// This signal ended it.
    Signalled(i32),
}
