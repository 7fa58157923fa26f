//! The process at the other end of a socket of this machine (`SO_PEERCRED`).
#![expect(unsafe_code, reason = "a system call that fills a structure")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;

/// A process, as the kernel identified it when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Process number; 0 if the process is not visible from this namespace.
    pub process: u32,
    /// Effective user.
    pub user: u32,
}

/// The effective user of this process.
#[must_use]
pub fn own_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

impl Peer {
    /// The process that connected `socket`.
    ///
    /// # Errors
    /// `NOTSOCK`, `NOPROTOOPT`: not a socket of this machine.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `bytes` bytes to a local structure.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut found).cast(),
                &raw mut bytes,
            )
        };
        if answer != 0 {
            return Err(Errno::last());
        }
        Ok(Self { process: u32::try_from(found.pid).unwrap_or(0), user: found.uid })
    }

    /// Whether it has the same user as this process, or is the superuser.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.user == own_user() || self.user == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn kernel_names_the_other_end() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(one.as_fd()).unwrap();
        assert_eq!(peer.process, std::process::id());
        assert!(peer.is_trusted());
        assert!(!Peer { user: peer.user + 1, ..peer }.is_trusted());
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(Peer::of(reader.as_fd()).is_err());
    }
}
