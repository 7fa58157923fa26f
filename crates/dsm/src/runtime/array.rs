//! Objects in shared memory.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

use bytemuck::Pod;

use crate::address::PageId;
use crate::runtime::cell::SharedCell;
use kyocho_sys::memory::PAGE_BYTES;

/// An array in shared memory: its place, the same on all nodes. [`super::Dsm::cells`] gives access.
///
/// Elements are plain data of at least 4 bytes' alignment ([`super::Dsm::allocate`] refuses others when it is compiled): a word of 4
/// bytes is what two nodes can write side by side.
pub struct SharedArray<T> {
    offset: usize,
    length: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<T> Clone for SharedArray<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedArray<T> {}

impl<T> fmt::Debug for SharedArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedArray({} elements at {:#x})", self.length, self.offset)
    }
}

impl<T: Pod> SharedArray<T> {
    pub(super) const fn new(offset: usize, length: usize) -> Self {
        const { assert!(align_of::<T>() >= 4, "elements of whole words") }
        Self { offset, length, _elements: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pages that some elements lie on.
    ///
    /// # Panics
    /// The range leaves the array.
    #[must_use]
    pub fn pages(&self, elements: Range<usize>) -> Vec<PageId> {
        assert!(
            elements.start <= elements.end && elements.end <= self.length,
            "outside of the array"
        );
        let first = self.offset + elements.start * size_of::<T>();
        let end = self.offset + elements.end * size_of::<T>();
        let pages = first / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        let pages = if elements.is_empty() { 0..0 } else { pages };
        pages.map(|page| PageId(page as u64)).collect()
    }

    /// The words of shared memory that one element is.
    ///
    /// # Panics
    /// The index lies outside of the array.
    pub(super) fn words(&self, index: usize) -> Range<usize> {
        assert!(index < self.length, "outside of the array");
        let first = (self.offset + index * size_of::<T>()) / 4;
        first..first + size_of::<T>() / 4
    }

    /// Whether it ends in the first `bytes` of shared memory.
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        self.offset + self.length * size_of::<T>() <= bytes
    }

    /// The elements of a memory that begins at `base`.
    ///
    /// # Safety
    /// The array was allocated in that memory, which stays mapped for `'a`; what is not readable or writable is made so by a handler.
    #[expect(unsafe_code, reason = "makes cells of mapped memory")]
    pub(super) unsafe fn shared_cells<'a>(&self, base: usize) -> &'a [SharedCell<T>] {
        let first = core::ptr::with_exposed_provenance::<SharedCell<T>>(base + self.offset);
        // SAFETY: in bounds and aligned, as allocated; plain data, so any bytes are values; shared cells are touched by atomic words alone, so other threads may touch them too.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }

    /// The same for one thread alone.
    ///
    /// # Safety
    /// As above, and no other thread of this program touches that memory at that address.
    #[expect(unsafe_code, reason = "makes cells of mapped memory")]
    pub(super) unsafe fn cells<'a>(&self, base: usize) -> &'a [Cell<T>] {
        let first = core::ptr::with_exposed_provenance::<Cell<T>>(base + self.offset);
        // SAFETY: in bounds and aligned, as allocated; plain data, so any bytes are values; cells, so they may change between uses.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }
}
