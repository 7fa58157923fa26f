//! Suppresses the messages of panics that a test expects, so that a run prints only real errors. A
//! test that panics itself uses `resume_unwind`, which prints nothing.

use std::panic::{self, PanicHookInfo};

/// From here on, panics in this process whose message contains `expected` are not printed.
pub(crate) fn quiet(expected: &'static str) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        if !panic.to_string().contains(expected) {
            before(panic);
        }
    }));
}
