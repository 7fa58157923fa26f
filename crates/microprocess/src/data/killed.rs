//! The panic payload of a killed microprocess.

use core::fmt;

/// The panic payload with which a killed microprocess unwinds. Joining it returns this as its
/// error.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use kyocho_microprocess::{Killed, park, spawn};
/// let waits = spawn(park);
/// waits.microprocess().kill().unwrap();
/// assert!(waits.join().unwrap_err().is::<Killed>());
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Killed;

impl Killed {
    pub(crate) const fn new() -> Self {
        Self
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the microprocess was killed")
    }
}

impl core::error::Error for Killed {}
