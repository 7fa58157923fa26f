//! What others ask of the monitor and of the maker, two kernel threads beside the virtual processors.
//!
//! Their lives: [`monitor`](crate::events::monitor), [`maker`](crate::events::maker).

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::task::ThreadId;

use crate::data::slice::SLICE_NS;
use crate::processor::vp::{NEVER_NS, Vp};

/// Kernel threads kept waiting for each virtual processor: at least, and at most.
pub(crate) const SPARES_MIN: u32 = 2;
const SPARES_MAX: u32 = 64;

/// What others tell the monitor.
#[derive(Debug)]
pub(crate) struct MonitorRequests {
    /// A futex word: 1 when there is something to look at.
    pub(crate) word: AtomicU32,
    /// When it looks next of its own accord.
    pub(crate) planned_ns: AtomicU64,
    /// A kernel call is to end, and was interrupted once.
    pub(crate) calls: AtomicBool,
}

impl MonitorRequests {
    pub(crate) const fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            planned_ns: AtomicU64::new(NEVER_NS),
            calls: AtomicBool::new(false),
        }
    }

    /// As they were at first: no monitor runs.
    pub(crate) fn renew(&self) {
        self.word.store(0, Ordering::SeqCst);
        self.planned_ns.store(NEVER_NS, Ordering::SeqCst);
        self.calls.store(false, Ordering::SeqCst);
    }

    /// Makes it look now. Neither allocates nor waits.
    pub(crate) fn poke(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake(&self.word, 1);
        }
    }

    /// A kernel call is to end, and was interrupted once: it does so again.
    pub(crate) fn call_again(&self) {
        self.calls.store(true, Ordering::SeqCst);
        self.poke();
    }

    /// Somebody waits until `deadline_ns` on a virtual processor that is busy.
    pub(crate) fn expect_deadline(&self, deadline_ns: u64) {
        if deadline_ns < self.planned_ns.load(Ordering::SeqCst) {
            self.poke();
        }
    }

    /// A virtual processor is busy again.
    pub(crate) fn expect_work(&self) {
        if self.planned_ns.load(Ordering::SeqCst) > monotonic_ns() + SLICE_NS {
            self.poke();
        }
    }
}

/// What others tell the maker.
#[derive(Debug)]
pub(crate) struct MakerRequests {
    /// A futex word: 1 when there is something to look at.
    pub(crate) word: AtomicU32,
    /// Kernel threads to keep waiting for each virtual processor.
    pub(crate) wanted: AtomicU32,
    /// Its number; 0 before it runs.
    pub(crate) tid: AtomicU32,
    /// The host runs it, and the monitor, before everybody.
    pub(crate) is_raised: AtomicBool,
}

impl MakerRequests {
    pub(crate) const fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            wanted: AtomicU32::new(SPARES_MIN),
            tid: AtomicU32::new(0),
            is_raised: AtomicBool::new(false),
        }
    }

    /// As they were at first: no maker runs.
    pub(crate) fn renew(&self) {
        self.word.store(0, Ordering::SeqCst);
        self.wanted.store(SPARES_MIN, Ordering::SeqCst);
        self.tid.store(0, Ordering::SeqCst);
        self.is_raised.store(false, Ordering::SeqCst);
    }

    /// Its number, once it runs.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid != 0).map(ThreadId::new)
    }

    /// Makes it look now. Neither allocates nor waits.
    pub(crate) fn poke(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake(&self.word, 1);
        }
    }

    /// The pool of `vp` is empty, or will be soon.
    #[cold]
    pub(crate) fn ask(&self, vp: &Vp) {
        let wanted = (self.wanted.load(Ordering::Relaxed) * 2).min(SPARES_MAX);
        self.wanted.store(wanted, Ordering::Relaxed);
        // Waking it again and again keeps those from beginning that it has started.
        if coming(vp) < wanted {
            self.poke();
        }
    }

    /// A spare of `vp` was used.
    pub(crate) fn expect_use(&self, vp: &Vp) {
        if vp.pool.size() < self.wanted.load(Ordering::Relaxed) / 2 {
            self.ask(vp);
        }
    }
}

/// How many wait for `vp`, or will soon.
pub(crate) fn coming(vp: &Vp) -> u32 {
    vp.pool.size() + vp.starting.load(Ordering::SeqCst)
}
