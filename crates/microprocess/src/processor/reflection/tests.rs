//! What the real host is told.

use std::sync::Arc;
use std::thread;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::scheduling::{nice, set_attributes};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

use super::permitted;
use super::told::{BUSY, Told};
use crate::data::priority::Priority;

const LOW: u8 = 3;

/// A thread that changes the host's attributes has made the system call, but has not finished, when
/// the affected thread starts a process.
#[test]
fn starting_a_process_waits_for_a_change_in_progress() {
    let means = permitted().filter(|means| means.nice < means.nice_max);
    let Some(means) = means else {
        return skip(
            "starting_a_process_waits_for_a_change_in_progress",
            "nice values not permitted",
        );
    };
    let told = Arc::new(Told::new());
    let begins = Arc::new(AtomicBool::new(false));
    let starter = {
        let (told, begins) = (Arc::clone(&told), Arc::clone(&begins));
        thread::spawn(move || {
            let me = ThreadId::current();
            told.0.store(BUSY, Ordering::SeqCst);
            set_attributes(me, means.attributes(LOW)).unwrap();
            begins.store(true, Ordering::SeqCst);
            let in_body = told.while_normal(me, means, || nice(me).unwrap());
            (in_body, nice(me).unwrap())
        })
    };
    while !begins.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    // Long enough for a starter that does not wait to finish. A starter that does wait is not
    // disturbed by this.
    (0..1000).for_each(|_| thread::yield_now());
    told.0.store(LOW, Ordering::SeqCst);
    assert_eq!(starter.join().unwrap(), (means.nice, means.nice));
    assert!(told.is(Priority::NORMAL.level()));
}
