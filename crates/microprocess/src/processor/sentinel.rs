//! The sentinel of a virtual processor, as other threads see it. The thread itself:
//! [`events::sentinel`](crate::events::sentinel).

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU8, AtomicU32, Ordering};
use kyocho_sys::scheduling::{Class, set_class};
use kyocho_sys::task::ThreadId;

/// The state of one virtual processor's sentinel: whether it sleeps, its thread, and its last
/// nomination.
#[derive(Debug)]
pub(crate) struct Sentinel {
    /// A futex word: 1 while the sentinel sleeps.
    pub(crate) asleep: AtomicU32,
    /// Its thread number; 0 before it runs.
    pub(crate) tid: AtomicU32,
    /// What became of the spare kernel thread that it nominated last.
    pub(crate) nomination: AtomicU8,
}

/// Values of [`Sentinel::nomination`].
pub(crate) mod nomination {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const PENDING: u8 = 1;
    pub(crate) const TAKEN: u8 = 2;
    pub(crate) const REFUSED: u8 = 3;
}

/// The lowest of the host's real-time levels: above all time sharing, below all holders.
const ABOVE_TIME_SHARING: Class = Class::Fifo(1);

impl Sentinel {
    pub(crate) const fn new() -> Self {
        Self {
            asleep: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            nomination: AtomicU8::new(nomination::NONE),
        }
    }

    /// As it was at first: no sentinel runs.
    pub(crate) fn renew(&self) {
        self.asleep.store(0, Ordering::SeqCst);
        self.tid.store(0, Ordering::SeqCst);
        self.nomination.store(nomination::NONE, Ordering::SeqCst);
    }

    /// Its number, once it runs.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid != 0).map(ThreadId::new)
    }

    fn put_into(&self, class: Class) {
        if let Some(id) = self.id() {
            // If refused, the sentinel runs later, or pauses more often.
            let _as_it_was = set_class(id, class);
        }
    }

    /// Puts the sentinel above time sharing, since its holder is real-time.
    pub(crate) fn raise(&self) {
        self.put_into(ABOVE_TIME_SHARING);
    }

    /// Puts the sentinel into the idle class, since its holder is time-sharing.
    pub(crate) fn lower(&self) {
        self.put_into(Class::Idle);
    }

    /// Wakes the sentinel: the virtual processor is busy again, or the runtime stops.
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.asleep.store(0, Ordering::SeqCst);
            futex::wake(&self.asleep, 1);
        }
    }
}
