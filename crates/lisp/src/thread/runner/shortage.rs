//! Handling of a thread that has run out of cells, or of memory: whether it gets some, waits for a
//! collection, or gets an error.
//!
//! ```text
//!   no cells in the cache     the system-call thread, or this one, takes some from the heap
//!   more taken than marked    the thread waits some milliseconds for the collector
//!   none there, or too few    a collection; if it frees little, another one, or the greediest
//!                             thread gets an out-of-memory error
//!   none for its handlers     the thread ends
//! ```

use super::Runner;
use crate::kernel::service::CellRequest;
use crate::kernel::session::thread::{
    LispThread, REFILL_FAILED, REFILL_IDLE, REQUEST_OUT_OF_MEMORY,
};
use kyocho_heap::heap::cache_size::CELLS_MIN;
use kyocho_heap::heap::{CellCache, OutOfMemory, Pace};
use kyocho_microprocess::{Deadline, Microprocess, Step};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_vm::machine::{Exit, Machine};
use std::sync::Arc;

/// Collections for an allocation of a primitive, before an error is raised.
const EXHAUSTED_MAX: u32 = 8;
/// Collections that a thread waits for while a greedier thread has the memory.
const STARVED_MAX: u32 = 100;
/// The limit for both if the account has a bound, so that only other threads of the same user can
/// free memory.
const BOUNDED_TRIES_MAX: u32 = 2;
/// Cells that the handlers of an out-of-memory error need at most. A thread that has taken more
/// since the error has continued, and gets another error at the next shortage.
const HANDLERS_CELLS: u64 = 1024;
/// Collections that a thread in such a handler waits for. Other threads that got the error may free
/// memory meanwhile.
const HANDLING_TRIES_MAX: u32 = 10;
/// Cells that a thread gets with one request while memory is short.
const SHORT_CELLS: usize = 64;

/// The wait of threads for the collector if they have taken too much: a number of cells, and the
/// nanoseconds that a thread waits for each such number that it takes. `None`: no wait.
fn paced(pace: Pace) -> Option<(usize, u64)> {
    match pace {
        Pace::Ahead | Pace::Even | Pace::Behind => None,
        Pace::HeldUp => Some((512, 2_000_000)),
        Pace::Exhausted => Some((SHORT_CELLS, 10_000_000)),
    }
}

impl Runner {
    /// Called when the machine has stopped: updates whether the error has been raised, and whether
    /// the machine may use the reserve.
    pub(super) fn note_shortage(&mut self, thread: &LispThread, machine: &mut Machine, exit: Exit) {
        if core::mem::take(&mut machine.has_raised_out_of_memory) && self.raises_error {
            self.note_error(thread);
        }
        if exit != Exit::Exhausted {
            self.raises_error = false;
            self.exhausted = 0;
            machine.out_of_memory_is_final = false;
            let spends = &mut machine.mutator.spends_reserve;
            *spends = *spends && self.kernel.is_exhausted(thread);
        }
    }

    /// Notes that the thread has got the out-of-memory error. Memory that it took before no longer
    /// counts in the search for the greediest thread, because its handlers may have freed it.
    fn note_error(&mut self, thread: &LispThread) {
        (self.error_raised, self.starved) = (true, 0);
        let taken = thread.taken.load(Ordering::Relaxed);
        thread.taken_at_error.store(taken, Ordering::Relaxed);
    }

    /// Whether the thread has got the error, and has taken no more since than its handlers need.
    fn is_handling(&self, thread: &LispThread) -> bool {
        self.error_raised && thread.taken_since_error() < HANDLERS_CELLS
    }

    /// Called when a primitive has run out of memory. It is repeated, after a collection if that
    /// may help, or raises the error. Returns the result of the step if it ends.
    pub(super) fn find_exhausted(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
    ) -> Option<Step> {
        if let Some(step) = self.delay_step(thread) {
            return Some(step);
        }
        self.exhausted += 1;
        thread.taken.store(machine.mutator.taken_cells(), Ordering::Relaxed);
        // While other threads have more, memory may become free when they get the error.
        let is_exhausted = self.kernel.is_exhausted(thread);
        let raises_now =
            is_exhausted && !self.is_handling(thread) && self.kernel.is_greediest(thread);
        let bounded = thread.session.account.is_bounded();
        let tries = if bounded { BOUNDED_TRIES_MAX } else { EXHAUSTED_MAX };
        machine.out_of_memory_is_final = self.exhausted >= tries || raises_now;
        // After the error the handlers of this thread may use the reserve, without a second error.
        // Other threads share what is left.
        self.raises_error = raises_now;
        if is_exhausted {
            thread.session.forget_failure();
        }
        machine.mutator.spends_reserve = is_exhausted && !raises_now;
        let worth_it = !machine.out_of_memory_is_final || self.exhausted == 1;
        worth_it.then(|| self.after_collection())
    }

