//! A file that several processes map, with locks on ranges that end with their holder.
//!
//! The locks are *open file description* locks (`F_OFD_SETLK`). The kernel releases one when the
//! last descriptor of the opening that took it is closed, at the latest when the process dies.
//! Process numbers are not compared, so reuse of a number does no harm.
//!
//! **Limit:** a process that may write the file may also shorten it; then an access after its end
//! raises `SIGBUS`. The handler may call [`SharedFile::replace_by_memory`]. The directory's
//! permissions must keep other users out.
#![expect(unsafe_code, reason = "maps a file; calls on structures")]

use core::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};

/// A file, mapped until dropped. Its addresses are exposed: the owner converts offsets to pointers
/// to atomic words.
#[derive(Debug)]
pub struct SharedFile {
    file: OwnedFd,
    base: usize,
    bytes: usize,
}

impl SharedFile {
    /// Opens the file at `path`, creates it if it is missing, makes it at least `bytes` long and
    /// maps that much. A new file belongs to the caller alone (mode 0600); bytes that were never
    /// written are zero.
    ///
    /// # Errors
    /// Errors of the file system; `LOOP` if the path ends in a link; `PERM` if the file belongs to
    /// another user. Injected errors.
    pub fn open(path: &CStr, bytes: usize) -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let folder = libc::AT_FDCWD as usize;
        let arguments = [folder, path.as_ptr().addr(), flags as usize, 0o600];
        // SAFETY: the kernel reads `path` up to its NUL.
        let number = unsafe { call(libc::SYS_openat, arguments) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        let file = unsafe { owned(number) };
        grow(&file, bytes)?;
        fault::check(Call::Mmap)?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let descriptor = file.as_raw_fd() as usize;
        let arguments = [0, bytes, protection, libc::MAP_SHARED as usize, descriptor, 0];
        // SAFETY: asks for a mapping at an address of the kernel's choice: existing memory does not
        // change.
        let base = unsafe { call(libc::SYS_mmap, arguments) }?;
        Ok(Self { file, base, bytes })
    }

    /// Address of the first byte; page-aligned.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Replaces the mapped file by zeroed memory of the same length, after the file was shortened.
    /// Writes of other processes are no longer visible. May be called in a signal handler.
    ///
    /// # Errors
    /// No memory; injected errors.
    pub fn replace_by_memory(&self) -> Result<(), Errno> {
        fault::check(Call::Mmap)?;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as usize;
        let arguments = [self.base, self.bytes, protection, flags, usize::MAX, 0];
        // SAFETY: replaces this mapping, whose contents other processes may change at any time
        // anyway.
        unsafe { call(libc::SYS_mmap, arguments) }?;
        Ok(())
    }

    /// Locks the bytes `[offset, offset + bytes)` for this opening of the file, until it is closed
    /// or unlocked. Returns whether it did. The same opening can lock a range repeatedly.
    ///
    /// # Errors
    /// The file system has no locks. Injected errors.
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
    /// Injected errors.
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

/// Makes `file`, which must belong to the caller, at least `bytes` long.
fn grow(file: &OwnedFd, bytes: usize) -> Result<(), Errno> {
    let number = file.as_raw_fd();
    // SAFETY: a `stat` consists of numbers, for which zero is a valid value.
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
        // SAFETY: mapped by `open`; pointers made from its addresses are not used any more.
        let answer = unsafe { call(libc::SYS_munmap, [self.base, self.bytes]) };
        debug_assert!(answer.is_ok(), "munmap: {answer:?}");
    }
}

#[cfg(test)]
mod tests;
