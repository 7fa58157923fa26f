//! The entries of one block of 16 pages.
//!
//! **Invariant:** either no entry is compact, or all non-empty entries are the same compact entry,
//! at the pages of its mask.

use crate::address::{BLOCK_PAGES, FrameNumber, Rights};
use crate::pte::Pte;

/// The entries of one block, indexed by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    entries: [Pte; BLOCK_PAGES],
}

impl Block {
    /// A block without mapped pages.
    pub const EMPTY: Self = Self { entries: [Pte::EMPTY; BLOCK_PAGES] };

    /// The block that a compact entry stands for.
    #[must_use]
    pub fn of_compact(entry: Pte) -> Self {
        debug_assert!(entry.is_compact() || entry.is_empty(), "an entry of one page: {entry:?}");
        Self { entries: core::array::from_fn(|index| entry.if_it_maps(index)) }
    }

    /// The entry of the page at `index`.
    #[must_use]
    pub fn entry(&self, index: usize) -> Pte {
        self.entries[index]
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[Pte; BLOCK_PAGES] {
        &self.entries
    }

    /// All entries, for a table that fills them in.
    pub(crate) fn entries_mut(&mut self) -> &mut [Pte; BLOCK_PAGES] {
        &mut self.entries
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(|entry| entry.is_empty())
    }

    /// The compact entry of the block, if it has one.
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

    /// Maps one page. A compact block stays compact if the page fits: same run of frames, its own
    /// place there, same rights.
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

    /// Unmaps one page. A compact block stays compact.
    pub fn clear(&mut self, index: usize) {
        match self.as_compact() {
            Some(entry) => {
                *self = Self::of_compact(entry.without(index));
            }
            None => self.entries[index] = Pte::EMPTY,
        }
    }

    /// Sets the rights of the mapped pages of `mask`. A compact block stays compact if all its
    /// pages are in `mask`.
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

    /// Makes the block one compact entry if its pages lie at their places in one run of frames and
    /// have equal rights. Returns whether the block is compact now.
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

/// The run of `frame`, if the frame has the index in it that its page has in the block.
fn placed_run(index: usize, frame: FrameNumber) -> Option<FrameNumber> {
    (frame.index_in_run() == index).then(|| frame.run_start())
}
