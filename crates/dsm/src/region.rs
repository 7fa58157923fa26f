//! Regions: the runs of pages that make up shared memory, in a space of 64 bits, and the manager of
//! each page.
//!
//! ```text
//!   page 0                                                                            page 2^52
//!   [ region ]............................[ region ][ region ]..............................|
//!     a manager per page   no page          they may touch, and do not overlap
//! ```
//!
//! A look-up is a binary search among regions, of which there are few. The space between regions
//! costs nothing.

pub(crate) mod mismatch;

use core::fmt;
use core::ops::Range;

use kyocho_sys::memory::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use crate::address::{NodeId, PageId};

/// Page numbers are lower: the shared space has 2^64 bytes.
pub const PAGES_MAX: u64 = 1 << 52;

/// Regions of a program, at most.
pub const REGIONS_MAX: usize = 1024;

/// How the pages of a region or an object are assigned to managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Placement {
    /// One node manages all.
    On(NodeId),
    /// Each node manages an equal part of consecutive pages, in the order of ranks. For data that
    /// is divided among nodes.
    Blocks,
    /// Round robin.
    Cyclic,
}

impl Placement {
    /// The manager of page `index` of `pages`, among `nodes`.
    pub(crate) fn manager(self, index: usize, pages: usize, nodes: u16) -> NodeId {
        let nodes_count = usize::from(nodes);
        match self {
            Self::On(node) => node,
            Self::Blocks => NodeId((index * nodes_count / pages) as u16),
            Self::Cyclic => NodeId((index % nodes_count) as u16),
        }
    }
}

/// What a region is to be; the same on all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionPlan {
    /// Its first page.
    pub first: PageId,
    /// Number of pages.
    pub pages: u64,
    /// Their first managers.
    pub placement: Placement,
}

impl RegionPlan {
    /// The numbers of its pages, if it lies in the shared space.
    fn numbers(&self) -> Option<Range<u64>> {
        let end = self.first.0.checked_add(self.pages).filter(|end| *end <= PAGES_MAX)?;
        Some(self.first.0..end).filter(|numbers| !numbers.is_empty())
    }

    /// Whether some node could create it, in a cluster of so many nodes.
    pub(crate) fn is_possible(&self, nodes: u16) -> bool {
        let placed = !matches!(self.placement, Placement::On(node) if node.0 >= nodes);
        placed && self.numbers().is_some()
    }

    /// Whether a page lies in it.
    pub(crate) fn has(&self, page: PageId) -> bool {
        page.0.checked_sub(self.first.0).is_some_and(|place| place < self.pages)
    }
}

impl fmt::Display for RegionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |pages: u64| u128::from(pages) * PAGE_BYTES as u128;
        let (first, pages, placement) = (bytes(self.first.0), bytes(self.pages), self.placement);
        write!(f, "a region of {pages} bytes at {first:#x} ({placement:?})")
    }
}

/// Why there can be no such region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementError {
    /// It has no pages.
    Empty,
    /// It ends beyond the shared space of 2^64 bytes.
    Beyond,
    /// It shares a page with another region.
    Overlap,
    /// There are [`REGIONS_MAX`] regions.
    TooMany,
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "it has no pages"),
            Self::Beyond => write!(f, "it ends beyond the shared space of 2^64 bytes"),
            Self::Overlap => write!(f, "it overlaps another region"),
            Self::TooMany => {
                write!(f, "there are {REGIONS_MAX} regions already, which is the limit")
            }
        }
    }
}

/// A run of pages.
#[derive(Debug, Clone)]
struct Region {
    first: PageId,
    managers: Vec<NodeId>,
}

impl Region {
    fn end(&self) -> u64 {
        self.first.0 + self.managers.len() as u64
    }
}

/// The regions of a program.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    /// Ascending.
    regions: Vec<Region>,
    /// Number of pages of all regions.
    pages: usize,
}

