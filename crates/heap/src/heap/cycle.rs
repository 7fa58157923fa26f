//! A concurrent collection. The threads are stopped only when it begins and when marking ends.
//!
//! ```text
//!  world stopped   caches are taken back, roots recorded; the barrier is on  `Heap::begin_cycle`
//!  world runs      marking; values that threads overwrite are marked, too    `Cycle::mark_some`
//!  world stopped   the rest is marked; unreachable Rust objects              `Cycle::end`
//!  world runs      sweep, in slices; budget                                  `Unswept::sweep_some`
//! ```
//!
//! `pace.rs` keeps threads from using up the heap before all is marked. If a thread waits for
//! memory nevertheless, the rest of the work is done with the world stopped (`Cycle::finish`).
//!
//! Everything that was reachable at the beginning, or was allocated since, survives (snapshot at
//! the beginning). There are two sets of marks: those of the last cycle tell which lines are free,
//! while those of the next are being made. Memory handed out since the beginning is marked as a
//! whole at the end.

use crate::heap::barrier::{Barrier, Hurry};
use crate::heap::collection::{Collection, Dead, Unswept};
use crate::heap::marker::Marker;
use crate::heap::marks::{BLOCK_BYTES, Marks};
use crate::heap::pace::{Pace, Plan};
use crate::heap::space::{Space, own};
use crate::heap::{Heap, lock};
use crate::value::Value;
use core::time::Duration;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::Instant;
use std::sync::{Arc, MutexGuard};

/// If less than this survived the last collection, the world is stopped throughout. That stop is no
/// longer than those of a cycle.
const HELD_BYTES_MIN: usize = 8 << 20;
/// Divisor: the world is also stopped throughout if less than this part of the limit is left.
/// During a cycle the threads could take almost nothing.
const ROOM_PART: usize = 8;

/// Divisor: an estimate of the holes between live objects, as a part of the live bytes.
const HOLES_PART: usize = 8;

/// A collection in progress.
#[derive(Debug)]
pub struct Cycle<'a> {
    heap: &'a Heap,
    barrier: Barrier,
    marker: Marker,
    marks: &'a mut Arc<Marks>,
    /// Number of Rust objects at the beginning. Younger ones are alive.
    foreign: usize,
    /// Bytes handed out before the beginning.
    taken_bytes: usize,
    begin: Instant,
    pause: Duration,
    stranded_cells: usize,
}

impl Heap {
    /// Whether collections that no thread waits for are concurrent.
    #[inline]
    pub fn collects_concurrently(&self) -> bool {
        self.concurrent.load(Ordering::Relaxed)
    }

    /// Decides whether the next collection is concurrent. The last one found `held_bytes` in use;
    /// `fresh_bytes` of them were taken during the collection and may be garbage.
    pub(super) fn choose_manner(&self, held_bytes: usize, fresh_bytes: usize) {
        // Near the limit, a cycle would leave too much garbage behind.
        let limit = self.limits.bytes_max;
        let is_small = held_bytes < HELD_BYTES_MIN;
        let is_near = held_bytes - fresh_bytes.min(held_bytes) >= limit / 2
            || held_bytes >= limit - limit / ROOM_PART;
        let by_size = !is_small && !is_near;
        let concurrent = self.limits.torture.map_or(by_size, |torture| torture.concurrent);
        self.concurrent.store(concurrent, Ordering::Relaxed);
    }

    /// Forgets an aborted cycle, if there is one.
    pub fn forget_cycle(&self) {
        let mut space = lock(&self.space);
        space.fresh = None;
        self.end_plan(&mut space);
    }

    /// Whether a cycle is in progress, so that opened runs are recorded for it.
    pub fn is_in_cycle(&self) -> bool {
        lock(&self.space).fresh.is_some()
    }

