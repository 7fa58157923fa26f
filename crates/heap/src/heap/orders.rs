//! What a policy of the collector may order, and how far it is obeyed: never beyond the heap's limit.

use crate::heap::cache_size::INTERVAL_NS;
use crate::heap::{Heap, lock};
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The least that is handed out between two collections, whatever is ordered; or this part of what survived the last one.
const BUDGET_BYTES_MIN: usize = 1 << 20;
const BUDGET_FRACTION_MIN: usize = 64;
/// Caches that last for longer are as large as they can be.
const REFILL_NS_MAX: usize = 1_000_000_000;

/// Orders, each of which may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// So much is handed out before the next collection, counted from the last one.
    pub budget_bytes: Option<usize>,
    /// So much free memory is kept at collections; the rest is given back to the host.
    pub keep_bytes: Option<usize>,
    /// So long shall what a thread gets at a time last.
    pub refill_ns: Option<usize>,
}

/// Orders that hold until there are others.
#[derive(Debug)]
pub(super) struct Standing {
    keep_bytes: AtomicUsize,
    refill_ns: AtomicU64,
}

/// As much as will be handed out before the next collection is kept.
const KEEP_EXPECTED: usize = usize::MAX;

impl Default for Standing {
    fn default() -> Self {
        Self { keep_bytes: AtomicUsize::new(KEEP_EXPECTED), refill_ns: AtomicU64::new(INTERVAL_NS) }
    }
}

impl Heap {
    /// Does as a policy orders.
    pub fn obey(&self, orders: &Orders) {
        if let Some(bytes) = orders.budget_bytes {
            let mut space = lock(&self.space);
            let least = BUDGET_BYTES_MIN.max(space.held_bytes / BUDGET_FRACTION_MIN);
            space.order_budget(&self.limits, bytes.max(least));
            let budget_bytes = space.budget_bytes;
            drop(space);
            lock(&self.statistics).trigger_bytes = budget_bytes;
        }
        if let Some(bytes) = orders.keep_bytes {
            self.standing.keep_bytes.store(bytes.min(KEEP_EXPECTED - 1), Ordering::Relaxed);
        }
        if let Some(ns) = orders.refill_ns {
            self.standing.refill_ns.store(ns.min(REFILL_NS_MAX) as u64, Ordering::Relaxed);
        }
    }

    /// There is no policy any more.
    pub fn take_orders_back(&self) {
        let Standing { keep_bytes, refill_ns } = Standing::default();
        self.standing.keep_bytes.store(keep_bytes.into_inner(), Ordering::Relaxed);
        self.standing.refill_ns.store(refill_ns.into_inner(), Ordering::Relaxed);
        let mut space = lock(&self.space);
        let held_bytes = space.held_bytes;
        space.set_budget(&self.limits, held_bytes);
    }

    /// How much free memory a collection keeps, where so much is expected to be handed out before the next one.
    pub(super) fn kept_bytes(&self, expected_bytes: usize) -> usize {
        match self.standing.keep_bytes.load(Ordering::Relaxed) {
            KEEP_EXPECTED => expected_bytes,
            bytes => bytes,
        }
    }

    /// How long what a thread gets at a time shall last.
    pub fn refill_ns(&self) -> u64 {
        self.standing.refill_ns.load(Ordering::Relaxed)
    }
}
