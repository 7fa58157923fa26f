//! Requests to the monitor and to the maker, two kernel threads beside the virtual processors.
//!
//! The threads themselves: [`monitor`](crate::events::monitor), [`maker`](crate::events::maker).

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::task::ThreadId;

use crate::data::slice::SLICE_NS;
use crate::processor::vp::{NEVER_NS, Vp};

/// The least and the greatest number of spare kernel threads for each virtual processor.
pub(crate) const SPARES_MIN: u32 = 2;
const SPARES_MAX: u32 = 64;

/// Requests to the monitor.
#[derive(Debug)]
pub(crate) struct MonitorRequests {
    /// A futex word: 1 when there is a request.
    pub(crate) word: AtomicU32,
    /// When the monitor next wakes by itself.
    pub(crate) planned_ns: AtomicU64,
    /// A system call is to end, and was interrupted once.
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

    /// A system call is to end, and was interrupted once: the monitor is to interrupt it again.
    pub(crate) fn call_again(&self) {
        self.calls.store(true, Ordering::SeqCst);
        self.poke();
    }

    /// A microprocess of a busy virtual processor waits until `deadline_ns`.
    pub(crate) fn expect_deadline(&self, deadline_ns: u64) {
        if deadline_ns < self.planned_ns.load(Ordering::SeqCst) {
            self.poke();
        }
    }

    /// A virtual processor became busy.
    pub(crate) fn expect_work(&self) {
        if self.planned_ns.load(Ordering::SeqCst) > monotonic_ns() + SLICE_NS {
            self.poke();
        }
    }
}

/// Requests to the maker.
#[derive(Debug)]
pub(crate) struct MakerRequests {
    /// A futex word: 1 when there is a request.
    pub(crate) word: AtomicU32,
    /// How many spare kernel threads each virtual processor should have.
    pub(crate) wanted: AtomicU32,
    /// The maker's thread number; 0 before it runs.
    pub(crate) tid: AtomicU32,
    /// The host runs the maker and the monitor before all others.
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

    /// Wakes the maker now. Neither allocates nor waits.
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
        // Waking the maker repeatedly would delay the threads that it has started.
        if coming(vp) < wanted {
            self.poke();
        }
    }

    /// A spare kernel thread of `vp` was used.
    pub(crate) fn expect_use(&self, vp: &Vp) {
        if vp.pool.size() < self.wanted.load(Ordering::Relaxed) / 2 {
            self.ask(vp);
        }
    }
}

/// How many spare kernel threads `vp` has or will soon have.
pub(crate) fn coming(vp: &Vp) -> u32 {
    vp.pool.size() + vp.starting.load(Ordering::SeqCst)
}
