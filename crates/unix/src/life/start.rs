//! Starts an instance: from the options to its first process.

use crate::clients::client::Client;
use crate::errors::NOT_FOUND;
use crate::life::host_resources::HostResources;
use crate::life::report::{Report, complain};
use crate::life::shared_memory::SharedMemory;
use crate::life::warden::{self, Started};
use crate::life::{front, serve};
use crate::options::{Options, Outcome, StartError};
use crate::paths::walk::FinalLink;
use crate::policy::filter;
use crate::program::launcher;
use crate::program::loading::{FoundProgram, Program, Refusal};
use crate::server::Server;
use crate::state::admission::Admission;
use crate::state::filesystems::{open_directory, permitted};
use crate::state::mounts::{Mount, Mounts, Source};
use crate::state::objects::Objects;
use crate::state::trace::Trace;
use kyocho_sys::confined::Confined;
use kyocho_sys::error::Errno;
use rustix::fs::Mode;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs `program` as the first process of an instance until it ends, and then ends what it left
/// running. The first of `arguments` is its name. Blocks.
///
/// The server runs in a child. This process is the front: it stops and continues with the first
/// process, and passes `TERM`, `HUP`, `USR1` and `USR2` to it. Call it while the process has one
/// kernel thread. One instance at a time.
///
/// # Errors
/// What cannot be used, found or executed, or what the host does not permit.
pub fn run(
    options: &Options,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Outcome, StartError> {
    let host_resources = HostResources::new(options.memory_max_bytes)?;
    let mounts = mounts_of(options, &host_resources.shared_memory)?;
    let admission = Admission::new(options.tasks_max);
    let trace = options.trace.then(Trace::default);
    let objects = Objects::new(Arc::clone(&host_resources.objects), options.memory_max_bytes);
    let memory_files = host_resources.shared_memory.memory_files()?;
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
    let FoundProgram { program: found, mut prefix } = find_program(&server, &base, program, path)?;
    if prefix.is_empty() {
        prefix.push(program.as_bytes().to_vec());
    }
    let words = prefix.into_iter().chain(rest.iter().map(|word| word.as_bytes().to_vec()));
    let words: Vec<CString> = words.filter_map(|word| CString::new(word).ok()).collect();
    let pairs =
        environment.iter().map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    let pairs: Vec<CString> = pairs.filter_map(|pair| CString::new(pair).ok()).collect();
    let first = FirstProcess { server, program: found, base, arguments: words, environment: pairs };
    first.run(options, &host_resources)
}

/// The search path for programs if the environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The mounts of an instance: the root, those that every instance has, and those that were asked
/// for.
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
        Component::Normal(name) => Some(crate::state::mounts::child(&at, name.as_bytes())),
        _ => None,
    })
}

fn host_mount(at: Vec<u8>, path: &Path, writable: bool) -> Result<Mount, StartError> {
    let place = path;
    let (root, path) = open_directory(place)?;
    permitted(&root).map_err(|errno| StartError::Mount(place.to_path_buf(), errno))?;
    Ok(Mount { at, source: Source::Host { root, path }, writable })
}

/// The directory in which an instance begins: the current one, if that is visible inside.
fn own_directory(server: &Server) -> Vec<u8> {
    let own = std::env::current_dir().ok();
    let own = own.and_then(|path| server.mounts.to_virtual(path.as_os_str().as_bytes()));
    own.filter(|path| server.node(&Client::own_process(), path).is_ok())
        .unwrap_or_else(|| b"/".to_vec())
}

/// Finds the program called `name` as a shell does.
fn find_program(
    server: &Server,
    base: &[u8],
    name: &OsStr,
    path: &OsStr,
) -> Result<FoundProgram, StartError> {
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
            .walk(&Client::own_process(), base, &candidate, FinalLink::Follow)
            .map_err(Refusal::from)
            .and_then(|node| server.program(&Client::own_process(), node, &candidate));
        match found {
            Ok(found) => return Ok(found),
            Err(Refusal::Host(NOT_FOUND | crate::errors::NOT_A_DIRECTORY)) => {}
            Err(refusal) => {
                failure = StartError::NotExecutable(name.to_os_string(), refusal.to_string());
            }
        }
    }
    Err(failure)
}

/// Everything that the first process needs.
struct FirstProcess {
    server: Server,
    program: Program,
    /// The virtual path of its directory.
    base: Vec<u8>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl FirstProcess {
    /// Runs it under a server, with this process as the front.
    fn run(self, options: &Options, host_resources: &HostResources) -> Result<Outcome, StartError> {
        let image = launcher::image(options.personality).map_err(|error| {
            StartError::Host("memory files", Errno::new(error.raw_os_error().unwrap_or(libc::EIO)))
        })?;
        let directory = self.server.node(&Client::own_process(), &self.base).map_err(|errno| {
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
            let report_end = |last| send_last(last, &front, host_resources);
            match begin(&confined, host_resources) {
                Err(errno) => report_end(Report::Failed(errno.number())),
                Ok(started) => {
                    self.server.keep(started.process, self.program);
                    serve::serve(Arc::new(self.server), started, options, &front, report_end)
                }
            }
        })
    }
}

/// Sends the last report to the front, and waits until it was received. If the front ends without
/// receiving it, tells the user.
fn send_last(last: Report, front: &OwnedFd, host_resources: &HostResources) {
    if last.send_last(front.as_fd()).is_err() {
        complain(
            "kyocho unix: the command was killed; its programs were ended
",
        );
        host_resources.remove();
    }
}

/// Starts the first process, which begins in the launcher, and leaves the job's process group.
fn begin(confined: &Confined<'_>, host_resources: &HostResources) -> Result<Started, Errno> {
    front::adopt_orphans()?;
    let started = warden::start(confined, host_resources)?;
    // After the start, because the first client keeps the user's mask. Requests bring the
    // permissions that they want, with the client's own mask applied.
    rustix::process::umask(Mode::empty());
    serve::step_aside()?;
    Ok(started)
}
