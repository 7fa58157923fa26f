//! How markers share what is to be scanned, and know that nothing is left: the protocol alone, whatever a packet holds.
//!
//! ```text
//!  maker    give, give, ... ──► next_or_done: a packet that nobody took │ all is done │ others are at it still
//!  helper   take ──► give a part of it, ... ──► finish, with the rest if it is interrupted
//! ```
//!
//! The maker makes the collection: one, who begins with the roots and learns when all is marked. Helpers come and go.
//!
//! **Invariant:** whatever is to be scanned is with the maker, in a packet, or with a helper that is counted as busy. A packet is taken and its taker
//! counted in one step; what a helper leaves is put back in the step that counts it no more. So a maker that has nothing, and sees no packet
//! and nobody busy, knows that all is marked.
//!
//! Packets are at most as many as helpers: who cannot give keeps what he has. Modelled in `tests/models`.

use core::time::Duration;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a maker without work is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<W, F> {
    /// A packet.
    Work(W),
    /// All is done; what helpers have found since the last time.
    Done(F),
    /// Others are at it still.
    NotYet,
}

#[derive(Debug)]
struct State<W, F> {
    packets: Vec<W>,
    /// Helpers that hold work.
    busy: usize,
    maker_waits: bool,
    found: F,
}

/// Packets of work, and who is at work.
#[derive(Debug)]
pub(crate) struct Pool<W, F> {
    helpers_max: usize,
    state: Mutex<State<W, F>>,
    changed: Condvar,
    /// Helpers at work and packets that wait for one, less a maker that waits. A hint.
    engaged: AtomicUsize,
    is_given_up: AtomicBool,
}

impl<W, F: Default> Pool<W, F> {
    /// For a maker and so many helpers at a time.
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

    /// Whether somebody has nothing to do. A hint, at the cost of a load.
    #[inline]
    pub(crate) fn wants_work(&self) -> bool {
        self.engaged.load(Ordering::Relaxed) < self.helpers_max
    }

    /// Leaves a packet to whoever takes it.
    ///
    /// # Errors
    /// With the packet, where enough wait already.
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

    /// Whether a packet waits for somebody.
    pub(crate) fn has_packets(&self) -> bool {
        !self.state().packets.is_empty()
    }

    /// A helper takes a packet, if there is one, and is busy until it says [`finish`](Self::finish).
    pub(crate) fn take(&self) -> Option<W> {
        let mut state = self.state();
        let packet = state.packets.pop()?;
        state.busy += 1;
        self.note(&state);
        Some(packet)
    }

    /// A helper that has taken a packet is busy no more. `rest` is what it was kept from doing; `tell` adds what it has found.
    pub(crate) fn finish(&self, rest: Option<W>, tell: impl FnOnce(&mut F)) {
        let mut state = self.state();
        tell(&mut state.found);
        state.packets.extend(rest.filter(|_| !self.is_given_up()));
        state.busy -= 1;
        self.note(&state);
        self.changed.notify_one();
    }

    /// What a maker that has nothing left does next. Waits, on the kernel, until that is known or `patience` is over.
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

    /// Whether the maker has given up: helpers stop where they are.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// What was begun is not ended: nothing is left to do, and when this returns nobody is at it.
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
