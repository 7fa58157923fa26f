//! Which pages of a range were written to (`PAGEMAP_SCAN`, Linux 6.7), and the page table entry of
//! one page.
#![expect(unsafe_code, reason = "a call on structures")]

use std::os::fd::{AsRawFd, OwnedFd};

use crate::descriptor::{self, Access};
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::memory::PAGE_BYTES;
use crate::raw::call;

/// Bits of an entry of `/proc/PID/pagemap` (`Documentation/admin-guide/mm/pagemap.rst`).
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_WRITE_PROTECTED: u64 = 1 << 57;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: usize = 3 << 30 | size_of::<Scan>() << 16 | 0x66 << 8 | 16;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
/// `PM_SCAN_WP_MATCHING`: reported pages are protected again, atomically.
const PROTECT_AGAIN: u64 = 1;
/// Most runs of pages that one call reports.
const RUNS_MAX: usize = 64;

#[repr(C)]
struct Scan {
    bytes: u64,
    flags: u64,
    start: u64,
    end: u64,
    walked_to: u64,
    runs: u64,
    runs_max: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    reported: u64,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

/// The page table entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageEntry {
    /// The page is in the page table.
    pub present: bool,
    /// A [`crate::userfault::Userfault`] write-protects the page. A marker preserves this for a
    /// page that was reclaimed.
    pub write_protected: bool,
}

/// The page table of this process.
#[derive(Debug)]
pub struct PageMap {
    descriptor: OwnedFd,
}

impl PageMap {
    /// Opens the page table of this process.
    ///
    /// # Errors
    /// There is no `/proc`; `MFILE`. Injected errors.
    pub fn open() -> Result<Self, Errno> {
        Ok(Self { descriptor: descriptor::open(c"/proc/self/pagemap", Access::Read)? })
    }

    /// Calls `visit` with start and length of each run of pages in `[start, start + bytes)` that
    /// are not write-protected by a [`crate::userfault::Userfault`], and protects them atomically.
    /// If all pages were protected before, these are the pages written since. A later write is
    /// reported by the next call.
    ///
    /// Costs some nanoseconds for each page of the range. Memory without such a descriptor is
    /// skipped.
    ///
    /// # Errors
    /// `INVAL`: this kernel does not support it. Injected errors.
    pub fn take_written(
        &self,
        start: usize,
        bytes: usize,
        visit: impl FnMut(usize, usize),
    ) -> Result<(), Errno> {
        self.scan(start, bytes, PROTECT_AGAIN, visit)
    }

    /// The same without protecting: the next call reports these pages again.
    ///
    /// # Errors
    /// Those of [`PageMap::take_written`].
    pub fn look_for_written(
        &self,
        start: usize,
        bytes: usize,
        visit: impl FnMut(usize, usize),
    ) -> Result<(), Errno> {
        self.scan(start, bytes, 0, visit)
    }

    /// The page table entry of the page at `address`, read atomically.
    ///
    /// # Errors
    /// `INVAL`: no page has this address. Injected errors.
    pub fn entry(&self, address: usize) -> Result<PageEntry, Errno> {
        fault::check(Call::Userfault)?;
        let mut entry = 0_u64;
        let into = (&raw mut entry).expose_provenance();
        let offset = address / PAGE_BYTES * size_of::<u64>();
        let descriptor = self.descriptor.as_raw_fd() as usize;
        let arguments = [descriptor, into, size_of::<u64>(), offset];
        // SAFETY: the kernel writes at most 8 bytes to a local word.
        let bytes = unsafe { call(libc::SYS_pread64, arguments) }?;
        if bytes != size_of::<u64>() {
            return Err(Errno::INVAL);
        }
        Ok(PageEntry {
            present: entry & ENTRY_PRESENT != 0,
            write_protected: entry & ENTRY_WRITE_PROTECTED != 0,
        })
    }

    fn scan(
        &self,
        start: usize,
        bytes: usize,
        flags: u64,
        mut visit: impl FnMut(usize, usize),
    ) -> Result<(), Errno> {
        let mut runs = [Run::default(); RUNS_MAX];
        let (mut at, end) = (start as u64, (start + bytes) as u64);
        while at < end {
            fault::check(Call::Userfault)?;
            let mut scan = Scan {
                bytes: size_of::<Scan>() as u64,
                flags,
                start: at,
                end,
                walked_to: 0,
                runs: runs.as_mut_ptr().expose_provenance() as u64,
                runs_max: RUNS_MAX as u64,
                pages_max: 0,
                inverted: 0,
                all_of: PAGE_IS_WRITTEN,
                any_of: 0,
                reported: PAGE_IS_WRITTEN,
            };
            let descriptor = self.descriptor.as_raw_fd() as usize;
            let arguments = [descriptor, PAGEMAP_SCAN, (&raw mut scan).expose_provenance()];
            // SAFETY: the kernel reads and writes one structure of the given size, and writes at
            // most as many runs as there is room for.
            let found = unsafe { call(libc::SYS_ioctl, arguments) }?;
            for run in &runs[..found] {
                visit(run.start as usize, (run.end - run.start) as usize);
            }
            at = scan.walked_to;
        }
        Ok(())
    }
}
