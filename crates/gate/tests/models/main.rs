//! Models of a frame shared by two processes, checked in every order of memory accesses (loom).
//!
//! The models run the code of `src/protocol.rs` and `src/state.rs` on loom's atomic words. The
//! bytes of the frame are a cell that two threads may not access concurrently. How the sides wait
//! for each other is modelled separately (`crates/microprocess/tests/models`).
//!
//! | mutant | must be caught because |
//! |---|---|
//! | cancelling by a store | the store overwrites a reply that came first |
//! | replying before the bytes are written | the client reads while the server writes |
//! | a client that reuses the frame right after it cancels | the server writes to a frame that the client owns |
//! | relaxed orderings | bytes are not visible with the word |
//!
//! `cargo test -p kyocho-gate --test models`: less than a second.
#![expect(unsafe_code, reason = "a cell that two threads share")]
#![expect(unreachable_pub, reason = "the code under test has other users than the models")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "the stand-ins are named as what they replace"
)]

// `kyocho_sys::prim` in the code under test names the module below.
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

/// The request of the client; the server replies with it plus one, or with `ABANDONED`.
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
        // SAFETY: loom checks that accesses do not overlap: that is what the models test.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: as above.
        self.bytes.with(|bytes| unsafe { *bytes })
    }

    fn wake(&self) {
        futex::wake(&self.state, u32::MAX);
    }

    /// Sleeps until the word differs from `expected`.
    fn await_other(&self, expected: Word) {
        while self.word() == expected {
            futex::wait(&self.state, expected.bits(), None);
        }
    }
}

/// How each side does a step: as in the real code, or as in a mutant.
#[derive(Clone, Copy)]
struct Steps {
    give_up: fn(&Frame, u32) -> bool,
    answer: fn(&Frame, u32, u32),
    /// Waits until the frame of a cancelled call is free.
    reclaim: fn(&Frame, u32),
}

const REAL: Steps = Steps {
    give_up: |frame, number| state::give_up(&frame.state, number),
    answer: |frame, number, value| {
        frame.write(value);
        state::answer(&frame.state, number);
    },
    reclaim: |frame, number| {
        frame.await_other(Word::new(Phase::Cancelled, number));
        assert_eq!(client_sees(number, frame.word()), Answer::Here);
    },
};

/// Serves `calls` calls.
fn serve(frame: &Frame, calls: u32, steps: Steps) {
    let mut answered = 0;
    for _ in 0..calls {
        frame.await_other(Word::new(Phase::Replied, answered));
        let value = match server_sees(answered, frame.word()) {
            Arrival::Call => frame.read() + 1,
            Arrival::Abandoned => ABANDONED,
            other => panic!("the client is honest: {other:?}"),
        };
        answered = after(answered);
        (steps.answer)(frame, answered, value);
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

/// Makes call `number` and cancels it at once.
fn call_and_cancel(frame: &Frame, number: u32, steps: Steps) {
    frame.write(ASKED);
    state::ask(&frame.state, number);
    frame.wake();
    if (steps.give_up)(frame, number) {
        (steps.reclaim)(frame, number);
        assert!([ABANDONED, ASKED + 1].contains(&frame.read()));
    } else {
        assert_eq!(frame.read(), ASKED + 1);
    }
}

/// A call that is cancelled, and another one in the same frame.
fn two_calls(steps: Steps) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let frame = Frame::new();
        let server = spawn(move || serve(frame, 2, steps));
        call_and_cancel(frame, 1, steps);
        call(frame, 2);
        server.join().unwrap();
    });
}

/// Runs the model of a mutant, which must fail.
fn must_fail(model: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(model));
    assert!(outcome.is_err(), "no order of accesses makes the mutant fail");
}

#[test]
fn only_one_side_accesses_a_frame_and_bytes_are_visible_with_the_word() {
    two_calls(REAL);
}

#[test]
fn relaxed_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        two_calls(REAL);
    });
}

#[test]
fn cancelling_by_a_store_is_caught() {
    let give_up = |frame: &Frame, number| {
        frame.state.store(Word::new(Phase::Cancelled, number).bits(), Ordering::SeqCst);
        true
    };
    must_fail(|| two_calls(Steps { give_up, ..REAL }));
}

#[test]
fn replying_before_the_bytes_are_written_is_caught() {
    let answer = |frame: &Frame, number, value| {
        state::answer(&frame.state, number);
        frame.write(value);
    };
    must_fail(|| two_calls(Steps { answer, ..REAL }));
}

#[test]
fn reusing_a_frame_before_the_reply_is_caught() {
    must_fail(|| two_calls(Steps { reclaim: |_, _| {}, ..REAL }));
}
