//! The services that are threads (paper 4, §3.1): the system-call thread, the collector and the [`markers`] that help it, the keeper of
//! [`shares`], and the [`watchdog`].
//!
//! ```text
//! thread: cache empty --request--> system-call thread: refill --unpark--> thread runs on
//!                                   | a collection is wanted
//! thread: --request--> collector: marks beside the threads, or with the world stopped where somebody waits for memory
//! ```
//!
//! Each may be killed, as any microprocess: `boot` starts it again, and it finds its work where it was. A kill is put off until it waits or gives
//! way: with the world stopped it has no such point, so the world goes on first. A collection that is given up leaves a heap in which nothing is cut from
//! part-used blocks until the next one has ended.

mod collector;
pub(crate) mod markers;
pub(crate) mod policy;
mod shares;
mod watchdog;

pub(crate) use collector::Collector;
pub(crate) use shares::Shares;
pub(crate) use watchdog::Watchdog;

use crate::system::kernel::{Kernel, lock};
use crate::system::statistics::Counted;
use crate::thread::lisp_thread::{ASKED, GRANTED, LispThread, STARVED};
use kyocho_heap::heap::OutOfMemory;
use kyocho_heap::heap::cells::CellWords;
use kyocho_microprocess::{Microprocess, park, yield_now};
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A thread that wants cells.
#[derive(Debug)]
struct Request {
    thread: Arc<LispThread>,
    words: Arc<CellWords>,
    ask: Ask,
}

/// What a thread asks for: so many cells, some of them side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) need: usize,
    pub(crate) want: usize,
}

/// The system-call thread, and its mailbox. A thread has at most one request in it.
#[derive(Debug, Default)]
pub(crate) struct SystemCall {
    requests: Mutex<VecDeque<Request>>,
    microprocess: Mutex<Option<Microprocess>>,
    carried_by_caller: AtomicBool,
}

impl SystemCall {
    /// Lets the caller's own step carry each request. On several virtual processors the service may
    /// be at home on another one, whose wake costs 10 to 60 µs; as with a gate, it is then cheaper
    /// that the client's kernel thread does the work.
    pub(crate) fn carry_by_caller(&self) {
        self.carried_by_caller.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_carried_by_caller(&self) -> bool {
        self.carried_by_caller.load(Ordering::Relaxed)
    }

    /// Asks for cells; the thread is unparked when it has them. Until then its cache is not its own.
    pub(crate) fn request(&self, thread: &Arc<LispThread>, words: &Arc<CellWords>, ask: Ask) {
        thread.refill.store(ASKED, Ordering::Release);
        let request = Request { thread: Arc::clone(thread), words: Arc::clone(words), ask };
        lock(&self.requests).push_back(request);
        wake(&self.microprocess);
    }

    /// Who serves.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system is booted")
    }

    /// Gives a cache cells.
    pub(crate) fn serve(
        &self,
        kernel: &Kernel,
        words: &Arc<CellWords>,
        Ask { need, want }: Ask,
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
                Ok(()) => GRANTED,
                Err(OutOfMemory) => STARVED,
            };
            thread.refill.store(answer, Ordering::Release);
            if let Some(microprocess) = thread.microprocess.get() {
                microprocess.unpark();
            }
        }
    }
}

/// Lets others run where the caller's time slice is over; where it is killed, it ends here.
fn give_way(me: &Microprocess) {
    if me.is_wanted() {
        yield_now();
    }
}

/// Wakes a service; one that is just being started again looks at its work first.
fn wake(microprocess: &Mutex<Option<Microprocess>>) {
    if let Some(microprocess) = lock(microprocess).as_ref() {
        microprocess.unpark();
    }
}
