//! The sweep: sorts the blocks into used, part-used and free after a marking, in slices.
//!
//! ```text
//!  begin_sweep ──► sweep_some: the runs opened during the cycle are covered with marks
//!                  sweep_some: blocks, from the highest to the lowest ──► used │ part-used │ free
//!                  discard_some: pages of surplus free blocks are returned to the host
//! ```

use super::{BlockState, Space};
use crate::heap::cells::Run;
use crate::heap::marks::{BLOCK_BYTES, Company, LINE_BYTES};
use crate::heap::word::{self, WORD_BYTES};

/// Runs covered, and blocks swept, in one slice of a sweep: about 20 µs.
const COVER_RUNS: usize = 1024;
const SWEEP_BLOCKS: usize = 256;

/// Blocks whose pages are returned to the host in one slice: about 100 µs.
const DISCARD_BLOCKS: usize = 64;

/// The progress of the sweep after a marking. Blocks are swept from the highest to the lowest.
///
/// **Invariant:** memory that is neither covered nor swept yet is not handed out.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The runs opened during the cycle that are still to be covered. This comes before any block
    /// is swept.
    fresh: Vec<Run>,
    /// Blocks below this one are still to be swept.
    pub(super) below: usize,
    swept: Swept,
}

/// The results of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    pub(crate) live_bytes: usize,
    pub(crate) freed_blocks: usize,
}

impl Space {
    /// Begins a sweep. From now on only swept memory is handed out.
    pub(crate) fn begin_sweep(&mut self, fresh: Vec<Run>) {
        self.forget_lines();
        self.free.clear();
        self.sweep = Sweep { fresh, below: self.states.len(), swept: Swept::default() };
    }

    /// The results of a sweep that has ended.
    pub(crate) fn take_swept(&mut self) -> Swept {
        core::mem::take(&mut self.sweep.swept)
    }

    /// Whether nothing is left to be swept.
    pub(crate) const fn is_swept(&self) -> bool {
        self.sweep.below == 0
    }

    /// Continues sorting the blocks into used, part-used and free; `false` if all are sorted.
    pub(crate) fn sweep_some(&mut self) -> bool {
        if self.is_swept() {
            return false;
        }
        if !self.sweep.fresh.is_empty() {
            let rest = self.sweep.fresh.len().saturating_sub(COVER_RUNS);
            let runs = self.sweep.fresh.split_off(rest);
            runs.into_iter().for_each(|run| self.cover_fresh(run));
            return true;
        }
        for _ in 0..SWEEP_BLOCKS.min(self.sweep.below) {
            self.sweep.below -= 1;
            let block = self.sweep.below;
            match self.states[block] {
                BlockState::Free => self.free.push(block),
                BlockState::LargeTail => {}
                BlockState::LargeHead => self.sweep_large(block),
                BlockState::Small => self.sweep_small(block),
            }
        }
        true
    }

    fn cover_fresh(&self, run: Run) {
        let offset = run.start - self.base();
        if self.states[offset / BLOCK_BYTES] == BlockState::LargeHead {
            self.marks.set(offset, Company::Alone);
        } else {
            self.marks.cover_all(offset, run.bytes(), Company::Alone);
        }
    }

    fn sweep_small(&mut self, block: usize) {
        if self.marks.block_is_empty(block) {
            self.release(block);
            self.sweep.swept.freed_blocks += 1;
            return;
        }
        let free_lines = self.marks.free_line_count(block);
        self.sweep.swept.live_bytes += BLOCK_BYTES - free_lines * LINE_BYTES;
        if free_lines > 0 {
            self.recyclable.push(block);
            if self.poisons {
                self.poison_lines(block);
            }
        }
    }

    fn sweep_large(&mut self, head: usize) {
        let tail = self.states[head + 1..].iter();
        let blocks = 1 + tail.take_while(|&&state| state == BlockState::LargeTail).count();
        if self.marks.get(head * BLOCK_BYTES) {
            self.sweep.swept.live_bytes += blocks * BLOCK_BYTES;
            return;
        }
        for block in (head..head + blocks).rev() {
            self.release(block);
        }
        self.sweep.swept.freed_blocks += blocks;
    }

    fn release(&mut self, block: usize) {
        self.states[block] = BlockState::Free;
        self.marks.clear_block(block);
        if self.poisons && self.resident[block] {
            self.poison_lines(block);
        }
        self.free.push(block);
        self.free_count += 1;
        self.used_blocks -= 1;
    }
}

/// Return of free memory.
impl Space {
    /// Returns some of the free blocks beyond `keep_bytes` to the host. `free` is in ascending
    /// order from its end, so the highest addresses are returned. `from` is the caller's position,
    /// beginning with 0. Returns `false` at the end.
    pub(crate) fn discard_some(&mut self, keep_bytes: usize, from: &mut usize) -> bool {
        let keep = keep_bytes / BLOCK_BYTES + 1;
        let surplus = self.free.len().saturating_sub(keep);
        let mut i = *from;
        let end = surplus.min(i + DISCARD_BLOCKS);
        while i < end {
            let last = self.free[i];
            let mut first = last;
            i += 1;
            while i < end && self.free[i] + 1 == first {
                first = self.free[i];
                i += 1;
            }
            self.discard(first, last + 1);
        }
        *from = i;
        i < surplus
    }

    fn discard(&mut self, first: usize, end: usize) {
        // A large object may have been made in blocks whose entries still exist.
        let is_free = self.states[first..end].iter().all(|&state| state == BlockState::Free);
        if is_free
            && self.resident[first..end].iter().any(|&resident| resident)
            && self.mapping.discard(first * BLOCK_BYTES, (end - first) * BLOCK_BYTES).is_ok()
        {
            self.resident[first..end].fill(false);
        }
    }

    /// Overwrites free lines with words that are not values.
    fn poison_lines(&mut self, block: usize) {
        let start = self.base() + block * BLOCK_BYTES;
        let mut line = 0;
        let free = core::iter::from_fn(|| {
            let lines = self.marks.free_lines(block, line)?;
            line = lines.end;
            Some(lines)
        });
        self.poisoned.renew(block, free, |line| poison(start + line * LINE_BYTES));
    }
}

/// A header with an invalid kind.
const POISON: u64 = 0xdead_dead_dead_deff;

fn poison(line: usize) {
    for at in (line..line + LINE_BYTES).step_by(WORD_BYTES) {
        word::initialise(at, POISON);
    }
}
