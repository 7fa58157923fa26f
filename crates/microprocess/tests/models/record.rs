//! A microprocess: a thread of the model, and what it parks on.

#[path = "../../src/processor/record/reason.rs"]
mod reason;

use loom::sync::{Condvar, Mutex};

use crate::for_ever;
use crate::inherit::{Inheritance, propagate};
use crate::prim::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::prim::cell::Cell;
use crate::spin::SpinLock;
use crate::vp::{Masked, Vp};

pub(crate) use reason::{Kind, Reason};

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    No,
    Yes { limited: bool },
    Woken,
    TimedOut,
}

/// Bits of requests to a record.
pub(crate) mod remote {
    pub(crate) const CHANGED: u32 = 1;
}

/// The real states that the real code uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Runnable,
    Parked,
    Blocked,
    Suspended,
}

/// What others and the thread itself share.
#[derive(Debug)]
struct Status {
    parked: Parked,
    /// Its level may have changed.
    changed: bool,
    /// It sleeps, after it has handled all earlier requests.
    asleep: bool,
    ended: bool,
}

/// The joiner that waits for its end.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) lock: SpinLock,
    pub(crate) joiner: Cell<Option<&'static Record>>,
}

#[derive(Debug)]
pub(crate) struct Record {
    status: Mutex<Status>,
    changes: Condvar,
    pub(crate) held_by: AtomicU64,
    asked_level: AtomicU8,
    /// Used by its thread only, as is `state`.
    level: core::cell::Cell<u8>,
    pub(crate) state: core::cell::Cell<State>,
    pub(crate) inheritance: Inheritance,
    pub(crate) completion: Completion,
    vp: Vp,
}

