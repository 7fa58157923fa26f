//! The pages of one region: what the program may do with each, and which it has written to.

use core::ops::Range;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::{Access, Detection, Detector, Fault, Pages};
use crate::address::PageId;

/// A watched region.
#[derive(Debug)]
pub(super) struct Watched {
    first: PageId,
    views: Arc<TwoViews>,
    detector: Box<dyn Detector>,
    access: Vec<Access>,
    /// Pages whose write was a fault.
    faulted: Vec<usize>,
    /// Where the kernel is asked for written pages, as long as no page's rights change: a lock is taken more often than that, and memory may be
    /// thousands of pages.
    asked: Option<Vec<Range<usize>>>,
}

impl Watched {
    /// All pages of `views`, hidden.
    pub(super) fn new(first: PageId, views: Arc<TwoViews>, detector: Box<dyn Detector>) -> Self {
        let access = vec![Access::Hidden; views.bytes() / PAGE_BYTES];
        Self { first, views, detector, access, faulted: Vec::new(), asked: None }
    }

    /// What watches this one, for another.
    pub(super) fn beside(&self, views: &Arc<TwoViews>) -> Result<Box<dyn Detector>, Errno> {
        self.detector.beside(views.clone())
    }

    pub(super) fn first(&self) -> PageId {
        self.first
    }

    pub(super) fn pages(&self) -> Pages<'_> {
        Pages::of(&self.views, self.first)
    }

    fn place(&self, page: PageId) -> usize {
        (page.0 - self.first.0) as usize
    }

    fn page(&self, place: usize) -> PageId {
        PageId(self.first.0 + place as u64)
    }

    /// How many of these pages lie here, before one that does not.
    pub(super) fn leading(&self, pages: &[PageId]) -> usize {
        let here = self.first..self.page(self.access.len());
        pages.iter().take_while(|page| here.contains(page)).count()
    }

    pub(super) fn is_shown(&self, page: PageId) -> bool {
        self.access[self.place(page)] != Access::Hidden
    }

    pub(super) fn shown(&self) -> usize {
        self.access.iter().filter(|access| **access != Access::Hidden).count()
    }

    pub(super) fn set(&mut self, pages: &[PageId], access: Access) -> Result<(), Errno> {
        let now = |page: &PageId| self.access[self.place(*page)];
        let alike = |one: &PageId, next: &PageId| one.0 + 1 == next.0 && now(one) == now(next);
        let runs: Vec<_> = pages.chunk_by(alike).map(|run| (run, now(&run[0]))).collect();
        self.asked = None;
        for (run, before) in runs {
            let start = self.place(run[0]);
            let range = start..start + run.len();
            self.detector.admit(range.clone(), before, access)?;
            self.access[range].fill(access);
        }
        Ok(())
    }

    pub(super) fn fault(&mut self, page: PageId, detection: Detection) -> Result<Fault, Errno> {
        let place = self.place(page);
        match self.access[place] {
            Access::Hidden => Ok(Fault::Absent),
            Access::Watched if detection != Detection::Scan => {
                self.detector.admit(place..place + 1, Access::Watched, Access::Written)?;
                self.access[place] = Access::Written;
                self.faulted.push(place);
                Ok(Fault::Noted)
            }
            // Somebody else was faster, or the host has taken the page out of the page table, for want of memory.
            access => {
                self.detector.admit(place..place + 1, Access::Hidden, access)?;
                Ok(Fault::Noted)
            }
        }
    }

    /// Adds the pages written to, of which the kernel knows.
    pub(super) fn ask(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
        let asked = self.asked.take().unwrap_or_else(|| self.watched_runs());
        for run in &asked {
            let found = self.detector.take_written(run.clone())?;
            written.extend(found.into_iter().map(|place| self.page(place)));
        }
        self.asked = Some(asked);
        Ok(())
    }

    /// Adds the pages whose write was a fault, which are watched again.
    pub(super) fn take_faulted(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
        let mut faulted = core::mem::take(&mut self.faulted);
        // A page that was hidden or shown meanwhile has nothing to tell.
        faulted.retain(|&place| self.access[place] == Access::Written);
        faulted.sort_unstable();
        faulted.dedup();
        let found: Vec<_> = faulted.into_iter().map(|place| self.page(place)).collect();
        if !found.is_empty() {
            self.set(&found, Access::Watched)?;
        }
        written.extend(found);
        Ok(())
    }

    fn watched_runs(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let runs = self.access.chunk_by(|one, next| one == next).map(|run| {
            let pages = start..start + run.len();
            start = pages.end;
            (run[0], pages)
        });
        runs.filter(|(access, _)| *access == Access::Watched).map(|(_, pages)| pages).collect()
    }
}
