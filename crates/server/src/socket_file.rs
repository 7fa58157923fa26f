//! The name of a Unix socket that a server listens at. Nothing is ever removed but a socket of this server's user that nobody listens at.
//!
//! ```text
//!   name is free       bind
//!   name is taken      by a socket of ours, and connecting is refused: a dead server's
//!                      bind a new one beside it ── exchange both names ── look at what was taken away ── remove that
//!                                                        └── it is something else: exchange them back
//! ```
//!
//! The exchange (`renameat2`, `RENAME_EXCHANGE`) is one step, and what it takes away has a name that nobody else uses. So what happens to the
//! name between the look and the exchange does no harm. Servers that start at the same time wait for each other: each holds the lock of
//! the folder (`flock`) until it listens. Without it, one that has its name and does not listen yet would be taken for dead.

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

/// The lock of a folder is asked for so often: anybody who may read the folder can keep it.
const LOCKINGS_MAX: usize = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// A file of a directory, as the host numbers it.
type Identity = (u64, u64);

/// The name of a socket: gone when this is dropped, unless it has become something else's.
#[derive(Debug)]
pub(crate) struct SocketFile {
    place: Place,
    identity: Identity,
}

/// Listens at `path`, where anybody may connect; what is to be kept for as long.
///
/// # Errors
/// A server listens there; what is there is no socket, or another user's; the host's.
pub(crate) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let place = Place::of(path)?;
    place.lock()?;
    let (listener, identity) = match StdListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => place.take_over()?,
        result => {
            let listener = result?;
            let identity = place.identity_of(&place.name)?;
            (listener, identity.ok_or(ErrorKind::NotFound)?)
        }
    };
    place.open_to_all(identity)?;
    place.unlock()?;
    Ok((OwnedFd::from(listener).into(), SocketFile { place, identity }))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already, or another's by now: that is what was wanted.
        let _ = self.place.remove(self.identity);
    }
}

/// A name in a directory.
#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let none = || io::Error::new(ErrorKind::InvalidInput, "no name of a file");
        let name = path.file_name().ok_or_else(none)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
        Ok(Self { folder, name })
    }

    /// Waits until no other server looks at names of the folder.
    fn lock(&self) -> io::Result<()> {
        for _ in 0..LOCKINGS_MAX {
            match flock(&self.folder, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    // A signal that comes earlier has it look earlier.
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

    /// A name beside it that nobody else uses.
    fn aside(&self) -> io::Result<OsString> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(format!(".kyocho-{:016x}", u64::from_ne_bytes(number)).into())
    }

    /// Which socket of this user's a name stands for; none where it is something else.
    fn identity_of(&self, name: &OsStr) -> io::Result<Option<Identity>> {
        let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
        let is_own = found.st_uid == kyocho_sys::peer::own_user();
        Ok((is_socket && is_own).then_some((found.st_dev, found.st_ino)))
    }

    /// Lets anybody connect: the kernel tells who it is. The name may have become a link meanwhile: what a socket's own descriptor
    /// leads to is changed, nothing else.
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

    /// Refuses a name that is no socket of a dead server of this user's.
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

    /// Puts a socket in the place of a dead server's.
    fn take_over(&self) -> io::Result<(StdListener, Identity)> {
        self.is_left_over(&self.name)?;
        let aside = self.aside()?;
        let listener = StdListener::bind(self.path(&aside))?;
        let identity = self.identity_of(&aside)?.ok_or(ErrorKind::NotFound)?;
        let exchange =
            || renameat_with(&self.folder, &aside, &self.folder, &self.name, RenameFlags::EXCHANGE);
        let exchanged = exchange().map_err(io::Error::from);
        let left_over = exchanged.and_then(|()| {
            self.is_left_over(&aside).inspect_err(|_| {
                // Something else came in between: it gets its name back, unless that is gone again.
                let _ = exchange();
            })
        });
        // What has the other name now: the dead server's socket, or our own.
        let removed = match self.identity_of(&aside) {
            Ok(Some(_)) => rustix::fs::unlinkat(&self.folder, &aside, AtFlags::empty()),
            _ => Ok(()),
        };
        left_over?;
        removed?;
        Ok((listener, identity))
    }

    /// Removes the name while it stands for this socket.
    fn remove(&self, identity: Identity) -> io::Result<()> {
        let folder = &self.folder;
        if self.identity_of(&self.name)? != Some(identity) {
            return Ok(());
        }
        let aside = self.aside()?;
        renameat_with(folder, &self.name, folder, &aside, RenameFlags::NOREPLACE)?;
        if self.identity_of(&aside)? == Some(identity) {
            return Ok(rustix::fs::unlinkat(folder, &aside, AtFlags::empty())?);
        }
        Ok(renameat_with(folder, &aside, folder, &self.name, RenameFlags::NOREPLACE)?)
    }
}

#[cfg(test)]
mod tests;
