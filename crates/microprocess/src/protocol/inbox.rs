//! How everybody else asks something of the holder of a virtual processor: bits in a record, and a lock-free stack of such records.
//!
//! ```text
//!   post: bits |= what | LINKED ── was LINKED clear? ──► put it into the inbox of its home
//!   holder: takes the whole stack, turns it round, and for each record: bits = 0, does what they said
//! ```
//!
//! **Invariant:** a record whose `LINKED` bit is set is in one inbox, or on its way into or out of one; `next` is its owner's meanwhile.
#![expect(unsafe_code, reason = "follows pointers to records, which live for ever")]

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, Ordering};

/// In some inbox.
pub(crate) const LINKED: u32 = 1;

/// What can be put into an inbox.
pub(crate) trait Posted: Sized + 'static {
    /// What is asked, and [`LINKED`].
    fn bits(&self) -> &AtomicU32;
    /// The record that was put in before it.
    fn next(&self) -> &AtomicPtr<Self>;
}

/// Adds `bits` to what is asked of `record`; whether the caller has to put it into the inbox of its home.
#[inline]
pub(crate) fn ask<R: Posted>(record: &R, bits: u32) -> bool {
    record.bits().fetch_or(bits | LINKED, Ordering::AcqRel) & LINKED == 0
}

/// Takes what is asked of `record`, which has just left an inbox: from here on it may be put into one again.
pub(crate) fn answer<R: Posted>(record: &R) -> u32 {
    record.bits().swap(0, Ordering::AcqRel) & !LINKED
}

/// Records of which something is asked.
#[derive(Debug)]
pub(crate) struct Inbox<R>(AtomicPtr<R>);

impl<R: Posted> Inbox<R> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds `record`, for which [`ask`] told the caller to.
    pub(crate) fn put(&self, record: &'static R) {
        let entry = ptr::from_ref(record).cast_mut();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            record.next().store(head, Ordering::Relaxed);
            match self.0.compare_exchange_weak(head, entry, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all records out; `handle` gets them, oldest first.
    pub(crate) fn drain(&self, handle: impl Fn(&'static R)) {
        let mut newest = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        let mut oldest = ptr::null_mut::<R>();
        // SAFETY: records live for ever; those in the list are linked through `next`, which only
        // we follow or change until their LINKED bit is cleared.
        while let Some(record) = unsafe { newest.as_ref() } {
            let next = record.next().load(Ordering::Relaxed);
            record.next().store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
        // SAFETY: as above.
        while let Some(record) = unsafe { oldest.as_ref() } {
            oldest = record.next().load(Ordering::Relaxed);
            handle(record);
        }
    }
}
