//! Policies of an operating system: which frames it gives to the pages of a program, and when it
//! makes a block compact.
//!
//! Superpages and sub-blocks only work for pages that lie at their places in a run of 16 frames. So
//! the first touch of a block reserves a run for it (Talluri and Hill, ASPLOS 1994), if the policy
//! finds a free one.

use crate::address::{BLOCK_PAGES, BlockNumber, FrameNumber, PageNumber, Rights};
use crate::table::{MapError, PageTable};

/// Frames for pages without a run start here. No two of them are neighbours.
const SCATTERED_FROM: u64 = 1 << 40;
const SCATTER_STRIDE: u64 = 5;

/// How pages are placed and entries made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Any free frame for each page, and an entry for each page.
    Scattered,
    /// Each page at its place in a run, and an entry for each page, until `promote_at` pages (1 to
    /// 16) of a block were touched. Then one entry maps the whole block.
    Superpages {
        /// Number of touched pages that make a superpage.
        promote_at: u32,
    },
    /// `placed_percent` of the blocks get a run. From its first page on, such a block has one
    /// entry, with the touched pages. The pages of the other blocks are scattered, with an entry
    /// each.
    Subblocks {
        /// 0 to 100.
        placed_percent: u64,
    },
}

/// An address space whose pages are mapped on their first touch.
#[derive(Debug)]
pub struct AddressSpace<T> {
    table: T,
    policy: Policy,
    runs: u64,
    scattered: u64,
    touched: usize,
}

impl<T: PageTable> AddressSpace<T> {
    /// An address space without mapped pages.
    pub fn new(table: T, policy: Policy) -> Self {
        Self { table, policy, runs: 0, scattered: 0, touched: 0 }
    }

    /// Maps a page unless it is mapped.
    ///
    /// # Errors
    /// As [`PageTable::map`].
    pub fn touch(&mut self, page: PageNumber) -> Result<(), MapError> {
        if self.table.lookup(page).is_some() {
            return Ok(());
        }
        self.touched += 1;
        let rights = Rights::READ | Rights::WRITE | Rights::EXECUTE;
        let placed = match self.policy {
            Policy::Scattered => false,
            Policy::Superpages { .. } => true,
            Policy::Subblocks { placed_percent } => is_placed(page.block(), placed_percent),
        };
        let frame = if placed { self.placed_frame(page) } else { self.scattered_frame() };
        self.table.map(page, frame, rights)?;
        match self.policy {
            Policy::Superpages { promote_at } => {
                let mask = self.table.read(page.block()).mask();
                if mask.count_ones() >= promote_at {
                    self.table.map_block(page.block(), frame.run_start(), rights, u16::MAX)?;
                }
            }
            Policy::Subblocks { .. } => {
                self.table.promote(page.block());
            }
            Policy::Scattered => {}
        }
        Ok(())
    }

    /// The frame of a page in the run of its block; reserves a run on the block's first touch.
    fn placed_frame(&mut self, page: PageNumber) -> FrameNumber {
        let block = self.table.read(page.block());
        let neighbour = (0..BLOCK_PAGES).find_map(|index| block.entry(index).frame_at(index));
        let run = neighbour.map(FrameNumber::run_start).unwrap_or_else(|| {
            self.runs += 1;
            frame(self.runs * BLOCK_PAGES as u64)
        });
        run.in_run(page.index_in_block())
    }

    fn scattered_frame(&mut self) -> FrameNumber {
        self.scattered += 1;
        frame(SCATTERED_FROM + self.scattered * SCATTER_STRIDE)
    }

    /// The table.
    pub fn table(&self) -> &T {
        &self.table
    }

    /// Number of pages that were touched. A superpage may map more.
    pub fn touched(&self) -> usize {
        self.touched
    }
}

fn frame(number: u64) -> FrameNumber {
    FrameNumber::new(number).expect("a program does not touch 2^40 pages")
}

/// Whether a block belongs to the given percentage that gets a run. Deterministic.
fn is_placed(block: BlockNumber, percent: u64) -> bool {
    (block.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 100 < percent
}
