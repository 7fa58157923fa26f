//! A frame between two processes, in every order of memory accesses (loom).
//!
//! What runs is the real code of `src/protocol.rs` and `src/state.rs`, against words behind which loom stands; the bytes of the frame are a cell, which two
//! may not touch at a time. How the sides wait for each other is modelled apart, with the bells (`crates/microprocess/tests/models`).
//!
//! | mutant | must be caught because |
//! |---|---|
//! | giving up by a store | it takes an answer back that has come already |
//! | an answer before its bytes | the client reads what the server writes |
//! | a client that takes its frame back when it gives up | the server writes what is the client's |
//! | relaxed orderings | bytes do not arrive with the word |
//!
//! `cargo test -p kyocho-gate --test models`: less than a second.
#![expect(unsafe_code, reason = "a cell that two threads share, and words that loom shares out")]
#![expect(unreachable_pub, reason = "the real code is for others than the models")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "what stands in is named as what it stands for"
)]

// So that `kyocho_sys::prim` in the real code means what stands here.
extern crate self as kyocho_sys;

#[path = "../../../microprocess/tests/models/futex.rs"]
pub mod futex;
#[path = "../../../microprocess/tests/models/prim.rs"]
pub mod prim;
#[path = "../../src/protocol.rs"]
mod protocol;
#[path = "../../src/state.rs"]
mod state;

use loom::cell::UnsafeCell;
use loom::thread::spawn;

use prim::atomic::{AtomicU32, Ordering, forget_orderings};
use protocol::{Answer, Arrival, Phase, Word, after, client_sees, server_sees};

/// What the client asks and what the server makes of it.
const ASKED: u32 = 10;
const ABANDONED: u32 = 99;

struct Frame {
    state: AtomicU32,
    bytes: UnsafeCell<u32>,
}

impl Frame {
    fn new() -> &'static Self {
        let frame = Self { state: AtomicU32::new(Word::FRESH.bits()), bytes: UnsafeCell::new(0) };
        frame.word();
        Box::leak(Box::new(frame))
    }

    fn word(&self) -> Word {
        Word::alleged(self.state.load(Ordering::SeqCst))
    }

    fn write(&self, value: u32) {
        // SAFETY: what the models are to find out.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: as above.
        self.bytes.with(|bytes| unsafe { *bytes })
    }

    fn wake(&self) {
        futex::wake(&self.state, u32::MAX);
    }

    /// Sleeps until the word is another one than `expected`.
    fn await_other(&self, expected: Word) {
        while self.word() == expected {
            futex::wait(&self.state, expected.bits(), None);
        }
    }
}

/// How each side does a step: the real way, or a mutant's.
#[derive(Clone, Copy)]
struct Ways {
    give_up: fn(&Frame, u32) -> bool,
    answer: fn(&Frame, u32, u32),
    /// Waits until the frame of a call that was given up is free.
    inherit: fn(&Frame, u32),
}

const REAL: Ways = Ways {
    give_up: |frame, number| state::give_up(&frame.state, number),
    answer: |frame, number, value| {
        frame.write(value);
        state::answer(&frame.state, number);
    },
    inherit: |frame, number| {
        frame.await_other(Word::new(Phase::Cancelled, number));
        assert_eq!(client_sees(number, frame.word()), Answer::Here);
    },
};

/// Serves so many calls.
fn serve(frame: &Frame, calls: u32, ways: Ways) {
    let mut answered = 0;
    for _ in 0..calls {
        frame.await_other(Word::new(Phase::Replied, answered));
        let value = match server_sees(answered, frame.word()) {
            Arrival::Call => frame.read() + 1,
            Arrival::Abandoned => ABANDONED,
            other => panic!("the client is honest: {other:?}"),
        };
        answered = after(answered);
        (ways.answer)(frame, answered, value);
        frame.wake();
    }
}

/// Makes call `number` and waits for the answer.
fn call(frame: &Frame, number: u32) {
    frame.write(ASKED);
    state::ask(&frame.state, number);
    frame.wake();
    frame.await_other(Word::new(Phase::Requested, number));
    assert_eq!(client_sees(number, frame.word()), Answer::Here);
    assert_eq!(frame.read(), ASKED + 1);
}

/// Makes call `number` and gives up at once.
fn call_hastily(frame: &Frame, number: u32, ways: Ways) {
    frame.write(ASKED);
    state::ask(&frame.state, number);
    frame.wake();
    if (ways.give_up)(frame, number) {
        (ways.inherit)(frame, number);
        assert!([ABANDONED, ASKED + 1].contains(&frame.read()));
    } else {
        assert_eq!(frame.read(), ASKED + 1);
    }
}

/// A call that is given up, and one more by the same frame.
fn two_calls(ways: Ways) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let frame = Frame::new();
        let server = spawn(move || serve(frame, 2, ways));
        call_hastily(frame, 1, ways);
        call(frame, 2);
        server.join().unwrap();
    });
}

/// Runs a model of something broken.
fn must_fail(model: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(model));
    assert!(outcome.is_err(), "no order shows that it is broken");
}

#[test]
fn a_frame_is_one_sides_at_a_time_and_bytes_arrive() {
    two_calls(REAL);
}

#[test]
fn forgotten_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        two_calls(REAL);
    });
}

#[test]
fn giving_up_by_a_store_is_caught() {
    let give_up = |frame: &Frame, number| {
        frame.state.store(Word::new(Phase::Cancelled, number).bits(), Ordering::SeqCst);
        true
    };
    must_fail(|| two_calls(Ways { give_up, ..REAL }));
}

#[test]
fn an_answer_before_its_bytes_is_caught() {
    let answer = |frame: &Frame, number, value| {
        state::answer(&frame.state, number);
        frame.write(value);
    };
    must_fail(|| two_calls(Ways { answer, ..REAL }));
}

#[test]
fn a_frame_taken_back_before_it_is_answered_is_caught() {
    must_fail(|| two_calls(Ways { inherit: |_, _| {}, ..REAL }));
}
