//! A time limit that can be changed while it is in use.

use core::time::Duration;
use std::io::{ErrorKind, Result};

use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

/// Nanoseconds; 0 means no limit.
#[derive(Debug, Default)]
pub(super) struct Limit(AtomicU64);

impl Limit {
    pub(super) fn get(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            ns => Some(Duration::from_nanos(ns)),
        }
    }

    /// Sets the limit; as in std, a limit of zero is an error.
    pub(super) fn set(&self, limit: Option<Duration>) -> Result<()> {
        let ns = match limit {
            None => 0,
            Some(Duration::ZERO) => return Err(ErrorKind::InvalidInput.into()),
            Some(limit) => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
        };
        self.0.store(ns, Ordering::Relaxed);
        Ok(())
    }
}
