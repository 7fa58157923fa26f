//! A host name whose look-ups get no answer. They wait until a test calls [`end`], and then fail:
//! there is no such host. After [`begin`], look-ups wait again.

use kyocho_library::primitives::host_names::call_before_look_ups;
use std::io;
use std::sync::{Condvar, Mutex};

pub(crate) const NAME: &str = "silent.test";
static OVER: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

fn keep(host: &str) -> io::Result<()> {
    if host != NAME {
        return Ok(());
    }
    let (over, changed) = &OVER;
    drop(changed.wait_while(over.lock().unwrap(), |over| !*over));
    Err(io::ErrorKind::NotFound.into())
}

/// Makes look-ups of the name wait, if it is silent.
pub(crate) fn install() {
    call_before_look_ups(keep);
}

/// Look-ups of the name wait from now on.
pub(crate) fn begin() {
    install();
    *OVER.0.lock().unwrap() = false;
}

/// Look-ups of the name fail from now on, including those that wait.
pub(crate) fn end() {
    let (over, changed) = &OVER;
    *over.lock().unwrap() = true;
    changed.notify_all();
}
