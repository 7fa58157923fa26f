//! The pages of one region: what the program may do with each, and which it has written to.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::balance::Balance;
use super::{Access, Detector, Entry, Fault, Pages, Then};
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
    /// Watched pages that the host took out of the page table after they were written: the page
    /// table no longer says so once they are back in it.
    reclaimed: BTreeSet<usize>,
    /// Where the kernel is asked for written pages, as long as no page's rights change: a lock is taken more often than that, and memory may be
    /// thousands of pages.
    asked: Option<Vec<Span>>,
    balance: Balance,
}

/// Pages that the kernel is asked about in one call.
#[derive(Debug)]
struct Span {
    pages: Range<usize>,
    /// There are others between the watched ones.
    has_gaps: bool,
}

/// Watched pages that lie at most so far apart are asked about together.
const GAP_MAX: usize = 16;

impl Watched {
    /// All pages of `views`, hidden.
    pub(super) fn new(first: PageId, views: Arc<TwoViews>, detector: Box<dyn Detector>) -> Self {
        let access = vec![Access::Hidden; views.bytes() / PAGE_BYTES];
        Self {
            first,
            views,
            detector,
            access,
            faulted: Vec::new(),
            reclaimed: BTreeSet::new(),
            asked: None,
            balance: Balance::default(),
        }
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
            self.admit(range.clone(), before, access)?;
            if !self.reclaimed.is_empty() {
                self.reclaimed.retain(|place| !range.contains(place));
            }
            self.access[range].fill(access);
        }
        Ok(())
    }

    fn admit(&mut self, pages: Range<usize>, from: Access, to: Access) -> Result<(), Errno> {
        match self.detector.admit(pages.clone(), from, to) {
            // Rights that change from page to page are more mappings than the host allows: traps need that.
            Err(Errno::NOMEM) if self.detector.end_traps(&self.watched())? => {
                self.detector.admit(pages, from, to)
            }
            answer => answer,
        }
    }

    pub(super) fn fault(&mut self, page: PageId) -> Result<Fault, Errno> {
        let place = self.place(page);
        match self.access[place] {
            Access::Hidden => Ok(Fault::Absent),
            Access::Watched if self.detector.traps() => {
                self.admit(place..place + 1, Access::Watched, Access::Written)?;
                self.access[place] = Access::Written;
                self.faulted.push(place);
                Ok(Fault::Noted)
            }
            access => {
                self.readmit(place, access)?;
                Ok(Fault::Noted)
            }
        }
    }

    /// Puts a page back that the host reclaimed; nothing where another thread had the fault first.
    ///
    /// Reclaim leaves a marker in the page table for a page that was write-protected and none for
    /// one that had been written. The answer stays true until the page is back: an absent page
    /// cannot be written, and faults are answered one at a time. Of a present page it would be out
    /// of date at once, as another thread may write to it, and the host then reclaim it: so that
    /// one is left alone.
    fn readmit(&mut self, place: usize, access: Access) -> Result<(), Errno> {
        let Entry::Absent(reclaimed) = self.detector.entry(place, access)? else { return Ok(()) };
        if access == Access::Watched && reclaimed.written {
            self.reclaimed.insert(place);
        }
        match self.detector.readmit(&reclaimed, access) {
            Err(Errno::NOMEM) if self.detector.end_traps(&self.watched())? => {
                self.detector.readmit(&reclaimed, access)
            }
            answer => answer,
        }
    }

    /// Adds the pages written to, ascending; a write from now on is told of by the next call.
    pub(super) fn take_written(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
        let mut here = Vec::new();
        self.take_faulted(&mut here)?;
        let reclaimed = core::mem::take(&mut self.reclaimed);
        here.extend(reclaimed.into_iter().map(|place| self.page(place)));
        if !self.detector.traps() {
            self.ask(&mut here)?;
        }
        if self.balance.is_over(self.detector.traps(), here.len(), self.access.len()) {
            self.change_way(&mut here)?;
        }
        here.sort_unstable();
        here.dedup();
        written.append(&mut here);
        Ok(())
    }

    /// Lets writes be traps where the kernel was asked for them, or the other way round.
    fn change_way(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
        let watched = self.watched();
        if self.detector.traps() {
            self.detector.end_traps(&watched)?;
            return Ok(());
        }
        match self.detector.begin_traps(&watched) {
            // What was written before the first trap and not told of.
            Ok(()) => self.ask(written),
            // Too many mappings.
            Err(Errno::NOMEM) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Adds the pages written to, of which the kernel knows.
    fn ask(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
        let asked = self.asked.take().unwrap_or_else(|| self.spans());
        for span in &asked {
            if !span.has_gaps {
                self.take_noted(span.pages.clone(), written)?;
                continue;
            }
            // What lies in a gap must not be watched: the kernel says first where to look closer, which is mostly nowhere.
            let mut found = self.detector.written(span.pages.clone(), Then::Leave)?;
            found.retain(|place| self.access[*place] == Access::Watched);
            for run in found.chunk_by(|one, next| one + 1 == *next) {
                self.take_noted(run[0]..run[0] + run.len(), written)?;
            }
        }
        self.asked = Some(asked);
        Ok(())
    }

    fn take_noted(&mut self, watched: Range<usize>, found: &mut Vec<PageId>) -> Result<(), Errno> {
        let written = self.detector.written(watched, Then::WatchAnew)?;
        found.extend(written.into_iter().map(|place| self.page(place)));
        Ok(())
    }

    /// Adds the pages whose write was a fault, which are watched again.
    fn take_faulted(&mut self, written: &mut Vec<PageId>) -> Result<(), Errno> {
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

    /// Runs of watched pages.
    fn watched(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let runs = self.access.chunk_by(|one, next| one == next).map(|run| {
            let pages = start..start + run.len();
            start = pages.end;
            (run[0], pages)
        });
        runs.filter(|(access, _)| *access == Access::Watched).map(|(_, pages)| pages).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for pages in self.watched() {
            match spans.last_mut().filter(|span| pages.start - span.pages.end <= GAP_MAX) {
                Some(span) => (span.pages.end, span.has_gaps) = (pages.end, true),
                None => spans.push(Span { pages, has_gaps: false }),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests;
