//! Side tables of the mark-region heap: one bit for each granule, one bit for each line.
//!
//! A line of 128 bytes is eight granules: one byte of the start bitmap. A line is free if that byte
//! is zero and no object that began before it extends into it (`covered`). Pairs, the most frequent
//! objects, need only the start bitmap.
//!
//! Several markers may set bits at the same time, each with one atomic operation
//! (`Company::Beside`). A marker that is alone uses a load and a store. The bits order no other
//! memory accesses.
//!
//! Pure: addresses are offsets from the heap's base, and nothing here reads Lisp memory.

use crate::heap::object::GRANULE_BYTES;
use core::ops::Range;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 32 * 1024;
/// Bytes of a line.
pub(crate) const LINE_BYTES: usize = 128;
/// Lines in a block.
pub(crate) const LINES: usize = BLOCK_BYTES / LINE_BYTES;

const STARTS_WORDS: usize = BLOCK_BYTES / GRANULE_BYTES / 64;
const COVERED_WORDS: usize = LINES / 64;

/// For each byte of the word: whether any of its bits is set.
fn bytes_set(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The high bit of each byte becomes 1 if the byte is not zero; the product gathers these bits
    // in the highest byte.
    let high = (((word & LOW) + LOW) | word) & !LOW;
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Whether other markers run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    Beside,
}

/// The marks of all blocks that were ever used.
#[derive(Debug, Default)]
pub struct Marks {
    starts: Vec<AtomicU64>,
    covered: Vec<AtomicU64>,
    /// Blocks that the tables reach; the vectors may be longer.
    blocks: usize,
}

/// Sets bits. Returns whether all of them were clear; writes nothing if they are set.
#[inline(always)]
fn set_bits(word: &AtomicU64, bits: u64, company: Company) -> bool {
    let before = word.load(Ordering::Relaxed);
    if before & bits == bits {
        return false;
    }
    let before = match company {
        Company::Alone => {
            word.store(before | bits, Ordering::Relaxed);
            before
        }
        Company::Beside => word.fetch_or(bits, Ordering::Relaxed),
    };
    before & bits == 0
}

fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

impl Marks {
    /// Extends the tables to at least `blocks` blocks.
    pub(crate) fn extend_to(&mut self, blocks: usize) {
        self.blocks = self.blocks.max(blocks);
        self.reserve(blocks);
    }

    /// Extending the tables to `blocks` blocks later takes no time.
    pub(crate) fn reserve(&mut self, blocks: usize) {
        if blocks * STARTS_WORDS > self.starts.len() {
            self.starts.resize_with(blocks * STARTS_WORDS, AtomicU64::default);
            self.covered.resize_with(blocks * COVERED_WORDS, AtomicU64::default);
        }
    }

    /// How many bytes of the heap the tables cover.
    pub(crate) const fn reach_bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// Clears all marks.
    pub(crate) fn clear(&mut self) {
        self.starts.iter_mut().for_each(|word| *word.get_mut() = 0);
        self.covered.iter_mut().for_each(|word| *word.get_mut() = 0);
    }

    /// Clears the marks of one block.
    pub(crate) fn clear_block(&self, block: usize) {
        let starts = &self.starts[block * STARTS_WORDS..][..STARTS_WORDS];
        let covered = &self.covered[block * COVERED_WORDS..][..COVERED_WORDS];
        starts.iter().chain(covered).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Marks the object that starts at `offset`. Returns `true` if it was not marked before; of
    /// several concurrent markers, exactly one gets `true`.
    #[inline(always)]
    pub(crate) fn set(&self, offset: usize, company: Company) -> bool {
        let granule = offset / GRANULE_BYTES;
        set_bits(&self.starts[granule / 64], 1 << (granule % 64), company)
    }

    /// Whether the object that starts at `offset` is marked.
    pub(crate) fn get(&self, offset: usize) -> bool {
        let granule = offset / GRANULE_BYTES;
        load(&self.starts[granule / 64]) & 1 << (granule % 64) != 0
    }

    /// Covers the lines after the first of an object of `bytes` at `offset`, as far as the tables
    /// reach. An object made during a cycle may begin in a block that existed when the cycle began,
    /// and end in a newer block. A newer block is covered as a whole when the cycle ends.
    pub(crate) fn cover(&self, offset: usize, bytes: usize, company: Company) {
        let first = offset / LINE_BYTES + 1;
        let end = ((offset + bytes - 1) / LINE_BYTES + 1).min(self.blocks * LINES);
        self.cover_lines(first..end, company);
    }

    /// Covers these lines, up to 64 of them by one step.
    fn cover_lines(&self, lines: Range<usize>, company: Company) {
        let mut line = lines.start;
        while line < lines.end {
            let count = (64 - line % 64).min(lines.end - line);
            let bits = u64::MAX >> (64 - count) << (line % 64);
            set_bits(&self.covered[line / 64], bits, company);
            line += count;
        }
    }

    /// Covers every line that these bytes overlap.
    pub(crate) fn cover_all(&self, offset: usize, bytes: usize, company: Company) {
        if bytes > 0 {
            let end = (offset + bytes).div_ceil(LINE_BYTES).min(self.blocks * LINES);
            self.cover_lines(offset / LINE_BYTES..end, company);
        }
    }

    /// Whether the block contains no part of a marked object. An object cut from a run of several
    /// blocks may extend into it from the block before.
    pub(crate) fn block_is_empty(&self, block: usize) -> bool {
        let starts = &self.starts[block * STARTS_WORDS..][..STARTS_WORDS];
        let covered = &self.covered[block * COVERED_WORDS..][..COVERED_WORDS];
        starts.iter().chain(covered).all(|word| load(word) == 0)
    }

    fn line_is_free(&self, block: usize, line: usize) -> bool {
        let starts = load(&self.starts[block * STARTS_WORDS + line / 8]) >> (8 * (line % 8)) & 0xff;
        let line_index = block * LINES + line;
        starts == 0 && load(&self.covered[line_index / 64]) & 1 << (line_index % 64) == 0
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
                .fold(0, |lines, (i, starts)| lines | bytes_set(load(starts)) << (8 * i));
            (lines | load(&covered[word])).count_ones() as usize
        };
        LINES - (0..COVERED_WORDS).map(used).sum::<usize>()
    }

    /// Offsets of the marked objects of a block.
    pub(crate) fn marked_in(&self, block: usize) -> impl Iterator<Item = usize> {
        let words = self.starts[block * STARTS_WORDS..][..STARTS_WORDS].iter();
        words.enumerate().flat_map(move |(i, word)| {
            let word = load(word);
            let base = block * BLOCK_BYTES + i * 64 * GRANULE_BYTES;
            (0..64)
                .filter(move |bit| word & 1 << bit != 0)
                .map(move |bit| base + bit * GRANULE_BYTES)
        })
    }
}
