//! The clustered table whose buckets are nodes: eight pages, their tag and a link in one cache
//! line.
//!
//! ```text
//!  0      8     12     14                  30         32                     64
//!  | tag  | next | mask | 8 x upper 16 bits |          | 8 x lower 32 bits |
//!                         of an entry's 48 without its mask
//! ```
//!
//! Most look-ups end in the first line they read. In a dense space all do, since neighbours never
//! collide (`buckets`). The mask belongs to the compact entry of the block, of which a line holds
//! one half.

use core::ops::RangeInclusive;

use crate::address::{BLOCK_PAGES, BlockNumber, PageNumber, Translation};
use crate::arena::Arena;
use crate::block::Block;
use crate::buckets::bucket_of;
use crate::lines::{LINE_BYTES, Lines};
use crate::pte::Pte;
use crate::table::{MapError, PageTable};

const BUCKETS: u8 = 0;
const OVERFLOW: u8 = 1;
const PAGES: usize = 8;
const LINES_A_BLOCK: usize = BLOCK_PAGES / PAGES;
const BUCKETS_MIN: usize = 4;
/// The tag of an empty bucket. Page numbers are far smaller.
const UNUSED: u64 = u64::MAX;
const END: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    /// Page number divided by 8.
    tag: u64,
    /// Index of the next line in the overflow.
    next: u32,
    mask: u16,
    high: [u16; PAGES],
    low: [u32; PAGES],
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES, "a node is one cache line");

impl Line {
    const UNUSED: Self =
        Self { tag: UNUSED, next: END, mask: 0, high: [0; PAGES], low: [0; PAGES] };

    fn new(tag: u64, entries: &[Pte]) -> Self {
        let mut line = Self { tag, ..Self::UNUSED };
        line.set(entries);
        line
    }

    fn set(&mut self, entries: &[Pte]) {
        self.mask = entries.iter().fold(0, |mask, entry| mask | entry.mask());
        self.high = core::array::from_fn(|index| entries[index].to_halves().1);
        self.low = core::array::from_fn(|index| entries[index].to_halves().0);
    }

    /// The translation of a page with an entry of its own.
    #[inline(always)]
    fn page(&self, index: usize) -> Option<Translation> {
        Pte::from_halves(self.low[index], self.high[index], 0).of_page()
    }

    #[inline]
    fn entry(&self, index: usize) -> Pte {
        Pte::from_halves(self.low[index], self.high[index], self.mask)
    }
}

/// Clusters of eight pages, each in one cache line. The first line of a bucket is the bucket
/// itself.
///
/// Buckets double before there are more lines than buckets. All memory is freed when the last
/// mapping is removed.
#[derive(Debug, Clone)]
pub struct ClusteredLine {
    buckets: Vec<Line>,
    overflow: Arena<Line>,
    lines: usize,
}

impl Default for ClusteredLine {
    fn default() -> Self {
        Self::new()
    }
}

