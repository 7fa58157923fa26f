//! The steps on the state word of a frame, each of which hands it over or takes it back: see [`protocol`](crate::protocol).
//!
//! Each is sequentially consistent: what was written to the frame before arrives with it, and who takes it looks afterwards whether the other side
//! sleeps.

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::protocol::{Phase, Word};

/// The client makes call `number`: from here on the frame is the server's.
pub(crate) fn ask(state: &AtomicU32, number: u32) {
    state.swap(Word::new(Phase::Requested, number).bits(), Ordering::SeqCst);
}

/// The client no longer waits for call `number`; `false`: it was answered meanwhile, and the frame is the client's again. Else somebody has to wait
/// for the answer all the same.
pub(crate) fn give_up(state: &AtomicU32, number: u32) -> bool {
    let [requested, cancelled] =
        [Phase::Requested, Phase::Cancelled].map(|phase| Word::new(phase, number).bits());
    state.compare_exchange(requested, cancelled, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// The server answers call `number`: from here on the frame is the client's.
pub(crate) fn answer(state: &AtomicU32, number: u32) {
    state.swap(Word::new(Phase::Replied, number).bits(), Ordering::SeqCst);
}
