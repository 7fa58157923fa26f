//! The `/dev/shm` of an instance, and the place of its memory files.
//!
//! ```text
//!   no memory limit       a private folder in the host's `/dev/shm`; memory files are the host's
//!   memory limit          /              a limited file system of its own; memory files are here
//!                         └─ kyocho-…    what clients see as `/dev/shm`
//!   it cannot be made     an empty folder in the host's `/dev/shm`, for reading; no memory files
//! ```
//!
//! That file system is mounted nowhere, so the host shows paths in it as if they began at the
//! host's root. Its one folder has a random name, so such a path cannot be one of the host's.
//!
//! An ordinary user may not mount. A child with a user namespace of its own does, and sends the
//! root back.

use crate::errors::host;
use crate::life::report;
use crate::options::StartError;
use crate::state::filesystems::open_directory;
use crate::state::memory_files::MemoryFiles;
use crate::state::mounts::Source;
use kyocho_microprocess::sync::Mutex;
use kyocho_sys::error::Errno;
use kyocho_sys::memory_filesystem::{self, Size};
use kyocho_sys::{passing, process};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Most directories that may be left over from killed instances whose front had this process's
/// number.
const LEFT_MAX: usize = 1000;
/// For each file that may exist, the limit includes this much. The host needs less for an empty
/// one.
const BYTES_OF_FILE: u64 = 16 << 10;

/// Dropping it removes everything in it.
#[derive(Debug)]
pub(crate) enum SharedMemory {
    /// In the host's `/dev/shm`: memory has no limit.
    Folder(Folder),
    /// A file system of limited size.
    Limited(FileSystem),
    /// For reading alone: memory has a limit, but the host does not let this user make a file
    /// system.
    Empty(Folder),
}

impl SharedMemory {
    /// Makes it, for at most `bytes_max` bytes. Call it while there is one kernel thread. Blocks.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn new(bytes_max: Option<u64>) -> Result<Self, StartError> {
        let Some(bytes_max) = bytes_max else { return Folder::new().map(Self::Folder) };
        match FileSystem::new(bytes_max) {
            Ok(made) => Ok(Self::Limited(made)),
            Err(errno) => {
                tracing::warn!(%errno, "no file system of limited size: /dev/shm is for reading");
                Folder::new().map(Self::Empty)
            }
        }
    }

    /// What is mounted at `/dev/shm`.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn source(&self) -> Result<Source, StartError> {
        match self {
            Self::Folder(folder) | Self::Empty(folder) => {
                let (root, path) = open_directory(&folder.path)?;
                Ok(Source::Host { root, path })
            }
            Self::Limited(made) => {
                let root = copy_of(&made.folder)?;
                Ok(Source::Host { root, path: made.path.clone() })
            }
        }
    }

    /// Whether clients may make files in it.
    pub(crate) fn is_writable(&self) -> bool {
        !matches!(self, Self::Empty(_))
    }

    /// Where memory files are made.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn memory_files(&self) -> Result<MemoryFiles, StartError> {
        Ok(match self {
            Self::Folder(_) => MemoryFiles::OfHost,
            Self::Limited(made) => MemoryFiles::In(copy_of(&made.root)?, Mutex::new(())),
            Self::Empty(_) => MemoryFiles::Nowhere,
        })
    }

    /// Removes what would outlive the instance's processes.
    pub(crate) fn remove(&self) {
        if let Self::Folder(folder) | Self::Empty(folder) = self {
            folder.remove();
        }
    }
}

fn copy_of(file: &OwnedFd) -> Result<OwnedFd, StartError> {
    let failed = |errno| StartError::Host("descriptors", errno);
    rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(|errno| failed(host(errno)))
}

/// A directory of the host's memory, removed with all that is in it when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a new directory. If an instance was killed whole, its directory is left over, and a
    /// later process can have its number.
    ///
    /// # Errors
    /// The host's.
    fn new() -> Result<Self, StartError> {
        let first = format!("/dev/shm/kyocho-unix-{}", std::process::id());
        let mut path = PathBuf::from(&first);
        let mut made = DirBuilder::new().mode(0o700).create(&path);
        for number in 1..=LEFT_MAX {
            if !made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
                break;
            }
            path = PathBuf::from(format!("{first}-{number}"));
            made = DirBuilder::new().mode(0o700).create(&path);
        }
        match made {
            Ok(()) => Ok(Self { path }),
            Err(error) => {
                let errno = Errno::new(error.raw_os_error().unwrap_or(libc::EIO));
                Err(StartError::Mount(path, errno))
            }
        }
    }

    fn remove(&self) {
        // What is left there belonged to the instance.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A file system in memory. It goes when nothing in it is open or mapped.
#[derive(Debug)]
pub(crate) struct FileSystem {
    root: OwnedFd,
    /// Its one folder.
    folder: OwnedFd,
    /// The path that the host shows for the folder.
    path: Vec<u8>,
}

impl FileSystem {
    fn new(bytes_max: u64) -> Result<Self, Errno> {
        let size = Size { bytes_max, files_max: (bytes_max / BYTES_OF_FILE).max(2) };
        let root = match memory_filesystem::make(size) {
            Err(Errno::PERM) => made_by_child(size)?,
            other => other?,
        };
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(host)?;
        let name = format!("kyocho-{:032x}", u128::from_ne_bytes(random));
        rustix::fs::mkdirat(&root, &name, Mode::RWXU).map_err(host)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&root, &name, flags, Mode::empty()).map_err(host)?;
        Ok(Self { root, folder, path: format!("/{name}").into_bytes() })
    }
}

/// Makes a file system in a child, in namespaces of the child's own. The root belongs to this
/// process's user there, too.
fn made_by_child(size: Size) -> Result<OwnedFd, Errno> {
    let (child, (ours, theirs)) = process::fork(report::channel()?, |(ours, theirs)| {
        drop(ours);
        let made = memory_filesystem::enter_namespaces()
            .and_then(|()| memory_filesystem::make(size))
            .and_then(|root| passing::send(theirs.as_fd(), &[0; 4], &[root.as_fd()]));
        if let Err(errno) = made {
            // If the parent is gone, nothing needs to be sent.
            let _ = passing::send(theirs.as_fd(), &errno.number().to_ne_bytes(), &[]);
        }
        0
    })?;
    drop(theirs);
    let mut word = [0; 4];
    let received = passing::receive(ours.as_fd(), &mut word);
    // It ends as soon as it has sent its answer. If its status has been taken already, that is
    // fine.
    let _ = rustix::process::waitpid(Pid::from_raw(child as i32), WaitOptions::empty());
    let (count, mut descriptors) = received?;
    match (descriptors.pop(), i32::from_ne_bytes(word)) {
        (Some(root), 0) => Ok(root),
        (None, number) if count == word.len() && number != 0 => Err(Errno::new(number)),
        _ => Err(Errno::SRCH),
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;

    #[test]
    fn what_another_left_is_not_used() {
        let left = Folder::new().unwrap();
        std::fs::write(left.path.join("theirs"), "").unwrap();
        let own = Folder::new().unwrap();
        assert_eq!(std::fs::read_dir(&own.path).unwrap().count(), 0);
        let paths = [left.path.clone(), own.path.clone()];
        drop((left, own));
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
    }
}
