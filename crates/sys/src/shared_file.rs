//! A file that several processes map, with locks on ranges of it that end with their holder.
//!
//! The locks are *open file description* locks (`F_OFD_SETLK`): the kernel drops one when the last descriptor of the opening that
//! took it is closed, so at the latest when the process dies, however it dies. No process number is compared, so none can be reused.
//!
//! **Limit:** whoever may write the file may also cut it short, and a look behind its end is a `SIGBUS`: its handler may call
//! [`SharedFile::replace_by_memory`]. Other users must be kept out by the directory's permissions.
#![expect(unsafe_code, reason = "maps a file; calls on structures")]

use core::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};

/// A mapped file, mapped until dropped. Its addresses are exposed: the owner turns offsets into pointers to atomic words itself.
#[derive(Debug)]
pub struct SharedFile {
    file: OwnedFd,
    base: usize,
    bytes: usize,
}

impl SharedFile {
    /// Opens the file at `path`, makes it if it is not there, makes it at least `bytes` long and maps that much. A new file is the
    /// caller's alone (mode 0600); what was never written reads as zero.
    ///
    /// # Errors
    /// What the file system says; `LOOP` where the path ends in a link; `PERM` where the file is another user's. Injected ones.
    pub fn open(path: &CStr, bytes: usize) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let folder = libc::AT_FDCWD as usize;
        let arguments = [folder, path.as_ptr().addr(), flags as usize, 0o600];
        // SAFETY: the kernel reads `path` up to its NUL.
        let number = unsafe { call(libc::SYS_openat, arguments) }?;
        // SAFETY: the kernel has just made it, for us.
        let file = unsafe { owned(number) };
        grow(&file, bytes)?;
        fault::check(Call::Mmap)?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let descriptor = file.as_raw_fd() as usize;
        let arguments = [0, bytes, protection, libc::MAP_SHARED as usize, descriptor, 0];
        // SAFETY: asks for a mapping at an address of the kernel's choice: nothing existing changes.
        let base = unsafe { call(libc::SYS_mmap, arguments) }?;
        Ok(Self { file, base, bytes })
    }

    /// Address of the first byte; page-aligned.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Puts zeroed memory in the place of the file, as long as that was mapped: for one that was cut short. What other processes write is
    /// not seen any more. May be called in a signal handler.
    ///
    /// # Errors
    /// No memory; injected ones.
    pub fn replace_by_memory(&self) -> Result<(), Errno> {
        fault::check(Call::Mmap)?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as usize;
        let arguments = [self.base, self.bytes, protection, flags, usize::MAX, 0];
        // SAFETY: replaces our own mapping, whose contents anybody may change at any time anyway.
        unsafe { call(libc::SYS_mmap, arguments) }?;
        Ok(())
    }

    /// Locks the bytes `[offset, offset + bytes)` for this opening of the file, until it is closed or unlocked; tells whether it did.
    /// A range that the same opening has locked already is locked again.
    ///
    /// # Errors
    /// The file system has no locks; injected ones.
    pub fn try_lock(&self, offset: usize, bytes: usize) -> Result<bool, Errno> {
        match self.lock(libc::F_WRLCK, offset, bytes) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) if errno.number() == libc::EACCES => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Unlocks a range.
    ///
    /// # Errors
    /// Injected ones.
    pub fn unlock(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        self.lock(libc::F_UNLCK, offset, bytes)
    }

    fn lock(&self, kind: libc::c_int, offset: usize, bytes: usize) -> Result<(), Errno> {
        fault::check(Call::Open)?;
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: offset as libc::off_t,
            l_len: bytes as libc::off_t,
            l_pid: 0,
        };
        let command = libc::F_OFD_SETLK as usize;
        let arguments = [self.file.as_raw_fd() as usize, command, (&raw const range).addr()];
        // SAFETY: the kernel reads one `flock` from `range`.
        unsafe { call(libc::SYS_fcntl, arguments) }?;
        Ok(())
    }
}

/// Makes `file`, which must be the caller's own, at least `bytes` long.
fn grow(file: &OwnedFd, bytes: usize) -> Result<(), Errno> {
    let number = file.as_raw_fd();
    // SAFETY: a `stat` is numbers, for which all zero is a value.
    let mut found: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes one `stat` to `found`.
    if unsafe { libc::fstat(number, &raw mut found) } != 0 {
        return Err(Errno::last());
    }
    // SAFETY: takes nothing and cannot fail.
    if found.st_uid != unsafe { libc::geteuid() } || found.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(Errno::PERM);
    }
    if (found.st_size as usize) < bytes {
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_ftruncate, [number as usize, bytes]) }?;
    }
    Ok(())
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `open`; whoever made pointers from its addresses no longer uses them.
        let answer = unsafe { call(libc::SYS_munmap, [self.base, self.bytes]) };
        debug_assert!(answer.is_ok(), "munmap: {answer:?}");
    }
}

#[cfg(test)]
mod tests;
