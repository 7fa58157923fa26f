//! Panics of the library that a test expects print nothing: what a run prints is what went wrong.
//! A test that panics itself uses `resume_unwind`, which says nothing.

use std::panic::{self, PanicHookInfo};

/// From here on, in this process, no panic whose message contains `expected` is printed.
pub(crate) fn quiet(expected: &'static str) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        if !panic.to_string().contains(expected) {
            before(panic);
        }
    }));
}
