//! Time slices.

/// The default time slice: how long a microprocess runs while others of its priority wait.
pub(crate) const SLICE_NS: u64 = 5_000_000;
/// The shortest time slice that a program or a user scheduler may ask for.
pub(crate) const SLICE_NS_MIN: u64 = 1_000_000;
/// The longest time slice that a program or a user scheduler may ask for.
pub(crate) const SLICE_NS_MAX: u64 = 1_000_000_000;
