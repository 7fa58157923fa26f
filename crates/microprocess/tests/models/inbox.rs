//! Requests to a holder that may be about to sleep: each is handled once, and none is missed
//! because of the sleep.

#[path = "../../src/protocol/attention.rs"]
pub(crate) mod attention;
#[path = "../../src/protocol/inbox.rs"]
pub(crate) mod real;

use core::cell::Cell;

use loom::cell::UnsafeCell;
use loom::thread::spawn;

use crate::prim::atomic::{AtomicPtr, AtomicU32, Ordering, forget_orderings};
use crate::wait_word::WaitWord;
use crate::{explore, for_ever, must_fail};
use attention::{IDLE, INBOX, Sleeper, raise, rest, rise, take};
use real::{Inbox, Link, Posted, ask};

/// The requests of two posters.
const FIRST: u32 = 2;
const SECOND: u32 = 4;

struct Record {
    bits: AtomicU32,
    next: AtomicPtr<Self>,
    /// What each poster wrote before its request, in a separate cell.
    said: [UnsafeCell<u32>; 2],
}

impl Posted for Record {
    fn bits(&self) -> &AtomicU32 {
        &self.bits
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

impl Record {
    fn new() -> &'static Self {
        let record = Self {
            bits: AtomicU32::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            said: [UnsafeCell::new(0), UnsafeCell::new(0)],
        };
        record.bits.load(Ordering::Relaxed);
        record.next.load(Ordering::Relaxed);
        for_ever(record)
    }

    /// Checks what was written before `bits` were requested.
    fn check(&self, bits: u32) {
        for (said, what) in self.said.iter().zip([FIRST, SECOND]) {
            if bits & what != 0 {
                // SAFETY: the model checks it.
                let seen = said.with(|said| unsafe { *said });
                assert_eq!(seen, what, "what was written before the request is seen");
            }
        }
    }
}

/// The part of a virtual processor that requests use.
struct Home {
    inbox: Inbox<Record>,
    attention: AtomicU32,
    wait_word: WaitWord,
}

impl Home {
    fn new() -> &'static Self {
        let (inbox, attention) = (Inbox::new(), AtomicU32::new(0));
        inbox.drain(|_| ());
        take(&attention);
        let wait_word = WaitWord::new();
        wait_word.renew();
        for_ever(Self { inbox, attention, wait_word })
    }

    fn post(&self, record: &'static Record, what: u32) {
        // SAFETY: each poster has a separate cell.
        record.said[usize::from(what == SECOND)].with_mut(|said| unsafe { *said = what });
        let Some(link) = ask(record, what) else { return };
        assert!(self.inbox.put(link).is_ok(), "it is open");
        if raise(&self.attention, INBOX) == Some(Sleeper::Idle) {
            self.wait_word.rouse();
        }
    }

    /// Serves and idles in turn until `expected` bits have been handled.
    fn serve(&self, expected: u32, way: Way) {
        let mut done = 0;
        loop {
            if take(&self.attention) & INBOX != 0 {
                done += self.answer_all(way);
            }
            assert!(done <= expected, "each request is handled once");
            if done == expected {
                return;
            }
            if (way.rest)(&self.attention, IDLE) {
                self.wait_word.idle(None);
                rise(&self.attention, IDLE);
            }
        }
    }

    fn answer_all(&self, way: Way) -> u32 {
        let done = Cell::new(0);
        self.inbox.drain(|link| {
            let record = link.record();
            let bits = (way.answer)(link);
            record.check(bits);
            done.set(done.get() + bits);
        });
        done.get()
    }
}

/// How a holder proceeds.
#[derive(Clone, Copy)]
struct Way {
    rest: fn(&AtomicU32, u32) -> bool,
    answer: fn(Link<Record>) -> u32,
}

const REAL: Way = Way { rest, answer: Link::answer };

/// Two posters make requests to one record, or to one record each.
fn two_posters(shared_record: bool, way: Way) {
    explore(Some(2), move || {
        let home = Home::new();
        let one = Record::new();
        let other = if shared_record { one } else { Record::new() };
        let first = spawn(move || home.post(one, FIRST));
        let second = spawn(move || home.post(other, SECOND));
        home.serve(FIRST + SECOND, way);
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn two_messages_for_one_record_are_both_handled() {
    two_posters(true, REAL);
}

#[test]
fn two_records_are_both_handled() {
    two_posters(false, REAL);
}

#[test]
fn messages_with_relaxed_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        two_posters(false, REAL);
    });
}

/// Mutant: falls asleep although a bit was raised since its last check.
fn rests_anyway(word: &AtomicU32, bit: u32) -> bool {
    word.store(bit, Ordering::SeqCst);
    true
}

#[test]
fn holder_that_sleeps_despite_a_message_is_caught() {
    must_fail(|| two_posters(false, Way { rest: rests_anyway, ..REAL }));
}

/// Mutant: leaves the link, as if the record were still in the inbox.
fn keeps_the_link(link: Link<Record>) -> u32 {
    let bits = link.record().bits.fetch_and(real::LINKED, Ordering::AcqRel);
    core::mem::forget(link);
    bits & !real::LINKED
}

#[test]
fn handling_that_keeps_the_link_is_caught() {
    must_fail(|| two_posters(true, Way { answer: keeps_the_link, ..REAL }));
}
