//! Regions as programs have them, and where they lie in this process.
//!
//! A region is made by all nodes alike, in the same order, so its number means the same everywhere, as its pages do; its address in a
//! process is that node's own matter.

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

/// What a region is to be; the same on all nodes, but for its address in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionSettings {
    /// Its size, in bytes; rounded up to pages.
    pub bytes: usize,
    /// Who manages its pages at first.
    pub placement: Placement,
    /// Its address in the shared space of 2^64 bytes, the begin of a page; none: the first place where there is room.
    pub address: Option<u64>,
    /// Its address in this process, the begin of a page; none: where there is room, on each node somewhere else.
    pub here: Option<usize>,
}

impl RegionSettings {
    /// So many bytes, whose pages go round, wherever there is room.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self { bytes, placement: Placement::Cyclic, address: None, here: None }
    }

    /// The pages that it is to have, beside those that are there.
    pub(super) fn plan(&self, regions: &Regions) -> Result<RegionPlan, Error> {
        let pages = self.bytes.div_ceil(PAGE_BYTES) as u64;
        let first = match self.address {
            Some(address) if !address.is_multiple_of(PAGE_BYTES as u64) => {
                return Err(Error::Unaligned { address });
            }
            Some(address) => PageId(address / PAGE_BYTES as u64),
            // Where there is no room anywhere, there is none at the end.
            None => regions.free(pages).unwrap_or(PageId(PAGES_MAX)),
        };
        Ok(RegionPlan { first, pages, placement: self.placement })
    }
}

/// A region of shared memory: its name, the same on all nodes. It stays until its program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub(super) number: u16,
    first: PageId,
    pages: u64,
}

impl Region {
    /// How many were made before it; what a program joined with is region 0.
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
pub(super) struct Place {
    _guarded: Guarded,
    views: Arc<TwoViews>,
    first: PageId,
    /// Bytes given out.
    used: AtomicUsize,
}

impl Place {
    pub(super) fn new(first: PageId, views: Arc<TwoViews>, guarded: Guarded) -> Self {
        Self { _guarded: guarded, views, first, used: AtomicUsize::new(0) }
    }

    /// Where it lies.
    pub(super) fn addresses(&self) -> Range<usize> {
        self.views.program()..self.views.program() + self.views.bytes()
    }

    fn start(&self) -> u64 {
        self.first.0 * PAGE_BYTES as u64
    }

    /// Gives out memory for elements, on pages of its own, behind what is given out: its address in the shared space. One thread at a time.
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

/// All regions in this process, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Places {
    places: Box<[OnceLock<Place>]>,
    count: AtomicUsize,
}

impl Places {
    /// The first one.
    pub(super) fn new(first: Place) -> Self {
        let places = (0..REGIONS_MAX).map(|_| OnceLock::new()).collect();
        let all = Self { places, count: AtomicUsize::new(0) };
        all.push(first);
        all
    }

    /// Another one, by one thread at a time.
    pub(super) fn push(&self, place: Place) -> Region {
        let number = self.count.load(Ordering::Acquire);
        // The layout has no more regions than there are places.
        let is_new = self.places[number].set(place).is_ok();
        assert!(is_new, "one thread at a time makes a region");
        self.count.store(number + 1, Ordering::Release);
        self.last()
    }

    /// The one that was made last.
    pub(super) fn last(&self) -> Region {
        let number = self.count.load(Ordering::Acquire) - 1;
        self.region(number as u16).expect("it was made")
    }

    /// The region of that number.
    pub(super) fn region(&self, number: u16) -> Option<Region> {
        let Place { first, views, .. } = self.get(number)?;
        Some(Region { number, first: *first, pages: (views.bytes() / PAGE_BYTES) as u64 })
    }

    fn get(&self, number: u16) -> Option<&Place> {
        self.places.get(usize::from(number))?.get()
    }

    /// Where a region lies.
    ///
    /// # Panics
    /// It was made by another node, and not here.
    pub(super) fn of(&self, region: Region) -> &Place {
        let is_it = self.region(region.number) == Some(region);
        assert!(is_it, "the region was made by another node, and not here");
        self.get(region.number).expect("it is there")
    }

    /// Gives out an array of a region. One thread at a time.
    pub(super) fn array<T: Pod>(
        &self,
        region: Region,
        length: usize,
    ) -> Result<SharedArray<T>, Error> {
        let start = self.of(region).give_out::<T>(length)?;
        Ok(SharedArray::new(region.number, start, length))
    }

    /// The address here of an array.
    ///
    /// # Panics
    /// It was not allocated here.
    pub(super) fn address<T: Pod>(&self, array: &SharedArray<T>) -> usize {
        let place = self.get(array.region).filter(|place| {
            let bytes = (array.len() * size_of::<T>()) as u64;
            let left = place.used.load(Ordering::Relaxed) as u64;
            let offset = array.start.checked_sub(place.start());
            offset.is_some_and(|offset| offset <= left && bytes <= left - offset)
        });
        let place = place.expect("the array was allocated on another node, and not yet here");
        place.views.program() + (array.start - place.start()) as usize
    }

    /// The pages of some bytes of this process, all of one region; none where they are not.
    pub(super) fn pages_at(&self, addresses: Range<usize>) -> Option<Vec<PageId>> {
        let all =
            self.places[..self.count.load(Ordering::Acquire)].iter().filter_map(OnceLock::get);
        let has = |place: &&Place| {
            let here = place.addresses();
            here.start <= addresses.start
                && addresses.start <= addresses.end
                && addresses.end <= here.end
        };
        let place = all.into_iter().find(has)?;
        let base = place.views.program();
        let pages =
            (addresses.start - base) / PAGE_BYTES..(addresses.end - base).div_ceil(PAGE_BYTES);
        Some(pages.map(|page| PageId(place.first.0 + page as u64)).collect())
    }
}
