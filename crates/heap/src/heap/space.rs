//! The shared heap's memory: which blocks are free, which lines of the used ones are.
//!
//! ```text
//! mapping   | block 0 | block 1 | ... | frontier        never touched        |
//! block     Free | Small (pairs and objects up to 16 KiB) | LargeHead LargeTail*
//! ```
//!
//! Free memory is handed out as runs: first what threads gave back, then the rest of the run being
//! cut, then the free lines of part-used blocks, then whole blocks. A run is cut to what was asked,
//! to the granule, because the paper's caches are counted in cells.

use crate::heap::cells::{CellWords, Run};
use crate::heap::marks::{BLOCK_BYTES, Company, LINE_BYTES, LINES, Marks};
use crate::heap::object::GRANULE_BYTES;
use crate::heap::poison::Poisoned;
use crate::heap::word::{self, WORD_BYTES};
use crate::heap::{Limits, OutOfMemory};
use kyocho_sys::mapping::Mapping;
use std::sync::Arc;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    Free,
    Small,
    LargeHead,
    LargeTail,
}

/// The least budget, as a part of the heap's limit.
const LEAST_BUDGET_FRACTION: usize = 64;

/// Runs that ended threads gave back, at most so many; more are left to the next collection.
const RETURNED_MAX: usize = 1024;

/// Tables that nobody marks in: whoever did has let go of them before he said that he was done.
pub(crate) fn own(marks: &mut Arc<Marks>) -> &mut Marks {
    Arc::get_mut(marks).expect("markers have let go of the tables")
}

#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) mapping: Mapping,
    pub(crate) states: Vec<BlockState>,
    /// Its own, unless it is being collected.
    pub(crate) marks: Arc<Marks>,
    /// Blocks that may be free: an entry counts only while its state says so.
    free: Vec<usize>,
    free_count: usize,
    /// Part-used blocks since the last collection, the next one to use last.
    recyclable: Vec<usize>,
    /// The part-used block being cut, and the line from where.
    cursor: Option<(usize, usize)>,
    /// The run being cut.
    open: Run,
    /// The run that objects too long for their cache are cut from.
    wide: Run,
    returned: Vec<Run>,
    used_blocks: usize,
    used_blocks_max: usize,
    /// How often memory was handed out.
    pub(crate) takings: u64,
    /// Bytes handed out since the last collection.
    pub(crate) taken_bytes: usize,
    /// Bytes that survived it.
    pub(crate) held_bytes: usize,
    /// When so much was handed out a collection is wanted.
    pub(crate) budget_bytes: usize,
    /// Blocks whose pages the host has lent us.
    resident: Vec<bool>,
    poisoned: Poisoned,
    /// What was opened since the cycle that goes on began.
    pub(crate) fresh: Option<Vec<Run>>,
}

impl Space {
    pub(crate) fn new(mapping: Mapping, limits: &Limits) -> Self {
        let mut space = Self {
            mapping,
            states: Vec::new(),
            marks: Arc::default(),
            free: Vec::new(),
            free_count: 0,
            recyclable: Vec::new(),
            cursor: None,
            open: Run::default(),
            wide: Run::default(),
            returned: Vec::new(),
            used_blocks: 0,
            used_blocks_max: limits.bytes_max / BLOCK_BYTES,
            takings: 0,
            taken_bytes: 0,
            held_bytes: 0,
            budget_bytes: 0,
            resident: Vec::new(),
            poisoned: Poisoned::default(),
            fresh: None,
        };
        space.set_budget(limits, 0);
        space
    }

    /// How much may be handed out before the next collection, when `held_bytes` survived the last:
    /// as the heap's growth says, but not so much that the limit is reached before. What is left
    /// near the limit is not halved for ever: below a part of the heap it is handed out whole, or a
    /// heap that fills up would collect for every few cells.
    pub(crate) fn set_budget(&mut self, limits: &Limits, held_bytes: usize) {
        self.held_bytes = held_bytes;
        let growth = held_bytes / 100 * limits.growth_percent.saturating_sub(100);
        self.order_budget(limits, growth.max(limits.first_collection_bytes));
    }

