//! One collection, and the statistics of all collections.
//!
//! Order of the steps: take the caches back, close the runs being cut, mark from the roots, save
//! watched objects, break ephemerons, find unreachable Rust objects, sweep blocks and lines, set
//! the next budget, return surplus memory to the host. The unreachable Rust objects are dropped
//! when the world runs again, because a dropped port may write its buffer.

use crate::heap::foreign::ForeignObject;
use crate::heap::marker::{Marker, Tally};
use crate::heap::marks::BLOCK_BYTES;
use crate::heap::object::GRANULE_BYTES;
use crate::heap::space::{Space, Swept, own};
use crate::heap::word;
use crate::heap::{Caches, Heap, lock};
use core::fmt;
use core::time::Duration;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::Instant;
use std::sync::Arc;

/// The results of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// The longest time of work with the world stopped.
    pub pause: Duration,
    /// Bytes of reachable objects.
    pub live_bytes: usize,
    /// Bytes of the lines and blocks that contain live objects, including the holes between them.
    pub held_bytes: usize,
    /// Bytes of blocks that became free.
    pub freed_bytes: usize,
    /// Free cells that were unused in threads' caches (paper 4, §7: the waste of a large cache).
    pub stranded_cells: usize,
    /// Rust objects dropped.
    pub foreign_dropped: usize,
    /// How often the mark stack was full.
    pub mark_overflows: usize,
    /// Time from the first root to the last mark, including threads that ran meanwhile.
    pub marking: Duration,
    /// Bytes of reachable objects that helpers have marked.
    pub helped_bytes: usize,
    /// Whether threads ran while it marked and swept.
    pub is_concurrent: bool,
}

impl Collection {
    /// Records the results of marking, which is complete.
    pub(super) fn note_marking(&mut self, marker: &Marker, begin: Instant) {
        let Tally { overflows, marked_bytes, helped_bytes, .. } = marker.tally;
        self.live_bytes = marked_bytes;
        self.mark_overflows = overflows;
        self.helped_bytes = helped_bytes;
        self.marking = begin.elapsed();
    }
}

/// Sums over the life of a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Collections so far.
    pub collections: u64,
    /// Number of collections for which the world was stopped throughout, or for the rest of the
    /// marking.
    pub stopped: u64,
    /// Sum of the pauses of all collections.
    pub pause_total: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// Stranded cells of all collections.
    pub stranded_cells: u64,
    /// Bytes handed out, in caches and as large objects.
    pub taken_bytes: u64,
    /// Bytes of blocks in use now.
    pub used_bytes: usize,
    /// Bytes of resident blocks: those in use, and free ones kept for later.
    pub resident_bytes: usize,
    /// A collection is requested when this many bytes have been taken since the last one.
    pub trigger_bytes: usize,
    /// The last collection.
    pub last: Collection,
}

/// Unreachable Rust objects. Dropping them may take long and may wait for the host, so the world
/// must be running. Dropping them needs no lock.
#[must_use]
pub struct Dead(Vec<Box<dyn ForeignObject>>);

impl fmt::Debug for Dead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dead").field(&self.0.len()).finish()
    }
}

impl Dead {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// These objects and those of another collection.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl Caches {
    /// Empties every thread's cache. Returns how many free cells they had.
    pub(super) fn take_back(&self) -> usize {
        let mut bytes = 0;
        for words in self.slots.iter().flatten() {
            words.drain(|run| bytes += run.bytes());
        }
        bytes / GRANULE_BYTES
    }
}

impl Heap {
    /// Collects. Every Lisp thread must be at a safepoint. `trace_roots` marks all roots.
    pub fn collect(&self, trace_roots: impl FnOnce(&mut Marker)) -> Collection {
        let (done, dead) = self.collect_stopped(trace_roots);
        drop(dead);
        done
    }

    /// As [`collect`](Self::collect). The caller drops the unreachable Rust objects when the world
    /// runs again.
    pub fn collect_stopped(&self, trace_roots: impl FnOnce(&mut Marker)) -> (Collection, Dead) {
        let begin = Instant::now();
        let mut done = Collection::default();
        self.step();
        let caches = lock(&self.caches);
        // From here on no refill is in progress, for any thread, so no refill finds its cache
        // emptied.
        let mut space = lock(&self.space);
        done.stranded_cells = caches.take_back();
        drop(caches);
        self.step();
        let taken_bytes = space.taken_bytes;
        (space.taken_bytes, space.covered_bytes) = (0, 0);
        // The marks tell which lines are free. Until marking is complete, no run may be cut from
        // part-used blocks, even if this collection is aborted.
        space.forget_lines();
        own(&mut space.marks).clear();
        self.step();
        let (base, stack_max) = (space.base(), self.limits.mark_stack_max);
        let marker = Marker::new(Arc::clone(&space.marks), base, stack_max);
        let mut marker = marker.with_team(self.team.as_ref());
        trace_roots(&mut marker);
        self.step();
        marker.run();
        self.step();
        marker.save_guarded();
        self.step();
        marker.break_ephemerons();
        self.step();
        done.note_marking(&marker, begin);
        let dead = self.take_dead_foreign(&marker, usize::MAX);
        drop(marker);
        done.foreign_dropped = dead.count();
        self.step();
        space.begin_sweep(Vec::new());
        let mut unswept = Unswept::new(self, done, taken_bytes);
        while unswept.part(&mut space) {
            self.step();
        }
        drop(space);
        unswept.done.pause = begin.elapsed();
        unswept.stood = unswept.done.pause;
        (unswept.finish(), dead)
    }