impl Record {
    /// A record that asks for `level`.
    pub(crate) fn at(level: u8) -> &'static Self {
        let status = Status { parked: Parked::No, changed: false, asleep: false, ended: false };
        let record = Self {
            status: Mutex::new(status),
            changes: Condvar::new(),
            held_by: AtomicU64::new(0),
            asked_level: AtomicU8::new(level),
            level: core::cell::Cell::new(level),
            state: core::cell::Cell::new(State::Runnable),
            inheritance: Inheritance::new(),
            completion: Completion { lock: SpinLock::new(), joiner: Cell::new(None) },
            vp: Vp::new(),
        };
        // The first use of its words and cells.
        record.inheritance.forget();
        record.effective_level();
        record.completion.joiner.get();
        record.completion.lock.release();
        record.release_inheritance();
        for_ever(record)
    }

    pub(crate) fn home(&'static self) -> &'static Vp {
        &self.vp
    }

    /// The virtual processor of the calling thread. If a failed execution unwinds, any.
    pub(crate) fn own_vp() -> &'static Vp {
        static GONE: Vp = Vp::new();
        if std::thread::panicking() { &GONE } else { MicroprocessRef::current().0.home() }
    }

    /// From here on a waker may end the wait.
    pub(crate) fn prepare_to_park(&self, limited: bool) {
        self.state.set(State::Parked);
        self.status.lock().unwrap().parked = Parked::Yes { limited };
    }

    /// Waits, and handles requests meanwhile; returns how the wait ended.
    pub(crate) fn park(&'static self) -> Parked {
        let mut status = self.status.lock().unwrap();
        while matches!(status.parked, Parked::Yes { .. }) {
            if status.changed {
                drop(status);
                self.serve();
                status = self.status.lock().unwrap();
                continue;
            }
            status.asleep = true;
            self.changes.notify_all();
            status = self.changes.wait(status).unwrap();
            status.asleep = false;
        }
        self.state.set(State::Runnable);
        core::mem::replace(&mut status.parked, Parked::No)
    }

    /// Applies a new level, if it was informed of one, and passes it on. Called by its thread.
    pub(crate) fn serve(&'static self) {
        let changed = core::mem::take(&mut self.status.lock().unwrap().changed);
        if changed {
            self.vp.changed(self);
            if self.state.get() == State::Parked {
                propagate(Masked::of(&self.vp), self);
            }
        }
    }

    /// Informs the record that its level may have changed; its thread then [serves](Self::serve)
    /// that.
    pub(crate) fn post(&'static self, bits: u32) {
        assert_eq!(bits, remote::CHANGED);
        let mut status = self.status.lock().unwrap();
        status.changed = true;
        self.changes.notify_all();
    }

    /// Waits until the record was [informed](Self::post) of a change. Called by its thread.
    pub(crate) fn await_change(&self) {
        let mut status = self.status.lock().unwrap();
        while !status.changed {
            status = self.changes.wait(status).unwrap();
        }
    }

    /// It never runs again.
    pub(crate) fn end(&self) {
        let mut status = self.status.lock().unwrap();
        status.ended = true;
        self.changes.notify_all();
    }

    /// Waits until it sleeps or has ended; returns whether it sleeps.
    pub(crate) fn await_rest(&self) -> bool {
        let mut status = self.status.lock().unwrap();
        loop {
            let sleeps =
                status.asleep && !status.changed && matches!(status.parked, Parked::Yes { .. });
            if sleeps || status.ended {
                return sleeps;
            }
            status = self.changes.wait(status).unwrap();
        }
    }

    /// Waits until it has ended.
    pub(crate) fn await_end(&self) {
        let mut status = self.status.lock().unwrap();
        while !status.ended {
            status = self.changes.wait(status).unwrap();
        }
    }

    /// Ends the wait; a wake that is too late does nothing.
    pub(crate) fn wake(&self) {
        self.end_as(Parked::Woken, |_| true);
    }

    /// The deadline of its wait passes, if it waits with a time limit.
    pub(crate) fn time_out(&self) {
        self.end_as(Parked::TimedOut, |limited| limited);
    }

    fn end_as(&self, how: Parked, may_end: impl FnOnce(bool) -> bool) {
        if std::thread::panicking() {
            return;
        }
        let mut status = self.status.lock().unwrap();
        if let Parked::Yes { limited } = status.parked
            && may_end(limited)
        {
            status.parked = how;
            self.changes.notify_all();
        }
    }

    pub(crate) fn level(&self) -> u8 {
        self.level.get()
    }

    pub(crate) fn asked_level(&self) -> u8 {
        self.asked_level.load(Ordering::SeqCst)
    }

    pub(crate) fn take_asked_level(&self) {
        self.level.set(self.effective_level());
    }

    /// `Microprocess::set_priority`, for the caller itself.
    pub(crate) fn set_level(&'static self, level: u8) {
        self.asked_level.store(level, Ordering::SeqCst);
        self.vp.changed(self);
        propagate(Masked::of(&self.vp), self);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct MicroprocessRef(pub(crate) &'static Record);

impl core::fmt::Debug for MicroprocessRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("MicroprocessRef").finish_non_exhaustive()
    }
}

impl PartialEq for MicroprocessRef {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

/// The level in models without levels.
const NORMAL: u8 = 31;

loom::thread_local! {
    static CURRENT: core::cell::Cell<&'static Record> = core::cell::Cell::new(Record::at(NORMAL));
}

impl MicroprocessRef {
    pub(crate) fn current() -> Self {
        Self(CURRENT.with(core::cell::Cell::get))
    }

    /// From here on the calling thread is this microprocess.
    pub(crate) fn become_current(self) {
        CURRENT.with(|record| record.set(self.0));
    }

    pub(crate) fn count_lock(self) {}

    pub(crate) fn uncount_lock(self) {}

    pub(crate) fn is_abandoned(self) -> bool {
        false
    }

    pub(crate) fn priority(self) -> u8 {
        self.0.level()
    }

    pub(crate) fn id(self) -> u64 {
        core::ptr::from_ref(self.0).addr() as u64
    }
}
