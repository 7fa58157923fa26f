//! Address space: large reservations, guard pages without a mapping each, giving pages back.
//!
//! One reservation holds all stacks, so that the host's bound on the number of mappings (65,530) does not
//! bound the number of microprocesses:
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

/// Bytes of a page on the instruction sets we know.
pub const PAGE_BYTES: usize = 4096;

/// Marks pages as guards in the page tables alone, without splitting the mapping.
const MADV_GUARD_INSTALL: i32 = 102;
/// Takes the marks away.
const MADV_GUARD_REMOVE: i32 = 103;

/// Reserves `bytes` of zeroed private memory, readable and writable; a page costs memory once it is
/// touched, and is never part of a huge page (a stack of 3 KB would cost 2 MB). Stays until [`release`].
///
/// # Errors
/// `NOMEM`: the address space or its limit is exhausted, or the number of mappings.
pub fn reserve(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let address = map(bytes)?;
    // SAFETY: the range was mapped just now, and the advice changes no contents.
    let advised = unsafe { advise(address, bytes, libc::MADV_NOHUGEPAGE) };
    // Refused where the kernel has no huge pages: then there is nothing to refuse.
    let _costs_memory_at_most = advised;
    Ok(address)
}

/// As [`reserve`], but the host may use huge pages.
pub(crate) fn map(bytes: usize) -> Result<NonNull<u8>, Errno> {
    fault::check(Call::Mmap)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let arguments = [0, bytes, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: asks for a mapping at an address of the kernel's choice: nothing existing changes.
    let address = unsafe { call(libc::SYS_mmap, arguments) }?;
    NonNull::new(ptr::with_exposed_provenance_mut(address)).ok_or(Errno::NOMEM)
}

/// Unmaps a range.
///
/// # Safety
/// The range was reserved, and nobody uses it any more.
pub unsafe fn release(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    let answer = unsafe { call(libc::SYS_munmap, [address.as_ptr() as usize, bytes]) };
    // A hole in a mapping needs one more entry, which may be lacking; the range then stays mapped.
    debug_assert!(matches!(answer, Ok(_) | Err(Errno::NOMEM)), "munmap: {answer:?}");
}

/// How a guard page was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A marker in the page tables: costs no mapping.
    Marker,
    /// A protected mapping of its own, of which a process may have some ten thousands.
    Mapping,
}

/// Makes any access to the page at `address` fault.
///
/// # Errors
/// `NOMEM`: the kernel has no markers, and no mapping is left.
///
/// # Safety
/// The page belongs to the caller, who keeps nothing on it.
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

/// Makes a page guarded by a [`Guard::Marker`] ordinary and zero again.
///
/// # Errors
/// `INVAL`: this kernel has no markers.
///
/// # Safety
/// The page belongs to the caller, who no longer relies on the guard.
pub unsafe fn unguard_page(address: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: the caller owns the page.
    unsafe { advise(address, PAGE_BYTES, MADV_GUARD_REMOVE) }
}

/// Whether this kernel marks guards in the page tables. Tried once on a page of its own, then remembered.
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
            // No memory to try it on: that says nothing about the next time.
            Err(_) => false,
        },
        known => known == YES,
    }
}

/// Marks a page and looks whether it faults: an emulator that does not know the advice may report success.
fn try_marker() -> Result<bool, Errno> {
    let page = reserve(PAGE_BYTES)?;
    // SAFETY: nobody knows the page but us.
    let supported = match unsafe { advise(page, PAGE_BYTES, MADV_GUARD_INSTALL) } {
        Ok(()) => Ok(!readable(page)),
        Err(Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    };
    // SAFETY: as above.
    unsafe { release(page, PAGE_BYTES) };
    supported
}

/// Whether the kernel can read there: asks by a system call that fails instead of faulting.
fn readable(at: NonNull<u8>) -> bool {
    // SAFETY: the kernel reads a signal set from there, or reports that it cannot; `how` is invalid, so it changes nothing.
    let answer = unsafe {
        call(libc::SYS_rt_sigprocmask, [usize::MAX, at.as_ptr() as usize, 0, size_of::<u64>()])
    };
    answer != Err(Errno::FAULT)
}

/// Gives the pages of a range back to the host; they read as zero afterwards. A range marked as a guard stays one.
///
/// # Errors
/// Injected ones; a caller that only saves memory may ignore them.
///
/// # Safety
/// The range belongs to the caller, who keeps nothing on it.
pub unsafe fn discard(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range.
    unsafe { advise(address, bytes, libc::MADV_DONTNEED) }
}

/// Backs the pages of a range with memory now, so that no access to them faults later.
///
/// # Errors
/// `NOMEM` or `AGAIN`: the host has no memory. `INVAL`: before Linux 5.14.
///
/// # Safety
/// The range belongs to the caller.
pub unsafe fn populate(address: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range; contents do not change.
    unsafe { advise(address, bytes, libc::MADV_POPULATE_WRITE) }
}

/// # Safety
/// The range belongs to the caller, and may do what the advice says.
unsafe fn advise(address: NonNull<u8>, bytes: usize, advice: i32) -> Result<(), Errno> {
    fault::check(Call::Madvise)?;
    let arguments = [address.as_ptr() as usize, bytes, advice as usize];
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_madvise, arguments) }?;
    Ok(())
}

/// Copies between shared memory and our own. Others may change what is read meanwhile: so the C library does it, through a pointer
/// that the compiler knows nothing of, and nothing follows from the access but the bytes.
///
/// # Safety
/// Both ranges are mapped, `to` for writing, and do not overlap; the one of our own is initialised and nobody else's meanwhile.
pub(crate) unsafe fn copy_shared(to: *mut u8, from: *const u8, bytes: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let copy: Copy = black_box(libc::memcpy);
    // SAFETY: the caller's promise.
    unsafe { copy(to.cast(), from.cast(), bytes) };
}

#[cfg(test)]
mod tests;