impl ClusteredLine {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        let buckets = vec![Line::UNUSED; BUCKETS_MIN];
        Self { buckets, overflow: Arena::new(END - 1), lines: 0 }
    }

    fn find(&self, tag: u64) -> Option<&Line> {
        let mut line = &self.buckets[bucket_of(tag, self.buckets.len())];
        while line.tag != tag {
            if line.next == END {
                return None;
            }
            line = self.overflow.get(line.next);
        }
        Some(line)
    }

    fn find_mut(&mut self, tag: u64) -> Option<&mut Line> {
        let bucket = bucket_of(tag, self.buckets.len());
        if self.buckets[bucket].tag == tag {
            return Some(&mut self.buckets[bucket]);
        }
        let mut at = self.buckets[bucket].next;
        while at != END && self.overflow.get(at).tag != tag {
            at = self.overflow.get(at).next;
        }
        (at != END).then(|| self.overflow.get_mut(at))
    }

    /// Inserts a line into its bucket, or into the bucket's chain.
    fn insert(&mut self, line: Line) {
        let at = bucket_of(line.tag, self.buckets.len());
        let bucket = &mut self.buckets[at];
        if bucket.tag == UNUSED {
            *bucket = Line { next: END, ..line };
        } else {
            bucket.next = self.overflow.insert(Line { next: bucket.next, ..line });
        }
        self.lines += 1;
    }

    fn remove(&mut self, tag: u64) {
        let bucket = bucket_of(tag, self.buckets.len());
        let first = self.buckets[bucket];
        if first.tag == tag {
            self.buckets[bucket] = Line::UNUSED;
            if first.next != END {
                // A bucket is empty only if its chain is.
                self.buckets[bucket] = *self.overflow.get(first.next);
                self.overflow.remove(first.next);
            }
        } else {
            let (mut before, mut at) = (None, first.next);
            while self.overflow.get(at).tag != tag {
                before = Some(at);
                at = self.overflow.get(at).next;
            }
            let next = self.overflow.get(at).next;
            match before {
                None => self.buckets[bucket].next = next,
                Some(before) => self.overflow.get_mut(before).next = next,
            }
            self.overflow.remove(at);
        }
        self.lines -= 1;
        if self.lines == 0 {
            *self = Self::new();
        }
    }

    fn grow(&mut self) {
        if self.lines < self.buckets.len() {
            return;
        }
        let buckets = vec![Line::UNUSED; self.buckets.len() * 2];
        let old = core::mem::replace(self, Self { buckets, ..Self::new() });
        old.for_each_line(|line| self.insert(*line));
    }

    fn for_each_line(&self, mut visit: impl FnMut(&Line)) {
        for bucket in self.buckets.iter().filter(|bucket| bucket.tag != UNUSED) {
            let mut line = bucket;
            visit(line);
            while line.next != END {
                line = self.overflow.get(line.next);
                visit(line);
            }
        }
    }

    /// Looks up any page other than one with its own entry in the bucket.
    #[cold]
    #[inline(never)]
    fn lookup_further(&self, page: PageNumber) -> Option<Translation> {
        self.walk(page, &mut ()).translation_at(page.index_in_block())
    }

    /// Continues a walk after the bucket.
    #[inline(never)]
    fn walk_overflow<L: Lines>(&self, mut next: u32, page: PageNumber, lines: &mut L) -> Pte {
        while next != END {
            lines.touch(OVERFLOW, next as usize * LINE_BYTES);
            let line = self.overflow.get(next);
            if line.tag == page.get() / PAGES as u64 {
                return line.entry(page.get() as usize % PAGES);
            }
            next = line.next;
        }
        Pte::EMPTY
    }

    fn write_line(&mut self, tag: u64, entries: &[Pte]) {
        let empty = entries.iter().all(|entry| entry.is_empty());
        match self.find_mut(tag) {
            Some(_) if empty => self.remove(tag),
            Some(line) => line.set(entries),
            None if empty => {}
            None => {
                self.grow();
                self.insert(Line::new(tag, entries));
            }
        }
    }
}

impl PageTable for ClusteredLine {
    /// The common case is a page with its own entry in the first line. It takes few instructions,
    /// so that a processor can overlap the cache misses of many look-ups.
    #[inline(always)]
    fn lookup(&self, page: PageNumber) -> Option<Translation> {
        let tag = page.get() / PAGES as u64;
        let line = &self.buckets[bucket_of(tag, self.buckets.len())];
        if line.tag == tag
            && let found @ Some(_) = line.page(page.get() as usize % PAGES)
        {
            return found;
        }
        self.lookup_further(page)
    }

    fn reach(&self) -> RangeInclusive<PageNumber> {
        PageNumber::FIRST..=PageNumber::LAST
    }

    #[inline(always)]
    fn walk<L: Lines>(&self, page: PageNumber, lines: &mut L) -> Pte {
        let tag = page.get() / PAGES as u64;
        let bucket = bucket_of(tag, self.buckets.len());
        lines.touch(BUCKETS, bucket * LINE_BYTES);
        let line = &self.buckets[bucket];
        if line.tag == tag {
            return line.entry(page.get() as usize % PAGES);
        }
        self.walk_overflow(line.next, page, lines)
    }

    fn read(&self, block: BlockNumber) -> Block {
        let mut contents = Block::EMPTY;
        let first_tag = block.get() * LINES_A_BLOCK as u64;
        for (half, entries) in contents.entries_mut().chunks_exact_mut(PAGES).enumerate() {
            let Some(line) = self.find(first_tag + half as u64) else { continue };
            for (index, entry) in entries.iter_mut().enumerate() {
                *entry = line.entry(index);
            }
        }
        contents
    }

    fn write(&mut self, block: BlockNumber, contents: &Block) -> Result<(), MapError> {
        if !contents.is_empty() {
            self.overflow.has_room_for(LINES_A_BLOCK).map_err(|_| MapError::Full)?;
        }
        let first_tag = block.get() * LINES_A_BLOCK as u64;
        for (half, entries) in contents.entries().chunks_exact(PAGES).enumerate() {
            self.write_line(first_tag + half as u64, entries);
        }
        Ok(())
    }

    fn blocks(&self, range: RangeInclusive<BlockNumber>) -> Vec<BlockNumber> {
        let (first, last) = (range.start().get(), range.end().get());
        if last.saturating_sub(first) < self.lines as u64 {
            let numbers = (first..=last).filter_map(BlockNumber::new);
            return numbers.filter(|&block| !self.read(block).is_empty()).collect();
        }
        let mut found = Vec::new();
        self.for_each_line(|line| found.extend(BlockNumber::new(line.tag / LINES_A_BLOCK as u64)));
        found.retain(|block| range.contains(block));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Line>() + self.overflow.bytes()
    }
}
