//! A collection beside the threads: they stand still for its beginning and its end alone.
//!
//! ```text
//!  world stopped   caches are taken back, roots noted, the barrier raised        `Heap::begin_cycle`
//!  world runs      marking; what threads overwrite is marked, too                `Cycle::mark_some`
//!  world stopped   what is left is marked; dead Rust objects, sweep, budget      `Cycle::finish`
//! ```
//!
//! What was reachable at the beginning, and all that was allocated since, survives (snapshot at the beginning). So marks of two cycles are
//! kept: free lines are handed out by the last one's while the next one's are made. Memory handed out since the beginning is covered as a
//! whole at the end.

use crate::heap::barrier::{Barrier, Hurry};
use crate::heap::collection::{Collection, Dead};
use crate::heap::marker::Marker;
use crate::heap::marks::Marks;
use crate::heap::space::own;
use crate::heap::{Heap, lock};
use crate::value::Value;
use core::time::Duration;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::Instant;
use std::sync::{Arc, MutexGuard};

/// A heap that keeps less is collected with the world stopped throughout: that takes no longer.
const HELD_BYTES_MIN: usize = 8 << 20;
/// A collection that is going on.
#[derive(Debug)]
pub struct Cycle<'a> {
    heap: &'a Heap,
    barrier: Barrier,
    marker: Marker,
    marks: &'a mut Arc<Marks>,
    /// Rust objects that were there at the beginning: younger ones live.
    foreign: usize,
    /// Bytes handed out before the beginning.
    taken_bytes: usize,
    begin: Instant,
    pause: Duration,
    stranded_cells: usize,
}

impl Heap {
    /// Whether collections that nobody waits for go on beside the threads.
    #[inline]
    pub fn collects_beside(&self) -> bool {
        self.beside.load(Ordering::Relaxed)
    }

    /// What the next collections are, where the last one has found so much.
    pub(super) fn choose_manner(&self, held_bytes: usize) {
        // Where the limit is near, garbage that a cycle leaves behind is too dear.
        let by_size = (HELD_BYTES_MIN..self.limits.bytes_max / 2).contains(&held_bytes);
        let beside = self.limits.torture.map_or(by_size, |torture| torture.beside);
        self.beside.store(beside, Ordering::Relaxed);
    }

    /// The cycle that goes on was given up, if one is.
    pub fn forget_cycle(&self) {
        lock(&self.space).fresh = None;
    }

    /// Whether what is opened is noted for a cycle.
    pub fn is_in_cycle(&self) -> bool {
        lock(&self.space).fresh.is_some()
    }

    /// Marks for the next cycle, empty. May take a millisecond for each GiB.
    pub fn empty_marks(&self) -> MutexGuard<'_, Arc<Marks>> {
        let mut marks = lock(&self.next_marks);
        own(&mut marks).clear();
        marks
    }

    /// Begins a collection: `note_roots` marks all roots, which are noted only. The world is stopped. `hurry` is called where threads
    /// overwrite more than can be kept until it is marked.
    pub fn begin_cycle<'a>(
        &'a self,
        marks: &'a mut Arc<Marks>,
        hurry: Hurry,
        note_roots: impl FnOnce(&mut Marker),
    ) -> Cycle<'a> {
        let begin = Instant::now();
        self.step();
        let caches = lock(&self.caches);
        let mut space = lock(&self.space);
        let stranded_cells = caches.take_back();
        drop(caches);
        self.step();
        own(marks).extend_to(space.states.len());
        let addresses = space.base()..space.base() + space.mapping.bytes();
        let taken_bytes = space.taken_bytes;
        let (base, stack_max) = (space.base(), self.limits.mark_stack_max);
        let marker = Marker::beside(Arc::clone(marks), base, stack_max);
        let mut marker = marker.with_team(self.team.as_ref());
        space.begin_cycle();
        self.step();
        drop(space);
        self.wanted.store(false, Ordering::Relaxed);
        note_roots(&mut marker);
        self.step();
        let (foreign, barrier) = (lock(&self.foreign).len(), Barrier::raise(addresses, hurry));
        let pause = begin.elapsed();
        self.step();
        Cycle {
            heap: self,
            barrier,
            marker,
            marks,
            begin,
            foreign,
            taken_bytes,
            pause,
            stranded_cells,
        }
    }
}

impl Cycle<'_> {
    /// Marks these roots.
    pub fn mark(&mut self, roots: &[Value]) {
        roots.iter().for_each(|&root| self.marker.mark(root));
    }

    /// Marks some of what is reachable from what was marked, scanning so many objects; whether all is, but for what threads overwrite.
    pub fn mark_some(&mut self, scans: usize) -> bool {
        self.heap.step();
        for value in self.barrier.take() {
            self.marker.mark(value);
        }
        self.marker.run_for(scans)
    }

    /// Marks all that is reachable from what was marked; others help.
    pub fn mark_all(&mut self) {
        self.marker.run();
    }

    /// Bytes of all that was scanned so far, inside the heap and outside.
    pub fn known_bytes(&self) -> usize {
        self.marker.known_bytes()
    }

    /// Ends it. The world is stopped again; all roots were marked.
    pub fn finish(mut self) -> (Collection, Dead) {
        let begin = Instant::now();
        for value in self.barrier.take() {
            self.marker.mark(value);
        }
        let heap = self.heap;
        heap.step();
        self.marker.run();
        heap.step();
        self.marker.save_guarded();
        heap.step();
        self.marker.break_ephemerons();
        heap.step();
        let mut done = Collection { stranded_cells: self.stranded_cells, ..Collection::default() };
        done.note_marking(&self.marker, self.begin);
        let caches = lock(&heap.caches);
        let mut space = lock(&heap.space);
        done.stranded_cells += caches.take_back();
        drop(caches);
        heap.step();
        let dead = heap.take_dead_foreign(&self.marker, self.foreign);
        done.foreign_dropped = dead.count();
        drop(self.marker);
        heap.step();
        space.end_cycle(self.marks);
        heap.step();
        let taken_bytes = space.taken_bytes;
        space.taken_bytes = taken_bytes.saturating_sub(self.taken_bytes);
        heap.sweep_and_note(space, &mut done, taken_bytes.min(self.taken_bytes), |done| {
            let rest = begin.elapsed();
            done.pause = rest.max(self.pause);
            rest + self.pause
        });
        (done, dead)
    }
}
