//! The transitions of a frame's state word, each of which transfers the frame: see
//! [`protocol`](crate::protocol).
//!
//! Each is sequentially consistent. So the frame's contents are visible with the word. The writer
//! checks afterwards whether the other side sleeps; that check is not executed earlier.

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::protocol::{Phase, Word};

/// The client makes call `number`: the server owns the frame from here on.
pub(crate) fn ask(state: &AtomicU32, number: u32) {
    state.swap(Word::new(Phase::Requested, number).bits(), Ordering::SeqCst);
}

/// The client cancels call `number`. Returns `false` if the reply came first: then the client owns
/// the frame again. After `true`, the client must still wait for the reply before it uses the
/// frame.
pub(crate) fn give_up(state: &AtomicU32, number: u32) -> bool {
    let [requested, cancelled] =
        [Phase::Requested, Phase::Cancelled].map(|phase| Word::new(phase, number).bits());
    state.compare_exchange(requested, cancelled, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// The server answers call `number`: the client owns the frame from here on.
pub(crate) fn answer(state: &AtomicU32, number: u32) {
    state.swap(Word::new(Phase::Replied, number).bits(), Ordering::SeqCst);
}
