//! Address space: large reservations, guard pages that need no mapping of their own, returning
//! pages.
//!
//! One reservation holds all stacks, so that the host's bound on the number of mappings (65,530)
//! does not limit the number of microprocesses:
//!
//! ```text
//!   reservation  ├ guard page ┼── stack ... ──┼ guard page ┼── stack ... ──┤   one mapping;
//!                guards are marks in its page table (MADV_GUARD_INSTALL, Linux 6.13), not holes
//! ```
#![expect(unsafe_code, reason = "raw system calls on address ranges")]

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr::{self, NonNull};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::atomic::unmodelled::{AtomicU8, Ordering};
use crate::raw::call;

/// Bytes of a page on all supported instruction sets.
pub const PAGE_BYTES: usize = 4096;

/// Marks pages as guards in the page table only, without splitting the mapping.
const MADV_GUARD_INSTALL: i32 = 102;
/// Removes the marks.
const MADV_GUARD_REMOVE: i32 = 103;

/// Reserves `bytes` of zeroed private memory, readable and writable, until [`release`]. A page uses
/// memory once it is touched. Huge pages are not used (with them, a stack of 3 KB would use 2 MB).
///
/// # Errors
/// `NOMEM`: the address space or its limit is exhausted, or the number of mappings.
pub fn reserve(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let address = map(bytes)?;
    // SAFETY: the range was mapped just now, and the advice changes no contents.
    let advised = unsafe { advise(address, bytes, libc::MADV_NOHUGEPAGE) };
    // Refused if the kernel has no huge pages; then none will be used.
    let _costs_memory_at_most = advised;
    Ok(address)
}

/// As [`reserve`], but the host may use huge pages.
pub(crate) fn map(bytes: usize) -> Result<NonNull<u8>, Errno> {
    fault::check(Call::Mmap)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let arguments = [0, bytes, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: asks for a mapping at an address of the kernel's choice: existing memory does not
    // change.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    NonNull::new(ptr::with_exposed_provenance_mut(address)).ok_or(Errno::NOMEM)
}

/// Unmaps a range.
///
/// # Safety
/// The range was reserved, and is not used any more.
pub unsafe fn release(address: NonNull<u8>, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    let answer = unsafe { call(libc::SYS_munmap, [address.as_ptr() as usize, bytes]) };
    // A hole in a mapping needs another mapping, which the host may refuse; the range stays mapped
    // then.
    debug_assert!(matches!(answer, Ok(_) | Err(Errno::NOMEM)), "munmap: {answer:?}");
}

/// The implementation of a guard page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A marker in the page table: needs no mapping.
    Marker,
    /// A protected mapping. A process may have some ten thousand of them.
    Mapping,
}

/// Makes any access to the page at `address` fault.
///
/// # Errors
/// `NOMEM`: the kernel has no markers, and no mapping is left.
///
/// # Safety
/// The page belongs to the caller and contains nothing in use.
pub unsafe fn guard_page(address: NonNull<u8>) -> Result<Guard, Errno> {
    if markers_supported() {
        // SAFETY: the caller owns the page.
        let marked = unsafe { advise(address, PAGE_BYTES, MADV_GUARD_INSTALL) };
        if marked.is_ok() {
            return Ok(Guard::Marker);
        }
    }
    fault::check(Call::Mprotect)?;
    let arguments = [address.as_ptr() as usize, PAGE_BYTES, libc::PROT_NONE as usize];
    // SAFETY: the caller owns the page.
    unsafe { call(libc::SYS_mprotect, arguments) }?;
    Ok(Guard::Mapping)
}

/// Turns a page guarded by a [`Guard::Marker`] into an ordinary zeroed page.
///
/// # Errors
/// `INVAL`: this kernel has no markers.
///
/// # Safety
/// The page belongs to the caller, which no longer relies on the guard.
pub unsafe fn unguard_page(address: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: the caller owns the page.
    unsafe { advise(address, PAGE_BYTES, MADV_GUARD_REMOVE) }
}

/// Whether this kernel supports guard markers. Tested once on a new page, then remembered.
#[must_use]
pub fn markers_supported() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    static SUPPORT: AtomicU8 = AtomicU8::new(UNKNOWN);
    match SUPPORT.load(Ordering::Relaxed) {
        UNKNOWN => match try_marker() {
            Ok(supported) => {
                SUPPORT.store(if supported { YES } else { NO }, Ordering::Relaxed);
                supported
            }
            // No memory for the test. The next call tests again.
            Err(_) => false,
        },
        known => known == YES,
    }
}

/// Marks a page and checks that it faults: an emulator that does not know the advice may report
/// success.
fn try_marker() -> Result<bool, Errno> {
    let page = reserve(PAGE_BYTES)?;
    // SAFETY: the page is used here only.
    let supported = match unsafe { advise(page, PAGE_BYTES, MADV_GUARD_INSTALL) } {
        Ok(()) => Ok(!readable(page)),
        Err(Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    };
    // SAFETY: as above.
    unsafe { release(page, PAGE_BYTES) };
    supported
}

/// Whether the kernel can read there: uses a system call that fails instead of faulting.
fn readable(at: NonNull<u8>) -> bool {
    // SAFETY: the kernel reads a signal set from there, or reports that it cannot; `how` is
    // invalid, so it changes nothing.
    let answer = unsafe {
        call(libc::SYS_rt_sigprocmask, [usize::MAX, at.as_ptr() as usize, 0, size_of::<u64>()])
    };
    answer != Err(Errno::FAULT)
}

/// Returns the pages of a range to the host. They read as zero afterwards. A guard marker stays in
/// place.
///
/// # Errors
/// Injected errors. A caller that only saves memory may ignore them.
///
/// # Safety
/// The range belongs to the caller and contains nothing in use.
pub unsafe fn discard(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range.
    unsafe { advise(address, bytes, libc::MADV_DONTNEED) }
}

/// Backs the pages of a range with memory now, so that later accesses do not fault.
///
/// # Errors
/// `NOMEM` or `AGAIN`: the host has no memory. `INVAL`: before Linux 5.14.
///
/// # Safety
/// The range belongs to the caller.
pub unsafe fn populate(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range; its contents do not change.
    unsafe { advise(address, bytes, libc::MADV_POPULATE_WRITE) }
}

/// # Safety
/// The range belongs to the caller, and the advice may be applied to it.
unsafe fn advise(address: NonNull<u8>, bytes: usize, advice: i32) -> Result<(), Errno> {
    fault::check(Call::Madvise)?;
    let arguments = [address.as_ptr() as usize, bytes, advice as usize];
    // SAFETY: guaranteed by the caller.
    unsafe { call(libc::SYS_madvise, arguments) }?;
    Ok(())
}

/// Copies between shared and private memory. Other processes may write during the copy, so the
/// result may be a mixture. The C library's `memcpy` makes the copy, through a pointer that the
/// compiler cannot see through. So the compiler concludes nothing from the access.
///
/// # Safety
/// Both ranges are mapped, `to` for writing, and do not overlap. The private one is initialised,
/// and nothing else accesses it during the copy.
pub(crate) unsafe fn copy_shared(to: *mut u8, from: *const u8, bytes: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let copy: Copy = black_box(libc::memcpy);
    // SAFETY: guaranteed by the caller.
    unsafe { copy(to.cast(), from.cast(), bytes) };
}

#[cfg(test)]
mod tests;
