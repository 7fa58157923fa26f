//! The newest moments of one virtual processor.
//!
//! There is one writer at a time: the holder with events masked, or a thread that takes the virtual
//! processor from it while it sleeps. Readers come after recording has stopped. At most one moment
//! is still being written then. It is counted only once it is complete, and left out before. In a
//! full ring it overwrites the oldest moment, which may then be read with a part of the new one.
#![expect(unsafe_code, reason = "follows the pointer to the ring, which is never freed")]

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;

use super::{Moment, What, identity};
use crate::processor::published::PublishedName;
use crate::processor::record::{Name, Record};

/// How many moments are kept for each virtual processor.
const CAPACITY: usize = 1 << 16;

/// One moment.
struct Slot {
    at_ns: AtomicU64,
    id: AtomicU64,
    what: AtomicU64,
    name: PublishedName,
}

/// A ring of moments.
pub(crate) struct Ring {
    written: AtomicU64,
    slots: Box<[Slot]>,
}

impl Ring {
    fn new(capacity: usize) -> Self {
        let slot = |_| Slot {
            at_ns: AtomicU64::new(0),
            id: AtomicU64::new(0),
            what: AtomicU64::new(0),
            name: PublishedName::new(),
        };
        Self { written: AtomicU64::new(0), slots: (0..capacity).map(slot).collect() }
    }

    fn note(&self, at_ns: u64, what: What, (id, name): (u64, Name)) {
        let number = self.written.load(Ordering::Relaxed);
        let slot = &self.slots[number as usize % self.slots.len()];
        slot.at_ns.store(at_ns, Ordering::Relaxed);
        slot.id.store(id, Ordering::Relaxed);
        slot.what.store(what as u64, Ordering::Relaxed);
        slot.name.set(name);
        self.written.store(number + 1, Ordering::Release);
    }

    /// Appends the moments since `from_ns` to `moments`; returns how many were overwritten.
    fn take(&self, processor: usize, from_ns: u64, moments: &mut Vec<Moment>) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        let kept = written.min(self.slots.len() as u64);
        for number in written - kept..written {
            let slot = &self.slots[number as usize % self.slots.len()];
            let at_ns = slot.at_ns.load(Ordering::Relaxed);
            let what = what_of(slot.what.load(Ordering::Relaxed));
            let Some(what) = what.filter(|_| at_ns >= from_ns) else { continue };
            moments.push(Moment {
                at_ns,
                virtual_processor: processor,
                what,
                id: slot.id.load(Ordering::Relaxed),
                name: slot.name.get().as_str().map(str::to_owned),
            });
        }
        written - kept
    }
}

fn what_of(number: u64) -> Option<What> {
    use What::{Blocked, Changed, Idles, Preempted, Resumed, Runs, Unblocked};
    let all = [Runs, Idles, Blocked, Unblocked, Preempted, Resumed, Changed];
    all.into_iter().find(|what| *what as u64 == number)
}

/// The recording of one virtual processor.
pub(crate) struct Trace {
    on: AtomicBool,
    /// Made when recording is first turned on; never freed.
    ring: AtomicPtr<Ring>,
}

impl Trace {
    pub(crate) const fn new() -> Self {
        Self { on: AtomicBool::new(false), ring: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn ring(&self) -> Option<&'static Ring> {
        // SAFETY: null, or set by `turn_on` to a ring that is never freed.
        unsafe { self.ring.load(Ordering::Acquire).as_ref() }
    }

    /// Begins a new recording, with what is `running`. Allocates the first time.
    pub(super) fn turn_on(&self, running: Option<&'static Record>) {
        match self.ring() {
            Some(ring) => ring.written.store(0, Ordering::Relaxed),
            None => {
                let ring = Box::leak(Box::new(Ring::new(CAPACITY)));
                self.ring.store(ring, Ordering::Release);
            }
        }
        // While it is off, no other thread writes.
        if running.is_some() {
            self.write(What::Runs, running);
        }
        self.on.store(true, Ordering::Release);
    }

    /// Records nothing from here on.
    pub(crate) fn turn_off(&self) {
        self.on.store(false, Ordering::Release);
    }

    /// Records that `what` happened to `record`, if a recording is on.
    #[inline]
    pub(crate) fn note(&self, what: What, record: Option<&'static Record>) {
        if self.is_on() {
            self.write(what, record);
        }
    }

    #[cold]
    fn write(&self, what: What, record: Option<&'static Record>) {
        if let Some(ring) = self.ring() {
            ring.note(monotonic_ns(), what, identity(record));
        }
    }

    /// Appends what was recorded since `from_ns`; returns how many moments were overwritten.
    pub(super) fn take(&self, processor: usize, from_ns: u64, moments: &mut Vec<Moment>) -> u64 {
        self.ring().map_or(0, |ring| ring.take(processor, from_ns, moments))
    }
}

#[cfg(test)]
mod tests {
    use super::{Ring, What};
    use crate::processor::record::Name;
    use proptest::prelude::{any, prop, proptest};

    proptest! {
        #[test]
        fn the_newest_are_kept_and_the_others_counted(
            capacity in 1..20_usize, ids in prop::collection::vec(any::<u64>(), 0..60),
        ) {
            let ring = Ring::new(capacity);
            for (at, &id) in ids.iter().enumerate() {
                ring.note(at as u64, What::Runs, (id, Name::new("a")));
            }
            let mut moments = Vec::new();
            let dropped = ring.take(3, 0, &mut moments);
            let first = ids.len().saturating_sub(capacity);
            assert_eq!(dropped, first as u64);
            let seen: Vec<u64> = moments.iter().map(|moment| moment.id).collect();
            assert_eq!(seen, ids[first..]);
            assert!(moments.iter().all(|it| it.virtual_processor == 3 && it.name.as_deref() == Some("a")));
        }
    }
}
