//! The state word of a call frame and its transitions: pure functions.
//!
//! ```text
//!             client                      server
//!   replied n ──────► requested n+1 ────────────► replied n+1
//!                          │ client cancels            ▲
//!                          └────► cancelled n+1 ───────┘ server
//! ```
//!
//! The word contains the number of the call, so a word of an earlier call is never mistaken for one
//! of this call. Each side counts calls itself and accepts the word only if it is exactly one step
//! ahead. Any other word was written by a broken or hostile peer.
//!
//! **Invariant:** the client writes while the word is `replied`, and may change its own `requested`
//! to `cancelled`; the server writes while the word is not `replied`. So at most one side may write
//! at any time, except for the cancellation, which is a compare-and-exchange.

/// The phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Answered, or never made: the client owns the frame.
    Replied,
    /// Requested: the server owns the frame.
    Requested,
    /// Requested by a caller that no longer waits: the server owns the frame.
    Cancelled,
}

/// A state word: phase and number of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(u32);

const PHASE_BITS: u32 = 2;
/// Call numbers are below this bound; the next number after the last is 0.
pub const NUMBERS: u32 = 1 << (32 - PHASE_BITS);

impl Word {
    /// The word of an unused frame.
    pub const FRESH: Self = Self::new(Phase::Replied, 0);

    /// The word for a phase and a call number.
    #[must_use]
    pub const fn new(phase: Phase, number: u32) -> Self {
        Self(((number % NUMBERS) << PHASE_BITS) | phase as u32)
    }

    /// A word read from shared memory: any bits may be there.
    #[must_use]
    pub const fn alleged(bits: u32) -> Self {
        Self(bits)
    }

    /// The word as stored in the frame.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// The number after `number`.
#[must_use]
pub const fn after(number: u32) -> u32 {
    (number + 1) % NUMBERS
}

/// What a state word means to the client that made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Not answered yet.
    Pending,
    /// Answered.
    Here,
    /// The server broke the protocol.
    Broken,
}

/// What `word` means to a client that has made call `number`.
#[must_use]
pub fn client_sees(number: u32, word: Word) -> Answer {
    if word == Word::new(Phase::Replied, number) {
        Answer::Here
    } else if word == Word::new(Phase::Requested, number)
        || word == Word::new(Phase::Cancelled, number)
    {
        Answer::Pending
    } else {
        Answer::Broken
    }
}

/// What a state word means to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// No new call.
    Nothing,
    /// The next call.
    Call,
    /// The next call, whose caller no longer waits. The server answers without serving it.
    Abandoned,
    /// The client broke the protocol.
    Broken,
}

/// What `word` means to a server that has answered call `number`.
#[must_use]
pub fn server_sees(number: u32, word: Word) -> Arrival {
    let next = after(number);
    if word == Word::new(Phase::Replied, number) {
        Arrival::Nothing
    } else if word == Word::new(Phase::Requested, next) {
        Arrival::Call
    } else if word == Word::new(Phase::Cancelled, next) {
        Arrival::Abandoned
    } else {
        Arrival::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Arrival, NUMBERS, Phase, Word, after, client_sees, server_sees};
    use proptest::prelude::*;

    /// A step of either side.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Request,
        Cancel,
        Serve,
        Collect,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::Request),
            Just(Step::Cancel),
            Just(Step::Serve),
            Just(Step::Collect),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Two honest sides, whose steps interleave in any order. Each request is served at most
        /// once, each answer belongs to its request, and neither side considers the other broken.
        #[test]
        fn honest_sides_serve_each_request_once_in_any_order_of_steps(start in 0..NUMBERS, steps in steps()) {
            let mut word = Word::new(Phase::Replied, start);
            let (mut client, mut server, mut waits, mut served) = (start, start, false, 0_u32);
            let mut requested = 0_u32;
            for step in steps {
                match step {
                    Step::Request if !waits => {
                        client = after(client);
                        word = Word::new(Phase::Requested, client);
                        (waits, requested) = (true, requested + 1);
                    }
                    Step::Cancel if word == Word::new(Phase::Requested, client) && waits => {
                        word = Word::new(Phase::Cancelled, client);
                    }
                    Step::Serve => match server_sees(server, word) {
                        Arrival::Nothing => {}
                        Arrival::Call | Arrival::Abandoned => {
                            server = after(server);
                            served += 1;
                            word = Word::new(Phase::Replied, server);
                        }
                        Arrival::Broken => prop_assert!(false, "the client was honest"),
                    },
                    Step::Collect if waits => match client_sees(client, word) {
                        Answer::Here => waits = false,
                        Answer::Pending => prop_assert_ne!(server, client),
                        Answer::Broken => prop_assert!(false, "the server was honest"),
                    },
                    _ => {}
                }
                prop_assert!(served <= requested && requested - served <= 1);
            }
        }

        /// Of all words that a hostile peer may write, only the next one is accepted.
        #[test]
        fn only_the_next_word_is_accepted(number in 0..NUMBERS, bits: u32) {
            let word = Word::alleged(bits);
            let accepted = [Phase::Requested, Phase::Cancelled].map(|phase| Word::new(phase, after(number)));
            let call = matches!(server_sees(number, word), Arrival::Call | Arrival::Abandoned);
            prop_assert_eq!(call, accepted.contains(&word));
            let here = client_sees(number, word) == Answer::Here;
            prop_assert_eq!(here, word == Word::new(Phase::Replied, number));
        }
    }

    #[test]
    fn numbers_wrap_and_a_reply_to_another_call_is_refused() {
        let last = NUMBERS - 1;
        assert_eq!(server_sees(last, Word::new(Phase::Requested, 0)), Arrival::Call);
        assert_eq!(server_sees(last, Word::new(Phase::Requested, last)), Arrival::Broken);
        // The reply to an earlier call, and one to a call that was never made.
        assert_eq!(client_sees(7, Word::new(Phase::Replied, 6)), Answer::Broken);
        assert_eq!(client_sees(7, Word::new(Phase::Replied, 8)), Answer::Broken);
    }
}
