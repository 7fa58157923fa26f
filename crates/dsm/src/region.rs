//! Regions: the runs of pages that shared memory consists of, in a space of 64 bits, and who manages each page.
//!
//! ```text
//!   page 0                                                                            page 2^52
//!   [ region ]............................[ region ][ region ]..............................|
//!     a manager a page     no page          they may touch, and do not overlap
//! ```
//!
//! A look-up is by region, of which there are few: binary search, one comparison where there is one. What lies between regions costs
//! nothing.

use crate::address::{NodeId, PageId};

/// A run of pages.
#[derive(Debug, Clone)]
struct Region {
    first: PageId,
    managers: Vec<NodeId>,
}

/// The regions of a program.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    /// Ascending.
    regions: Vec<Region>,
    /// Pages of all of them.
    pages: usize,
}

impl From<Vec<NodeId>> for Regions {
    /// One region at the begin of the space, whose pages have these managers.
    fn from(managers: Vec<NodeId>) -> Self {
        let pages = managers.len();
        Self { regions: vec![Region { first: PageId(0), managers }], pages }
    }
}

impl Regions {
    /// How many pages there are, in all regions.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Whether a page lies in a region.
    #[must_use]
    pub fn has(&self, page: PageId) -> bool {
        self.place(page).is_some()
    }

    /// Who manages a page; nobody where there is none.
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

    /// Gives a page another manager.
    ///
    /// # Panics
    /// There is no such page.
    pub(crate) fn set_manager(&mut self, page: PageId, manager: NodeId) {
        let (region, place) = self.place(page).expect("a manager is moved of a page that is there");
        self.regions[region].managers[place] = manager;
    }

    /// The region of a page, and its place in it.
    fn place(&self, page: PageId) -> Option<(usize, usize)> {
        let behind = self.regions.partition_point(|region| region.first <= page);
        let region = behind.checked_sub(1)?;
        let Region { first, managers } = &self.regions[region];
        let place = usize::try_from(page.0 - first.0).ok()?;
        (place < managers.len()).then_some((region, place))
    }
}
