//! What every exported function does around its work: results become numbers, panics are caught.

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use kyocho_microprocess::{Killed, Microprocess};

use crate::error::{Code, Result};
use crate::run;

/// Runs `body` for C: 0 or the number of its error; a panic, whose message is on standard error by then, is a number as well.
pub(crate) fn answer(body: impl FnOnce() -> Result<()>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(Code(number)) => number,
    }
}

/// As [`answer`], for what has a count to tell: that, or the negated number.
pub(crate) fn count(body: impl FnOnce() -> Result<usize>) -> i64 {
    match caught(body) {
        // No buffer is larger than half of the address space.
        Ok(count) => count as i64,
        Err(Code(number)) => -i64::from(number),
    }
}

/// Runs `body`; a panic is an error. A caller that was killed in it has unwound this far: it ends here, since frames of C
/// cannot be unwound.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(panic) if panic.is::<Killed>() => {
            drop(panic);
            run::end_killed()
        }
        Err(_panic) => Err(Code(libc::ENOTRECOVERABLE)),
    }
}

/// The microprocess that calls.
pub(crate) fn caller() -> Result<Microprocess> {
    Microprocess::try_current().ok_or(Code::NOT_PERMITTED)
}
