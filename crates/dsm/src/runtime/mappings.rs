//! Regions as programs use them, and their addresses in this process.
//!
//! All nodes create the same regions in the same order. So the number of a region and its pages are
//! the same everywhere. Its address in a process may differ between nodes.

use core::ops::Range;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::atomic::unmodelled::{AtomicUsize, Ordering};
use kyocho_sys::two_views::TwoViews;

use crate::address::PageId;
use crate::region::{PAGES_MAX, Placement, REGIONS_MAX, RegionPlan, Regions};
use crate::runtime::array::SharedArray;
use crate::runtime::error::Error;
use crate::watch::Guarded;

/// What a region is to be. All but its address in the process is the same on all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionSettings {
    /// Its size in bytes; rounded up to pages.
    pub bytes: usize,
    /// The first managers of its pages.
    pub placement: Placement,
    /// Its address in the shared space of 2^64 bytes, a multiple of the page size. `None`: the
    /// first free range.
    pub address: Option<u64>,
    /// Its address in this process, a multiple of the page size. `None`: any free range, perhaps a
    /// different one on each node.
    pub here: Option<usize>,
}

impl RegionSettings {
    /// A region of so many bytes anywhere, whose pages are assigned round robin.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self { bytes, placement: Placement::Cyclic, address: None, here: None }
    }

    /// The pages of the region, given the regions that exist.
    pub(super) fn plan(&self, regions: &Regions) -> Result<RegionPlan, Error> {
        let pages = self.bytes.div_ceil(PAGE_BYTES) as u64;
        let first = match self.address {
            Some(address) if !address.is_multiple_of(PAGE_BYTES as u64) => {
                return Err(Error::Unaligned { address });
            }
            Some(address) => PageId(address / PAGE_BYTES as u64),
            // If there is no free range, the end of the space makes the check fail.
            None => regions.free(pages).unwrap_or(PageId(PAGES_MAX)),
        };
        Ok(RegionPlan { first, pages, placement: self.placement })
    }
}

/// The name of a region of shared memory, the same on all nodes. A region stays until its program
/// ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub(super) number: u16,
    first: PageId,
    pages: u64,
}

impl Region {
    /// The number of regions that were created before it. Region 0 is the one that the program
    /// joined with.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Its address in the shared space.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.first.0 * PAGE_BYTES as u64
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }

    /// Its first page.
    #[must_use]
    pub fn first(&self) -> PageId {
        self.first
    }
}

/// A region in this process.
#[derive(Debug)]
pub(super) struct Mapping {
    _guarded: Guarded,
    views: Arc<TwoViews>,
    first: PageId,
    /// Bytes that are allocated.
    used: AtomicUsize,
}

impl Mapping {
    pub(super) fn new(first: PageId, views: Arc<TwoViews>, guarded: Guarded) -> Self {
        Self { _guarded: guarded, views, first, used: AtomicUsize::new(0) }
    }

    /// Its addresses.
    pub(super) fn addresses(&self) -> Range<usize> {
        self.views.program()..self.views.program() + self.views.bytes()
    }

    fn start(&self) -> u64 {
        self.first.0 * PAGE_BYTES as u64
    }

    /// Allocates memory for elements on pages of its own. Returns its address in the shared space.
    /// Call from one thread at a time.
    fn give_out<T>(&self, length: usize) -> Result<u64, Error> {
        let used = self.used.load(Ordering::Relaxed);
        let left = self.views.bytes() - used;
        let full = |bytes| Error::Full { bytes, left };
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| full(usize::MAX))?;
        let whole = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or_else(|| full(bytes))?;
        if whole > left {
            return Err(full(bytes));
        }
        self.used.store(used + whole, Ordering::Relaxed);
        Ok(self.start() + used as u64)
    }
}

/// All regions of this process, in the order of creation.
#[derive(Debug)]
pub(super) struct Mappings {
    mappings: Box<[OnceLock<Mapping>]>,
    count: AtomicUsize,
}

impl Mappings {
    /// The first region alone.
    pub(super) fn new(first: Mapping) -> Self {
        let mappings = (0..REGIONS_MAX).map(|_| OnceLock::new()).collect();
        let all = Self { mappings, count: AtomicUsize::new(0) };
        all.push(first);
        all
    }

    /// Adds a region. Call from one thread at a time.
    pub(super) fn push(&self, mapping: Mapping) -> Region {
        let number = self.count.load(Ordering::Acquire);
        // The layout permits no more regions than there are entries.
        let is_new = self.mappings[number].set(mapping).is_ok();
        assert!(is_new, "one thread at a time creates a region");
        self.count.store(number + 1, Ordering::Release);
        self.last()
    }

    /// The region that was created last.
    pub(super) fn last(&self) -> Region {
        let number = self.count.load(Ordering::Acquire) - 1;
        self.region(number as u16).expect("the number is that of a region")
    }

    /// The region with this number.
    pub(super) fn region(&self, number: u16) -> Option<Region> {
        let Mapping { first, views, .. } = self.get(number)?;
        Some(Region { number, first: *first, pages: (views.bytes() / PAGE_BYTES) as u64 })
    }

    fn get(&self, number: u16) -> Option<&Mapping> {
        self.mappings.get(usize::from(number))?.get()
    }

    /// The mapping of a region.
    ///
    /// # Panics
    /// The region was created by another node, and not by this one.
    pub(super) fn of(&self, region: Region) -> &Mapping {
        let is_it = self.region(region.number) == Some(region);
        assert!(is_it, "the region was created by another node, and not by this one");
        self.get(region.number).expect("it is there")
    }

    /// Allocates an array of a region. Call from one thread at a time.
    pub(super) fn array<T: Pod>(
        &self,
        region: Region,
        length: usize,
    ) -> Result<SharedArray<T>, Error> {
        let start = self.of(region).give_out::<T>(length)?;
        Ok(SharedArray::new(region.number, start, length))
    }

    /// The address of an array in this process.
    ///
    /// # Panics
    /// This node has not allocated the array.
    pub(super) fn address<T: Pod>(&self, array: &SharedArray<T>) -> usize {
        let mapping = self.get(array.region).filter(|mapping| {
            let bytes = (array.len() * size_of::<T>()) as u64;
            let left = mapping.used.load(Ordering::Relaxed) as u64;
            let offset = array.start.checked_sub(mapping.start());
            offset.is_some_and(|offset| offset <= left && bytes <= left - offset)
        });
        let mapping =
            mapping.expect("the array was allocated by another node, and not yet by this one");
        mapping.views.program() + (array.start - mapping.start()) as usize
    }

    /// The pages of some addresses of this process; `None` unless they lie in one region.
    pub(super) fn pages_at(&self, addresses: Range<usize>) -> Option<Vec<PageId>> {
        let all =
            self.mappings[..self.count.load(Ordering::Acquire)].iter().filter_map(OnceLock::get);
        let has = |mapping: &&Mapping| {
            let here = mapping.addresses();
            here.start <= addresses.start
                && addresses.start <= addresses.end
                && addresses.end <= here.end
        };
        let mapping = all.into_iter().find(has)?;
        let base = mapping.views.program();
        let pages =
            (addresses.start - base) / PAGE_BYTES..(addresses.end - base).div_ceil(PAGE_BYTES);
        Some(pages.map(|page| PageId(mapping.first.0 + page as u64)).collect())
    }
}
