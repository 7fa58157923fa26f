//! Where a thread has run out of cells, or of memory: who gets some, who waits for a collection, and who is told.
//!
//! ```text
//!   no cells in the cache      the system-call thread, or this one, takes some from the heap
//!   none there, or too few     a collection; where it finds little, again, or the greediest is told: `out of memory` is raised
//!   none for its handlers      it is over
//! ```

use super::Runner;
use crate::service::Ask;
use crate::thread::lisp_thread::{LispThread, NOT_ASKED, REQUEST_OUT_OF_MEMORY, STARVED};
use kyocho_heap::heap::cache_size::CELLS_MIN;
use kyocho_heap::heap::{CellCache, OutOfMemory};
use kyocho_microprocess::{Deadline, Microprocess, Step};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_vm::machine::{Exit, Machine};
use std::sync::Arc;

/// Collections that a primitive's allocation is worth.
const EXHAUSTED_MAX: u32 = 8;
/// Collections that a thread waits for while a greedier one holds the memory.
const STARVED_MAX: u32 = 100;
/// Collections that either is worth where only the user's other threads can have the memory.
const BOUNDED_TRIES_MAX: u32 = 2;
/// Cells that a thread gets at a time while memory is short.
const SHORT_CELLS: usize = 64;

impl Runner {
    /// The machine has stopped: whether it was told, and what it may take from here on.
    pub(super) fn note_shortage(&mut self, thread: &LispThread, machine: &mut Machine, exit: Exit) {
        self.told |= core::mem::take(&mut machine.has_raised_out_of_memory) && self.tells;
        if exit != Exit::Exhausted {
            self.tells = false;
            self.exhausted = 0;
            machine.out_of_memory_is_final = false;
            let spends = &mut machine.mutator.spends_reserve;
            *spends = *spends && self.kernel.is_exhausted(thread);
        }
    }

    /// A primitive found no memory: it tries again, after a collection if that is worth it, or raises. The step to end with, if the step ends.
    pub(super) fn find_exhausted(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
    ) -> Option<Step> {
        if let Some(step) = self.put_off(thread) {
            return Some(step);
        }
        self.exhausted += 1;
        thread.taken.store(machine.mutator.taken_cells(), Ordering::Relaxed);
        // While others hold more, memory may come back when they are told.
        let is_exhausted = self.kernel.is_exhausted(thread);
        let is_told = is_exhausted && self.kernel.is_greediest(thread);
        let bounded = thread.session.account.is_bounded();
        let tries = if bounded { BOUNDED_TRIES_MAX } else { EXHAUSTED_MAX };
        machine.out_of_memory_is_final = self.exhausted >= tries || is_told;
        // What its handlers need is theirs without being told again; the others share what is left.
        self.tells = is_told;
        if is_exhausted {
            thread.session.forget_failure();
        }
        machine.mutator.spends_reserve = is_exhausted && !is_told;
        let worth_it = !machine.out_of_memory_is_final || self.exhausted == 1;
        worth_it.then(|| self.after_collection())
    }

    /// Where the thread's account has run into its own bound, and has had a collection for that a moment ago: the next
    /// step comes later. Others are not to be stopped all the time because one user has no memory left.
    fn put_off(&self, thread: &LispThread) -> Option<Step> {
        let account = &thread.session.account;
        if !account.is_bounded() {
            return None;
        }
        let pause_ns = self.kernel.heap.statistics().last.pause.as_nanos() as u64;
        let from = account.may_collect(monotonic_ns(), pause_ns).err()?;
        Some(Step::ParkUntil(Deadline::at_ns(from)))
    }

    /// A collection is due: it goes on beside the thread, or is awaited.
    pub(super) fn collection_is_due(&mut self) -> Option<Step> {
        if !self.kernel.heap.collects_beside() {
            return Some(self.after_collection());
        }
        self.kernel.collector.request_soon();
        None
    }

