//! The standard output of a node that repeats what other nodes do: it must appear only once.
#![expect(unsafe_code, reason = "writes out what stdio holds")]

use core::ptr;
use std::os::fd::{AsFd, OwnedFd};

use kyocho_dsm::Error;
use kyocho_sys::descriptor::{self, Access};

use crate::node::{Failure, Result};

/// The descriptor of the standard output.
const OUTPUT: u32 = 1;

/// Flushes the buffers of stdio.
pub(crate) fn flush() {
    // SAFETY: null means all streams.
    let _failed = unsafe { libc::fflush(ptr::null_mut()) };
}

/// Redirects standard output to nowhere. Returns the descriptor that it had.
pub(crate) fn silence() -> Result<OwnedFd> {
    flush();
    let before = std::io::stdout().as_fd().try_clone_to_owned();
    let before = before.map_err(|why| Failure::Invalid(format!("standard output: {why}")))?;
    let nowhere = descriptor::open(c"/dev/null", Access::Append).map_err(Error::Host)?;
    redirect(&nowhere)?;
    Ok(before)
}

/// Replaces standard output.
pub(crate) fn redirect(to: &OwnedFd) -> Result<()> {
    flush();
    descriptor::replace(OUTPUT, to.as_fd()).map_err(Error::Host)?;
    Ok(())
}