    /// Empty marks for the next cycle. May take some milliseconds for each GiB.
    pub fn empty_marks(&self) -> MutexGuard<'_, Arc<Marks>> {
        let mut marks = lock(&self.next_marks);
        let (blocks, growth_bytes) = {
            let space = lock(&self.space);
            let likely_bytes = space.budget_bytes.saturating_mul(2);
            (space.states.len(), likely_bytes.min(self.cycle_room_bytes(&space)))
        };
        own(&mut marks).clear();
        // The heap is unlikely to grow by more during the cycle. So the tables need not be moved
        // while the world is stopped.
        own(&mut marks).reserve(blocks + growth_bytes / BLOCK_BYTES);
        marks
    }

    /// Bytes that may be handed out during a cycle: half of the free memory. Memory that becomes
    /// garbage during the cycle is not freed before the next one has ended.
    fn cycle_room_bytes(&self, space: &Space) -> usize {
        self.room_bytes(space) / 2
    }

    /// How the threads' allocation compares with the marking.
    #[inline]
    pub fn pace(&self) -> Pace {
        Pace::of_number(self.pace.load(Ordering::Relaxed))
    }

    /// Updates the pace, after threads have taken memory or the marker has marked. Threads that
    /// must wait leave the machine at their next safepoint.
    pub(super) fn set_pace(&self, space: &Space) -> Pace {
        let Some((plan, from_bytes)) = space.plan else { return Pace::Ahead };
        let taken_bytes = space.taken_bytes.saturating_sub(from_bytes);
        let pace = plan.pace(taken_bytes, space.marked_bytes);
        if self.pace.swap(pace.number(), Ordering::Relaxed) != pace.number() {
            self.wanted.store(pace >= Pace::HeldUp, Ordering::Relaxed);
        }
        pace
    }

    fn end_plan(&self, space: &mut Space) {
        space.plan = None;
        self.pace.store(Pace::Ahead.number(), Ordering::Relaxed);
    }

    /// Begins a cycle. `note_roots` marks all roots, which are only recorded. The world is stopped.
    /// `hurry` is called if threads overwrite more values than can be kept until they are marked.
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
        let used_bytes = space.held_bytes + space.taken_bytes - space.covered_bytes;
        let live_bytes = lock(&self.statistics).last.live_bytes;
        let plan = Plan::new(self.cycle_room_bytes(&space), live_bytes, used_bytes);
        let addresses = space.base()..space.base() + space.mapping.bytes();
        let taken_bytes = space.taken_bytes;
        let (base, stack_max) = (space.base(), self.limits.mark_stack_max);
        let marker = Marker::concurrent(Arc::clone(marks), base, stack_max);
        let mut marker = marker.with_team(self.team.as_ref());
        space.begin_cycle();
        (space.plan, space.marked_bytes) = (Some((plan, taken_bytes)), 0);
        self.step();
        self.set_pace(&space);
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

impl<'a> Cycle<'a> {
    /// Marks these roots.
    pub fn mark(&mut self, roots: &[Value]) {
        roots.iter().for_each(|&root| self.marker.mark(root));
    }

    /// Continues marking, for at most `scans` objects. Returns whether everything is marked except
    /// what threads overwrite.
    pub fn mark_some(&mut self, scans: usize) -> bool {
        self.heap.step();
        self.mark_noted();
        let is_done = self.marker.run_for(scans);
        let mut space = lock(&self.heap.space);
        space.marked_bytes = self.marker.marked_bytes();
        self.heap.set_pace(&space);
        is_done
    }

    /// Marks some of the values overwritten since the last call, and what is reachable from them.
    /// Returns `true` if no unmarked value was found. Then all that was reachable at the cycle's
    /// beginning is marked, and nothing is left for the last stop.
    ///
    /// Proof: suppose an object that was reachable at the beginning is not marked. On the path to
    /// it as of the beginning, let `y` be the first unmarked object and `x` the one before it,
    /// which was marked and scanned. The scan of `x` did not find `y`, so `x`'s reference to `y`
    /// had been overwritten before the scan. The overwrite recorded `y`, and this call has found
    /// the record.
    pub fn is_all_marked(&mut self, scans: usize) -> bool {
        self.heap.step();
        self.mark_noted();
        let is_all = self.marker.is_idle();
        if !is_all {
            self.mark_some(scans);
        }
        is_all
    }

    fn mark_noted(&mut self) {
        for value in self.barrier.take() {
            self.marker.mark(value);
        }
    }

    /// Completes marking; helpers take part.
    pub fn mark_all(&mut self) {
        self.marker.run();
    }

    /// Bytes of everything scanned so far, inside the heap and outside.
    pub fn known_bytes(&self) -> usize {
        self.marker.known_bytes()
    }

    /// Ends the cycle, including the sweep. The world is stopped again, and all roots were marked.
    pub fn finish(self) -> (Collection, Dead) {
        let begin = Instant::now();
        let (mut unswept, dead) = self.end();
        let stood = unswept.stood - unswept.done.pause;
        while unswept.sweep_some() {}
        unswept.done.is_concurrent = false;
        unswept.done.pause = unswept.done.pause.max(begin.elapsed());
        unswept.stood = stood + unswept.done.pause;
        (unswept.finish(), dead)
    }

    /// Ends the cycle, except the sweep. The world is stopped again, and all roots were marked.
    pub fn end(mut self) -> (Unswept<'a>, Dead) {
        let begin = Instant::now();
        self.mark_noted();
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
        heap.end_plan(&mut space);
        heap.step();
        let taken_bytes = space.taken_bytes.min(self.taken_bytes);
        space.taken_bytes -= taken_bytes;
        let fresh_bytes = space.taken_bytes;
        // An estimate until the sweep has ended. If it were too high, requests for free memory
        // would be refused.
        let held_bytes = done.live_bytes + done.live_bytes / HOLES_PART;
        space.held_bytes = held_bytes.min(space.held_bytes + taken_bytes);
        space.covered_bytes = 0;
        drop(space);
        done.is_concurrent = true;
        let mut unswept = Unswept::new(heap, done, taken_bytes);
        unswept.fresh_bytes = fresh_bytes;
        let rest = begin.elapsed();
        unswept.done.pause = rest.max(self.pause);
        unswept.stood = rest + self.pause;
        (unswept, dead)
    }
}
