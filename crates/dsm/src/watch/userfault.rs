//! Rights in the page table, by userfaultfd: a hidden page is absent, a watched page is
//! write-protected.
//!
//! The effect of a write to a watched page is chosen at the start. Either it is a `SIGBUS`, or the
//! kernel removes the protection and tells which pages have none when it is asked. If it is asked
//! too often, `mprotect` makes writes `SIGSEGV`s for a while. What the page table tells about
//! written pages is outdated then, until it is asked again.

use core::ops::Range;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::pagemap::PageMap;
use kyocho_sys::two_views::{Protection, TwoViews};
use kyocho_sys::userfault::{Admission, Userfault, Writes};

use super::{Access, Detector, Entry, OnWritten, Pages, Reclaimed};
use crate::address::PageId;

#[derive(Debug)]
pub(super) struct Faults {
    views: Arc<TwoViews>,
    /// One for all regions, because a process has few descriptors.
    faults: Arc<Userfault>,
    /// Present if the kernel is asked for written pages.
    map: Option<Arc<PageMap>>,
    /// The kernel is not asked now: writes are traps.
    traps: bool,
}

impl Faults {
    /// A write to a watched page is a `SIGBUS`.
    pub(super) fn trapping(views: Arc<TwoViews>) -> Result<Self, Errno> {
        Self::new(views, Writes::Stop, None)
    }

    /// The write succeeds, and the kernel is asked later.
    pub(super) fn scanning(views: Arc<TwoViews>) -> Result<Self, Errno> {
        let map = PageMap::open()?;
        // A kernel that cannot scan fails here.
        map.take_written(views.program(), PAGE_BYTES, |_, _| {})?;
        Self::new(views, Writes::Pass, Some(Arc::new(map)))
    }

    fn new(views: Arc<TwoViews>, writes: Writes, map: Option<Arc<PageMap>>) -> Result<Self, Errno> {
        let faults = Arc::new(Userfault::of(views.program(), views.bytes(), writes)?);
        views.protect(0, views.bytes(), Protection::ReadWrite)?;
        Ok(Self { views, faults, traps: map.is_none(), map })
    }

    /// Sets rights that hold whatever the page table contains.
    fn protect(&self, pages: &Range<usize>, rights: Protection) -> Result<(), Errno> {
        self.views.protect(pages.start * PAGE_BYTES, pages.len() * PAGE_BYTES, rights)
    }

    fn address(&self, page: usize) -> usize {
        self.views.program() + page * PAGE_BYTES
    }
}

impl Detector for Faults {
    fn beside(&self, views: Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        self.faults.take_over(views.program(), views.bytes())?;
        views.protect(0, views.bytes(), Protection::ReadWrite)?;
        let (faults, map) = (self.faults.clone(), self.map.clone());
        Ok(Box::new(Self { views, faults, traps: map.is_none(), map }))
    }

    fn entry(&self, page: usize, access: Access) -> Result<Entry, Errno> {
        let absent = |written| Ok(Entry::Absent(Reclaimed { page, written }));
        let Some(map) = self.map.as_ref().filter(|_| access == Access::Watched) else {
            // The page table is not asked for writes to it: they are known already, or not
            // recorded.
            return absent(false);
        };
        let entry = map.entry(self.address(page))?;
        if entry.present { Ok(Entry::Present) } else { absent(!entry.write_protected) }
    }

    fn readmit(&mut self, reclaimed: &Reclaimed, access: Access) -> Result<(), Errno> {
        self.admit(reclaimed.page..reclaimed.page + 1, Access::Hidden, access)
    }

    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno> {
        let (start, bytes) = (self.address(pages.start), pages.len() * PAGE_BYTES);
        let admission = match to {
            Access::Hidden => return self.views.unlink(pages.start * PAGE_BYTES, bytes),
            Access::Watched => Admission::WriteProtected,
            Access::Written | Access::Open => Admission::ReadWrite,
        };
        if self.traps && self.map.is_some() {
            let rights =
                if to == Access::Watched { Protection::Read } else { Protection::ReadWrite };
            self.protect(&pages, rights)?;
            if matches!(
                (from, to),
                (Access::Watched, Access::Written) | (Access::Written, Access::Watched)
            ) {
                return Ok(());
            }
        }
        if from == Access::Hidden {
            Pages::of(&self.views, PageId(0)).make_exist(pages);
            return self.faults.admit(start, bytes, admission);
        }
        // Most pages are present. If the host has reclaimed one, the next fault finds out.
        self.faults.write_protect(start, bytes, admission)
    }

    fn traps(&self) -> bool {
        self.traps
    }

    fn begin_traps(&mut self, watched: &[Range<usize>]) -> Result<(), Errno> {
        if self.traps {
            return Ok(());
        }
        for pages in watched {
            if let Err(errno) = self.protect(pages, Protection::Read) {
                self.views.protect(0, self.views.bytes(), Protection::ReadWrite)?;
                return Err(errno);
            }
        }
        self.traps = true;
        Ok(())
    }

    fn end_traps(&mut self, watched: &[Range<usize>]) -> Result<bool, Errno> {
        if self.map.is_none() || !self.traps {
            return Ok(false);
        }
        for pages in watched {
            let (start, bytes) = (self.address(pages.start), pages.len() * PAGE_BYTES);
            self.faults.write_protect(start, bytes, Admission::WriteProtected)?;
        }
        self.traps = false;
        self.views.protect(0, self.views.bytes(), Protection::ReadWrite)?;
        Ok(true)
    }

    fn written(&mut self, pages: Range<usize>, on_written: OnWritten) -> Result<Vec<usize>, Errno> {
        let Some(map) = &self.map else { return Ok(Vec::new()) };
        let (start, bytes) = (self.address(pages.start), pages.len() * PAGE_BYTES);
        let base = self.views.program();
        let mut written = Vec::new();
        let visit = |run, length| {
            let first = (run - base) / PAGE_BYTES;
            written.extend(first..first + length / PAGE_BYTES);
        };
        match on_written {
            OnWritten::Leave => map.look_for_written(start, bytes, visit),
            OnWritten::WatchAnew => map.take_written(start, bytes, visit),
        }?;
        Ok(written)
    }
}
