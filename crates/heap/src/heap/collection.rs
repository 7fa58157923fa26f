//! One collection, and what is known about all of them.
//!
//! Order: forget what is being cut, take the caches back, mark from the roots, save what is guarded, break ephemerons, find dead Rust objects, sweep
//! blocks and lines, set the next budget. The dead Rust objects are dropped when the world runs again: that may write what a port has buffered.

use crate::heap::foreign::ForeignObject;
use crate::heap::marker::{Marker, Tally};
use crate::heap::object::GRANULE_BYTES;
use crate::heap::space::{Space, Swept, own};
use crate::heap::word;
use crate::heap::{Caches, Heap, lock};
use core::fmt;
use core::time::Duration;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::Instant;
use std::sync::{Arc, MutexGuard};

/// What one collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// From the call to the return, world stopped.
    pub pause: Duration,
    /// Bytes of reachable objects.
    pub live_bytes: usize,
    /// Bytes of the lines and blocks that hold them: live objects and the holes between them.
    pub held_bytes: usize,
    /// Bytes of blocks that became free.
    pub freed_bytes: usize,
    /// Free cells that lay unused in threads' caches (paper 4, §7: the waste of a large cache).
    pub stranded_cells: usize,
    /// Rust objects dropped.
    pub foreign_dropped: usize,
    /// Times the mark stack was full.
    pub mark_overflows: usize,
    /// From the first root to the last mark, threads that ran meanwhile included.
    pub marking: Duration,
    /// Bytes of reachable objects that helpers of the collector have marked.
    pub helped_bytes: usize,
}

impl Collection {
    /// All is marked.
    pub(super) fn note_marking(&mut self, marker: &Marker, begin: Instant) {
        let Tally { overflows, marked_bytes, helped_bytes, .. } = marker.tally;
        self.live_bytes = marked_bytes;
        self.mark_overflows = overflows;
        self.helped_bytes = helped_bytes;
        self.marking = begin.elapsed();
    }
}

/// Sums over a heap's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Collections so far.
    pub collections: u64,
    /// Sum of their pauses.
    pub pause_total: Duration,
    /// The longest.
    pub pause_max: Duration,
    /// Stranded cells, summed over collections.
    pub stranded_cells: u64,
    /// Bytes handed out, in caches and as large objects.
    pub taken_bytes: u64,
    /// Bytes of blocks in use now.
    pub used_bytes: usize,
    /// Bytes of blocks the host has lent us now: those in use, and free ones kept for later.
    pub resident_bytes: usize,
    /// A collection is wanted when so much has been taken since the last.
    pub trigger_bytes: usize,
    /// The last collection.
    pub last: Collection,
}

/// Rust objects that nothing refers to: dropping them may take long, may wait for the host, and needs no lock. Not while the world is stopped.
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

    /// These, and those of another collection.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl Caches {
    /// Empties every thread's cache; how many cells lay in them.
    pub(super) fn take_back(&self) -> usize {
        let mut bytes = 0;
        for words in self.slots.iter().flatten() {
            words.drain(|run| bytes += run.bytes());
        }
        bytes / GRANULE_BYTES
    }
}

impl Heap {
    /// Collects. Every Lisp thread must stand at a safepoint; `trace_roots` marks all roots.
    pub fn collect(&self, trace_roots: impl FnOnce(&mut Marker)) -> Collection {
        let (done, dead) = self.collect_stopped(trace_roots);
        drop(dead);
        done
    }

    /// The same; the Rust objects that nothing refers to are the caller's to drop, when the world runs again.
    pub fn collect_stopped(&self, trace_roots: impl FnOnce(&mut Marker)) -> (Collection, Dead) {
        let begin = Instant::now();
        let mut done = Collection::default();
        self.step();
        let caches = lock(&self.caches);
        // From here on no refill goes on, on whoever's behalf: none finds its cache taken away.
        let mut space = lock(&self.space);
        done.stranded_cells = caches.take_back();
        drop(caches);
        self.step();
        let taken_bytes = space.taken_bytes;
        space.taken_bytes = 0;
        // Free lines are told by the marks: until all is marked again nothing is cut from them, also where this collection is given up.
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
        self.sweep_and_note(space, &mut done, taken_bytes, |done| {
            done.pause = begin.elapsed();
            done.pause
        });
        (done, dead)
    }

    /// After marking: sorts blocks, sets the next budget, and notes what was done. `pause` says how long the world stood, in all.
    pub(super) fn sweep_and_note(
        &self,
        mut space: MutexGuard<'_, Space>,
        done: &mut Collection,
        taken_bytes: usize,
        pause: impl FnOnce(&mut Collection) -> Duration,
    ) {
        space.forget_runs();
        self.step();
        let Swept { live_bytes: held, freed_blocks } = space.sweep();
        self.step();
        done.held_bytes = held;
        done.freed_bytes = freed_blocks * crate::heap::marks::BLOCK_BYTES;
        space.set_budget(&self.limits, held);
        self.choose_manner(held);
        if self.limits.torture.is_some() {
            space.poison_free();
        }
        // As much as since the last one and while this one went on, or the budget: pages given back now would fault then.
        let expected_bytes = space.budget_bytes.max(taken_bytes + space.taken_bytes);
        space.discard_surplus(self.kept_bytes(expected_bytes));
        let budget = space.budget_bytes;
        self.step();
        drop(space);
        self.wanted.store(false, Ordering::Relaxed);
        let stood = pause(done);
        let mut sums = lock(&self.statistics);
        sums.collections += 1;
        sums.pause_total += stood;
        sums.pause_max = sums.pause_max.max(done.pause);
        sums.stranded_cells += done.stranded_cells as u64;
        sums.taken_bytes += taken_bytes as u64;
        sums.trigger_bytes = budget;
        sums.last = *done;
        drop(sums);
        self.step();
    }

    /// Of the first `count` Rust objects, those that nothing refers to.
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

    /// What is known so far; bytes used, resident and taken as of now.
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

impl Drop for Heap {
    fn drop(&mut self) {
        let foreign = core::mem::take(&mut *lock(&self.foreign));
        for value in foreign {
            drop(word::foreign_take(value.payload_word(0)));
        }
    }
}
