//! Pages that the program writes repeatedly: they are not watched, but compared in each interval.
//!
//! Detecting a write to a watched page costs at least a fault in the kernel, and a system call to
//! watch the page again. That is more than comparing the page with its copy. Every call that ends
//! an interval compares all of these pages, so there are few.

use crate::address::PageId;
use crate::directory::Directory;

/// Number of these pages, at most.
const PAGES_MAX: usize = 8;
/// Longest distance between two writes of a row, in intervals.
const NEAR: u32 = 4;
/// Length of a row of writes after which the page is compared.
const ROW: u8 = 4;
/// A page that was not written for so many intervals is watched again.
const IDLE_MAX: u8 = 16;

/// The writes of a page.
#[derive(Debug, Clone, Copy, Default)]
struct History {
    last: u32,
    row: u8,
}

/// The pages that are compared in each interval.
#[derive(Debug)]
pub(super) struct ComparedPages {
    intervals: u32,
    histories: Directory<History>,
    /// The pages, and for how many intervals each was not written.
    pages: Vec<(PageId, u8)>,
}

impl ComparedPages {
    /// No pages.
    pub(super) fn new() -> Self {
        Self { intervals: 0, histories: Directory::new(), pages: Vec::new() }
    }

    /// Begins an interval. Returns the pages to compare, and those of them to watch again first and
    /// then remove.
    pub(super) fn begin(&mut self) -> (Vec<PageId>, Vec<PageId>) {
        self.intervals = self.intervals.wrapping_add(1);
        let pages = self.pages.iter().map(|(page, _)| *page).collect();
        let idle = self.pages.iter().filter(|(_, idle)| *idle >= IDLE_MAX);
        (pages, idle.map(|(page, _)| *page).collect())
    }

    /// Records that pages were written, or replaced in the program's sight. Returns those that need
    /// not be watched any more.
    pub(super) fn note(&mut self, written: &[PageId]) -> Vec<PageId> {
        let mut compared = Vec::new();
        for &page in written {
            if self.has(page) {
                self.record_comparison(page, true);
                continue;
            }
            let history = self.histories.entry(page, History::default);
            let near = self.intervals.wrapping_sub(history.last) <= NEAR;
            history.row = if near { history.row.saturating_add(1) } else { 1 };
            history.last = self.intervals;
            if history.row >= ROW && self.pages.len() < PAGES_MAX {
                self.pages.push((page, 0));
                compared.push(page);
            }
        }
        compared
    }

    /// Records whether one of the pages was written in the last interval.
    pub(super) fn record_comparison(&mut self, page: PageId, is_written: bool) {
        if let Some((_, idle)) = self.pages.iter_mut().find(|(other, _)| *other == page) {
            *idle = if is_written { 0 } else { idle.saturating_add(1) };
        }
    }

    /// Whether a page is one of them.
    pub(super) fn has(&self, page: PageId) -> bool {
        self.pages.iter().any(|(other, _)| *other == page)
    }

    /// Removes a page, because the program's rights to it change.
    pub(super) fn remove(&mut self, page: PageId) {
        self.pages.retain(|(other, _)| *other != page);
    }
}

#[cfg(test)]
mod tests {
    use super::{ComparedPages, IDLE_MAX, NEAR, PAGES_MAX, ROW};
    use crate::address::PageId;

    /// Records `times` writes, so many intervals apart. Returns whether the page is compared from
    /// then on.
    fn written(pages: &mut ComparedPages, page: PageId, times: u8, apart: u32) -> bool {
        for _ in 0..times {
            (0..apart).for_each(|_| drop(pages.begin()));
            pages.note(&[page]);
        }
        pages.has(page)
    }

    #[test]
    fn a_page_is_compared_that_is_written_to_often_enough_in_a_row() {
        let page = PageId(3);
        assert!(!written(&mut ComparedPages::new(), page, ROW - 1, 1));
        assert!(written(&mut ComparedPages::new(), page, ROW, NEAR));
        assert!(!written(&mut ComparedPages::new(), page, 20, NEAR + 1));
    }

    #[test]
    fn one_that_is_idle_for_long_is_watched_again_and_compared_once_more() {
        let (mut pages, page) = (ComparedPages::new(), PageId(0));
        assert!(written(&mut pages, page, ROW, 1));
        for interval in 0..3 * IDLE_MAX {
            assert_eq!(pages.begin(), (vec![page], vec![]), "written to until {interval}");
            pages.record_comparison(page, interval < 2 * IDLE_MAX);
        }
        assert_eq!(pages.begin(), (vec![page], vec![page]));
        pages.record_comparison(page, false);
        assert_eq!(pages.begin(), (vec![page], vec![page]), "the host did not let it be watched");
        pages.remove(page);
        assert_eq!(pages.begin(), (vec![], vec![]));
    }

    #[test]
    fn there_are_not_more_than_can_be_compared_each_time() {
        let mut pages = ComparedPages::new();
        let many: Vec<_> = (0..100).map(PageId).collect();
        for _ in 0..ROW {
            drop(pages.begin());
            pages.note(&many);
        }
        assert_eq!(pages.begin().0.len(), PAGES_MAX);
        many.iter().for_each(|page| pages.remove(*page));
        assert_eq!(pages.begin().0, []);
    }
}
