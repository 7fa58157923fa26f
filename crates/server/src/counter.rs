//! Limits the number of things at a time: connections of a user, sessions of a connection.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Counts the things.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicUsize);

/// One thing that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct CountGuard(Arc<Counter>);

impl Counter {
    /// Counts one more, or returns `None` if there are `max` already. `max` may differ from call to
    /// call.
    pub(crate) fn try_add(self: &Arc<Self>, max: usize) -> Option<CountGuard> {
        let more = |taken| (taken < max).then_some(taken + 1);
        let entered = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.is_ok().then(|| CountGuard(Arc::clone(self)))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::Counter;
    use std::sync::Arc;

    #[test]
    fn the_count_is_limited_and_falls_again() {
        let counter = Arc::new(Counter::default());
        let counted: Vec<_> = (0..3).map_while(|_| counter.try_add(2)).collect();
        assert_eq!(counted.len(), 2);
        assert!(counter.try_add(2).is_none(), "a refused attempt is not counted");
        assert!(counter.try_add(3).is_some(), "a larger limit admits one more");
        drop(counted);
        assert!(counter.try_add(1).is_some());
    }
}
