//! The trait of all page tables, with the operations that are implemented once for all of them.

use core::fmt;
use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, FrameNumber, PageNumber, Rights, Translation};
use crate::block::Block;
use crate::lines::Lines;
use crate::pte::Pte;

/// The reason why a mapping cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// The page lies outside of the table's range ([`PageTable::reach`]).
    OutOfReach(PageNumber),
    /// The frame does not start a run. A block must be mapped to a run of 16 frames that starts at
    /// a multiple of 16.
    Misaligned(FrameNumber),
    /// The table has as many nodes as its links can name.
    Full,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfReach(page) => write!(f, "{page} lies outside of the table's reach"),
            Self::Misaligned(frame) => write!(
                f,
                "frame {:#x} does not start a run: use a multiple of {BLOCK_PAGES}",
                frame.get()
            ),
            Self::Full => write!(f, "the table has all the nodes it can have: unmap something"),
        }
    }
}

impl core::error::Error for MapError {}

/// A map from pages to frames.
///
/// An implementer writes the required methods; callers use the provided ones. No method blocks. A
/// change costs a walk for each block that it affects. Sometimes a table grows, which costs time in
/// proportion to its contents.
pub trait PageTable {
    /// The range of pages that can be mapped.
    fn reach(&self) -> RangeInclusive<PageNumber>;

    /// The entry that maps `page`, as a TLB would load it, or the empty entry. Reports each cache
    /// line it reads to `lines`.
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte;

    /// The entries of a block.
    fn read(&self, block: BlockNumber) -> Block;

    /// Replaces the entries of a block.
    ///
    /// # Errors
    /// [`MapError::OutOfReach`] or [`MapError::Full`]: nothing has changed. Removing entries cannot
    /// fail.
    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError>;

    /// The blocks of `range` that have mapped pages, in order. Costs at most a traversal of the
    /// whole table.
    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber>;

    /// The memory of the table in bytes, including spare nodes.
    fn bytes(&self) -> usize;

    /// The translation of a page; `None` if it is not mapped.
    #[inline(always)]
    fn lookup(&self, page: PageNumber) -> Option<Translation> {
        self.walk(page, &mut ()).translation_at(page.index_in_block())
    }

    /// Maps a page. Returns its previous translation.
    ///
    /// # Errors
    /// [`MapError::OutOfReach`], [`MapError::Full`].
    fn map(
        &mut self,
        page: PageNumber,
        frame: FrameNumber,
        rights: Rights,
    ) -> Result<Option<Translation>, MapError> {
        let mut block = self.read(page.block());
        let old = block.entry(page.index_in_block());
        block.set(page.index_in_block(), frame, rights);
        self.write(page.block(), &block)?;
        Ok(old.translation_at(page.index_in_block()))
    }

    /// Maps the pages of `mask` of a block to the run of frames that starts at `frame`, with one
    /// entry. All 16 pages make a superpage, fewer a partial sub-block. Replaces all previous
    /// mappings of the block.
    ///
    /// # Errors
    /// [`MapError::Misaligned`], [`MapError::OutOfReach`], [`MapError::Full`].
    fn map_block(
        &mut self,
        block: BlockNumber,
        frame: FrameNumber,
        rights: Rights,
        mask: u16,
    ) -> Result<(), MapError> {
        if frame.run_start() != frame {
            return Err(MapError::Misaligned(frame));
        }
        self.write(block, &Block::of_compact(Pte::compact(frame, rights, mask)))
    }

    /// Unmaps a page. Returns its translation, if it was mapped.
    fn unmap(&mut self, page: PageNumber) -> Option<Translation> {
        let mut block = self.read(page.block());
        let index = page.index_in_block();
        let old = block.entry(index).translation_at(index)?;
        block.clear(index);
        self.write(page.block(), &block).expect("removing entries cannot fail");
        Some(old)
    }

    /// Unmaps all pages of `range`. Returns how many were mapped.
    fn unmap_range(&mut self, range: RangeInclusive<PageNumber>) -> usize {
        let mut unmapped = 0;
        for number in self.blocks(range.start().block()..=range.end().block()) {
            let mut block = self.read(number);
            let doomed = block.mask() & part_of_block(number, &range);
            unmapped += doomed.count_ones() as usize;
            (0..BLOCK_PAGES).filter(|index| doomed >> index & 1 == 1).for_each(|i| block.clear(i));
            self.write(number, &block).expect("removing entries cannot fail");
        }
        unmapped
    }

    /// Sets the rights of all mapped pages of `range`. Returns their number. Demotes a block that
    /// lies only partly in `range`.
    ///
    /// # Errors
    /// [`MapError::Full`]: the pages of earlier blocks have changed, those of the failing block and
    /// later ones have not.
    fn protect_range(
        &mut self,
        range: RangeInclusive<PageNumber>,
        rights: Rights,
    ) -> Result<usize, MapError> {
        let mut protected = 0;
        for number in self.blocks(range.start().block()..=range.end().block()) {
            let mut block = self.read(number);
            let part = part_of_block(number, &range);
            let meant = (block.mask() & part).count_ones() as usize;
            if meant > 0 {
                block.protect(part, rights);
                self.write(number, &block)?;
                protected += meant;
            }
        }
        Ok(protected)
    }

    /// Makes a block one compact entry if its pages lie at their places in one run of frames and
    /// have equal rights. Returns whether the block is compact now.
    fn promote(&mut self, block: BlockNumber) -> bool {
        let mut contents = self.read(block);
        contents.promote() && self.write(block, &contents).is_ok()
    }

    /// Gives each page of a block an entry of its own.
    ///
    /// # Errors
    /// [`MapError::Full`].
    fn demote(&mut self, block: BlockNumber) -> Result<(), MapError> {
        let mut contents = self.read(block);
        if contents.as_compact().is_none() {
            return Ok(());
        }
        contents.demote();
        self.write(block, &contents)
    }

    /// Calls `visit` for each mapped page of `range`, in order.
    fn for_each(
        &self,
        range: RangeInclusive<PageNumber>,
        mut visit: impl FnMut(PageNumber, Translation),
    ) {
        for number in self.blocks(range.start().block()..=range.end().block()) {
            let block = self.read(number);
            let part = part_of_block(number, &range);
            (0..BLOCK_PAGES)
                .filter(|index| part >> index & 1 == 1)
                .filter_map(|index| Some((index, block.entry(index).translation_at(index)?)))
                .for_each(|(index, translation)| visit(number.page(index), translation));
        }
    }
}

/// The pages of a block that lie in `range`, as a mask.
fn part_of_block(block: BlockNumber, range: &RangeInclusive<PageNumber>) -> u16 {
    (0..BLOCK_PAGES)
        .filter(|&index| range.contains(&block.page(index)))
        .fold(0, |mask, index| mask | 1 << index)
}