    /// The unreachable ones among the first `count` Rust objects.
    pub(super) fn take_dead_foreign(&self, marker: &Marker, count: usize) -> Dead {
        let mut dead = Vec::new();
        let mut looked = 0;
        lock(&self.foreign).retain(|&value| {
            looked += 1;
            let live = looked > count || marker.is_marked(value);
            if !live {
                dead.extend(word::foreign_take(value.payload_word(0)));
            }
            live
        });
        Dead(dead)
    }

    /// The statistics so far, with the present values of used, resident and taken bytes.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let space = lock(&self.space);
        let mut sums = *lock(&self.statistics);
        sums.used_bytes = space.used_bytes();
        sums.resident_bytes = space.resident_bytes();
        sums.taken_bytes += space.taken_bytes as u64;
        sums
    }
}

/// A collection after its marking and before its sweep. The sweep runs in slices, and threads may
/// run between two slices.
///
/// A thread that finds no free memory sweeps as well. [`finish`](Self::finish) updates the
/// statistics.
#[derive(Debug)]
#[must_use]
pub struct Unswept<'a> {
    heap: &'a Heap,
    pub(super) done: Collection,
    /// The total time for which the world was stopped.
    pub(super) stood: Duration,
    /// Bytes handed out before the collection began. They do not count towards the next one.
    taken_bytes: usize,
    /// Bytes handed out during the collection.
    pub(super) fresh_bytes: usize,
    stage: Stage,
}

/// The next step of an [`Unswept`].
#[derive(Debug)]
enum Stage {
    Sweep,
    /// Return free memory beyond `keep_bytes` to the host, beginning with free block number `from`.
    Discard {
        keep_bytes: usize,
        from: usize,
    },
}

impl<'a> Unswept<'a> {
    pub(super) fn new(heap: &'a Heap, done: Collection, taken_bytes: usize) -> Self {
        let (stood, fresh_bytes, stage) = (Duration::ZERO, 0, Stage::Sweep);
        Self { heap, done, stood, taken_bytes, fresh_bytes, stage }
    }

    /// Executes one slice of the rest, in less than a millisecond; `false` if nothing is left.
    pub fn sweep_some(&mut self) -> bool {
        self.heap.step();
        let mut space = lock(&self.heap.space);
        self.part(&mut space)
    }

    fn part(&mut self, space: &mut Space) -> bool {
        match &mut self.stage {
            Stage::Sweep => {
                if !space.sweep_some() {
                    self.settle(space);
                }
                true
            }
            Stage::Discard { keep_bytes, from } => space.discard_some(*keep_bytes, from),
        }
    }

    /// Sets the next budget, when all blocks are swept.
    fn settle(&mut self, space: &mut Space) {
        let heap = self.heap;
        let Swept { live_bytes: held, freed_blocks } = space.take_swept();
        self.done.held_bytes = held;
        self.done.freed_bytes = freed_blocks * BLOCK_BYTES;
        space.set_budget(&heap.limits, held);
        space.covered_bytes = self.fresh_bytes.min(space.taken_bytes);
        heap.choose_manner(held, self.fresh_bytes);
        // Keep as much free memory as was taken since the last collection, this one included, or
        // the budget if that is more. If these pages were returned to the host, their next use
        // would cause page faults.
        let expected_bytes = space.budget_bytes.max(self.taken_bytes + space.taken_bytes);
        self.stage = Stage::Discard { keep_bytes: heap.kept_bytes(expected_bytes), from: 0 };
        heap.wanted.store(false, Ordering::Relaxed);
    }

    /// Records the results of the collection, when all blocks are swept.
    pub fn finish(mut self) -> Collection {
        while self.sweep_some() {}
        let Self { heap, done, stood, taken_bytes, .. } = self;
        let budget = lock(&heap.space).budget_bytes;
        let mut sums = lock(&heap.statistics);
        sums.collections += 1;
        sums.stopped += u64::from(!done.is_concurrent);
        sums.pause_total += stood;
        sums.pause_max = sums.pause_max.max(done.pause);
        sums.stranded_cells += done.stranded_cells as u64;
        sums.taken_bytes += taken_bytes as u64;
        sums.trigger_bytes = budget;
        sums.last = done;
        drop(sums);
        heap.step();
        done
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let foreign = core::mem::take(&mut *lock(&self.foreign));
        for value in foreign {
            drop(word::foreign_take(value.payload_word(0)));
        }
    }
}
