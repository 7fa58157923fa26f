//! What is asked of an instance, and what is said when it has ended, or could not be.

use core::fmt;
use core::time::Duration;
use kyocho_sys::error::Errno;
use std::ffi::OsString;
use std::path::PathBuf;

/// Whose system calls programs make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Personality {
    /// Linux on x86-64.
    #[default]
    Linux,
    /// FreeBSD on amd64.
    FreeBsd,
}

/// What the network of an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// There is none but between its own processes.
    None,
    /// The host's loopback interface.
    Loopback,
    /// The host's.
    #[default]
    Host,
}

/// What an instance shall be.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The host directory that is its root; the host's own root otherwise.
    pub root: Option<PathBuf>,
    /// What else is mounted in it.
    pub mounts: Vec<MountPoint>,
    /// Its network.
    pub network: Network,
    /// Whose programs it runs.
    pub personality: Personality,
    /// Most bytes of address space of each of its processes; of its segments of shared memory together; and of
    /// its memory files and the files of `/dev/shm` together.
    pub memory_max_bytes: Option<u64>,
    /// Most descriptors of each of its processes.
    pub descriptors_max: Option<u64>,
    /// Most processes and threads, together.
    pub tasks_max: Option<usize>,
    /// Most processor time of all of them, together.
    pub cpu_max: Option<Duration>,
    /// Whether each system call is shown on standard error.
    pub trace: bool,
    /// Whether calls that are not there are named on standard error, at the end.
    pub name_missing: bool,
}

impl Options {
    /// The limits that the host keeps.
    pub(crate) fn limits(&self) -> Vec<(u32, u64)> {
        /// Too little for a file, which the host would write wherever the process stands, in a mount for reading, too; and the one limit at which it
        /// starts no program for it either.
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
    /// Where it is seen: an absolute path.
    pub target: PathBuf,
    /// Whether its files can be changed.
    pub writable: bool,
}

/// Why there is no instance, or none any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A root or a mount cannot be used.
    Mount(PathBuf, Errno),
    /// There is no such program.
    NotFound(OsString),
    /// It cannot be executed: why.
    NotExecutable(OsString, String),
    /// The host does not permit what is needed: what.
    Host(&'static str, Errno),
    /// One of its own processes was killed, and all that ran with it: which.
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
                write!(f, "kyocho unix: the {who} was killed; what ran under it is ended")
            }
        }
    }
}

impl core::error::Error for StartError {}

/// How the first program of an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Signalled(i32),
}
