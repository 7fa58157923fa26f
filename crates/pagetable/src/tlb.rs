//! Translation look-aside buffers: fully associative, with least-recently-used replacement.
//!
//! | organisation | an entry holds | a miss loads |
//! |---|---|---|
//! | pages | one page | its entry |
//! | pairs (R4400) | an even page and the odd page after it | both |
//! | superpages | one page, or a superpage | the table's entry |
//! | complete sub-blocks | 16 frames of a block under one tag | one of them, or all |
//! | partial sub-blocks | one page, or a run of frames with a mask | the table's entry |
//!
//! Paper 2, §2; Talluri, Hill and Khalidi, SOSP 1995, §4. Entries are ordered by last use, so a hit
//! costs one comparison for each entry that was used since.

use crate::address::{BLOCK_PAGES, PageNumber};
use crate::lines::Lines;
use crate::table::PageTable;

/// What an entry can hold, and what a miss loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Organisation {
    /// One page.
    Pages,
    /// Two neighbouring pages, as in the R4400.
    Pairs,
    /// A page, or a superpage of 16.
    Superpages,
    /// The frames of a block, loaded one at a time.
    CompleteSubblocks,
    /// The frames of a block, all loaded at once.
    CompleteSubblocksPrefetched,
    /// A page, or the pages of a block that lie in one run of frames.
    PartialSubblocks,
}

/// The result of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The TLB had the translation.
    Hit,
    /// The TLB had an entry for the block, without this page.
    SubblockMiss,
    /// The TLB had no entry.
    Miss,
    /// The table does not map the page. Nothing was loaded.
    Unmapped,
}

/// An entry: the pages of `key` that `mask` names.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    mask: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Page(u64),
    Pair(u64),
    Block(u64),
}

/// A simulated TLB.
#[derive(Debug, Clone)]
pub struct Tlb {
    organisation: Organisation,
    entries_max: usize,
    /// Most recently used first.
    entries: Vec<Entry>,
}

impl Tlb {
    /// An empty TLB with `entries_max` entries.
    ///
    /// # Panics
    /// `entries_max` is 0.
    #[must_use]
    pub fn new(organisation: Organisation, entries_max: usize) -> Self {
        assert!(entries_max > 0, "a TLB has at least one entry");
        Self { organisation, entries_max, entries: Vec::with_capacity(entries_max) }
    }

    /// Looks a page up and loads it from the table on a miss. `lines` receives the table's memory
    /// accesses.
    pub fn access<T: PageTable, L: Lines>(
        &mut self,
        page: PageNumber,
        table: &T,
        lines: &mut L,
    ) -> Outcome {
        let (wide, index) = self.wide_key(page);
        let narrow = Key::Page(page.get());
        let hit = self.entries.iter().position(|entry| {
            entry.key == narrow || (entry.key == wide && entry.mask >> index & 1 == 1)
        });
        if let Some(place) = hit {
            self.entries[..=place].rotate_right(1);
            return Outcome::Hit;
        }
        let Some(loaded) = self.load(page, table, lines) else { return Outcome::Unmapped };
        let held = self.entries.iter().position(|entry| entry.key == loaded.key);
        let (outcome, mask) = match held {
            Some(place) => (Outcome::SubblockMiss, self.entries.remove(place).mask),
            None => (Outcome::Miss, 0),
        };
        self.entries.truncate(self.entries_max - 1);
        self.entries.insert(0, Entry { mask: mask | loaded.mask, ..loaded });
        outcome
    }

    /// The key of an entry that holds more pages than this one, and the page's bit in it.
    fn wide_key(&self, page: PageNumber) -> (Key, usize) {
        match self.organisation {
            Organisation::Pages => (Key::Page(page.get()), 0),
            Organisation::Pairs => (Key::Pair(page.get() / 2), page.get() as usize % 2),
            _ => (Key::Block(page.block().get()), page.index_in_block()),
        }
    }

    fn load<T: PageTable, L: Lines>(
        &self,
        page: PageNumber,
        table: &T,
        lines: &mut L,
    ) -> Option<Entry> {
        let found = table.walk(page, lines);
        if found.is_empty() {
            return None;
        }
        let (wide, index) = self.wide_key(page);
        let mut mapped = |first: PageNumber, count: u64| {
            let pages = (first.get()..first.get() + count).filter_map(PageNumber::new);
            pages.enumerate().fold(0, |mask, (index, page)| {
                mask | u16::from(!table.walk(page, lines).is_empty()) << index
            })
        };
        let narrow = Entry { key: Key::Page(page.get()), mask: 1 };
        Some(match self.organisation {
            Organisation::Pages => narrow,
            Organisation::Pairs => {
                let even = PageNumber::new(page.get() & !1).unwrap_or(page);
                Entry { key: wide, mask: mapped(even, 2) }
            }
            Organisation::Superpages if !found.is_superpage() => narrow,
            Organisation::PartialSubblocks if !found.is_compact() => narrow,
            Organisation::Superpages | Organisation::PartialSubblocks => {
                Entry { key: wide, mask: found.mask() }
            }
            Organisation::CompleteSubblocks => Entry { key: wide, mask: 1 << index },
            Organisation::CompleteSubblocksPrefetched => {
                Entry { key: wide, mask: mapped(page.block().page(0), BLOCK_PAGES as u64) }
            }
        })
    }
}
