//! The file of a Unix socket on which a server listens. Only one kind of file is ever removed: a
//! socket of the server's own user on which no process listens.
//!
//! ```text
//!   name is free       bind
//!   name is taken      if it is a socket of this user, and connecting is refused: a dead server's.
//!                      bind a new socket beside it, exchange both names, and check what the
//!                      exchange has taken away:
//!                        ├── a dead socket: remove it
//!                        └── anything else: exchange back
//! ```
//!
//! The exchange (`renameat2`, `RENAME_EXCHANGE`) is one step, and what it takes away gets a name
//! that no other process uses. So the name may be changed between check and exchange without harm.
//! Servers that start at the same time wait for each other: each holds the lock of the folder
//! (`flock`) until it listens. Otherwise a server that is bound and does not listen yet would be
//! taken for dead.

use core::time::Duration;
use kyocho_microprocess::net::UnixListener;
use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::sleep;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, renameat_with, statat,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener as StdListener, UnixStream};
use std::path::{Path, PathBuf};

/// Attempts to lock the folder. Any process that may read the folder can keep its lock.
const LOCKINGS_MAX: usize = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// Device and number of a file.
type Identity = (u64, u64);

/// The name of a socket. Removed when this is dropped, unless it names another file by then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    entry: DirectoryEntry,
    identity: Identity,
}

/// Listens on `path`, where every user may connect. Also returns what must be kept meanwhile.
///
/// # Errors
/// A server listens there, the file is not a socket or belongs to another user, or the host
/// refuses.
pub(crate) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let entry = DirectoryEntry::of(path)?;
    entry.lock()?;
    let (listener, identity) = match StdListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => entry.take_over()?,
        result => {
            let listener = result?;
            let identity = entry.identity_of(&entry.name)?;
            (listener, identity.ok_or(ErrorKind::NotFound)?)
        }
    };
    entry.open_to_all(identity)?;
    entry.unlock()?;
    Ok((OwnedFd::from(listener).into(), SocketFile { entry, identity }))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may be gone or replaced already, which is as good.
        let _ = self.entry.remove(self.identity);
    }
}

/// A name in a directory.
#[derive(Debug)]
struct DirectoryEntry {
    folder: OwnedFd,
    name: OsString,
}

impl DirectoryEntry {
    fn of(path: &Path) -> io::Result<Self> {
        let none =
            || io::Error::new(ErrorKind::InvalidInput, "the path does not end in a file name");
        let name = path.file_name().ok_or_else(none)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        Ok(Self { folder, name })
    }

    /// Locks the folder against other servers that examine its names. Fails if another process
    /// keeps the lock for some seconds.
    fn lock(&self) -> io::Result<()> {
        for _ in 0..LOCKINGS_MAX {
            match flock(&self.folder, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    // If a signal ends the sleep early, the next attempt comes earlier.
                    let _ = sleep::until(monotonic_ns() + PAUSE.as_nanos() as u64);
                }
                result => return Ok(result?),
            }
        }
        Err(io::Error::new(ErrorKind::WouldBlock, "another process holds the folder's lock"))
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(flock(&self.folder, FlockOperation::NonBlockingUnlock)?)
    }

    /// A path to a name in the folder, short enough for a socket's address.
    fn path(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string()).join(name)
    }

    /// An unused name beside this one.
    fn unused_name(&self) -> io::Result<OsString> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(format!(".kyocho-{:016x}", u64::from_ne_bytes(number)).into())
    }

    /// The socket of this user that a name refers to. `None` if it refers to something else.
    fn identity_of(&self, name: &OsStr) -> io::Result<Option<Identity>> {
        let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
        let is_own = found.st_uid == kyocho_sys::peer::own_user();
        Ok((is_socket && is_own).then_some((found.st_dev, found.st_ino)))
    }

    /// Permits all users to connect, because the kernel identifies them. The name may have become a
    /// link meanwhile. So the rights are changed through a descriptor of the socket itself.
    fn open_to_all(&self, identity: Identity) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let socket = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&socket)?;
        if (found.st_dev, found.st_ino) != identity {
            return Err(ErrorKind::NotFound.into());
        }
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))
    }

    /// Refuses a name that is not a dead server's socket of this user.
    fn is_left_over(&self, name: &OsStr) -> io::Result<()> {
        let taken = |why| Err(io::Error::new(ErrorKind::AlreadyExists, why));
        if self.identity_of(name)?.is_none() {
            return taken("the existing file is not a socket of this user, and is not replaced");
        }
        match UnixStream::connect(self.path(name)) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => taken("a server listens here already"),
        }
    }

    /// Replaces a dead server's socket by a new one.
    fn take_over(&self) -> io::Result<(StdListener, Identity)> {
        self.is_left_over(&self.name)?;
        let spare = self.unused_name()?;
        let listener = StdListener::bind(self.path(&spare))?;
        let identity = self.identity_of(&spare)?.ok_or(ErrorKind::NotFound)?;
        let exchange =
            || renameat_with(&self.folder, &spare, &self.folder, &self.name, RenameFlags::EXCHANGE);
        let exchanged = exchange().map_err(io::Error::from);
        let left_over = exchanged.and_then(|()| {
            self.is_left_over(&spare).inspect_err(|_| {
                // Another file took the name in between. It gets its name back, unless it is gone
                // again.
                let _ = exchange();
            })
        });
        // The other name now refers to the dead server's socket or to the new one.
        let removed = match self.identity_of(&spare) {
            Ok(Some(_)) => rustix::fs::unlinkat(&self.folder, &spare, AtFlags::empty()),
            _ => Ok(()),
        };
        left_over?;
        removed?;
        Ok((listener, identity))
    }

    /// Removes the name if it refers to this socket.
    fn remove(&self, identity: Identity) -> io::Result<()> {
        let folder = &self.folder;
        if self.identity_of(&self.name)? != Some(identity) {
            return Ok(());
        }
        let spare = self.unused_name()?;
        renameat_with(folder, &self.name, folder, &spare, RenameFlags::NOREPLACE)?;
        if self.identity_of(&spare)? == Some(identity) {
            return Ok(rustix::fs::unlinkat(folder, &spare, AtFlags::empty())?);
        }
        Ok(renameat_with(folder, &spare, folder, &self.name, RenameFlags::NOREPLACE)?)
    }
}

#[cfg(test)]
mod tests;
