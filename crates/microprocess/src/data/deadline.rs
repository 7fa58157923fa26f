//! Points in time on the monotonic clock.

use core::time::Duration;

use kyocho_sys::prim::clock::monotonic_ns;

/// A point in time: nanoseconds on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(u64);

impl Deadline {
    /// The point `ns` nanoseconds after the clock's zero.
    #[must_use]
    pub const fn at_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        Self(monotonic_ns())
    }

    /// The point `wait` from now; `None` if that is past the clock's range.
    #[must_use]
    pub fn after(wait: Duration) -> Option<Self> {
        monotonic_ns().checked_add(u64::try_from(wait.as_nanos()).ok()?).map(Self)
    }

    /// Nanoseconds since the clock's zero.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }
}
