//! A name of a host that no server answers for until a test says so; it is nobody's then, until one says that it is silent again.

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

/// Has look-ups ask.
pub(crate) fn install() {
    call_before_look_ups(keep);
}

/// The name is silent from now on.
pub(crate) fn begin() {
    install();
    *OVER.0.lock().unwrap() = false;
}

/// It is nobody's.
pub(crate) fn end() {
    let (over, changed) = &OVER;
    *over.lock().unwrap() = true;
    changed.notify_all();
}
