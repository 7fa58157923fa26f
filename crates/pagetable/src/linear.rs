//! The linear table: one array of entries for a window of the address space.
//!
//! The array lies in virtual memory, and the host backs the pages of it that are written. This is
//! the linear table of the literature, with the host's page table in place of nested translations.

use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, PageNumber};
use crate::block::Block;
use crate::lines::Lines;
use crate::pte::Pte;
use crate::table::{MapError, PageTable};

/// Entries in one page of the array.
const ENTRIES_A_PAGE: usize = 512;
const PAGE_WORDS_BYTES: usize = ENTRIES_A_PAGE * size_of::<u64>();
/// The largest window. Its array takes 1 GiB of address space.
const PAGES_MAX: u64 = 1 << 27;

/// One array for a window of the address space.
///
/// Its size counts the pages of the array that were ever written. They are freed when the table is
/// dropped.
#[derive(Debug, Clone)]
pub struct Linear {
    first: BlockNumber,
    last: BlockNumber,
    /// Entries as plain words: zeroed memory of this type comes from the host without being
    /// written.
    words: Vec<u64>,
    /// For each page of `words`, whether it was written.
    written: Vec<bool>,
}

impl Linear {
    /// An empty table for all blocks that contain pages of `window`.
    ///
    /// # Panics
    /// The blocks of `window` have more than 2^27 pages (512 GiB).
    #[must_use]
    pub fn new(window: &RangeInclusive<PageNumber>) -> Self {
        let (first, last) = (window.start().block(), window.end().block());
        let pages = (last.get() + 1).saturating_sub(first.get()) * BLOCK_PAGES as u64;
        assert!(
            pages <= PAGES_MAX,
            "a window of {pages} pages, but at most {PAGES_MAX} are possible"
        );
        let words = vec![0; pages as usize];
        let written = vec![false; words.len().div_ceil(ENTRIES_A_PAGE)];
        Self { first, last, words, written }
    }

    /// Index of the first entry of a block; `None` outside of the window.
    #[inline]
    fn first_entry(&self, block: BlockNumber) -> Option<usize> {
        let inside = (self.first..=self.last).contains(&block);
        inside.then(|| (block.get() - self.first.get()) as usize * BLOCK_PAGES)
    }
}

impl PageTable for Linear {
    fn reach(&self) -> RangeInclusive<PageNumber> {
        self.first.page(0)..=self.last.page(BLOCK_PAGES - 1)
    }

    #[inline]
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte {
        let offset = page.get().wrapping_sub(self.first.page(0).get()) as usize;
        let Some(&word) = self.words.get(offset) else { return Pte::EMPTY };
        lines.touch(0, offset * size_of::<u64>());
        Pte::from_bits(word)
    }

    fn read(&self, block: BlockNumber) -> Block {
        let mut contents = Block::EMPTY;
        if let Some(place) = self.first_entry(block) {
            let words = &self.words[place..place + BLOCK_PAGES];
            for (entry, &word) in contents.entries_mut().iter_mut().zip(words) {
                *entry = Pte::from_bits(word);
            }
        }
        contents
    }

    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError> {
        let place = self.first_entry(block).ok_or(MapError::OutOfReach(block.page(0)))?;
        let words = &mut self.words[place..place + BLOCK_PAGES];
        for (word, entry) in words.iter_mut().zip(contents.entries()) {
            *word = entry.to_bits();
        }
        self.written[place / ENTRIES_A_PAGE] = true;
        Ok(())
    }

    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber> {
        let first = self.first.max(*range.start());
        let last = self.last.min(*range.end());
        let numbers = (first.get()..=last.get()).filter_map(BlockNumber::new);
        let in_use = |block: &BlockNumber| {
            self.first_entry(*block).is_some_and(|place| {
                self.written[place / ENTRIES_A_PAGE]
                    && self.words[place..place + BLOCK_PAGES].iter().any(|&word| word != 0)
            })
        };
        numbers.filter(in_use).collect()
    }

    fn bytes(&self) -> usize {
        let written = self.written.iter().filter(|&&written| written).count();
        written * PAGE_WORDS_BYTES + self.written.capacity()
    }
}
