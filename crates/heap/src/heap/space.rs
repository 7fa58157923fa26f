//! The memory of the shared heap: which blocks are free, and which lines of used blocks are.
//!
//! ```text
//! mapping   | block 0 | block 1 | ... | frontier        never touched        |
//! block     Free | Small (pairs and objects up to 16 KiB) | LargeHead LargeTail*
//! ```
//!
//! Free memory is handed out as runs. First comes the rest of the run being cut, then runs that
//! threads have returned, then free lines of part-used blocks, then whole blocks. A run is cut to
//! exactly the requested size, in granules, because the paper's caches are counted in cells.

mod sweep;

pub(crate) use sweep::Swept;

use crate::heap::cells::{CellWords, Run};
use crate::heap::marks::{BLOCK_BYTES, LINE_BYTES, Marks};
use crate::heap::object::GRANULE_BYTES;
use crate::heap::pace::Plan;
use crate::heap::poison::Poisoned;
use crate::heap::{Limits, OutOfMemory};
use kyocho_sys::mapping::Mapping;
use std::sync::Arc;
use sweep::Sweep;

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    Free,
    Small,
    LargeHead,
    LargeTail,
}

/// Divisor: the least budget as a part of the heap's limit.
const LEAST_BUDGET_FRACTION: usize = 64;

/// Maximum number of returned runs that are kept. Further ones are left to the next collection.
const RETURNED_MAX: usize = 1024;

/// The tables, when no marker uses them. Markers release the tables before they report that they
/// are done.
pub(crate) fn own(marks: &mut Arc<Marks>) -> &mut Marks {
    Arc::get_mut(marks).expect("markers have released the tables")
}