    /// So much may be handed out before the next collection, as far as the limit allows.
    pub(crate) fn order_budget(&mut self, limits: &Limits, bytes: usize) {
        let least = limits.bytes_max / LEAST_BUDGET_FRACTION;
        let headroom = (limits.bytes_max.saturating_sub(self.held_bytes) / 2).max(least);
        self.budget_bytes = bytes.min(headroom);
    }

    pub(crate) const fn base(&self) -> usize {
        self.mapping.base()
    }

    pub(crate) const fn used_bytes(&self) -> usize {
        self.used_blocks * BLOCK_BYTES
    }

    /// Bytes that the host has lent us: used, or free and kept for what is handed out next.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.resident.iter().filter(|&&resident| resident).count() * BLOCK_BYTES
    }

    const fn block_run(&self, block: usize, blocks: usize) -> Run {
        let start = self.base() + block * BLOCK_BYTES;
        Run { start, end: start + blocks * BLOCK_BYTES }
    }

    /// Fills a cache up to `want` cells more, as far as its runs and the limit allow. Where the runs
    /// it has then are holes between live objects, all shorter than `need` cells, one that is long
    /// enough comes on top: whoever asked is served by the answer to one request.
    ///
    /// # Errors
    /// When a run of `need` cells is not to be had.
    pub(crate) fn refill(
        &mut self,
        cells: &CellWords,
        need: usize,
        want: usize,
    ) -> Result<(), OutOfMemory> {
        // A place is kept for the run that is long enough.
        let kept = usize::from(need > 1);
        if cells.room() <= kept {
            // Whoever asks with a full cache found every run in it too short: they are lost until the
            // next collection, as `Cells::try_object` says of any such rest.
            cells.drain(|_| {});
        }
        let need_bytes = need * GRANULE_BYTES;
        let mut missing = want.max(need) * GRANULE_BYTES;
        while missing > 0 && cells.room() > kept {
            let Some(run) = self.cut(missing) else { break };
            missing -= run.bytes();
            cells.push(run);
        }
        if !cells.fits(need_bytes) {
            let start = self.cut_wide(need_bytes)?;
            cells.push(Run { start, end: start + need_bytes });
        }
        Ok(())
    }

    /// A run of at most `bytes`.
    fn cut(&mut self, bytes: usize) -> Option<Run> {
        if self.open.bytes() == 0 {
            self.open = self.next_run()?;
        }
        let end = self.open.end.min(self.open.start + bytes);
        let run = Run { start: self.open.start, end };
        self.open.start = end;
        self.taken_bytes += run.bytes();
        Some(run)
    }

    fn note_fresh(&mut self, run: Run) {
        if let Some(fresh) = &mut self.fresh {
            fresh.push(run);
        }
    }

    fn next_run(&mut self) -> Option<Run> {
        if let Some(run) = self.returned.pop() {
            self.note_fresh(run);
            return Some(run);
        }
        loop {
            let (block, line) = match self.cursor.take() {
                Some(at) => at,
                None => match self.recyclable.pop() {
                    Some(block) => {
                        self.poisoned.taken(block);
                        (block, 0)
                    }
                    None => return self.take_blocks(1, BlockState::Small),
                },
            };
            if let Some(lines) = self.marks.free_lines(block, line) {
                self.cursor = Some((block, lines.end));
                let start = self.base() + block * BLOCK_BYTES;
                let end = start + lines.end * LINE_BYTES;
                let run = Run { start: start + lines.start * LINE_BYTES, end };
                self.note_fresh(run);
                return Some(run);
            }
        }
    }

    /// Memory for an object longer than its cache's runs but not large.
    pub(crate) fn cut_wide(&mut self, bytes: usize) -> Result<usize, OutOfMemory> {
        assert!(bytes <= BLOCK_BYTES, "large objects have blocks of their own");
        if self.wide.bytes() < bytes {
            let fresh = self.take_blocks(1, BlockState::Small).ok_or(OutOfMemory)?;
            let rest = core::mem::replace(&mut self.wide, fresh);
            self.give_back(rest);
        }
        let at = self.wide.start;
        self.wide.start += bytes;
        self.taken_bytes += bytes;
        Ok(at)
    }

    /// Memory for a large object: whole blocks of its own.
    pub(crate) fn take_large(&mut self, bytes: usize) -> Result<usize, OutOfMemory> {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let run = self.take_blocks(blocks, BlockState::LargeHead).ok_or(OutOfMemory)?;
        self.taken_bytes += run.bytes();
        Ok(run.start)
    }

    /// A thread's unused memory comes back.
    pub(crate) fn give_back(&mut self, run: Run) {
        self.taken_bytes = self.taken_bytes.saturating_sub(run.bytes());
        if run.bytes() > 0 && self.returned.len() < RETURNED_MAX {
            self.returned.push(run);
        }
    }

    /// Adjacent blocks, the first in state `head`.
    fn take_blocks(&mut self, blocks: usize, head: BlockState) -> Option<Run> {
        if self.used_blocks_max - self.used_blocks < blocks {
            return None;
        }
        let first = self.find_free(blocks).or_else(|| self.grow(blocks))?;
        for block in first..first + blocks {
            if self.states[block] == BlockState::Free {
                self.free_count -= 1;
            }
            self.resident[block] = true;
            self.poisoned.taken(block);
            self.states[block] = if block == first { head } else { BlockState::LargeTail };
        }
        self.used_blocks += blocks;
        let run = self.block_run(first, blocks);
        self.note_fresh(run);
        Some(run)
    }

    fn find_free(&mut self, blocks: usize) -> Option<usize> {
        if self.free_count < blocks {
            return None;
        }
        if blocks == 1 {
            let states = &self.states;
            let found = self.free.iter().rposition(|&block| states[block] == BlockState::Free)?;
            let block = self.free[found];
            self.free.truncate(found);
            return Some(block);
        }
        let mut length = 0;
        for (block, &state) in self.states.iter().enumerate() {
            length = if state == BlockState::Free { length + 1 } else { 0 };
            if length == blocks {
                return Some(block + 1 - blocks);
            }
        }
        None
    }

    /// Blocks beyond the frontier. They enter as `Small` and uncounted; the caller sets the state.
    fn grow(&mut self, blocks: usize) -> Option<usize> {
        let first = self.states.len();
        let frontier = first + blocks;
        if frontier * BLOCK_BYTES > self.mapping.bytes() {
            return None;
        }
        self.states.resize(frontier, BlockState::Small);
        self.resident.resize(frontier, false);
        own(&mut self.marks).extend_to(frontier);
        Some(first)
    }
}

