//! The orders that a policy can give to the collector, and how far they are followed: never beyond
//! the heap's limit.

use crate::heap::cache_size::INTERVAL_NS;
use crate::heap::{Heap, lock};
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Least budget between two collections, whatever is ordered; a fraction of the surviving bytes if
/// that is more.
const BUDGET_BYTES_MIN: usize = 1 << 20;
const BUDGET_FRACTION_MIN: usize = 64;
/// Longest refill interval that has an effect: caches then have their maximal size.
const REFILL_NS_MAX: usize = 1_000_000_000;

/// Orders. Each may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Bytes to be taken before the next collection, counted from the last one.
    pub budget_bytes: Option<usize>,
    /// Free bytes kept at collections. The rest is returned to the host.
    pub keep_bytes: Option<usize>,
    /// Time that the cells of one request should last.
    pub refill_ns: Option<usize>,
}

/// Orders that hold until they are replaced.
#[derive(Debug)]
pub(super) struct LastingOrders {
    keep_bytes: AtomicUsize,
    refill_ns: AtomicU64,
}

/// Keep as much as will presumably be taken before the next collection.
const KEEP_EXPECTED: usize = usize::MAX;

impl Default for LastingOrders {
    fn default() -> Self {
        Self { keep_bytes: AtomicUsize::new(KEEP_EXPECTED), refill_ns: AtomicU64::new(INTERVAL_NS) }
    }
}

impl Heap {
    /// Follows the orders of a policy.
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
            self.lasting_orders.keep_bytes.store(bytes.min(KEEP_EXPECTED - 1), Ordering::Relaxed);
        }
        if let Some(ns) = orders.refill_ns {
            self.lasting_orders.refill_ns.store(ns.min(REFILL_NS_MAX) as u64, Ordering::Relaxed);
        }
    }

    /// Cancels the lasting orders: there is no policy any more.
    pub fn take_orders_back(&self) {
        let LastingOrders { keep_bytes, refill_ns } = LastingOrders::default();
        self.lasting_orders.keep_bytes.store(keep_bytes.into_inner(), Ordering::Relaxed);
        self.lasting_orders.refill_ns.store(refill_ns.into_inner(), Ordering::Relaxed);
        let mut space = lock(&self.space);
        let held_bytes = space.held_bytes;
        space.set_budget(&self.limits, held_bytes);
    }

    /// How much free memory a collection keeps if `expected_bytes` will presumably be taken before
    /// the next one.
    pub(super) fn kept_bytes(&self, expected_bytes: usize) -> usize {
        match self.lasting_orders.keep_bytes.load(Ordering::Relaxed) {
            KEEP_EXPECTED => expected_bytes,
            bytes => bytes,
        }
    }

    /// Time that the cells of one request should last.
    pub fn refill_ns(&self) -> u64 {
        self.lasting_orders.refill_ns.load(Ordering::Relaxed)
    }
}
