//! What a table holds of one block of 16 pages.
//!
//! **Invariant:** either no entry is compact, or all that are not empty are the same compact entry, standing at the places of
//! its mask.

use crate::address::{BLOCK_PAGES, FrameNumber, Rights};
use crate::pte::Pte;

/// The entries of one block, by the place of their page in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    entries: [Pte; BLOCK_PAGES],
}

impl Block {
    /// A block with nothing in it.
    pub const EMPTY: Self = Self { entries: [Pte::EMPTY; BLOCK_PAGES] };

    /// What one entry says of a whole block.
    #[must_use]
    pub fn of_compact(entry: Pte) -> Self {
        debug_assert!(entry.is_compact() || entry.is_empty(), "an entry of one page: {entry:?}");
        Self { entries: core::array::from_fn(|index| entry.if_it_maps(index)) }
    }

    /// The entry of a page, by its place in the block.
    #[must_use]
    pub fn entry(&self, index: usize) -> Pte {
        self.entries[index]
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[Pte; BLOCK_PAGES] {
        &self.entries
    }

    /// All entries, for a table that fills in what it holds.
    pub(crate) fn entries_mut(&mut self) -> &mut [Pte; BLOCK_PAGES] {
        &mut self.entries
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.is_empty())
    }

    /// The one entry that speaks for the block, if it has one.
    #[must_use]
    pub fn as_compact(&self) -> Option<Pte> {
        let first = self.entries.iter().find(|entry| !entry.is_empty())?;
        first.is_compact().then_some(*first)
    }

    /// The pages that are mapped, as a mask.
    #[must_use]
    pub fn mask(&self) -> u16 {
        let mapped = self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_empty());
        mapped.fold(0, |mask, (index, _)| mask | 1 << index)
    }

    /// Maps one page. The block stays compact when the page fits in: its place in the same run of frames, the same rights.
    pub fn set(&mut self, index: usize, frame: FrameNumber, rights: Rights) {
        match self.as_compact() {
            Some(entry)
                if entry.rights() == rights && Self::run_of(entry) == placed_run(index, frame) =>
            {
                *self = Self::of_compact(Pte::compact(frame, rights, entry.mask() | 1 << index));
            }
            _ => {
                self.demote();
                self.entries[index] = Pte::page(frame, rights);
            }
        }
    }

    /// Unmaps one page; a compact block stays compact.
    pub fn clear(&mut self, index: usize) {
        match self.as_compact() {
            Some(entry) => {
                *self = Self::of_compact(entry.without(index));
            }
            None => self.entries[index] = Pte::EMPTY,
        }
    }

    /// Gives the mapped pages of `mask` other rights; a compact block stays compact when all its pages are among them.
    pub fn protect(&mut self, mask: u16, rights: Rights) {
        if self.mask() & !mask != 0 {
            self.demote();
        }
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if mask >> index & 1 == 1 && !entry.is_empty() {
                *entry = entry.with_rights(rights);
            }
        }
    }

    /// Makes the block one compact entry if its pages lie at their places in one run of frames, with equal rights. Says
    /// whether it is compact now.
    pub fn promote(&mut self) -> bool {
        let mut mapped = self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_empty());
        let Some((first, entry)) = mapped.next() else { return false };
        let rights = entry.rights();
        let run = entry.frame_at(first).and_then(|frame| placed_run(first, frame));
        let Some(run) = run else { return false };
        let alike = |(index, entry): (usize, &Pte)| {
            let frame = entry.frame_at(index);
            entry.rights() == rights
                && frame.is_some_and(|frame| placed_run(index, frame) == Some(run))
        };
        if !mapped.all(alike) {
            return false;
        }
        *self = Self::of_compact(Pte::compact(run, rights, self.mask()));
        true
    }

    /// Gives each page an entry of its own.
    pub fn demote(&mut self) {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if let Some(frame) = entry.frame_at(index) {
                *entry = Pte::page(frame, entry.rights());
            }
        }
    }

    fn run_of(entry: Pte) -> Option<FrameNumber> {
        entry.frame_at(entry.mask().trailing_zeros() as usize).map(FrameNumber::run_start)
    }
}

/// The run in which `frame` has the place that its page has in the block.
fn placed_run(index: usize, frame: FrameNumber) -> Option<FrameNumber> {
    (frame.index_in_run() == index).then(|| frame.run_start())
}
