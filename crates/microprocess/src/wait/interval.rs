//! Points in time at equal distances.

use core::time::Duration;

use crate::data::deadline::Deadline;
use crate::schedule;

/// Produces ticks at equal distances, each when it is asked for.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use core::time::Duration;
/// use kyocho_microprocess::Interval;
/// let mut interval = Interval::new(Duration::from_millis(2));
/// let (one, next) = (interval.tick(), interval.tick());
/// assert_eq!((next.ns() - one.ns()) % 2_000_000, 0);
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Interval {
    next_ns: u64,
    period_ns: u64,
}

impl Interval {
    /// An interval with a tick every `period`, the first one `period` from now.
    ///
    /// # Panics
    /// `period` is zero.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        assert!(!period.is_zero(), "an interval's period must not be zero");
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Self { next_ns: Deadline::now().ns().saturating_add(period_ns), period_ns }
    }

    /// Waits for the next tick, and returns its time. If ticks were missed, only the latest one is
    /// returned; later ticks keep their times.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn tick(&mut self) -> Deadline {
        let tick_ns = self.advance(Deadline::now().ns());
        schedule::sleep_until(Deadline::at_ns(tick_ns));
        Deadline::at_ns(tick_ns)
    }

    /// The tick to wait for at `now_ns`: the next one, or the latest of those that have passed
    /// since.
    fn advance(&mut self, now_ns: u64) -> u64 {
        let missed = now_ns.saturating_sub(self.next_ns) / self.period_ns;
        let tick_ns = self.next_ns.saturating_add(missed.saturating_mul(self.period_ns));
        self.next_ns = tick_ns.saturating_add(self.period_ns);
        tick_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::Interval;

    proptest! {
        /// Each tick is a multiple of the period, later than the one before, and at most one period
        /// behind the clock.
        #[test]
        fn ticks_keep_their_places(
            start in 0_u64..1000,
            period in 1_u64..50,
            waits in prop::collection::vec(0_u64..300, 1..40),
        ) {
            let mut interval = Interval { next_ns: start, period_ns: period };
            let (mut now, mut before) = (start, None);
            for wait in waits {
                now += wait;
                let tick = interval.advance(now);
                prop_assert_eq!((tick - start) % period, 0);
                prop_assert!(before.is_none_or(|before| tick > before));
                prop_assert!(tick + period > now, "{tick} is more than a period before {now}");
                before = Some(tick);
                now = now.max(tick);
            }
        }
    }

    #[test]
    fn end_of_the_clock_is_no_end_of_the_program() {
        let mut interval = Interval { next_ns: u64::MAX - 1, period_ns: u64::MAX };
        assert_eq!((interval.advance(5), interval.advance(5)), (u64::MAX - 1, u64::MAX));
    }
}
