//! A microprocess: a thread of the model, and what it parks on.

use loom::sync::{Condvar, Mutex};

use crate::for_ever;
use crate::inherit::{Ranked, Wait};
use crate::prim::atomic::AtomicU64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    SpinMutex,
    RwLock,
    Condvar,
    Semaphore,
    Barrier,
    Send,
    Receive,
    Select,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) kind: Kind,
    pub(crate) object: usize,
}

/// How a wait stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    No,
    Yes { limited: bool },
    Woken,
    TimedOut,
}

#[derive(Debug)]
pub(crate) struct Record {
    parked: Mutex<Parked>,
    changes: Condvar,
    pub(crate) held_by: AtomicU64,
}

impl Record {
    fn new() -> Self {
        let held_by = AtomicU64::new(0);
        Self { parked: Mutex::new(Parked::No), changes: Condvar::new(), held_by }
    }

    /// From here on a waker may end the wait.
    pub(crate) fn prepare_to_park(&self, limited: bool) {
        *self.parked.lock().unwrap() = Parked::Yes { limited };
    }

    /// Waits; how that ended.
    pub(crate) fn park(&self) -> Parked {
        let mut parked = self.parked.lock().unwrap();
        while matches!(*parked, Parked::Yes { .. }) {
            parked = self.changes.wait(parked).unwrap();
        }
        core::mem::replace(&mut *parked, Parked::No)
    }

    /// Ends the wait; one that comes too late does nothing.
    pub(crate) fn wake(&self) {
        if std::thread::panicking() {
            return;
        }
        let mut parked = self.parked.lock().unwrap();
        if matches!(*parked, Parked::Yes { .. }) {
            *parked = Parked::Woken;
            self.changes.notify_one();
        }
    }

    /// The time of its wait is over, if it waits and has a limit.
    pub(crate) fn time_out(&self) {
        let mut parked = self.parked.lock().unwrap();
        if *parked == (Parked::Yes { limited: true }) {
            *parked = Parked::TimedOut;
            self.changes.notify_one();
        }
    }

    pub(crate) fn begin_wait(&self, _wait: &Wait<'_>) {}

    pub(crate) fn end_wait(&self) {}

    pub(crate) fn begin_ranked(&self, _ranked: &Ranked<'_>) {}

    pub(crate) fn end_ranked(&self) {}

    pub(crate) fn release_inheritance(&self) {}

    pub(crate) fn effective_level(&self) -> u8 {
        31
    }

    pub(crate) fn asked_level(&self) -> u8 {
        self.effective_level()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MicroprocessRef(pub(crate) &'static Record);

impl PartialEq for MicroprocessRef {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

loom::thread_local! {
    static CURRENT: &'static Record = for_ever(Record::new());
}

impl MicroprocessRef {
    pub(crate) fn current() -> Self {
        Self(CURRENT.with(|record| *record))
    }

    pub(crate) fn holds_one_more(self) {}

    pub(crate) fn holds_one_less(self) {}

    pub(crate) fn is_abandoned(self) -> bool {
        false
    }

    pub(crate) fn priority(self) -> u8 {
        self.0.effective_level()
    }

    pub(crate) fn id(self) -> u64 {
        core::ptr::from_ref(self.0).addr() as u64
    }
}
