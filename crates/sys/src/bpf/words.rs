//! An array of words in memory shared by programs and this process.
#![expect(unsafe_code, reason = "maps memory of the host")]

use core::ffi::c_ulong;
use core::ptr::{self, NonNull};
use core::slice;
use std::os::fd::{AsFd, AsRawFd};

use super::{MMAPABLE, Map, MapCreate};
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory;
use crate::prim::atomic::unmodelled::AtomicU64;
use crate::raw::call;

/// Entries of `WORDS` words each.
#[derive(Debug)]
pub struct Words<const WORDS: usize> {
    map: Map,
    start: NonNull<[AtomicU64; WORDS]>,
    entries_max: usize,
}

// SAFETY: atomic words in memory that lives as long as this.
unsafe impl<const WORDS: usize> Send for Words<WORDS> {}
// SAFETY: as above.
unsafe impl<const WORDS: usize> Sync for Words<WORDS> {}

impl<const WORDS: usize> Words<WORDS> {
    /// `entries_max` entries, all zero.
    ///
    /// # Errors
    /// As for [`Map::hash`].
    pub fn new(entries_max: u32) -> Result<Self, Errno> {
        let value_bytes = (WORDS * size_of::<u64>()) as u32;
        let (kind, key_bytes, flags) = (2, 4, MMAPABLE);
        let wanted = MapCreate { kind, key_bytes, value_bytes, entries_max, flags, inner_map: 0 };
        let map = wanted.create()?;
        let entries_max = entries_max as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let start = map_shared(&map, 0, entries_max * value_bytes as usize, protection)?.cast();
        Ok(Self { map, start, entries_max })
    }

    /// The map in which programs look entries up by number, a `u32`.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[[AtomicU64; WORDS]] {
        // SAFETY: mapped in `new` with this length, page-aligned, zeroed, and atomic on both sides.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.entries_max) }
    }
}

impl<const WORDS: usize> Drop for Words<WORDS> {
    fn drop(&mut self) {
        let bytes = self.entries_max * WORDS * size_of::<u64>();
        // SAFETY: mapped in `new`; borrows of the entries have ended.
        unsafe { memory::release(self.start.cast(), bytes) };
    }
}

/// Maps `bytes` of a map, starting at `offset`.
pub(super) fn map_shared(
    map: &Map,
    offset: c_ulong,
    bytes: usize,
    protection: i32,
) -> Result<NonNull<u8>, Errno> {
    fault::check(Call::Mmap)?;
    let descriptor = map.as_fd().as_raw_fd() as usize;
    let (anywhere, shared) = (0, libc::MAP_SHARED as usize);
    let arguments = [anywhere, bytes, protection as usize, shared, descriptor, offset as usize];
    // SAFETY: maps at an address chosen by the kernel.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    NonNull::new(ptr::with_exposed_provenance_mut(address)).ok_or(Errno::NOMEM)
}
