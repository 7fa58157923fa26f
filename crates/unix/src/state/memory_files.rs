//! Memory files (`memfd_create`) of an instance whose memory has a limit.
//!
//! The host counts a memory file as no process's, and the server does not see it grow. So the file
//! that a client gets is made in the instance's own file system, whose size is limited, and then
//! loses its name there. The host shows both kinds alike. The client's file cannot be sealed and
//! has no huge pages.

use crate::errors::host;
use kyocho_microprocess::sync::Mutex;
use kyocho_sys::error::Errno;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

/// Longest name of a memory file, as on Linux.
pub(crate) const NAME_BYTES_MAX: usize = 249;
/// The host shows this before the name.
const PREFIX: &[u8] = b"memfd:";

/// Where memory files are made.
#[derive(Debug)]
pub(crate) enum MemoryFiles {
    /// By the host: memory has no limit.
    OfHost,
    /// In the root of this file system. The lock is held while a file there has a name.
    In(OwnedFd, Mutex<()>),
    /// Nowhere: the host does not let this user make a file system.
    Nowhere,
}

impl MemoryFiles {
    /// Whether they have a limit.
    pub(crate) fn have_limit(&self) -> bool {
        !matches!(self, Self::OfHost)
    }

    /// Makes a memory file.
    ///
    /// # Errors
    /// `NOSPC`: the file system has as many files as it may. `NOSYS`: there is no file system.
    pub(crate) fn make(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let Self::In(root, naming) = self else { return Err(Errno::NOSYS) };
        let mut stored = PREFIX.to_vec();
        stored.extend(name.iter().map(|byte| if *byte == b'/' { b'_' } else { *byte }));
        let _alone = naming.lock().unwrap_or_else(PoisonError::into_inner);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        let file = rustix::fs::openat(root, stored.as_slice(), flags, mode).map_err(host)?;
        rustix::fs::unlinkat(root, stored.as_slice(), AtFlags::empty()).map_err(host)?;
        Ok(file)
    }
}