    /// Delays the next step if the thread's account has reached its own bound and has just had a
    /// collection for that reason. Otherwise one user without memory could stop all threads again
    /// and again.
    fn delay_step(&self, thread: &LispThread) -> Option<Step> {
        let account = &thread.session.account;
        if !account.is_bounded() {
            return None;
        }
        let pause_ns = self.kernel.heap.statistics().last.pause.as_nanos() as u64;
        let from = account.may_collect(monotonic_ns(), pause_ns).err()?;
        Some(Step::ParkUntil(Deadline::at_ns(from)))
    }

    /// Handles a collection that is due: it runs concurrently, or the step ends to wait for it.
    pub(super) fn collection_is_due(&mut self, machine: &Machine) -> Option<Step> {
        if !self.kernel.heap.collects_concurrently() {
            return Some(self.after_collection());
        }
        self.kernel.collector.request_soon();
        self.keep_pace(machine)
    }

    /// Slows the thread down if threads allocate faster than the collector marks. Threads wait in
    /// proportion to what they take. A thread that runs its last `dynamic-wind` procedures does not
    /// wait, because its time is limited.
    fn keep_pace(&mut self, machine: &Machine) -> Option<Step> {
        let pace = self.kernel.heap.pace();
        if pace < Pace::Behind {
            return None;
        }
        self.kernel.collector.hasten();
        if self.terminating {
            return None;
        }
        let (cells, wait_ns) = paced(pace)?;
        let taken = machine.mutator.taken_cells();
        if taken - self.paced < cells as u64 {
            return None;
        }
        self.paced = taken;
        Some(Step::ParkUntil(Deadline::at_ns(monotonic_ns() + wait_ns)))
    }

    /// Ends the step until a collection has ended.
    fn after_collection(&mut self) -> Step {
        self.awaits = Some(self.kernel.heap.statistics().collections);
        self.kernel.await_collection();
        Step::Park
    }

    /// Whether the collection that the thread waits for has not ended yet, because it was woken for
    /// another reason.
    pub(super) fn awaits_collection(&mut self) -> bool {
        let Some(seen) = self.awaits else { return false };
        if self.kernel.heap.statistics().collections == seen {
            self.kernel.await_collection();
            return true;
        }
        self.awaits = None;
        // Makes a primitive that now succeeds reach a safepoint. This distinguishes a primitive
        // that never succeeds from a loop of primitives that do.
        Microprocess::current().poll_word().store(1, Ordering::Release);
        false
    }

    /// Gets cells for a machine that needs `cells` adjacent ones to continue, from the system-call
    /// thread.
    ///
    /// This terminates. A request waits for at most one collection. If a collection took the cells
    /// back before they were used, the request is served in the step that uses them. So each call
    /// ends with cells, which the heap provides adjacent, or with `after_out_of_memory`.
    pub(super) fn refill(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
        cells: usize,
    ) -> Option<Step> {
        let is_concurrent = self.kernel.heap.collects_concurrently();
        if self.kernel.heap.collection_wanted()
            && !self.collected
            && let Some(step) = self.collection_is_due(machine)
        {
            self.collected = !is_concurrent;
            return Some(step);
        }
        if let Some(step) = self.keep_pace(machine) {
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
            // The thread that has taken most gets the error; the others share what is left.
            if !self.error_raised && kernel.is_greediest(thread) {
                return self.after_out_of_memory(thread, machine);
            }
            want = want.min(cells.max(SHORT_CELLS));
        } else {
            self.error_raised = false;
        }
        if let Some((paced_cells, _)) = paced(kernel.heap.pace()) {
            want = want.min(cells.max(paced_cells));
        }
        machine.mutator.set_want(want.max(CELLS_MIN));
        let words = machine.mutator.cells.words();
        let ask = CellRequest { need: cells, want };
        if thread.refill.swap(REFILL_IDLE, Ordering::AcqRel) == REFILL_FAILED {
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

    /// Called when no cells were available. After another collection the thread tries again: once
    /// if it is the greediest, otherwise for as long as the greediest may take to end. Then it gets
    /// the error. If its handlers run out of memory too, the thread ends.
    fn after_out_of_memory(
        &mut self,
        thread: &Arc<LispThread>,
        machine: &mut Machine,
    ) -> Option<Step> {
        if let Some(step) = self.delay_step(thread) {
            return Some(step);
        }
        self.starved += 1;
        let tries = match thread.session.account.is_bounded() {
            _ if self.kernel.is_greediest(thread) && self.is_handling(thread) => HANDLING_TRIES_MAX,
            _ if self.kernel.is_greediest(thread) => 1,
            true => BOUNDED_TRIES_MAX,
            false => STARVED_MAX,
        };
        if self.starved <= tries {
            return Some(self.after_collection());
        }
        let is_handling = self.is_handling(thread);
        self.note_error(thread);
        if is_handling {
            machine.finish_as(self.kernel.out_of_memory);
            return Some(self.end(thread, machine, Exit::Uncaught));
        }
        thread.requests.fetch_or(REQUEST_OUT_OF_MEMORY, Ordering::AcqRel);
        None
    }
}
