//! How markers share work, and how they find out that none is left: the protocol alone, for any
//! kind of packet.
//!
//! ```text
//!  maker    give, give, ... ──► next_or_done: a packet that no helper took │ all is done
//!                                             │ others are still busy
//!  helper   take ──► give a part of it, ... ──► finish, with the rest if it is interrupted
//! ```
//!
//! The maker runs the collection: it begins with the roots and learns when all is marked. There is
//! one maker. Helpers join and leave.
//!
//! **Invariant:** everything still to be scanned is with the maker, in a packet, or with a helper
//! counted as busy. Taking a packet and counting its taker is one step. Returning a helper's rest
//! and discounting the helper is one step too. So if the maker has no work, and there is no packet
//! and no busy helper, all is marked.
//!
//! `give` refuses a packet if `helpers_max` packets wait; its marker keeps it. `finish` accepts the
//! rest of a helper unless the collection is given up. So at most `helpers_max` packets wait, plus
//! one for each helper. Modelled in `tests/models`.

use core::time::Duration;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The answer to a maker without work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<W, F> {
    /// A packet.
    Work(W),
    /// All is done; the findings of helpers since the last call.
    Done(F),
    /// Others are still busy.
    NotYet,
}

#[derive(Debug)]
struct State<W, F> {
    packets: Vec<W>,
    /// Helpers that have work.
    busy: usize,
    maker_waits: bool,
    found: F,
}

/// Packets of work, and the state of the helpers.
#[derive(Debug)]
pub(crate) struct Pool<W, F> {
    helpers_max: usize,
    state: Mutex<State<W, F>>,
    changed: Condvar,
    /// Busy helpers plus waiting packets, minus one if the maker waits. A hint.
    engaged: AtomicUsize,
    is_given_up: AtomicBool,
}

impl<W, F: Default> Pool<W, F> {
    /// A pool that divides the work of a maker among `helpers_max` helpers.
    pub(crate) fn new(helpers_max: usize) -> Self {
        let state = State { packets: Vec::new(), busy: 0, maker_waits: false, found: F::default() };
        Self {
            helpers_max,
            state: Mutex::new(state),
            changed: Condvar::new(),
            engaged: AtomicUsize::new(0),
            is_given_up: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<W, F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &State<W, F>) {
        let engaged = state.busy + state.packets.len();
        self.engaged.store(engaged.saturating_sub(state.maker_waits.into()), Ordering::Relaxed);
    }

    /// Whether a marker is without work. A hint, which costs a load.
    #[inline]
    pub(crate) fn wants_work(&self) -> bool {
        self.engaged.load(Ordering::Relaxed) < self.helpers_max
    }

    /// Offers a packet to other markers.
    ///
    /// # Errors
    /// Returns the packet if `helpers_max` packets wait already, or the collection is given up.
    pub(crate) fn give(&self, packet: W) -> Result<(), W> {
        let mut state = self.state();
        if state.packets.len() >= self.helpers_max || self.is_given_up() {
            return Err(packet);
        }
        state.packets.push(packet);
        self.note(&state);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether a packet waits.
    pub(crate) fn has_packets(&self) -> bool {
        !self.state().packets.is_empty()
    }

    /// Takes a packet for a helper, if there is one. The helper is busy until it calls
    /// [`finish`](Self::finish).
    pub(crate) fn take(&self) -> Option<W> {
        let mut state = self.state();
        let packet = state.packets.pop()?;
        state.busy += 1;
        self.note(&state);
        Some(packet)
    }

    /// Ends the work of a helper on its packet. `rest` is work left over after an interruption;
    /// `tell` adds the helper's findings.
    pub(crate) fn finish(&self, rest: Option<W>, tell: impl FnOnce(&mut F)) {
        let mut state = self.state();
        tell(&mut state.found);
        state.packets.extend(rest.filter(|_| !self.is_given_up()));
        state.busy -= 1;
        self.note(&state);
        self.changed.notify_one();
    }

    /// The next step of a maker without work. Blocks in the kernel until it is known, or `patience`
    /// is over.
    pub(crate) fn next_or_done(&self, patience: Duration) -> Next<W, F> {
        let mut state = self.state();
        let mut is_patient = true;
        loop {
            if let Some(packet) = state.packets.pop() {
                self.note(&state);
                return Next::Work(packet);
            }
            if state.busy == 0 {
                return Next::Done(core::mem::take(&mut state.found));
            }
            if !is_patient {
                return Next::NotYet;
            }
            state = self.wait(state, patience);
            is_patient = false;
        }
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State<W, F>>,
        patience: Duration,
    ) -> MutexGuard<'a, State<W, F>> {
        state.maker_waits = true;
        self.note(&state);
        let woken = self.changed.wait_timeout(state, patience);
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        state.maker_waits = false;
        self.note(&state);
        state
    }

    /// Whether the maker has given up. Helpers then stop where they are.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Gives the collection up: no work is left, and no helper is busy when this returns.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        self.is_given_up.store(true, Ordering::Relaxed);
        state.packets.clear();
        while state.busy > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.found = F::default();
        self.is_given_up.store(false, Ordering::Relaxed);
        self.note(&state);
    }
}
