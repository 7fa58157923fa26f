//! Slices of shared memory that calls pass without copying.
//!
//! A client creates a [`Region`](crate::Region) once and the server maps it. After that, a call
//! names a [`Slice`] of it for arguments, results or both. The memory is sealed, so neither side
//! can shorten it; but both sides may write to it at any time. A server therefore copies once
//! whatever it must trust, and checks the copy ([`Slice::copy`], the default). Data that it only
//! moves can be accessed [in place](Slice::in_place).
#![expect(unsafe_code, reason = "atomic words in a shared mapping")]

use core::{ptr, slice};
use std::sync::Arc;

use kyocho_sys::prim::atomic::AtomicU64;
use kyocho_sys::sealed::SealedMemory;

use crate::error::Failure;
use crate::frame::{copy_in, copy_out};

/// Most regions of one connection at a time.
pub const REGIONS_MAX: usize = 64;
/// Most bytes of one region.
pub const REGION_BYTES_MAX: usize = 1 << 30;

/// Bytes of a word: lengths of regions and offsets of slices are multiples of it.
pub(crate) const WORD: usize = size_of::<u64>();

/// A part of a region. The memory stays mapped as long as the slice lives.
#[derive(Debug, Clone)]
pub struct Slice {
    memory: Arc<SealedMemory>,
    offset: usize,
    bytes: usize,
}

impl Slice {
    /// The slice that the other side names; `None` unless it lies inside `memory` and is aligned to
    /// a word.
    pub(crate) fn new(memory: &Arc<SealedMemory>, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes)?;
        let fits = end <= memory.bytes() as u64 && offset.is_multiple_of(WORD as u64);
        let (offset, bytes) = (offset as usize, bytes as usize);
        fits.then(|| Self { memory: Arc::clone(memory), offset, bytes })
    }

    pub(crate) fn whole(memory: &Arc<SealedMemory>) -> Self {
        Self { memory: Arc::clone(memory), offset: 0, bytes: memory.bytes() }
    }

    /// Offset in the region and length, in bytes.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.offset as u64, self.bytes as u64)
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory as words; the slice may end inside the last word. The other side may change a
    /// word at any time, so two reads of it may differ.
    #[must_use]
    pub fn in_place(&self) -> &[AtomicU64] {
        let address = self.memory.base() + self.offset;
        let words = self.bytes.div_ceil(WORD);
        // SAFETY: inside the mapping, whose length is a multiple of a word and which lives as long
        // as `self`; aligned to a word; every access is atomic.
        unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(address), words) }
    }

    /// A private copy, which the other side cannot change: check the copy, not the slice.
    #[must_use]
    pub fn copy(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        copy_out(self.in_place(), &mut bytes);
        bytes
    }

    /// Copies `bytes` to the start of the slice.
    ///
    /// # Errors
    /// [`Failure::NoRegion`]: the slice is shorter than `bytes`.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > self.bytes {
            return Err(Failure::NoRegion);
        }
        copy_in(self.in_place(), bytes);
        Ok(())
    }
}
