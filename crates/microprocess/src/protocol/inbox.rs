//! Messages from other threads to the holder of a virtual processor: bits in a record, and a
//! lock-free stack of such records.
//!
//! ```text
//!   post: bits |= what | LINKED ── was LINKED clear? ──► Link ── put into the inbox of its home
//!   holder: takes the whole stack, reverses it, and for each Link: bits = 0, does what they asked
//! ```
//!
//! The inbox of a virtual processor that has stopped is *closed*. A link for a closed inbox is
//! [reconsidered](reconsider). The message to a record of an ended run is dropped. But if the slot
//! belongs to another microprocess by now, whose home is open, the message is sent to that home.
//!
//! **Invariant:** the `LINKED` bit of a record is set exactly while there is a [`Link`] to it, or
//! while it is in an inbox. Meanwhile only the owner of the link, or of the inbox, writes `next`.
//! Only the owner of the link clears the bit, and a dropped link clears it. So a record never keeps
//! the bit without a message: the next user of the slot can receive messages.
//!
//! (`tests/models/inbox.rs` runs this file in every order.)
#![expect(unsafe_code, reason = "follows pointers to records, which live for ever")]

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, Ordering};

/// There is a [`Link`] to the record, or the record is in an inbox.
pub(crate) const LINKED: u32 = 1;

/// An element of an inbox.
pub(crate) trait Posted: Sized + 'static {
    /// What is asked, and [`LINKED`].
    fn bits(&self) -> &AtomicU32;
    /// The record that was put into the inbox before it.
    fn next(&self) -> &AtomicPtr<Self>;
}

/// A message to a record: its bits say what is asked. There is at most one link to a record.
#[must_use = "it is put into the inbox of the record's home, or answered"]
pub(crate) struct Link<R: Posted>(&'static R);

impl<R: Posted> Link<R> {
    /// The record to which the message goes.
    #[inline]
    pub(crate) fn record(&self) -> &'static R {
        self.0
    }

    /// Takes and returns what is asked. From then on the record may be put into an inbox again.
    #[inline]
    pub(crate) fn answer(self) -> u32 {
        let record = self.into_record();
        record.bits().swap(0, Ordering::AcqRel) & !LINKED
    }

    /// The record; its `LINKED` bit stays set.
    #[inline]
    fn into_record(self) -> &'static R {
        let record = self.0;
        core::mem::forget(self);
        record
    }
}

impl<R: Posted> Drop for Link<R> {
    fn drop(&mut self) {
        // The message is lost, but the record can receive messages again.
        self.0.bits().swap(0, Ordering::AcqRel);
    }
}

/// Adds `bits` to what is asked of `record`. Returns the link if there was none; the caller puts it
/// into the inbox of the record's home.
#[inline]
pub(crate) fn ask<R: Posted>(record: &'static R, bits: u32) -> Option<Link<R>> {
    let was_linked = record.bits().fetch_or(bits | LINKED, Ordering::AcqRel) & LINKED != 0;
    if was_linked { None } else { Some(Link(record)) }
}

/// Answers `link`, whose inbox is closed because the run of its microprocess has ended.
/// `home_is_closed` tells whether the inbox of the record's home is closed too. That home may be
/// another one by now. If its inbox is open, this asks the same again, since some of it may be for
/// the next user of the slot.
///
/// The next user is asked after its home was opened, and the answer includes what was asked before.
/// So what is dropped here was asked of a microprocess of an ended run.
pub(crate) fn reconsider<R: Posted>(
    link: Link<R>,
    home_is_closed: impl FnOnce() -> bool,
) -> Option<Link<R>> {
    let record = link.record();
    let bits = link.answer();
    if home_is_closed() { None } else { ask(record, bits) }
}

/// The records with a message for the holder of one virtual processor.
#[derive(Debug)]
pub(crate) struct Inbox<R>(AtomicPtr<R>);

impl<R: Posted> Inbox<R> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The head of a closed inbox; no record has this address.
    const fn closed() -> *mut R {
        ptr::without_provenance_mut(1)
    }

    /// Adds the record of `link`. Returns the link if the inbox is closed.
    pub(crate) fn put(&self, link: Link<R>) -> Result<(), Link<R>> {
        let entry = ptr::from_ref(link.record()).cast_mut();
        let mut head = self.0.load(Ordering::Relaxed);
        while head != Self::closed() {
            link.record().next().store(head, Ordering::Relaxed);
            match self.0.compare_exchange_weak(head, entry, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => {
                    let _is_in_the_inbox = link.into_record();
                    return Ok(());
                }
                Err(now) => head = now,
            }
        }
        Err(link)
    }

    /// Removes all links and passes them to `handle`, oldest first. Call as the holder; the inbox
    /// is open.
    pub(crate) fn drain(&self, handle: impl Fn(Link<R>)) {
        let newest = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        debug_assert!(newest != Self::closed(), "the holder has stopped");
        Self::handle_all(newest, handle);
    }

    /// Closes the inbox and passes the remaining links to `handle`. Call when there is no holder
    /// any more.
    pub(crate) fn close(&self, handle: impl Fn(Link<R>)) {
        let newest = self.0.swap(Self::closed(), Ordering::AcqRel);
        if newest != Self::closed() {
            Self::handle_all(newest, handle);
        }
    }

    /// Whether the inbox is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::closed()
    }

    /// Opens the inbox again, for the next run.
    pub(crate) fn reopen(&self) {
        debug_assert!(self.is_closed(), "its last run has stopped");
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    fn handle_all(newest: *mut R, handle: impl Fn(Link<R>)) {
        let mut newest = newest;
        let mut oldest = ptr::null_mut::<R>();
        // SAFETY: records are never freed. Those in the list are linked through `next`, which only
        // this thread reads or writes until it clears their LINKED bit.
        while let Some(record) = unsafe { newest.as_ref() } {
            let next = record.next().load(Ordering::Relaxed);
            record.next().store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
        // SAFETY: as above.
        while let Some(record) = unsafe { oldest.as_ref() } {
            oldest = record.next().load(Ordering::Relaxed);
            // The bit was set when the record was put in, and this is the only link to it.
            handle(Link(record));
        }
    }
}