impl From<Vec<NodeId>> for Regions {
    /// One region at the beginning of the space, whose pages have these managers.
    fn from(managers: Vec<NodeId>) -> Self {
        let pages = managers.len();
        Self { regions: vec![Region { first: PageId(0), managers }], pages }
    }
}

impl Regions {
    /// Number of pages in all regions.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Whether a page lies in a region.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        self.place(page).is_some()
    }

    /// The manager of a page; `None` if there is no such page.
    #[must_use]
    pub fn manager(&self, page: PageId) -> Option<NodeId> {
        let (region, place) = self.place(page)?;
        Some(self.regions[region].managers[place])
    }

    /// All pages and their managers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, NodeId)> {
        self.regions.iter().flat_map(|region| {
            let pages = (region.first.0..).map(PageId);
            pages.zip(region.managers.iter().copied())
        })
    }

    /// The pages of a region that was added, and their managers.
    pub(crate) fn of(&self, plan: &RegionPlan) -> impl Iterator<Item = (PageId, NodeId)> {
        let region = self.regions.iter().find(|region| region.first == plan.first);
        let managers = region.map_or(&[][..], |region| &region.managers).iter().copied();
        (plan.first.0..).map(PageId).zip(managers)
    }

    /// The first free run of so many pages.
    #[must_use]
    pub fn free(&self, pages: u64) -> Option<PageId> {
        let mut first = 0;
        for region in &self.regions {
            if region.first.0 - first >= pages {
                break;
            }
            first = region.end();
        }
        first.checked_add(pages).filter(|end| *end <= PAGES_MAX).map(|_| PageId(first))
    }

    /// Whether a region can be added.
    ///
    /// # Errors
    /// [`PlacementError`]: why not.
    pub fn check(&self, plan: &RegionPlan) -> Result<(), PlacementError> {
        if plan.pages == 0 {
            return Err(PlacementError::Empty);
        }
        let numbers = plan.numbers().ok_or(PlacementError::Beyond)?;
        let behind = self.behind(plan.first);
        let before = behind.checked_sub(1).map_or(0, |before| self.regions[before].end());
        let after = self.regions.get(behind).map_or(PAGES_MAX, |after| after.first.0);
        if numbers.start < before || numbers.end > after {
            return Err(PlacementError::Overlap);
        }
        if self.regions.len() == REGIONS_MAX { Err(PlacementError::TooMany) } else { Ok(()) }
    }

    /// Adds a region.
    ///
    /// # Panics
    /// [`Self::check`] fails.
    pub fn add(&mut self, plan: &RegionPlan, nodes: u16) {
        assert_eq!(self.check(plan), Ok(()), "{plan}");
        let pages = plan.pages as usize;
        let manager = |index| plan.placement.manager(index, pages, nodes);
        let managers = (0..pages).map(manager).collect();
        self.regions.insert(self.behind(plan.first), Region { first: plan.first, managers });
        self.pages += pages;
    }

    /// Removes the region that starts with this page.
    pub(crate) fn remove(&mut self, first: PageId) {
        let gone = self.regions.extract_if(.., |region| region.first == first);
        self.pages -= gone.map(|region| region.managers.len()).sum::<usize>();
    }

    /// Sets the manager of a page.
    ///
    /// # Panics
    /// There is no such page.
    pub(crate) fn set_manager(&mut self, page: PageId, manager: NodeId) {
        let (region, place) = self.place(page).expect("the page is in a region");
        self.regions[region].managers[place] = manager;
    }

    /// Number of regions that start with this page or before it.
    fn behind(&self, page: PageId) -> usize {
        self.regions.partition_point(|region| region.first <= page)
    }

    /// The index of a page's region, and the page's index in it.
    fn place(&self, page: PageId) -> Option<(usize, usize)> {
        let region = self.behind(page).checked_sub(1)?;
        let Region { first, managers } = &self.regions[region];
        let place = usize::try_from(page.0 - first.0).ok()?;
        (place < managers.len()).then_some((region, place))
    }
}

#[cfg(test)]
mod tests;
