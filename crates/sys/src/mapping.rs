//! A reserved range of anonymous memory: address space first, pages on first touch.
#![expect(unsafe_code, reason = "mmap, madvise and munmap are raw calls")]

use core::ptr;
use std::io;

/// A private anonymous mapping, readable and writable, unmapped on drop. Its addresses are exposed:
/// the owner turns offsets into pointers itself.
#[derive(Debug)]
pub struct Mapping {
    base: usize,
    bytes: usize,
}

impl Mapping {
    /// Reserves `bytes` of zeroed memory without charging the host for it before it is touched.
    ///
    /// # Errors
    /// What `mmap` says.
    pub fn reserve(bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address the kernel picks touches nobody's memory.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: at.expose_provenance(), bytes })
    }

    /// Address of the first byte; page-aligned.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Length.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the pages of `[offset, offset + bytes)` back to the host; they read as zero when next
    /// touched.
    ///
    /// # Errors
    /// What `madvise` says. The contents are then unchanged.
    ///
    /// # Panics
    /// When the range leaves the mapping.
    pub fn discard(&self, offset: usize, bytes: usize) -> io::Result<()> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "range leaves the mapping");
        let at = ptr::with_exposed_provenance_mut(self.base + offset);
        // SAFETY: the range lies in our own mapping, and zeroed pages are valid for every use its
        // owner makes of raw words.
        if unsafe { libc::madvise(at, bytes, libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `bytes` are what `mmap` gave, and the owner's pointers end with it.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.base), self.bytes) };
    }
}
