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
    /// Pages that are known to be written, or may be, and that no call has reported yet. Among them
    /// are pages which the host reclaimed after they were written: the page table no longer says so
    /// once they are back in it.
    unreported: BTreeSet<usize>,
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
            unreported: BTreeSet::new(),
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

    /// Gives pages other rights. What was known of writes to them is forgotten.
    pub(super) fn set(&mut self, pages: &[PageId], access: Access) -> Result<(), Errno> {
        self.change(pages, access)?;
        if !self.unreported.is_empty() {
            pages.iter().for_each(|page| _ = self.unreported.remove(&self.place(*page)));
        }
        Ok(())
    }

    fn change(&mut self, pages: &[PageId], access: Access) -> Result<(), Errno> {
        let now = |page: &PageId| self.access[self.place(*page)];
        let alike = |one: &PageId, next: &PageId| one.0 + 1 == next.0 && now(one) == now(next);
        let runs: Vec<_> = pages.chunk_by(alike).map(|run| (run, now(&run[0]))).collect();
        self.asked = None;
        for (run, before) in runs {
            let start = self.place(run[0]);
            let range = start..start + run.len();
            self.admit(range.clone(), before, access)?;
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
            self.unreported.insert(place);
        }
        match self.detector.readmit(&reclaimed, access) {
            Err(Errno::NOMEM) if self.detector.end_traps(&self.watched())? => {
                self.detector.readmit(&reclaimed, access)
            }
            answer => answer,
        }
    }

    /// Finds the pages written to. They stay unreported until [`Self::report`], so an error on the
    /// way, here or in another region, loses none of them.
    pub(super) fn find_written(&mut self) -> Result<(), Errno> {
        self.find_faulted()?;
        let unreported = self.unreported.len();
        let found = if self.detector.traps() { 0 } else { self.ask()? };
        let written = unreported + found;
        if self.balance.is_over(self.detector.traps(), written, self.access.len()) {
            self.change_way()?;
        }
        Ok(())
    }

    /// Adds the pages that were found, ascending. A write after [`Self::find_written`] is found by
    /// its next call.
    pub(super) fn report(&mut self, written: &mut Vec<PageId>) {
        let unreported = core::mem::take(&mut self.unreported);
        written.extend(unreported.into_iter().map(|place| self.page(place)));
    }

    /// Lets writes be traps where the kernel was asked for them, or the other way round.
    fn change_way(&mut self) -> Result<(), Errno> {
        let watched = self.watched();
        if self.detector.traps() {
            self.detector.end_traps(&watched)?;
            return Ok(());
        }
        match self.detector.begin_traps(&watched) {
            // Finds what was written before the first trap, and after the last question.
            Ok(()) => self.ask().map(drop),
            // Too many mappings.
            Err(Errno::NOMEM) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Asks the kernel for written pages; how many there are.
    ///
    /// A question that fails may have had a part of its effect: pages are watched anew, and were not
    /// named. All watched pages count as written then.
    fn ask(&mut self) -> Result<usize, Errno> {
        let mut found = Vec::new();
        let asked = self.ask_spans(&mut found);
        self.unreported.extend(&found);
        if let Err(errno) = asked {
            let watched = self.watched();
            self.unreported.extend(watched.into_iter().flatten());
            return Err(errno);
        }
        Ok(found.len())
    }

    /// Adds the pages written to, of which the kernel knows.
    fn ask_spans(&mut self, written: &mut Vec<usize>) -> Result<(), Errno> {
        let asked = self.asked.take().unwrap_or_else(|| self.spans());
        for span in &asked {
            if !span.has_gaps {
                written.extend(self.detector.written(span.pages.clone(), Then::WatchAnew)?);
                continue;
            }
            // What lies in a gap must not be watched: the kernel says first where to look closer, which is mostly nowhere.
            let mut found = self.detector.written(span.pages.clone(), Then::Leave)?;
            found.retain(|place| self.access[*place] == Access::Watched);
            for run in found.chunk_by(|one, next| one + 1 == *next) {
                let run = run[0]..run[0] + run.len();
                written.extend(self.detector.written(run, Then::WatchAnew)?);
            }
        }
        self.asked = Some(asked);
        Ok(())
    }

    /// Finds the pages whose write was a fault, which are watched again.
    fn find_faulted(&mut self) -> Result<(), Errno> {
        let mut faulted = core::mem::take(&mut self.faulted);
        // A page that was hidden or shown meanwhile has nothing to tell.
        faulted.retain(|&place| self.access[place] == Access::Written);
        faulted.sort_unstable();
        faulted.dedup();
        if faulted.is_empty() {
            return Ok(());
        }
        let found: Vec<_> = faulted.iter().map(|place| self.page(*place)).collect();
        self.unreported.extend(&faulted);
        if let Err(errno) = self.change(&found, Access::Watched) {
            // Those that are not watched again are written to without another fault.
            self.faulted = faulted;
            return Err(errno);
        }
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
