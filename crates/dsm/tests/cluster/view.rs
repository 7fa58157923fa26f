//! A program's view of its node's pages, and a page table that records its writes: the part of the
//! runtime that detects writes, on a host that reclaims pages.
//!
//! ```text
//!                  write                  take_written
//!   Protected ─────────────> Written ───────────────────> Protected
//!       │ reclaim               │ reclaim
//!       v                       v
//!   AbsentClean            AbsentWritten      the next access readmits the page, as Protected
//! ```

use std::collections::{BTreeMap, BTreeSet};

use kyocho_dsm::{Action, Address, PageId};

/// The page table's entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Protected,
    Written,
    AbsentClean,
    AbsentWritten,
}

/// How a reclaimed page is readmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readmission {
    /// The runtime first checks whether it was written.
    Asked,
    /// It is assumed to be clean, which is a mistake.
    AsClean,
}

#[derive(Debug)]
struct Page {
    entry: Entry,
    /// Written by the program since the last report to the node.
    words: BTreeMap<u32, u32>,
}

/// The pages that the program of one node accesses. Words that it did not write are those of the
/// node's copies.
#[derive(Debug, Default)]
pub(crate) struct View {
    pages: BTreeMap<PageId, Page>,
    owned: BTreeSet<PageId>,
    /// Found written when they were readmitted.
    reclaimed: BTreeSet<PageId>,
    /// Number of pages that were reclaimed after a write, and readmitted.
    pub(crate) readmitted: u64,
}

impl View {
    /// A word that the program has written, if the node does not know it yet.
    pub(crate) fn read(&mut self, word: Address, readmission: Readmission) -> Option<u32> {
        self.touch(word.page, readmission).words.get(&word.word).copied()
    }

    /// The program writes a word. Returns `false` if the page is not watched because its node owns
    /// it.
    pub(crate) fn write(&mut self, word: Address, value: u32, readmission: Readmission) -> bool {
        if self.owned.contains(&word.page) {
            return false;
        }
        let page = self.touch(word.page, readmission);
        page.entry = Entry::Written;
        page.words.insert(word.word, value);
        true
    }

    /// An access to a page; it is a fault if the page was reclaimed.
    fn touch(&mut self, page: PageId, readmission: Readmission) -> &mut Page {
        let new = || Page { entry: Entry::Protected, words: BTreeMap::new() };
        let found = self.pages.entry(page).or_insert_with(new);
        if found.entry == Entry::AbsentWritten && readmission == Readmission::Asked {
            self.reclaimed.insert(page);
            self.readmitted += 1;
        }
        if matches!(found.entry, Entry::AbsentWritten | Entry::AbsentClean) {
            found.entry = Entry::Protected;
        }
        found
    }

    /// The host reclaims a page.
    pub(crate) fn reclaim(&mut self, page: PageId) {
        if let Some(page) = self.pages.get_mut(&page) {
            page.entry = match page.entry {
                Entry::Protected | Entry::AbsentClean => Entry::AbsentClean,
                Entry::Written | Entry::AbsentWritten => Entry::AbsentWritten,
            };
        }
    }

    /// The pages written since the last call, with the words that differ from the copies.
    pub(crate) fn take_written(&mut self) -> Vec<(PageId, Vec<(u32, u32)>)> {
        let mut written = Vec::new();
        for (number, page) in &mut self.pages {
            let is_noted = matches!(page.entry, Entry::Written | Entry::AbsentWritten);
            if !is_noted && !self.reclaimed.contains(number) {
                continue;
            }
            page.entry = match page.entry {
                Entry::AbsentWritten | Entry::AbsentClean => Entry::AbsentClean,
                Entry::Written | Entry::Protected => Entry::Protected,
            };
            written.push((*number, core::mem::take(&mut page.words).into_iter().collect()));
        }
        self.reclaimed.clear();
        written
    }

    /// The node changes the program's view.
    pub(crate) fn follow(&mut self, action: &Action) {
        match action {
            Action::Show(page, _) => drop(self.pages.remove(page)),
            Action::Hide(page) => {
                self.pages.remove(page);
                self.owned.remove(page);
            }
            Action::Update(page, words) => {
                if let Some(page) = self.pages.get_mut(page) {
                    page.words.retain(|mine, _| words.iter().all(|(word, _)| word != mine));
                }
            }
            Action::Own(page) => {
                self.pages.remove(page);
                self.owned.insert(*page);
            }
            Action::Disown(page) => drop(self.owned.remove(page)),
            Action::Send(..) | Action::Return(..) => {}
        }
    }
}
