//! Waiting for a word that another process changes. How a change is noticed: `processor/bell.rs`.

use std::io;

use kyocho_sys::error::Errno;

pub use crate::processor::bell::{BELLS_MAX, Peer, Standing, announce, descriptors, ring_all};
use crate::processor::bell::{cpu_of, pages};
use crate::schedule::mask;

mod wait;

pub use wait::{Post, Wait, Words};

/// The bell of the caller's virtual processor, which may be another one after the next call of this
/// crate.
///
/// # Errors
/// As for [`Wait::run`].
///
/// # Panics
/// The caller is not a microprocess.
pub fn own() -> io::Result<u32> {
    let pages = pages()?;
    let section = mask();
    let bell = section.vp.bell.number(pages);
    section.leave();
    bell.ok_or_else(|| Errno::BUSY.into())
}

/// The CPU of the caller's virtual processor, as far as known.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn own_cpu() -> usize {
    let section = mask();
    let cpu = cpu_of(section.vp);
    section.leave();
    cpu
}

/// Ends the donations to the caller's virtual processor, so that the donors continue: what they
/// wait for is done. Costs one load if there is no donation.
///
/// # Panics
/// The caller is not a microprocess.
pub fn end_donations() {
    let section = mask();
    section.vp.bell.end_donations();
    section.leave();
}

/// Calls `look` with the caller's virtual processor, for a test.
#[cfg(test)]
fn mask_for_test<R>(look: impl FnOnce(crate::processor::vp::Masked<'_>) -> R) -> R {
    let section = mask();
    let seen = look(section.masked());
    section.leave();
    seen
}

#[cfg(test)]
mod tests;
