//! A reserved range of anonymous memory with one owner: address space at first, pages on first
//! touch.
#![expect(unsafe_code, reason = "memory calls that ask for ownership of the range")]

use core::ptr::NonNull;

use crate::error::Errno;
use crate::memory;

/// A private anonymous mapping, readable and writable, unmapped on drop. Its addresses are exposed:
/// the owner converts offsets to pointers.
#[derive(Debug)]
pub struct Mapping {
    base: usize,
    bytes: usize,
}

impl Mapping {
    /// Reserves `bytes` of zeroed memory. A page uses memory of the host once it is touched. The
    /// host may use huge pages.
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

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the pages of `[offset, offset + bytes)` to the host. They read as zero when next
    /// touched.
    ///
    /// # Errors
    /// As for [`memory::discard`]. The contents are unchanged then.
    ///
    /// # Panics
    /// The range exceeds the mapping.
    pub fn discard(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(
            offset <= self.bytes && bytes <= self.bytes - offset,
            "the range exceeds the mapping"
        );
        // SAFETY: the range lies in this mapping, and zeroed pages are valid for every use that its
        // owner makes of raw words.
        unsafe { memory::discard(address(self.base + offset), bytes) }
    }

    /// Backs the pages of `[offset, offset + bytes)` with memory now instead of at first touch.
    ///
    /// # Errors
    /// As for [`memory::populate`]; some pages may be backed.
    ///
    /// # Panics
    /// The range exceeds the mapping.
    pub fn populate(&self, offset: usize, bytes: usize) -> Result<(), Errno> {
        assert!(
            offset <= self.bytes && bytes <= self.bytes - offset,
            "the range exceeds the mapping"
        );
        // SAFETY: the range lies in this mapping, and its contents do not change.
        unsafe { memory::populate(address(self.base + offset), bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `bytes` are the reserved range, and the owner's pointers are not used
        // any more.
        unsafe { memory::release(address(self.base), self.bytes) };
    }
}

/// A pointer to an address inside a mapping.
fn address(address: usize) -> NonNull<u8> {
    let pointer = core::ptr::with_exposed_provenance_mut(address);
    NonNull::new(pointer).expect("no mapping begins at address 0")
}

#[cfg(test)]
mod tests;
