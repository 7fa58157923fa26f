//! The one trait, and what is written once for all tables.

use core::fmt;
use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, FrameNumber, PageNumber, Rights, Translation};
use crate::block::Block;
use crate::lines::Lines;
use crate::pte::Pte;

/// Why a mapping cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// The page lies outside of what this table reaches ([`PageTable::reach`]).
    OutOfReach(PageNumber),
    /// A block must lie on a run of 16 frames whose first is a multiple of 16; this one is not.
    Misaligned(FrameNumber),
    /// The table has all the nodes that it can name.
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
            Self::Full => write!(f, "the table has no more nodes: unmap something"),
        }
    }
}

impl core::error::Error for MapError {}

/// A map from pages to frames.
///
/// The required methods are for who writes a table; callers want the provided ones. None blocks. Changes cost a walk for
/// each block they touch, and now and then a table grows, which costs as much as its whole contents.
pub trait PageTable {
    /// The pages that can be mapped.
    fn reach(&self) -> RangeInclusive<PageNumber>;

    /// The entry that maps `page`, or the empty one, as a TLB would load it; names the cache lines that it looks at.
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte;

    /// What is held of a block.
    fn read(&self, block: BlockNumber) -> Block;

    /// Replaces what is held of a block.
    ///
    /// # Errors
    /// [`MapError::OutOfReach`] or [`MapError::Full`]; nothing has changed then. What takes entries away cannot fail.
    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError>;

    /// The blocks of `range` that hold anything, in order. Costs no more than the whole table.
    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber>;

    /// The memory that the table takes now, in bytes, spare nodes and all.
    fn bytes(&self) -> usize;

    /// Where a page is; `None` when it is not mapped.
    #[inline(always)]
    fn lookup(&self, page: PageNumber) -> Option<Translation> {
        self.walk(page, &mut ()).translation_at(page.index_in_block())
    }

    /// Maps a page, and returns what it was mapped to before.
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

    /// Maps the pages of `mask` of a block to the run of frames that starts at `frame`, in one entry; all 16 are a
    /// superpage, fewer a partial sub-block. Replaces all that was mapped in the block.
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

    /// Unmaps a page, and returns what it was mapped to.
    fn unmap(&mut self, page: PageNumber) -> Option<Translation> {
        let mut block = self.read(page.block());
        let index = page.index_in_block();
        let old = block.entry(index).translation_at(index)?;
        block.clear(index);
        self.write(page.block(), &block).expect("taking entries away cannot fail");
        Some(old)
    }

    /// Unmaps all pages of `range`, and returns how many were mapped.
    fn unmap_range(&mut self, range: RangeInclusive<PageNumber>) -> usize {
        let mut unmapped = 0;
        for number in self.blocks(range.start().block()..=range.end().block()) {
            let mut block = self.read(number);
            let doomed = block.mask() & part_of_block(number, &range);
            unmapped += doomed.count_ones() as usize;
            (0..BLOCK_PAGES).filter(|index| doomed >> index & 1 == 1).for_each(|i| block.clear(i));
            self.write(number, &block).expect("taking entries away cannot fail");
        }
        unmapped
    }

    /// Gives all mapped pages of `range` these rights, and returns how many there are. A block of which `range` has a part
    /// only is demoted.
    ///
    /// # Errors
    /// [`MapError::Full`]: the pages before some block have changed, that block and the ones behind it have not.
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

    /// Makes a block one entry, where its pages lie at their places in one run of frames with equal rights; says whether it
    /// is one now.
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

    /// Calls `visit` with each mapped page of `range`, in order.
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

/// Which pages of a block lie in `range`, as a mask.
fn part_of_block(block: BlockNumber, range: &RangeInclusive<PageNumber>) -> u16 {
    (0..BLOCK_PAGES)
        .filter(|&index| range.contains(&block.page(index)))
        .fold(0, |mask, index| mask | 1 << index)
}
