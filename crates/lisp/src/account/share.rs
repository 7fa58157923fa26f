//! A user's share of the processors.
//!
//! Users whose threads are runnable have equal shares. What an account's threads run fills a bucket that its share drains: while
//! the bucket is full, the account is *over its share*, and its threads run at a quarter of their priority, so behind
//! everybody who is not. Nobody is held up while a processor is free; who has waited has his share at once.
//!
//! Pure: time is an argument.

/// What an account may run at a time beyond its share, in nanoseconds on a processor: so that who seldom runs is not behind.
const BURST_NS: u64 = 50_000_000;
/// No more than this is held against an account, however long it has run.
const DEBT_NS: u64 = 200_000_000;

/// One account's bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    level_ns: u64,
    at_ns: u64,
}

impl Share {
    /// Its threads have run for `ns`, up to `now_ns`. `millishare` thousandths of a processor are its share.
    pub(crate) fn run(&mut self, now_ns: u64, ns: u64, millishare: u64) {
        self.drain(now_ns, millishare);
        self.level_ns = self.level_ns.saturating_add(ns).min(DEBT_NS);
    }

    /// Whether it has had more than its share of late.
    pub(crate) fn is_over(&mut self, now_ns: u64, millishare: u64) -> bool {
        self.drain(now_ns, millishare);
        self.level_ns > BURST_NS
    }

    fn drain(&mut self, now_ns: u64, millishare: u64) {
        // Threads on two processors may tell their times out of order.
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(now_ns);
        let drained = u128::from(elapsed_ns) * u128::from(millishare) / 1000;
        self.level_ns = self.level_ns.saturating_sub(u64::try_from(drained).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::{BURST_NS, DEBT_NS, Share};
    use proptest::prelude::{prop_assert, proptest};

    const MS: u64 = 1_000_000;

    #[test]
    fn who_runs_all_the_time_is_over_half_a_processor() {
        let mut share = Share::default();
        let over = (1..1000).position(|ms| {
            share.run(ms * MS, MS, 500);
            share.is_over(ms * MS, 500)
        });
        assert_eq!(over, Some(99), "in the hundredth millisecond: after twice the burst");
    }

    #[test]
    fn who_waits_is_forgiven() {
        let mut share = Share::default();
        (1..10_000).for_each(|ms| share.run(ms * MS, MS, 100));
        assert!(share.is_over(10_000 * MS, 100));
        let forgiven_ms = (DEBT_NS - BURST_NS) / MS * 10;
        assert!(!share.is_over((10_000 + forgiven_ms) * MS, 100));
    }

    proptest! {
        /// Who runs no more than his share is never over it.
        #[test]
        fn a_share_may_be_used(millishare in 1_u64..4000, steps in proptest::collection::vec(1_u64..5000, 1..200)) {
            let mut share = Share::default();
            let mut now_ns = 0;
            for us in steps {
                let ran_ns = us * 1000;
                now_ns += (ran_ns * 1000).div_ceil(millishare);
                share.run(now_ns, ran_ns, millishare);
                prop_assert!(!share.is_over(now_ns, millishare));
            }
        }
    }
}
