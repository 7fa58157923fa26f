//! Starting an instance: from the command line's options to its first process.

use crate::admission::Admission;
use crate::belongings::Belongings;
use crate::client::Client;
use crate::exec::{Found, Program, Refusal};
use crate::filesystems::permitted;
use crate::front;
use crate::ipc::Objects;
use crate::mounts::{Mount, Mounts, Source};
use crate::news::News;
use crate::policy::filter;
use crate::server::{Network, Server, host};
use crate::shared_memory::SharedMemory;
use crate::trace::Trace;
use crate::walk::{Last, NOT_FOUND};
use crate::warden::{self, Outcome, Started};
use crate::{launcher, life};
use core::fmt;
use core::time::Duration;
use kyocho_sys::confined::Confined;
use kyocho_sys::error::Errno;
use rustix::fs::{Mode, OFlags};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whose system calls programs make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Personality {
    /// Linux on x86-64.
    #[default]
    Linux,
    /// FreeBSD on amd64.
    FreeBsd,
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
    fn limits(&self) -> Vec<(u32, u64)> {
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

/// Runs `program` with `arguments` (the first is its name) and `environment` as the first process of an instance, until it ends; what it leaves
/// running is ended. Blocks. The server runs in a child, in front of which this process stands: it stops and is continued with the first process, and
/// passes `TERM`, `HUP`, `USR1` and `USR2` on to it. Call it while the process has one kernel thread; one instance at a time.
///
/// # Errors
/// What cannot be used, found or executed, or what the host does not permit.
pub fn run(
    options: &Options,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Outcome, StartError> {
    let belongings = Belongings::new(options.memory_max_bytes)?;
    let mounts = mounts_of(options, &belongings.shared_memory)?;
    let admission = Admission::new(options.tasks_max);
    let trace = options.trace.then(Trace::default);
    let objects = Objects::new(Arc::clone(&belongings.objects), options.memory_max_bytes);
    let memory_files = belongings.shared_memory.memory_files()?;
    let server = Server::new(
        mounts,
        options.network,
        options.personality,
        trace,
        admission,
        objects,
        memory_files,
    );
    server.note_first_terminals();
    let base = own_directory(&server);
    let variable = |wanted: &str| environment.iter().find(|(name, _)| name == wanted);
    let path = variable("PATH").map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value.as_os_str());
    let (program, rest) =
        arguments.split_first().ok_or_else(|| StartError::NotFound(OsString::new()))?;
    let Found { program: found, mut prefix } = find_program(&server, &base, program, path)?;
    if prefix.is_empty() {
        prefix.push(program.as_bytes().to_vec());
    }
    let words = prefix.into_iter().chain(rest.iter().map(|word| word.as_bytes().to_vec()));
    let words: Vec<CString> = words.filter_map(|word| CString::new(word).ok()).collect();
    let pairs =
        environment.iter().map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    let pairs: Vec<CString> = pairs.filter_map(|pair| CString::new(pair).ok()).collect();
    let first = First { server, program: found, base, arguments: words, environment: pairs };
    first.run(options, &belongings)
}

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The mounts of an instance: the root, what everybody has, what was asked for.
fn mounts_of(options: &Options, shared_memory: &SharedMemory) -> Result<Mounts, StartError> {
    let root = options.root.as_deref().unwrap_or(Path::new("/"));
    let opened = |path: &str| open_directory(Path::new(path)).map(|(root, _)| root);
    let mut list = vec![
        host_mount(b"/".to_vec(), root, true)?,
        Mount {
            at: b"/proc".to_vec(),
            source: Source::Processes(opened("/proc")?),
            writable: false,
        },
        Mount { at: b"/dev".to_vec(), source: Source::Devices(opened("/dev")?), writable: false },
        Mount {
            at: b"/dev/shm".to_vec(),
            source: shared_memory.source()?,
            writable: shared_memory.is_writable(),
        },
    ];
    for mount in &options.mounts {
        let at = canonical(&mount.target)
            .ok_or_else(|| StartError::Mount(mount.target.clone(), Errno::INVAL))?;
        list.push(host_mount(at, &mount.source, mount.writable)?);
    }
    Ok(Mounts::new(list))
}

/// An absolute path without `.`, `..` and empty components.
fn canonical(path: &Path) -> Option<Vec<u8>> {
    use std::path::Component;
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return None;
    }
    parts.try_fold(b"/".to_vec(), |at, part| match part {
        Component::Normal(name) => Some(crate::mounts::child(&at, name.as_bytes())),
        _ => None,
    })
}

fn host_mount(at: Vec<u8>, path: &Path, writable: bool) -> Result<Mount, StartError> {
    let place = path;
    let (root, path) = open_directory(place)?;
    permitted(&root).map_err(|errno| StartError::Mount(place.to_path_buf(), errno))?;
    Ok(Mount { at, source: Source::Host { root, path }, writable })
}

/// A host directory, and its canonical path.
pub(crate) fn open_directory(path: &Path) -> Result<(OwnedFd, Vec<u8>), StartError> {
    let failed = |errno| StartError::Mount(path.to_path_buf(), host(errno));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let canonical = std::fs::canonicalize(path).map_err(|error| {
        StartError::Mount(path.to_path_buf(), Errno::new(error.raw_os_error().unwrap_or(libc::EIO)))
    })?;
    Ok((root, canonical.into_os_string().into_vec()))
}

/// The directory in which an instance begins: the one that we are in, where that can be seen from inside.
fn own_directory(server: &Server) -> Vec<u8> {
    let own = std::env::current_dir().ok();
    let own = own.and_then(|path| server.mounts.to_virtual(path.as_os_str().as_bytes()));
    own.filter(|path| server.node(&Client::nobody(), path).is_ok()).unwrap_or_else(|| b"/".to_vec())
}

/// The program called `name`, as a shell finds it.
fn find_program(
    server: &Server,
    base: &[u8],
    name: &OsStr,
    path: &OsStr,
) -> Result<Found, StartError> {
    let bytes = name.as_bytes();
    let candidates: Vec<Vec<u8>> = if bytes.contains(&b'/') {
        vec![bytes.to_vec()]
    } else {
        let folders = path.as_bytes().split(|byte| *byte == b':');
        folders.map(|folder| [folder, b"/", bytes].concat()).collect()
    };
    let mut failure = StartError::NotFound(name.to_os_string());
    for candidate in candidates {
        let found = server
            .walk(&Client::nobody(), base, &candidate, Last::Follow)
            .map_err(Refusal::from)
            .and_then(|node| server.program(&Client::nobody(), node, &candidate));
        match found {
            Ok(found) => return Ok(found),
            Err(Refusal::Host(NOT_FOUND | crate::walk::NOT_A_DIRECTORY)) => {}
            Err(refusal) => {
                failure = StartError::NotExecutable(name.to_os_string(), refusal.to_string());
            }
        }
    }
    Err(failure)
}

/// All that the first process begins with.
struct First {
    server: Server,
    program: Program,
    /// The virtual path of its directory.
    base: Vec<u8>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl First {
    /// Runs it under a server, in front of which this process stands.
    fn run(self, options: &Options, belongings: &Belongings) -> Result<Outcome, StartError> {
        let image = launcher::image(options.personality).map_err(|error| {
            StartError::Host("memory files", Errno::new(error.raw_os_error().unwrap_or(libc::EIO)))
        })?;
        let directory = self.server.node(&Client::nobody(), &self.base).map_err(|errno| {
            StartError::Mount(PathBuf::from(OsString::from_vec(self.base.clone())), errno)
        })?;
        let calls = if options.trace { filter::Calls::All } else { filter::Calls::Served };
        let filter = filter::program(calls, self.server.limited, options.personality);
        front::stand(|front| {
            let front = Arc::new(front);
            let confined = Confined {
                filter: &filter,
                image: image.as_fd(),
                path_address: launcher::PATH_ADDRESS,
                arguments: &self.arguments,
                environment: &self.environment,
                directory: directory.file.as_fd(),
                limits: &options.limits(),
            };
            let tell = |last| tell_last(last, &front, belongings);
            match begin(&confined, belongings) {
                Err(errno) => tell(News::Failed(errno.number())),
                Ok(started) => {
                    self.server.keep(started.process, self.program);
                    life::serve(Arc::new(self.server), started, options, &front, tell)
                }
            }
        })
    }
}

/// Tells the front the last news; the user, where the front is gone.
fn tell_last(last: News, front: &OwnedFd, belongings: &Belongings) {
    if last.tell(front.as_fd(), &[]).is_err() {
        life::complain("kyocho unix: the command was killed; what ran under it is ended\n");
        belongings.remove();
    }
}

/// Starts the first process, on its way to the launcher, and steps aside.
fn begin(confined: &Confined<'_>, belongings: &Belongings) -> Result<Started, Errno> {
    front::adopt_orphans()?;
    let started = warden::start(confined, belongings)?;
    // Behind the start, since the first client has the user's. Requests bring the permissions that they want, less the client's own mask.
    rustix::process::umask(Mode::empty());
    life::step_aside()?;
    Ok(started)
}
