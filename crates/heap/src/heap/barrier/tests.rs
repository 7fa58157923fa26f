use super::{NOTES, OWN, note};
use crate::heap::{Heap, Limits, Mutator, ThreadContext};
use crate::value::Value;
use core::time::Duration;
use kyocho_sys::prim::thread;
use std::sync::mpsc;

/// A thread that waits for a lock that this test holds never notes anything.
const WATCHDOG: Duration = Duration::from_secs(100);

/// Threads that overwrite at the same time do not wait for each other: a note takes the lock of the
/// kernel thread's own buffer, not the one lock that the whole process has.
#[test]
fn threads_note_while_the_list_of_heaps_is_locked() {
    let (enlisted, wait_enlisted) = mpsc::channel();
    let (noted, wait_noted) = mpsc::channel();
    let (begin, wait_begin) = mpsc::channel();
    let thread = thread::spawn(move || {
        let heap = Heap::new(Limits::default()).unwrap();
        let pair = Mutator::new(heap, ThreadContext::default()).cons(Value::NIL, Value::NIL);
        OWN.with(|_| enlisted.send(()).unwrap());
        wait_begin.recv().unwrap();
        note(pair.unwrap());
        noted.send(()).unwrap();
    });
    wait_enlisted.recv().unwrap();
    let result = NOTES.while_held(|| {
        begin.send(()).unwrap();
        wait_noted.recv_timeout(WATCHDOG)
    });
    assert_eq!(result, Ok(()), "the note waited for the lock of all threads");
    thread.join().unwrap();
}