/// For the collector, while the world is stopped.
impl Space {
    /// Forgets every run that was not in a thread's hands, but free blocks.
    pub(crate) fn forget_lines(&mut self) {
        self.open = Run::default();
        self.wide = Run::default();
        self.cursor = None;
        self.returned.clear();
        self.recyclable.clear();
    }

    /// Forgets every run that was not in a thread's hands.
    pub(crate) fn forget_runs(&mut self) {
        self.forget_lines();
        self.free.clear();
    }

    /// A cycle begins: no run that is being cut is cut further, what is opened from now on is noted.
    pub(crate) fn begin_cycle(&mut self) {
        self.open = Run::default();
        self.wide = Run::default();
        self.returned.clear();
        self.fresh = Some(Vec::new());
    }

    /// A cycle ends: its marks are the heap's, and cover all that was opened meanwhile.
    pub(crate) fn end_cycle(&mut self, marks: &mut Arc<Marks>) {
        own(marks).extend_to(self.states.len());
        for run in self.fresh.take().unwrap_or_default() {
            let offset = run.start - self.base();
            if self.states[offset / BLOCK_BYTES] == BlockState::LargeHead {
                marks.set(offset, Company::Alone);
            } else {
                marks.cover_all(offset, run.bytes(), Company::Alone);
            }
        }
        core::mem::swap(&mut self.marks, marks);
    }