#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) mapping: Mapping,
    pub(crate) states: Vec<BlockState>,
    /// The marks of the last collection, unless one is in progress.
    pub(crate) marks: Arc<Marks>,
    /// Blocks that may be free. An entry is valid only if the block's state says so.
    free: Vec<usize>,
    free_count: usize,
    /// Part-used blocks since the last collection; the next one to use is last.
    recyclable: Vec<usize>,
    /// The part-used block being cut, and its next line.
    cursor: Option<(usize, usize)>,
    /// The run being cut.
    open: Run,
    /// The run for objects that are too long for their cache.
    wide: Run,
    returned: Vec<Run>,
    used_blocks: usize,
    used_blocks_max: usize,
    /// How often memory was handed out.
    pub(crate) takings: u64,
    /// Bytes handed out since the last collection.
    pub(crate) taken_bytes: usize,
    /// Bytes that survived the last collection.
    pub(crate) held_bytes: usize,
    /// A collection is requested when this many bytes have been handed out.
    pub(crate) budget_bytes: usize,
    /// Whether each block's pages are resident.
    resident: Vec<bool>,
    poisoned: Poisoned,
    /// The plan of the cycle in progress, and `taken_bytes` when it began.
    pub(crate) plan: Option<(Plan, usize)>,
    /// Bytes that the cycle has marked.
    pub(crate) marked_bytes: usize,
    /// The part of `taken_bytes` that `held_bytes` includes: memory taken during the last cycle
    /// that survived it.
    pub(crate) covered_bytes: usize,
    /// The runs opened since the cycle in progress began.
    pub(crate) fresh: Option<Vec<Run>>,
    /// What is still to be swept after the last marking.
    sweep: Sweep,
    /// For tests: whether free memory is overwritten when it is swept.
    poisons: bool,
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
            plan: None,
            marked_bytes: 0,
            covered_bytes: 0,
            fresh: None,
            sweep: Sweep::default(),
            poisons: limits.torture.is_some(),
        };
        space.set_budget(limits, 0);
        space
    }

    /// Sets how much may be handed out before the next collection, if `held_bytes` survived the
    /// last one. This budget is the growth that `limits` allow, but at most half of what is left of
    /// the limit. Near the limit this half counts as at least a fraction of the limit
    /// ([`LEAST_BUDGET_FRACTION`]). Otherwise a heap that fills up would collect for every few
    /// cells.
    pub(crate) fn set_budget(&mut self, limits: &Limits, held_bytes: usize) {
        self.held_bytes = held_bytes;
        let growth = held_bytes / 100 * limits.growth_percent.saturating_sub(100);
        self.order_budget(limits, growth.max(limits.first_collection_bytes));
    }

    /// Sets how much may be handed out before the next collection, as far as the limit allows.
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

    /// Resident bytes: used, or free and kept for later.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.resident.iter().filter(|&&resident| resident).count() * BLOCK_BYTES
    }

    const fn block_run(&self, block: usize, blocks: usize) -> Run {
        let start = self.base() + block * BLOCK_BYTES;
        Run { start, end: start + blocks * BLOCK_BYTES }
    }

    /// Adds up to `want` cells to a cache, as far as its runs and the limit allow. If all runs that
    /// it then has are holes shorter than `need` cells, a run that is long enough is added. So one
    /// request always suffices.
    ///
    /// # Errors
    /// No run of `need` cells is available.
    pub(crate) fn refill(
        &mut self,
        cells: &CellWords,
        need: usize,
        want: usize,
    ) -> Result<(), OutOfMemory> {
        // The cache keeps room for one more run: the one that is long enough.
        let kept = usize::from(need > 1);
        if cells.room() <= kept {
            // A thread that requests cells with a full cache found every run too short. These runs
            // are lost until the next collection; see `Cells::try_object`.
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
        while let Some((block, line)) = self.next_part_used() {
            if let Some(lines) = self.marks.free_lines(block, line) {
                self.cursor = Some((block, lines.end));
                let start = self.base() + block * BLOCK_BYTES;
                let end = start + lines.end * LINE_BYTES;
                let run = Run { start: start + lines.start * LINE_BYTES, end };
                self.note_fresh(run);
                return Some(run);
            }
        }
        let run = self.take_blocks(1, BlockState::Small);
        if run.is_none() && !self.recyclable.is_empty() {
            // The search for a free block has swept, and found part-used ones.
            return self.next_run();
        }
        run
    }

    /// The next part-used block, and the line from where it may be cut. Sweeps if nothing is known
    /// to be free.
    fn next_part_used(&mut self) -> Option<(usize, usize)> {
        if let Some(at) = self.cursor.take() {
            return Some(at);
        }
        while self.recyclable.is_empty() && self.free.is_empty() && self.sweep_some() {}
        let block = self.recyclable.pop()?;
        self.poisoned.taken(block);
        Some((block, 0))
    }

    /// Memory for an object that is longer than its cache's runs but not large.
    pub(crate) fn cut_wide(&mut self, bytes: usize) -> Result<usize, OutOfMemory> {
        assert!(bytes <= BLOCK_BYTES, "large objects have blocks of their own");
        if self.wide.bytes() < bytes {
            let fresh = self.take_blocks(1, BlockState::Small).ok_or(OutOfMemory)?;
            let rest = core::mem::replace(&mut self.wide, fresh);
            self.keep(rest);
        }
        let at = self.wide.start;
        self.wide.start += bytes;
        self.taken_bytes += bytes;
        Ok(at)
    }

    /// Memory for a large object: whole blocks.
    pub(crate) fn take_large(&mut self, bytes: usize) -> Result<usize, OutOfMemory> {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let run = self.take_blocks(blocks, BlockState::LargeHead).ok_or(OutOfMemory)?;
        self.taken_bytes += run.bytes();
        Ok(run.start)
    }

    /// Takes back unused memory of a thread.
    pub(crate) fn give_back(&mut self, run: Run) {
        self.taken_bytes = self.taken_bytes.saturating_sub(run.bytes());
        self.keep(run);
    }

    /// Keeps unused memory for later cuts. Beyond a bound the next collection finds it.
    fn keep(&mut self, run: Run) {
        if run.bytes() > 0 && self.returned.len() < RETURNED_MAX {
            self.returned.push(run);
        }
    }

    /// Adjacent blocks, the first one in state `head`.
    fn take_blocks(&mut self, blocks: usize, head: BlockState) -> Option<Run> {
        let first = loop {
            let has_room = self.used_blocks_max - self.used_blocks >= blocks;
            if let Some(first) = has_room.then(|| self.find_free(blocks)).flatten() {
                break first;
            }
            // Blocks that are not swept count as used, and are not found.
            if self.sweep_some() {
                continue;
            }
            break has_room.then(|| self.grow(blocks)).flatten()?;
        };
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
        // Blocks that are not swept yet are left alone: the sweep would free a new object there,
        // which has no mark.
        for (block, &state) in self.states.iter().enumerate().skip(self.sweep.below) {
            length = if state == BlockState::Free { length + 1 } else { 0 };
            if length == blocks {
                return Some(block + 1 - blocks);
            }
        }
        None
    }

    /// Blocks beyond the frontier. They get the state `Small` and are not counted; the caller sets
    /// the state.
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
    /// Forgets every run that is not in a thread's cache, except free blocks. Blocks that are not
    /// swept are left to the next collection.
    pub(crate) fn forget_lines(&mut self) {
        self.sweep = Sweep::default();
        self.open = Run::default();
        self.wide = Run::default();
        self.cursor = None;
        self.returned.clear();
        self.recyclable.clear();
    }

    /// Begins a cycle: the runs being cut are closed, and opened runs are recorded from now on.
    pub(crate) fn begin_cycle(&mut self) {
        self.open = Run::default();
        self.wide = Run::default();
        self.returned.clear();
        self.fresh = Some(Vec::new());
    }

    /// Ends a cycle: its marks become the heap's. The sweep begins by covering the runs opened
    /// during the cycle.
    pub(crate) fn end_cycle(&mut self, marks: &mut Arc<Marks>) {
        own(marks).extend_to(self.states.len());
        core::mem::swap(&mut self.marks, marks);
        let fresh = self.fresh.take().unwrap_or_default();
        self.begin_sweep(fresh);
    }
}
