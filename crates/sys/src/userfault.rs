//! Page faults of a memory range that a program handles itself (`userfaultfd`), on the faulting
//! thread.
//!
//! The kernel raises `SIGBUS` on the faulting thread instead of notifying another one
//! (`UFFD_FEATURE_SIGBUS`). Only faults in user mode are handled, so no privilege is needed. A
//! system call that meets such a page fails with `FAULT`.
//!
//! ```text
//!   not in the page table ──access──> SIGBUS   admit(pages, WriteProtected) ──> readable
//!   write-protected ───────write───> SIGBUS    if written pages are collected, the kernel permits
//!                                              and records the write instead
//! ```
#![expect(unsafe_code, reason = "calls on structures")]

use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};

/// The effect of a write to a write-protected page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Raises `SIGBUS`.
    Stop,
    /// Permitted and recorded; [`crate::pagemap::PageMap::take_written`] reports it. Linux 6.7.
    Pass,
}

/// Access to pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Reads; the effect of a write was chosen at the start ([`Writes`]).
    WriteProtected,
    /// Every access.
    ReadWrite,
}

const UFFD_USER_MODE_ONLY: i32 = 1;
const UFFD_API: u64 = 0xAA;
const FEATURE_WP: u64 = 1;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_SIGBUS: u64 = 1 << 7;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_WP_SHMEM: u64 = 1 << 12;
const FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const FEATURE_WP_ASYNC: u64 = 1 << 15;

const REGISTER_MISSING: u64 = 1;
const REGISTER_WP: u64 = 2;
const REGISTER_MINOR: u64 = 4;
const WRITEPROTECT_SET: u64 = 1;
const CONTINUE_WP: u64 = 2;

/// `_IOWR(0xAA, number, a structure of that size)`.
const fn request(number: usize, bytes: usize) -> usize {
    3 << 30 | bytes << 16 | 0xAA << 8 | number
}

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Range {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: Range,
    mode: u64,
}

#[repr(C)]
struct Continue {
    range: Range,
    mode: u64,
    mapped: i64,
}

/// Handles the faults of some ranges of shared memory, until dropped or until a range is unmapped.
#[derive(Debug)]
pub struct Userfault {
    descriptor: OwnedFd,
}

impl Userfault {
    /// Handles the faults of `[base, base + bytes)`, a mapping of a memory file
    /// ([`crate::two_views`]).
    ///
    /// # Errors
    /// `NOSYS`, `INVAL`: this kernel does not support it. `PERM`: this process may not. `MFILE`.
    /// Injected errors.
    pub fn of(base: usize, bytes: usize, writes: Writes) -> Result<Self, Errno> {
        fault::check(Call::Userfault)?;
        let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY) as usize;
        // SAFETY: takes a number.
        let number = unsafe { call(libc::SYS_userfaultfd, [flags]) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        let this = Self { descriptor: unsafe { owned(number) } };
        let asynchronous = match writes {
            Writes::Stop => 0,
            Writes::Pass => FEATURE_WP_ASYNC | FEATURE_WP_UNPOPULATED,
        };
        let shared = FEATURE_MISSING_SHMEM | FEATURE_MINOR_SHMEM | FEATURE_WP_SHMEM;
        let features = FEATURE_WP | FEATURE_SIGBUS | shared | asynchronous;
        this.ask(0x3F, &mut Api { api: UFFD_API, features, ioctls: 0 })?;
        this.take_over(base, bytes)?;
        Ok(this)
    }

    /// Also handles the faults of another range, in the same way.
    ///
    /// # Errors
    /// `INVAL`: not such a mapping. `BUSY`: its faults are handled already. Injected errors.
    pub fn take_over(&self, base: usize, bytes: usize) -> Result<(), Errno> {
        let range = Range { start: base as u64, bytes: bytes as u64 };
        let mode = REGISTER_MISSING | REGISTER_WP | REGISTER_MINOR;
        self.ask(0x00, &mut Register { range, mode, ioctls: 0 })
    }

    /// Adds the pages of `[start, start + bytes)` to the page table with these rights. Pages that
    /// are in it already do not change. The pages must exist: they were touched in another view.
    ///
    /// # Errors
    /// `FAULT`: a page does not exist. `NOMEM`. Injected errors.
    pub fn admit(&self, start: usize, bytes: usize, to: Admission) -> Result<(), Errno> {
        let (end, mut at) = (start + bytes, start);
        while at < end {
            let range = Range { start: at as u64, bytes: (end - at) as u64 };
            let mode = if to == Admission::WriteProtected { CONTINUE_WP } else { 0 };
            let mut more = Continue { range, mode, mapped: 0 };
            match self.ask(0x07, &mut more) {
                Ok(()) => break,
                Err(errno) if errno.number() == libc::EEXIST => {
                    // The pages before it are done; this one is in the page table already.
                    at += usize::try_from(more.mapped).unwrap_or(0) + crate::memory::PAGE_BYTES;
                }
                Err(Errno::AGAIN) => at += usize::try_from(more.mapped).unwrap_or(0),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Changes the rights of the pages that are in the page table.
    ///
    /// # Errors
    /// `NOMEM`. Injected errors.
    pub fn write_protect(&self, start: usize, bytes: usize, to: Admission) -> Result<(), Errno> {
        let range = Range { start: start as u64, bytes: bytes as u64 };
        let mode = if to == Admission::WriteProtected { WRITEPROTECT_SET } else { 0 };
        self.ask(0x06, &mut WriteProtect { range, mode })
    }

    fn ask<T>(&self, number: usize, structure: &mut T) -> Result<(), Errno> {
        fault::check(Call::Userfault)?;
        let descriptor = self.descriptor.as_raw_fd() as usize;
        let arguments =
            [descriptor, request(number, size_of::<T>()), core::ptr::from_mut(structure).addr()];
        // SAFETY: the request contains the structure's size, and the kernel reads and writes no
        // more. Its effect concerns faults and rights in the range only, never its contents.
        unsafe { call(libc::SYS_ioctl, arguments) }?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