    /// After marking: sorts the blocks into used, part-used and free.
    pub(crate) fn sweep(&mut self) -> Swept {
        let mut swept = Swept::default();
        let mut block = self.states.len();
        while block > 0 {
            block -= 1;
            match self.states[block] {
                BlockState::Free => self.free.push(block),
                BlockState::LargeTail => {}
                BlockState::LargeHead => self.sweep_large(block, &mut swept),
                BlockState::Small => self.sweep_small(block, &mut swept),
            }
        }
        swept
    }

    fn sweep_small(&mut self, block: usize, swept: &mut Swept) {
        if self.marks.block_is_empty(block) {
            self.release(block);
            swept.freed_blocks += 1;
            return;
        }
        let free_lines = self.marks.free_line_count(block);
        swept.live_bytes += BLOCK_BYTES - free_lines * LINE_BYTES;
        if free_lines > 0 {
            self.recyclable.push(block);
        }
    }

    fn sweep_large(&mut self, head: usize, swept: &mut Swept) {
        let tail = self.states[head + 1..].iter();
        let blocks = 1 + tail.take_while(|&&state| state == BlockState::LargeTail).count();
        if self.marks.get(head * BLOCK_BYTES) {
            swept.live_bytes += blocks * BLOCK_BYTES;
            return;
        }
        for block in (head..head + blocks).rev() {
            self.release(block);
        }
        swept.freed_blocks += blocks;
    }

    fn release(&mut self, block: usize) {
        self.states[block] = BlockState::Free;
        self.marks.clear_block(block);
        self.free.push(block);
        self.free_count += 1;
        self.used_blocks -= 1;
    }
}

/// What becomes of free memory.
impl Space {
    /// Gives free blocks beyond so many bytes back to the host. `free` is in ascending order
    /// from its end, so the highest addresses go.
    pub(crate) fn discard_surplus(&mut self, keep_bytes: usize) {
        let keep = keep_bytes / BLOCK_BYTES + 1;
        let surplus = self.free.len().saturating_sub(keep);
        let mut i = 0;
        while i < surplus {
            let last = self.free[i];
            let mut first = last;
            i += 1;
            while i < surplus && self.free[i] + 1 == first {
                first = self.free[i];
                i += 1;
            }
            self.discard(first, last + 1);
        }
    }

    fn discard(&mut self, first: usize, end: usize) {
        if self.resident[first..end].iter().any(|&resident| resident)
            && self.mapping.discard(first * BLOCK_BYTES, (end - first) * BLOCK_BYTES).is_ok()
        {
            self.resident[first..end].fill(false);
        }
    }

    /// Overwrites free lines and blocks with words that are no values.
    pub(crate) fn poison_free(&mut self) {
        let base = self.base();
        let poison_line = |block: usize, line: usize| {
            poison(base + block * BLOCK_BYTES + line * LINE_BYTES);
        };
        for &block in &self.free {
            if !self.resident[block] || self.poisoned.is_whole(block) {
                continue;
            }
            self.poisoned.renew(block, core::iter::once(0..LINES), |line| poison_line(block, line));
        }
        for &block in &self.recyclable {
            let mut line = 0;
            let free = core::iter::from_fn(|| {
                let lines = self.marks.free_lines(block, line)?;
                line = lines.end;
                Some(lines)
            });
            self.poisoned.renew(block, free, |line| poison_line(block, line));
        }
    }
}

/// A header of a kind there is not.
const POISON: u64 = 0xdead_dead_dead_deff;

fn poison(line: usize) {
    for at in (line..line + LINE_BYTES).step_by(WORD_BYTES) {
        word::initialise(at, POISON);
    }
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    pub(crate) live_bytes: usize,
    pub(crate) freed_blocks: usize,
}
