//! A virtual processor stops while a message to it is on its way. Then a microprocess of another
//! run reuses the slot, and a message to it must arrive.

use loom::thread::spawn;

use crate::inbox::real::{Inbox, Link, Posted, ask, reconsider};
use crate::prim::atomic::{AtomicPtr, AtomicU32, Ordering, forget_orderings};
use crate::{explore, for_ever, must_fail};

/// The message to the former user of the slot, which comes too late, and the message to its next
/// user.
const LATE: u32 = 2;
const ASKED: u32 = 4;

/// The virtual processor that stops, and one of another run.
const STOPPED: u32 = 0;
const OTHER: u32 = 1;

struct Record {
    bits: AtomicU32,
    next: AtomicPtr<Self>,
    home: AtomicU32,
}

impl Posted for Record {
    fn bits(&self) -> &AtomicU32 {
        &self.bits
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

/// The implementation under test: the real one, or a mutant.
#[derive(Clone, Copy)]
struct Way {
    /// Closes the inbox of [`STOPPED`], whose run ends.
    close: fn(&'static World),
    /// Handles a link whose inbox is closed.
    forward: fn(&'static World, Link<Record>),
}

const REAL: Way = Way { close: World::close, forward: World::forward };

struct World {
    record: Record,
    inboxes: [Inbox<Record>; 2],
    way: Way,
}

impl World {
    fn new(way: Way) -> &'static Self {
        let record = Record {
            bits: AtomicU32::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            home: AtomicU32::new(STOPPED),
        };
        // The first access to the words.
        record.bits.load(Ordering::Relaxed);
        record.next.load(Ordering::Relaxed);
        record.home.load(Ordering::Relaxed);
        let inboxes = [Inbox::new(), Inbox::new()];
        inboxes.iter().for_each(|inbox| inbox.drain(|_| ()));
        for_ever(Self { record, inboxes, way })
    }

    fn home(&self) -> u32 {
        self.record.home.load(Ordering::Acquire)
    }

    fn inbox_of_home(&self) -> &Inbox<Record> {
        &self.inboxes[self.home() as usize]
    }

    /// `Record::post`.
    fn post(&'static self, bits: u32) {
        if let Some(link) = ask(&self.record, bits) {
            self.receive(link);
        }
    }

    /// `Vp::receive`.
    fn receive(&'static self, link: Link<Record>) {
        if let Err(link) = self.inbox_of_home().put(link) {
            (self.way.forward)(self, link);
        }
    }

    /// `vp::forward`.
    fn forward(&'static self, link: Link<Record>) {
        if let Some(link) = reconsider(link, || self.inbox_of_home().is_closed()) {
            self.receive(link);
        }
    }

    /// `Vp::close_inbox`.
    fn close(&'static self) {
        self.inboxes[STOPPED as usize].close(|link| (self.way.forward)(self, link));
    }

    /// Mutant: drops the message, even if the slot has another user by now.
    fn forget(&'static self, link: Link<Record>) {
        drop(link);
    }

    /// Mutant: drops the message if the home is the one that was closed, even if it is open again.
    fn forward_elsewhere(&'static self, link: Link<Record>) {
        let before = self.home();
        if let Some(link) = reconsider(link, || self.home() == before) {
            self.receive(link);
        }
    }

    /// The messages that have arrived at the home of the record.
    fn arrived(&'static self) -> u32 {
        let arrived = core::cell::Cell::new(0);
        self.inbox_of_home().drain(|link| arrived.set(arrived.get() | link.answer()));
        arrived.get()
    }
}

/// A message comes late. Meanwhile the run ends, and another microprocess reuses the slot, with
/// home `new_home`.
fn late_message(new_home: u32, way: Way) {
    explore(None, move || {
        let world = World::new(way);
        let late = spawn(move || world.post(LATE));
        (way.close)(world);
        if new_home == STOPPED && world.inboxes[STOPPED as usize].is_closed() {
            world.inboxes[STOPPED as usize].reopen();
        }
        world.record.home.store(new_home, Ordering::Relaxed);
        world.post(ASKED);
        late.join().unwrap();
        assert_ne!(world.arrived() & ASKED, 0, "what the next user is asked arrives");
        assert_eq!(world.record.bits.load(Ordering::Relaxed), 0, "it can be asked again");
    });
}

#[test]
fn next_user_of_a_slot_gets_messages_in_another_run() {
    late_message(OTHER, REAL);
}

#[test]
fn next_user_of_a_slot_gets_messages_in_a_run_with_the_same_virtual_processors() {
    late_message(STOPPED, REAL);
}

#[test]
fn an_inbox_that_is_never_closed_is_caught() {
    must_fail(|| late_message(OTHER, Way { close: |_| (), ..REAL }));
}

#[test]
fn a_message_that_is_dropped_with_what_the_next_user_is_asked_is_caught() {
    must_fail(|| late_message(OTHER, Way { forward: World::forget, ..REAL }));
}

#[test]
fn a_home_that_is_taken_for_closed_because_it_is_the_same_is_caught() {
    must_fail(|| late_message(STOPPED, Way { forward: World::forward_elsewhere, ..REAL }));
}

#[test]
fn late_messages_with_relaxed_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        late_message(OTHER, REAL);
    });
}
