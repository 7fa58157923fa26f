//! Rights in the page table, by userfaultfd: a hidden page is not in it, a watched one is write-protected.
//!
//! What a write to a watched page does was chosen in the beginning: it is a `SIGBUS`, or the kernel takes the protection away and says
//! nothing until it is asked which pages have none.

use core::ops::Range;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::pagemap::PageMap;
use kyocho_sys::two_views::{Protection, TwoViews};
use kyocho_sys::userfault::{Admission, Userfault, Writes};

use super::{Access, Detector, Pages};
use crate::address::PageId;

#[derive(Debug)]
pub(super) struct Faults {
    views: Arc<TwoViews>,
    /// One for all regions, as a process has few descriptors.
    faults: Arc<Userfault>,
    /// Where the kernel is asked for written pages.
    map: Option<Arc<PageMap>>,
}

impl Faults {
    /// A write to a watched page is a `SIGBUS`.
    pub(super) fn trapping(views: Arc<TwoViews>) -> Result<Self, Errno> {
        Self::new(views, Writes::Stop, None)
    }

    /// It passes, and the kernel is asked.
    pub(super) fn scanning(views: Arc<TwoViews>) -> Result<Self, Errno> {
        let map = PageMap::open()?;
        // A kernel that cannot scan says so now.
        map.take_written(views.program(), PAGE_BYTES, |_, _| {})?;
        Self::new(views, Writes::Pass, Some(Arc::new(map)))
    }

    fn new(views: Arc<TwoViews>, writes: Writes, map: Option<Arc<PageMap>>) -> Result<Self, Errno> {
        let faults = Arc::new(Userfault::of(views.program(), views.bytes(), writes)?);
        views.protect(0, views.bytes(), Protection::ReadWrite)?;
        Ok(Self { views, faults, map })
    }

    fn address(&self, page: usize) -> usize {
        self.views.program() + page * PAGE_BYTES
    }
}

impl Detector for Faults {
    fn beside(&self, views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        self.faults.take_over(views.program(), views.bytes())?;
        views.protect(0, views.bytes(), Protection::ReadWrite)?;
        Ok(Box::new(Self { views, faults: self.faults.clone(), map: self.map.clone() }))
    }

    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno> {
        let (start, bytes) = (self.address(pages.start), pages.len() * PAGE_BYTES);
        let admission = match to {
            Access::Hidden => return self.views.unlink(pages.start * PAGE_BYTES, bytes),
            Access::Watched => Admission::WriteProtected,
            Access::Written | Access::Open => Admission::ReadWrite,
        };
        if from == Access::Hidden {
            Pages::of(&self.views, PageId(0)).make_exist(pages);
            return self.faults.admit(start, bytes, admission);
        }
        // Mostly they are in the page table; where the host has taken one out, the next fault tells.
        self.faults.write_protect(start, bytes, admission)
    }

    fn take_written(&mut self, watched: Range<usize>) -> Result<Vec<usize>, Errno> {
        let Some(map) = &self.map else { return Ok(Vec::new()) };
        let (start, bytes) = (self.address(watched.start), watched.len() * PAGE_BYTES);
        let base = self.views.program();
        let mut pages = Vec::new();
        map.take_written(start, bytes, |run, length| {
            let first = (run - base) / PAGE_BYTES;
            pages.extend(first..first + length / PAGE_BYTES);
        })?;
        Ok(pages)
    }
}
