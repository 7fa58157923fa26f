//! The monitor: one kernel thread a runtime that is not on any virtual processor.
//!
//! It makes kernel threads ahead of need: only a thread of the normal class can make one of the normal class, and nobody who has
//! events masked may allocate.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::shared::Shared;
use crate::vp::NEVER_NS;

/// Kernel threads kept waiting for a virtual processor.
const SPARES: u32 = 2;

/// What others tell the monitor.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// A futex word: 1 when there is something to look at.
    word: AtomicU32,
    /// When it looks next of its own accord.
    planned_ns: AtomicU64,
}

impl Monitor {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0), planned_ns: AtomicU64::new(NEVER_NS) }
    }

    /// Makes it look now. No allocation, no waiting.
    pub(crate) fn poke(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake(&self.word, 1);
        }
    }

    /// The pool is empty.
    pub(crate) fn ask_for_spares(&self) {
        self.poke();
    }

    /// Somebody waits until `deadline_ns` on a virtual processor that is busy.
    pub(crate) fn expect_deadline(&self, deadline_ns: u64) {
        if deadline_ns < self.planned_ns.load(Ordering::Relaxed) {
            self.poke();
        }
    }
}

/// The monitor's life.
pub(crate) fn run(shared: &'static Shared) {
    let monitor = &shared.monitor;
    while !shared.stopping.load(Ordering::SeqCst) {
        monitor.word.store(0, Ordering::SeqCst);
        while shared.pool.size() < SPARES && shared.start_thread(None).is_ok() {}
        futex::wait(&monitor.word, 0, None);
    }
}
