//! Changes the number of virtual processors that run microprocesses, at run time
//! (`set_concurrency`, Paper 1, §3.1.3).
//!
//! ```text
//!   0   1   2 │ 3   4        the first `concurrency` run, the rest are retired
//!   run       │ retired      runs nothing: its base sends elsewhere what becomes runnable
//! ```
//!
//! A retired virtual processor keeps its port, its timers and its inbox, so operations begun there
//! are neither lost nor cancelled. When one completes, its microprocess continues on another
//! virtual processor, and waits there from then on. Once no operation is left, the kernel threads
//! of a retired virtual processor sleep.
//!
//! The paper's kernel discards the surplus kernel threads and makes new ones later. Here they sleep
//! instead: making a kernel thread takes as long as a thousand switches. Their number is bounded,
//! since the runtime was built for a greatest number of virtual processors.

use core::fmt;

use crate::policy::configuration;
use crate::processor::vp::attention;
use crate::schedule::mask;

/// The runtime cannot have that number of virtual processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyError {
    /// The number asked for.
    pub asked: usize,
    /// The greatest number that the runtime was built for.
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

/// Lets the first `count` virtual processors of the caller's runtime run microprocesses, and no
/// others.
///
/// A virtual processor that retires stops at its next scheduling point, at the latest at the end of
/// the current time slice. A microprocess pinned to a retired one may run anywhere until it is
/// back.
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
/// The caller is not a microprocess.
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
            // A virtual processor that retires sends all its microprocesses elsewhere. One that
            // stays shares its work with those that begin to run.
            vp.alert(attention::RECONSIDER | attention::SPREAD);
        }
    });
    Ok(())
}
