//! The wrapper of every exported function: converts results to numbers and catches panics.

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use kyocho_microprocess::{Killed, Microprocess};

use crate::error::{Code, Result};
use crate::run;

/// Runs `body` for C. Returns 0 or an error number. A panic becomes an error number, too; its
/// message is on standard error.
pub(crate) fn answer(body: impl FnOnce() -> Result<()>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(Code(number)) => number,
    }
}

/// Runs `body` for C. Returns its count, or a negated error number.
pub(crate) fn count(body: impl FnOnce() -> Result<usize>) -> i64 {
    match caught(body) {
        // A count of bytes is below half of the address space.
        Ok(count) => count as i64,
        Err(Code(number)) => -i64::from(number),
    }
}

/// Runs `body`; a panic becomes an error. If the caller was killed in `body`, its frames of Rust
/// have been unwound. It ends here, since frames of C cannot be unwound.
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

/// The calling microprocess.
pub(crate) fn caller() -> Result<Microprocess> {
    Microprocess::try_current().ok_or(Code::NOT_PERMITTED)
}
