//! Participants that have ended, whose numbers the host has given to other threads.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::task::{ThreadId, ThreadLife};

use super::Lamport;
use crate::section::Section;

/// A section in which a thread died inside long ago. Its number is that of another thread now.
fn section_with_one_dead(number: ThreadId, index: usize) -> Lamport {
    let section = Lamport::new(4);
    let slot = &section.slots[index];
    let dead = ThreadLife::new(number, 1);
    slot.owner.store(dead.word(), Ordering::Relaxed);
    slot.engaged.store(true, Ordering::Relaxed);
    slot.wants.store(true, Ordering::Relaxed);
    section.x.store(index + 1, Ordering::Relaxed);
    section.y.store(index + 1, Ordering::Relaxed);
    section
}

/// The slot that a thread takes if it is free.
fn usual_index(thread: ThreadId) -> usize {
    thread.number() as usize % 4
}

#[test]
fn a_thread_with_the_number_of_a_dead_participant_is_another_participant() {
    let me = ThreadId::current();
    let section = section_with_one_dead(me, usual_index(me));
    let ticket = section.enter().expect("the slot of the dead is not that of this thread");
    section.leave(ticket);
    assert_eq!(section.adopted(), 1);
}

#[test]
fn a_living_thread_with_its_number_does_not_keep_a_dead_participant_inside() {
    // The main thread of the process, which waits for the tests.
    let main = ThreadId::new(std::process::id());
    let section = section_with_one_dead(main, (usual_index(ThreadId::current()) + 1) % 4);
    let ticket = section.enter().expect("there are free slots");
    section.leave(ticket);
    assert_eq!(section.adopted(), 1);
}
