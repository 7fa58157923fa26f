//! The state word of a call frame, and what may happen to it: pure.
//!
//! ```text
//!             client                      server
//!   replied n ──────► requested n+1 ────────────► replied n+1
//!                          │ client gives up           ▲
//!                          └────► cancelled n+1 ───────┘ server
//! ```
//!
//! The word carries the number of the call, so that nothing left over from an earlier call is taken for this one. Each side keeps its own number
//! and believes the word only where it is one step ahead: whatever else stands there was written by a broken or hostile peer.
//!
//! **Invariant:** the client writes only while the word is `replied`, or turns its own `requested` into `cancelled`; the server writes only
//! while it is not `replied`. So at most one side may write at any time, but for that one turn, which is a compare-and-exchange.

/// What is said of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Answered, or never made: the frame is the client's.
    Replied,
    /// Asked for: the frame is the server's.
    Requested,
    /// Asked for by somebody who no longer waits: the server's.
    Cancelled,
}

/// A state word: a phase, and the number of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(u32);

const PHASE_BITS: u32 = 2;
/// Numbers wrap here.
pub const NUMBERS: u32 = 1 << (32 - PHASE_BITS);

impl Word {
    /// The word of a frame that was never used.
    pub const FRESH: Self = Self::new(Phase::Replied, 0);

    /// Phase and number as one word.
    #[must_use]
    pub const fn new(phase: Phase, number: u32) -> Self {
        Self(((number % NUMBERS) << PHASE_BITS) | phase as u32)
    }

    /// Any word that another process may have written.
    #[must_use]
    pub const fn alleged(bits: u32) -> Self {
        Self(bits)
    }

    /// Its bits.
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

/// What a client finds that has made call `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Not answered yet.
    Pending,
    /// Answered.
    Here,
    /// The server broke the protocol.
    Broken,
}

/// What a client concludes from `word` after it made call `number`.
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

/// What a server finds that has answered call `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing new.
    Nothing,
    /// The next call.
    Call,
    /// The next call, whose caller no longer waits: answered without being served.
    Abandoned,
    /// The client broke the protocol.
    Broken,
}

/// What a server concludes from `word` after it has answered call `number`.
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

    /// What one side may do.
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
        /// Two honest sides in any order: each request is served at most once, each answer belongs to its request, nobody calls the other broken.
        #[test]
        fn honest_sides_agree(start in 0..NUMBERS, steps in steps()) {
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

        /// Whatever a hostile peer writes, only the very next word is believed.
        #[test]
        fn only_the_next_word_is_believed(number in 0..NUMBERS, bits: u32) {
            let word = Word::alleged(bits);
            let believed = [Phase::Requested, Phase::Cancelled].map(|phase| Word::new(phase, after(number)));
            let call = matches!(server_sees(number, word), Arrival::Call | Arrival::Abandoned);
            prop_assert_eq!(call, believed.contains(&word));
            let here = client_sees(number, word) == Answer::Here;
            prop_assert_eq!(here, word == Word::new(Phase::Replied, number));
        }
    }

    #[test]
    fn numbers_wrap_and_a_double_reply_changes_nothing() {
        let last = NUMBERS - 1;
        assert_eq!(server_sees(last, Word::new(Phase::Requested, 0)), Arrival::Call);
        assert_eq!(server_sees(last, Word::new(Phase::Requested, last)), Arrival::Broken);
        // The answer to an earlier call, or one ahead of any call.
        assert_eq!(client_sees(7, Word::new(Phase::Replied, 6)), Answer::Broken);
        assert_eq!(client_sees(7, Word::new(Phase::Replied, 8)), Answer::Broken);
    }
}
