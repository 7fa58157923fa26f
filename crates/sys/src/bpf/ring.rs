//! A ring written by programs, whose reader can sleep.
//!
//! The ring only notifies the reader *that* something was written. The data itself is state in
//! [`Words`](super::Words).
#![expect(unsafe_code, reason = "maps the ring's two positions")]

use core::ffi::c_ulong;
use core::ptr::NonNull;
use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd};

use super::words::map_shared;
use super::{Map, MapCreate};
use crate::error::Errno;
use crate::memory::{self, PAGE_BYTES};
use crate::poll::{self, Interest};
use crate::prim::atomic::unmodelled::{AtomicU64, Ordering};

/// A ring (`BPF_MAP_TYPE_RINGBUF`) of one page.
#[derive(Debug)]
pub struct Ring {
    map: Map,
    /// Position up to which the reader has read.
    read: NonNull<AtomicU64>,
    /// Position up to which programs have written.
    written: NonNull<AtomicU64>,
}

// SAFETY: atomic words in memory that lives as long as this.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Creates a ring. Maps two pages.
    ///
    /// # Errors
    /// As for [`Map::hash`]; `NOMEM` also for no more mappings.
    pub fn new() -> Result<Self, Errno> {
        let wanted = MapCreate { kind: 27, entries_max: PAGE_BYTES as u32, ..MapCreate::default() };
        let map = wanted.create()?;
        let read = map_shared(&map, 0, PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE)?.cast();
        let page = PAGE_BYTES as c_ulong;
        let written = map_shared(&map, page, PAGE_BYTES, libc::PROT_READ).inspect_err(|_| {
            // SAFETY: mapped above, and not shared yet.
            unsafe { memory::release(read.cast(), PAGE_BYTES) };
        })?;
        Ok(Self { map, read, written: written.cast() })
    }

    /// The map that programs write to.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Waits until something was written since the last call, or `also` is readable, or `timeout`
    /// has passed. Returns whether something was written. Blocks the kernel thread.
    ///
    /// # Errors
    /// As for [`poll::wait`].
    pub fn wait(&self, also: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<bool, Errno> {
        let wanted = [(self.map.as_fd(), Interest::Read), (also, Interest::Read)];
        poll::wait(wanted, timeout)?;
        Ok(self.drain())
    }

    /// Discards the written data. Returns whether there was any.
    fn drain(&self) -> bool {
        // SAFETY: mapped in `new`, aligned, and atomic on both sides.
        let written = unsafe { self.written.as_ref() };
        // SAFETY: as above.
        let read = unsafe { self.read.as_ref() };
        let end = written.load(Ordering::Acquire);
        read.swap(end, Ordering::AcqRel) != end
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for page in [self.read, self.written] {
            // SAFETY: mapped in `new`; this is the last reference.
            unsafe { memory::release(page.cast(), PAGE_BYTES) };
        }
    }
}
