//! How many virtual processors run microprocesses, changed while they do (`set_concurrency`, Paper 1, §3.1.3).
//!
//! ```text
//!   0   1   2 │ 3   4        the first `concurrency` run, the rest are retired
//!   run       │ retired      a retired one runs nobody: whatever becomes runnable there is sent on by its base
//! ```
//!
//! A retired virtual processor keeps its port, its timers and its inbox, so nothing that was begun there is lost or cancelled: what
//! completes there goes on elsewhere, and its next wait is elsewhere. When the last one is gone, its kernel threads sleep.
//!
//! The paper's kernel discards the surplus kernel threads and makes new ones later. Ours keeps them asleep: making one takes as long as
//! a thousand switches, and the number is bounded by what the runtime was built for.

use core::fmt;

use crate::policy::configuration;
use crate::processor::vp::attention;
use crate::schedule::mask;

/// A runtime has no such number of virtual processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyError {
    /// What was asked for.
    pub asked: usize,
    /// The most that the runtime was built for.
    pub most: usize,
}

impl fmt::Display for ConcurrencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, most } = self;
        write!(f, "{asked} virtual processors: this runtime was built for 1 to {most}, see ")?;
        f.write_str("RuntimeBuilder::virtual_processors_max")
    }
}

impl core::error::Error for ConcurrencyError {}

/// Lets the first `count` virtual processors of the caller's runtime run microprocesses, and no others.
///
/// Those that retire stop at their next scheduling point, or at the end of the time slice of what runs there. Whoever is pinned
/// to one may run anywhere meanwhile.
///
/// ```
/// use kyocho_microprocess::{Runtime, concurrency, set_concurrency};
///
/// let runtime = Runtime::builder().virtual_processors(1).virtual_processors_max(2).build();
/// runtime.run(|| {
///     set_concurrency(2).unwrap();
///     assert_eq!(concurrency(), 2);
///     assert!(set_concurrency(3).is_err());
/// }).unwrap();
/// ```
///
/// # Errors
/// `count` is zero, or more than the runtime was built for.
///
/// # Panics
/// The caller is no microprocess.
pub fn set_concurrency(count: usize) -> Result<(), ConcurrencyError> {
    let section = mask();
    let shared = section.vp.shared();
    section.leave();
    let most = shared.vps().len();
    if count == 0 || count > most {
        return Err(ConcurrencyError { asked: count, most });
    }
    // One change at a time.
    configuration::of(shared).change(|_| {
        shared.set_concurrency(count);
        for vp in shared.vps() {
            // Who retires sends everybody away; who stays shares with those who begin.
            vp.alert(attention::RECONSIDER | attention::SPREAD);
        }
    });
    Ok(())
}
