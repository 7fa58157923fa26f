//! A reserved range of anonymous memory with one owner: address space first, pages on first touch.
#![expect(unsafe_code, reason = "memory calls that ask for ownership of the range")]

use core::ptr::NonNull;

use crate::error::Errno;
use crate::memory;

/// A private anonymous mapping, readable and writable, unmapped on drop. Its addresses are exposed:
/// the owner turns offsets into pointers itself.
#[derive(Debug)]
pub struct Mapping {
    base: usize,
    bytes: usize,
}

impl Mapping {
    /// Reserves `bytes` of zeroed memory without charging the host for it before it is touched. The
    /// host may back it with huge pages.
    ///
    /// # Errors
    /// As for [`memory::reserve`].
    pub fn reserve(bytes: usize) -> Result<Self, Errno> {
        let base = memory::map(bytes)?.as_ptr().expose_provenance();
        Ok(Self { base, bytes })
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
    /// As for [`memory::discard`]. The contents are then unchanged.
    ///
    /// # Panics
    /// When the range leaves the mapping.
    pub fn discard(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "range leaves the mapping");
        // SAFETY: the range lies in our own mapping, and zeroed pages are valid for every use its
        // owner makes of raw words.
        unsafe { memory::discard(address(self.base + offset), bytes) }
    }

    /// Has the host lend the pages of `[offset, offset + bytes)` now instead of at first touch.
    ///
    /// # Errors
    /// As for [`memory::populate`]; some of the pages may be there.
    ///
    /// # Panics
    /// When the range leaves the mapping.
    pub fn populate(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "range leaves the mapping");
        // SAFETY: the range lies in our own mapping, and its contents stay.
        unsafe { memory::populate(address(self.base + offset), bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `bytes` are what was reserved, and the owner's pointers end with it.
        unsafe { memory::release(address(self.base), self.bytes) };
    }
}

/// An address inside a mapping as a pointer.
fn address(address: usize) -> NonNull<u8> {
    let pointer = core::ptr::with_exposed_provenance_mut(address);
    NonNull::new(pointer).expect("no mapping begins at address 0")
}

#[cfg(test)]
mod tests;
