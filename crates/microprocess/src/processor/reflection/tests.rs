//! What the real host knows.

use std::sync::Arc;
use std::thread;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::scheduling::{nice, set_attributes};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

use super::host_level::{BUSY, HostLevel};
use super::permitted;
use crate::data::priority::Priority;

const LOW: u8 = 3;

/// A thread that changes the host's attributes has made the system call, but has not finished, when
/// the affected thread starts a process.
#[test]
fn starting_a_process_waits_for_a_change_in_progress() {
    let permissions = permitted().filter(|permissions| permissions.nice < permissions.nice_max);
    let Some(permissions) = permissions else {
        return skip(
            "starting_a_process_waits_for_a_change_in_progress",
            "nice values not permitted",
        );
    };
    let host_level = Arc::new(HostLevel::new());
    let begins = Arc::new(AtomicBool::new(false));
    let starter = {
        let (host_level, begins) = (Arc::clone(&host_level), Arc::clone(&begins));
        thread::spawn(move || {
            let me = ThreadId::current();
            host_level.0.store(BUSY, Ordering::SeqCst);
            set_attributes(me, permissions.attributes(LOW)).unwrap();
            begins.store(true, Ordering::SeqCst);
            let in_body = host_level.while_normal(me, permissions, || nice(me).unwrap());
            (in_body, nice(me).unwrap())
        })
    };
    while !begins.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    // Long enough for a starter that does not wait to finish. A starter that does wait is not
    // disturbed by this.
    (0..1000).for_each(|_| thread::yield_now());
    host_level.0.store(LOW, Ordering::SeqCst);
    assert_eq!(starter.join().unwrap(), (permissions.nice, permissions.nice));
    assert!(host_level.is(Priority::NORMAL.level()));
}
