//! Objects in shared memory.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

use bytemuck::Pod;

use crate::address::PageId;
use crate::runtime::cell::SharedCell;
use kyocho_sys::memory::PAGE_BYTES;

/// An array in shared memory: its position, the same on all nodes. [`super::Dsm::cells`] gives
/// access.
///
/// Elements are plain data with an alignment of at least 4 bytes ([`super::Dsm::allocate`] rejects
/// others at compile time). Two nodes can write neighbouring words of 4 bytes, but nothing smaller.
pub struct SharedArray<T> {
    pub(super) region: u16,
    /// Its address in the shared space.
    pub(super) start: u64,
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
        write!(f, "SharedArray({} elements at {:#x})", self.length, self.start)
    }
}

impl<T: Pod> SharedArray<T> {
    pub(super) const fn new(region: u16, start: u64, length: usize) -> Self {
        const { assert!(align_of::<T>() >= 4, "elements of whole words") }
        Self { region, start, length, _elements: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pages of some elements.
    ///
    /// # Panics
    /// The range exceeds the array.
    #[must_use]
    pub fn pages(&self, elements: Range<usize>) -> Vec<PageId> {
        assert!(
            elements.start <= elements.end && elements.end <= self.length,
            "the index is out of range"
        );
        if elements.is_empty() {
            return Vec::new();
        }
        let last = (elements.end * size_of::<T>() - 1) as u64;
        let first = (elements.start * size_of::<T>()) as u64;
        let page = |byte: u64| (self.start + byte) / PAGE_BYTES as u64;
        (page(first)..=page(last)).map(PageId).collect()
    }

    /// The words of shared memory of one element.
    ///
    /// # Panics
    /// The index is out of range.
    pub(super) fn words(&self, index: usize) -> Range<u64> {
        assert!(index < self.length, "the index is out of range");
        let first = (self.start + (index * size_of::<T>()) as u64) / 4;
        first..first + size_of::<T>() as u64 / 4
    }

    /// The elements, at their address in this process.
    ///
    /// # Safety
    /// The array was allocated at this address, in memory that stays mapped for `'a`. A fault
    /// handler makes pages accessible.
    #[expect(unsafe_code, reason = "makes cells of mapped memory")]
    pub(super) unsafe fn shared_cells<'a>(&self, address: usize) -> &'a [SharedCell<T>] {
        let first = core::ptr::with_exposed_provenance::<SharedCell<T>>(address);
        // SAFETY: in bounds and aligned, as allocated; plain data, so any bytes are values; shared
        // cells are touched by atomic words alone, so other threads may touch them too.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }

    /// The same for a single thread.
    ///
    /// # Safety
    /// As above, and no other thread of this program accesses that memory.
    #[expect(unsafe_code, reason = "makes cells of mapped memory")]
    pub(super) unsafe fn cells<'a>(&self, address: usize) -> &'a [Cell<T>] {
        let first = core::ptr::with_exposed_provenance::<Cell<T>>(address);
        // SAFETY: in bounds and aligned, as allocated; plain data, so any bytes are values; cells,
        // so they may change between uses.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }
}
