//! Side tables of the mark-region heap: one bit a granule, one bit a line.
//!
//! A line of 128 bytes is eight granules, so one byte of the start bitmap: the line is free when
//! that byte is zero and no object that began before reaches into it (`covered`). Pairs, the most
//! frequent objects, touch the start bitmap alone.
//!
//! Pure: addresses are offsets from the heap's base, nothing here reads Lisp memory.

use crate::heap::object::GRANULE_BYTES;
use core::ops::Range;

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 32 * 1024;
/// Bytes of a line.
pub(crate) const LINE_BYTES: usize = 128;
/// Lines in a block.
pub(crate) const LINES: usize = BLOCK_BYTES / LINE_BYTES;

const STARTS_WORDS: usize = BLOCK_BYTES / GRANULE_BYTES / 64;
const COVERED_WORDS: usize = LINES / 64;

/// By byte of the word: whether any of its bits is set.
fn bytes_set(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The high bit of each byte says whether the byte is not zero; the product gathers them in the highest byte.
    let high = (((word & LOW) + LOW) | word) & !LOW;
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Marks of all blocks that were ever used.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    starts: Vec<u64>,
    covered: Vec<u64>,
}

impl Marks {
    /// Makes the tables reach `blocks` blocks.
    pub(crate) fn extend_to(&mut self, blocks: usize) {
        self.starts.resize(blocks * STARTS_WORDS, 0);
        self.covered.resize(blocks * COVERED_WORDS, 0);
    }

    /// How many bytes of the heap the tables reach.
    pub(crate) fn reach_bytes(&self) -> usize {
        self.starts.len() / STARTS_WORDS * BLOCK_BYTES
    }

    /// Forgets all marks.
    pub(crate) fn clear(&mut self) {
        self.starts.fill(0);
        self.covered.fill(0);
    }

    /// Forgets the marks of one block.
    pub(crate) fn clear_block(&mut self, block: usize) {
        self.starts[block * STARTS_WORDS..][..STARTS_WORDS].fill(0);
        self.covered[block * COVERED_WORDS..][..COVERED_WORDS].fill(0);
    }

    /// Marks the object that starts at `offset`; `true` when it was not marked before.
    #[inline(always)]
    pub(crate) fn set(&mut self, offset: usize) -> bool {
        let granule = offset / GRANULE_BYTES;
        let word = &mut self.starts[granule / 64];
        let bit = 1 << (granule % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    /// Whether the object that starts at `offset` is marked.
    pub(crate) fn get(&self, offset: usize) -> bool {
        let granule = offset / GRANULE_BYTES;
        self.starts[granule / 64] & 1 << (granule % 64) != 0
    }

    /// Covers the lines beyond the first of an object of `bytes` at `offset`, within its block.
    pub(crate) fn cover(&mut self, offset: usize, bytes: usize) {
        let first = offset / LINE_BYTES + 1;
        let last = (offset + bytes - 1) / LINE_BYTES;
        for line in first..=last {
            self.covered[line / 64] |= 1 << (line % 64);
        }
    }

    /// Covers every line that these bytes touch.
    pub(crate) fn cover_all(&mut self, offset: usize, bytes: usize) {
        if bytes > 0 {
            let first = offset / LINE_BYTES;
            self.covered[first / 64] |= 1 << (first % 64);
            self.cover(offset, bytes);
        }
    }

    /// Whether nothing marked lies in the block: no object starts there, and none reaches into it from
    /// the block before, as one may that was cut from a run of several blocks.
    pub(crate) fn block_is_empty(&self, block: usize) -> bool {
        let starts = &self.starts[block * STARTS_WORDS..][..STARTS_WORDS];
        let covered = &self.covered[block * COVERED_WORDS..][..COVERED_WORDS];
        starts.iter().chain(covered).all(|&word| word == 0)
    }

    fn line_is_free(&self, block: usize, line: usize) -> bool {
        let starts = self.starts[block * STARTS_WORDS + line / 8] >> (8 * (line % 8)) & 0xff;
        let line_index = block * LINES + line;
        starts == 0 && self.covered[line_index / 64] & 1 << (line_index % 64) == 0
    }

    /// The first run of free lines of the block at or after line `from`.
    pub(crate) fn free_lines(&self, block: usize, from: usize) -> Option<Range<usize>> {
        let start = (from..LINES).find(|&line| self.line_is_free(block, line))?;
        let end = (start..LINES).find(|&line| !self.line_is_free(block, line)).unwrap_or(LINES);
        Some(start..end)
    }

    /// How many lines of the block are free.
    pub(crate) fn free_line_count(&self, block: usize) -> usize {
        let starts = &self.starts[block * STARTS_WORDS..][..STARTS_WORDS];
        let covered = &self.covered[block * COVERED_WORDS..][..COVERED_WORDS];
        let used = |word: usize| {
            let lines = (starts[8 * word..][..8].iter().enumerate())
                .fold(0, |lines, (i, &starts)| lines | bytes_set(starts) << (8 * i));
            (lines | covered[word]).count_ones() as usize
        };
        LINES - (0..COVERED_WORDS).map(used).sum::<usize>()
    }

    /// Offsets of the marked objects of a block.
    pub(crate) fn marked_in(&self, block: usize) -> impl Iterator<Item = usize> {
        let words = self.starts[block * STARTS_WORDS..][..STARTS_WORDS].iter();
        words.enumerate().flat_map(move |(i, &word)| {
            let base = block * BLOCK_BYTES + i * 64 * GRANULE_BYTES;
            (0..64)
                .filter(move |bit| word & 1 << bit != 0)
                .map(move |bit| base + bit * GRANULE_BYTES)
        })
    }
}
