//! The words that microprocesses of one virtual processor wait for: a list of nodes on their stacks.
#![expect(unsafe_code, reason = "follows pointers to waiters' frames")]

use core::cell::Cell;
use core::fmt;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use super::{Peer, Wait};
use crate::priority::Priority;
use crate::record::{MicroprocessRef, State};
use crate::schedule::make_runnable_from;
use crate::spin::AlwaysLock;
use crate::vp::Vp;

/// One wait, in its waiter's frame. Touched under the list's lock.
pub(super) struct Awaited {
    word: *const AtomicU32,
    expected: u32,
    level: *const AtomicU32,
    over: *const AtomicU32,
    who: MicroprocessRef,
    peer: *const Peer,
    bell: u32,
    woken: Cell<bool>,
    before: Cell<*const Self>,
    next: Cell<*const Self>,
    linked: Cell<bool>,
}

impl Awaited {
    pub(super) fn new(wait: &Wait<'_>, who: MicroprocessRef) -> Self {
        let (peer, bell) =
            wait.from.map_or((ptr::null(), 0), |(peer, bell)| (ptr::from_ref(peer), bell));
        Self {
            word: wait.word,
            expected: wait.expected,
            level: wait.level.map_or(ptr::null(), ptr::from_ref),
            over: wait.over.map_or(ptr::null(), ptr::from_ref),
            who,
            peer,
            bell,
            woken: Cell::new(wait.woken),
            before: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            linked: Cell::new(false),
        }
    }

    fn has_changed(&self) -> bool {
        // SAFETY: the waiter's wait borrows the word, and unlinks this first.
        let now = unsafe { (*self.word).load(Ordering::Acquire) };
        // SAFETY: null, or borrowed as well.
        let over = unsafe { self.over.as_ref() };
        now != self.expected || over.is_some_and(|over| over.load(Ordering::SeqCst) != 0)
    }

    /// Lets the waiter go on, at the level that the waker asks for. It was unlinked; the caller holds `vp`.
    fn wake(&self, vp: &'static Vp) {
        let record = self.who.0;
        // SAFETY: null, or borrowed by the waiter's wait, which does not end before it is woken here.
        if let Some(level) = unsafe { self.level.as_ref() } {
            let level = level.load(Ordering::Relaxed).min(u32::from(Priority::HIGHEST.level()));
            record.ask_level(level as u8);
            if ptr::eq(record.home(), vp) && record.state.get() == State::Parked {
                record.take_asked_level();
            }
        }
        make_runnable_from(vp, self.who);
    }
}

struct List {
    first: *const Awaited,
}

// SAFETY: what it points to is touched under its lock.
unsafe impl Send for List {}

/// All waits of one virtual processor.
pub(super) struct Awaiting {
    list: AlwaysLock<List>,
    count: AtomicU32,
}

impl fmt::Debug for Awaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaiting").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Awaiting {
    pub(super) const fn new() -> Self {
        Self { list: AlwaysLock::new(List { first: ptr::null() }), count: AtomicU32::new(0) }
    }

    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn link(&self, awaited: &Awaited) {
        let mut list = self.list.acquire();
        // SAFETY: null, or linked and so alive.
        if let Some(first) = unsafe { list.first.as_ref() } {
            first.before.set(awaited);
        }
        awaited.next.set(list.first);
        awaited.linked.set(true);
        list.first = awaited;
        self.count.store(self.count() + 1, Ordering::SeqCst);
    }

    pub(super) fn unlink(&self, awaited: &Awaited) {
        self.unlink_locked(&mut self.list.acquire(), awaited);
    }

    fn unlink_locked(&self, list: &mut List, awaited: &Awaited) {
        if !awaited.linked.replace(false) {
            return;
        }
        let (before, next) = (awaited.before.get(), awaited.next.get());
        // SAFETY: null, or linked and so alive.
        match unsafe { before.as_ref() } {
            Some(before) => before.next.set(next),
            None => list.first = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            next.before.set(before);
        }
        self.count.store(self.count() - 1, Ordering::SeqCst);
    }

    /// Makes those runnable whose words have changed.
    pub(super) fn look(&self, vp: &'static Vp) -> bool {
        let mut list = self.list.acquire();
        let mut found = false;
        let mut at = list.first;
        // SAFETY: null, or linked and so alive; the next one is read before this one is unlinked.
        while let Some(awaited) = unsafe { at.as_ref() } {
            at = awaited.next.get();
            if awaited.has_changed() {
                self.unlink_locked(&mut list, awaited);
                awaited.wake(vp);
                found = true;
            }
        }
        found
    }

    /// Whether one of the words has changed.
    pub(super) fn has_changed(&self) -> bool {
        let list = self.list.acquire();
        let mut at = list.first;
        // SAFETY: null, or linked and so alive while the lock is held.
        while let Some(awaited) = unsafe { at.as_ref() } {
            if awaited.has_changed() {
                return true;
            }
            at = awaited.next.get();
        }
        false
    }

    /// What is known of who will answer the latest wait: its standing, and whether it was just woken.
    pub(super) fn latest<R>(&self, tell: impl FnOnce(&Peer, u32, bool) -> R) -> Option<R> {
        let list = self.list.acquire();
        // SAFETY: null, or linked and so alive while the lock is held.
        let latest = unsafe { list.first.as_ref() }?;
        // SAFETY: null, or borrowed by the waiter's wait.
        let peer = unsafe { latest.peer.as_ref() }?;
        Some(tell(peer, latest.bell, latest.woken.get()))
    }

    /// Who will answer the latest wait had time to show that it is awake.
    pub(super) fn wake_is_over(&self) {
        let list = self.list.acquire();
        // SAFETY: null, or linked and so alive while the lock is held.
        if let Some(latest) = unsafe { list.first.as_ref() } {
            latest.woken.set(false);
        }
    }

    /// Forgets all waits: their waiters never run again.
    pub(super) fn forget(&self) {
        self.list.acquire().first = ptr::null();
        self.count.store(0, Ordering::SeqCst);
    }
}