    /// The next step comes after a collection.
    fn after_collection(&mut self) -> Step {
        self.awaits = Some(self.kernel.heap.statistics().collections);
        self.kernel.await_collection();
        Step::Park
    }

    /// Whether the collection that it waits for is still to come: something else has woken it.
    pub(super) fn awaits_collection(&mut self) -> bool {
        let Some(seen) = self.awaits else { return false };
        if self.kernel.heap.statistics().collections == seen {
            self.kernel.await_collection();
            return true;
        }
        self.awaits = None;
        // A primitive that now finds memory comes to a safepoint: so one that never does is told from a loop of such that do.
        Microprocess::current().poll_word().store(1, Ordering::Release);
        false
    }

    /// Gets cells for a machine that needs `cells` side by side to go on: from the system-call
    /// thread.
    ///
    /// It ends: a request waits for one collection at most, and one whose cells a collection took
    /// back before they were used is served here, in the step that uses them. So each comes to
    /// cells, which the heap gives side by side, or to `after_out_of_memory`.
    pub(super) fn refill(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
        cells: usize,
    ) -> Option<Step> {
        if self.kernel.heap.collection_wanted()
            && !self.collected
            && let Some(step) = self.collection_is_due()
        {
            self.collected = true;
            return Some(step);
        }
        let kernel = &self.kernel;
        let taken = machine.mutator.cells.taken();
        let used = (taken - self.taken) as usize;
        self.taken = taken;
        thread.taken.store(machine.mutator.taken_cells(), Ordering::Relaxed);
        let mut want = match kernel.options.cell_cache {
            CellCache::Off => cells,
            CellCache::Fixed(size) => cells.max(size as usize),
            CellCache::Auto => {
                cells.max(self.cache_size.next(monotonic_ns(), used, kernel.heap.refill_ns()))
            }
        };
        if kernel.is_exhausted(thread) {
            thread.session.forget_failure();
            // Who has taken most is told; the others share what is left.
            if !self.told && kernel.is_greediest(thread) {
                return self.after_out_of_memory(thread, machine);
            }
            want = want.min(cells.max(SHORT_CELLS));
        } else {
            self.told = false;
        }
        machine.mutator.set_want(want.max(CELLS_MIN));
        let words = machine.mutator.cells.words();
        let ask = Ask { need: cells, want };
        if thread.refill.swap(NOT_ASKED, Ordering::AcqRel) == STARVED {
            return self.after_out_of_memory(thread, machine);
        }
        let collected = core::mem::take(&mut self.collected);
        if !collected && !kernel.system_call.is_carried_by_caller() {
            kernel.system_call.request(thread, words, ask);
            return Some(Step::Park);
        }
        match kernel.system_call.serve(kernel, words, ask) {
            Ok(()) => {
                self.starved = 0;
                None
            }
            Err(OutOfMemory) => self.after_out_of_memory(thread, machine),
        }
    }

    /// No cells were to be had: after another collection the thread tries again; the greediest
    /// tries once, others as long as it may take the greediest to end. It is told once; where its
    /// handlers then find nothing left either, it is over.
    fn after_out_of_memory(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
    ) -> Option<Step> {
        if let Some(step) = self.put_off(thread) {
            return Some(step);
        }
        self.starved += 1;
        let tries = match thread.session.account.is_bounded() {
            _ if self.kernel.is_greediest(thread) => 1,
            true => BOUNDED_TRIES_MAX,
            false => STARVED_MAX,
        };
        if self.starved <= tries {
            return Some(self.after_collection());
        }
        self.starved = 0;
        if core::mem::replace(&mut self.told, true) {
            machine.come_to(self.kernel.out_of_memory);
            return Some(self.end(thread, machine, Exit::Uncaught));
        }
        thread.requests.fetch_or(REQUEST_OUT_OF_MEMORY, Ordering::AcqRel);
        None
    }
}
