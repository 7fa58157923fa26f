//! The services that are threads (paper 4, §3.1): the system-call thread, the collector and the
//! [`markers`] that help it, the thread that accounts for [`shares`], and the [`watchdog`].
//!
//! ```text
//! thread: cache empty --request--> system-call thread: refill --unpark--> thread continues
//!                                   | a collection is wanted
//! thread: --request--> collector: marks concurrently; with the world stopped if a thread waits
//!                      for memory
//! ```
//!
//! Each may be killed, like any microprocess. A keeper then starts it again, and it continues with
//! the pending work. A kill takes effect when the service waits or yields. The collector does
//! neither while the world is stopped. If it is killed while it waits for threads to stop, they run
//! again. After an aborted collection the heap takes no lines of part-used blocks until the next
//! collection has ended.

mod collector;
pub(crate) mod markers;
pub(crate) mod policy;
mod shares;
mod watchdog;

pub(crate) use collector::Collector;
pub(crate) use shares::Shares;
pub(crate) use watchdog::Watchdog;

use crate::kernel::calls::Counted;
use crate::kernel::session::thread::{LispThread, REFILL_FAILED, REFILL_REQUESTED, REFILL_SERVED};
use crate::kernel::{Kernel, lock};
use kyocho_heap::heap::OutOfMemory;
use kyocho_heap::heap::cells::CellWords;
use kyocho_microprocess::{Microprocess, park, yield_now};
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A thread that needs cells.
#[derive(Debug)]
struct Request {
    thread: Arc<LispThread>,
    words: Arc<CellWords>,
    ask: CellRequest,
}

/// A request of a thread: a number of cells, some of them adjacent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellRequest {
    pub(crate) need: usize,
    pub(crate) want: usize,
}

/// The system-call thread with its mailbox. A thread has at most one request in it.
#[derive(Debug, Default)]
pub(crate) struct SystemCall {
    requests: Mutex<VecDeque<Request>>,
    microprocess: Mutex<Option<Microprocess>>,
    carried_by_caller: AtomicBool,
}

impl SystemCall {
    /// Makes the requesting thread's own kernel thread run the service. With several virtual
    /// processors the service may be on another one, and waking that costs 10 to 60 µs. As with a
    /// gate, it is then cheaper if the client's kernel thread does the work.
    pub(crate) fn carry_by_caller(&self) {
        self.carried_by_caller.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_carried_by_caller(&self) -> bool {
        self.carried_by_caller.load(Ordering::Relaxed)
    }

    /// Requests cells. The thread is unparked when it has them. Until then it must not use its
    /// cache.
    pub(crate) fn request(
        &self,
        thread: &Arc<LispThread>,
        words: &Arc<CellWords>,
        ask: CellRequest,
    ) {
        thread.refill.store(REFILL_REQUESTED, Ordering::Release);
        let request = Request { thread: Arc::clone(thread), words: Arc::clone(words), ask };
        lock(&self.requests).push_back(request);
        wake(&self.microprocess);
    }

    /// The service's microprocess.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system has booted")
    }

    /// Adds cells to a cache.
    pub(crate) fn serve(
        &self,
        kernel: &Kernel,
        words: &Arc<CellWords>,
        CellRequest { need, want }: CellRequest,
    ) -> Result<(), OutOfMemory> {
        kernel.calls.count(Counted::Refills, 1);
        kernel.calls.count(Counted::Cells, want);
        kernel.heap.refill_words(words, need, want)
    }

    /// The thread's body: serves until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        loop {
            let next = lock(&self.requests).pop_front();
            let Some(Request { thread, words, ask }) = next else {
                park();
                continue;
            };
            let answer = match self.serve(kernel, &words, ask) {
                Ok(()) => REFILL_SERVED,
                Err(OutOfMemory) => REFILL_FAILED,
            };
            thread.refill.store(answer, Ordering::Release);
            if let Some(microprocess) = thread.microprocess.get() {
                microprocess.unpark();
            }
        }
    }
}

/// Yields if the caller's time slice is over. If the caller was killed, it ends here.
fn yield_if_due(me: &Microprocess) {
    if me.is_wanted() {
        yield_now();
    }
}

/// Wakes a service. A service that is being restarted checks for work first, so no wake is lost.
fn wake(microprocess: &Mutex<Option<Microprocess>>) {
    if let Some(microprocess) = lock(microprocess).as_ref() {
        microprocess.unpark();
    }
}
