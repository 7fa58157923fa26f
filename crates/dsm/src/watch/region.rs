//! The pages of one region: the program's rights to each, and which were written.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use super::balance::Balance;
use super::{Access, Detector, Entry, Fault, OnWritten, Pages};
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
    /// Pages that were written, or may have been, and that no call has reported yet. They include
    /// pages that the host reclaimed after a write: once such a page is readmitted, the page table
    /// no longer shows the write.
    unreported: BTreeSet<usize>,
    /// The ranges about which the kernel is asked, until the rights of some page change. Locks are
    /// acquired more often than that, and there may be thousands of pages.
    asked: Option<Vec<ScanRange>>,
    balance: Balance,
}

/// Pages about which the kernel is asked in one call.
#[derive(Debug)]
struct ScanRange {
    pages: Range<usize>,
    /// Some pages in between are not watched.
    has_gaps: bool,
}

/// Watched pages that are at most this far apart are asked about together.
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

    /// A detector for another region.
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

    /// Number of these pages, from the first on, that lie in this region.
    pub(super) fn leading(&self, pages: &[PageId]) -> usize {
        let here = self.first..self.page(self.access.len());
        pages.iter().take_while(|page| here.contains(page)).count()
    }

    pub(super) fn is_visible(&self, page: PageId) -> bool {
        self.access[self.place(page)] != Access::Hidden
    }

    pub(super) fn visible_count(&self) -> usize {
        self.access.iter().filter(|access| **access != Access::Hidden).count()
    }

    /// Changes the rights of pages. Unreported writes to them are forgotten.
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
            // Different rights of neighbouring pages need more mappings than the host permits. Only
            // traps need that.
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

    /// Readmits a page that the host reclaimed. Does nothing if another thread had the fault first.
    ///
    /// Reclaim leaves a marker in the page table for a page that was write-protected, and none for
    /// one that had been written. The answer of the page table stays true until the page is
    /// readmitted: an absent page cannot be written, and faults are handled one at a time. For a
    /// present page the answer would be outdated at once, because another thread may write to it,
    /// and the host may then reclaim it. So a present page is left alone.
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

    /// Finds the pages written. They stay unreported until [`Self::report`], so an error here or in
    /// another region loses none of them.
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

    /// Reports the pages that were found, ascending. A write after [`Self::find_written`] is found
    /// by its next call.
    pub(super) fn report(&mut self, written: &mut Vec<PageId>) {
        let unreported = core::mem::take(&mut self.unreported);
        written.extend(unreported.into_iter().map(|place| self.page(place)));
    }

    /// Changes from asking the kernel to traps, or back.
    fn change_way(&mut self) -> Result<(), Errno> {
        let watched = self.watched();
        if self.detector.traps() {
            self.detector.end_traps(&watched)?;
            return Ok(());
        }
        match self.detector.begin_traps(&watched) {
            // Finds writes before the first trap and after the last question.
            Ok(()) => self.ask().map(drop),
            // Too many mappings.
            Err(Errno::NOMEM) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Asks the kernel for written pages; returns their number.
    ///
    /// A question that fails may have had part of its effect: pages are watched anew and were not
    /// reported. So all watched pages count as written then.
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

    /// Adds the pages that the kernel has recorded as written.
    fn ask_spans(&mut self, written: &mut Vec<usize>) -> Result<(), Errno> {
        let asked = self.asked.take().unwrap_or_else(|| self.spans());
        for span in &asked {
            if !span.has_gaps {
                written.extend(self.detector.written(span.pages.clone(), OnWritten::WatchAnew)?);
                continue;
            }
            // Pages in a gap must not be watched. So the first question only tells where to ask
            // again, which is mostly nowhere.
            let mut found = self.detector.written(span.pages.clone(), OnWritten::Leave)?;
            found.retain(|place| self.access[*place] == Access::Watched);
            for run in found.chunk_by(|one, next| one + 1 == *next) {
                let run = run[0]..run[0] + run.len();
                written.extend(self.detector.written(run, OnWritten::WatchAnew)?);
            }
        }
        self.asked = Some(asked);
        Ok(())
    }

    /// Finds the pages whose write was a fault, and watches them again.
    fn find_faulted(&mut self) -> Result<(), Errno> {
        let mut faulted = core::mem::take(&mut self.faulted);
        // A page that was hidden or shown meanwhile has no unreported writes.
        faulted.retain(|&place| self.access[place] == Access::Written);
        faulted.sort_unstable();
        faulted.dedup();
        if faulted.is_empty() {
            return Ok(());
        }
        let found: Vec<_> = faulted.iter().map(|place| self.page(*place)).collect();
        self.unreported.extend(&faulted);
        if let Err(errno) = self.change(&found, Access::Watched) {
            // Pages that are not watched again can be written without another fault.
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

    fn spans(&self) -> Vec<ScanRange> {
        let mut spans: Vec<ScanRange> = Vec::new();
        for pages in self.watched() {
            match spans.last_mut().filter(|span| pages.start - span.pages.end <= GAP_MAX) {
                Some(span) => (span.pages.end, span.has_gaps) = (pages.end, true),
                None => spans.push(ScanRange { pages, has_gaps: false }),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests;
