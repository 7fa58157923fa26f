//! The words that microprocesses of one virtual processor wait for, or go by: two lists of nodes in their frames.
//!
//! ```text
//!   link ──► waits ── word changed, or the wait ended otherwise ──► in no list
//!              ▲                    └─ the waiter has a post ─────► serves: its level follows a word
//!              └────────────────────── its next wait ──────────────────┘
//! ```
#![expect(unsafe_code, reason = "follows pointers to waiters' frames")]

use core::cell::Cell;
use core::fmt;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use super::Peer;
use crate::data::priority::Priority;
use crate::processor::record::{MicroprocessRef, Record, State, make_runnable_from, remote};
use crate::processor::spin::AlwaysLock;
use crate::processor::vp::{Masked, Vp};

/// What becomes of a node after its wait.
pub(crate) enum Afterwards {
    /// Nothing: it is over.
    Ends,
    /// The waiter goes on at the level that this word says, and follows it.
    Follows(*const AtomicU32),
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Waits,
    Serves,
}

/// One waiter, in its own frame. Up to `in_vain` the cells are its own to touch unless it waits; then, and the others always, the lock's.
pub(crate) struct Awaited {
    word: *const AtomicU32,
    over: *const AtomicU32,
    who: MicroprocessRef,
    afterwards: Afterwards,
    /// Whose lists it stands in.
    vp: Cell<Option<&'static Vp>>,
    expected: Cell<u32>,
    peer: Cell<*const Peer>,
    bell: Cell<u32>,
    woken: Cell<bool>,
    /// How many loans were over while who will answer slept.
    in_vain: Cell<u32>,
    /// The level it was last told to follow.
    followed: Cell<u8>,
    place: Cell<Place>,
    before: Cell<*const Self>,
    next: Cell<*const Self>,
}

impl Awaited {
    pub(crate) fn new(
        word: &AtomicU32,
        over: Option<&AtomicU32>,
        who: &'static Record,
        afterwards: Afterwards,
    ) -> Self {
        Self {
            word,
            over: over.map_or(ptr::null(), ptr::from_ref),
            who: MicroprocessRef(who),
            afterwards,
            vp: Cell::new(None),
            expected: Cell::new(0),
            peer: Cell::new(ptr::null()),
            bell: Cell::new(0),
            woken: Cell::new(false),
            in_vain: Cell::new(0),
            followed: Cell::new(0),
            place: Cell::new(Place::Nowhere),
            before: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// The waiter.
    pub(crate) fn who(&self) -> &'static Record {
        self.who.0
    }

    pub(crate) fn word_address(&self) -> usize {
        self.word.addr()
    }

    /// Settles what its next wait is for. By the waiter, which does not wait.
    pub(crate) fn expect(&self, expected: u32, from: Option<(&Peer, u32)>, woken: bool) {
        let (peer, bell) =
            from.map_or((ptr::null(), 0), |(peer, bell)| (ptr::from_ref(peer), bell));
        self.expected.set(expected);
        self.peer.set(peer);
        self.bell.set(bell);
        self.woken.set(woken);
        self.in_vain.set(0);
    }

    /// The word's value, once it is not the expected one.
    pub(crate) fn changed(&self) -> Option<u32> {
        // SAFETY: borrowed by the waiter's wait or post, which takes this out of the lists first.
        let now = unsafe { (*self.word).load(Ordering::SeqCst) };
        Some(now).filter(|&now| now != self.expected.get())
    }

    /// Whether the wait is over whatever the word says.
    pub(crate) fn is_over(&self) -> bool {
        // SAFETY: null, or borrowed as the word is.
        unsafe { self.over.as_ref() }.is_some_and(|over| over.load(Ordering::SeqCst) != 0)
    }

    /// Who will change the word, if that is known.
    fn peer(&self) -> Option<&Peer> {
        // SAFETY: null, or borrowed as the word is.
        unsafe { self.peer.get().as_ref() }
    }

    /// Whether somebody owes the waiter an answer: who has a post waits for what may never come.
    fn is_call(&self) -> bool {
        matches!(self.afterwards, Afterwards::Ends) && !self.peer.get().is_null()
    }

    /// Whether the waiter has something to do.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed().is_some() || self.is_over()
    }

    /// The level that the waiter is to go on at, as another process says.
    fn alleged_level(&self) -> Option<u8> {
        let Afterwards::Follows(word) = self.afterwards else { return None };
        // SAFETY: borrowed by the waiter's post.
        let level = unsafe { (*word).load(Ordering::Relaxed) };
        Some(level.min(u32::from(Priority::HIGHEST.level())) as u8)
    }

    /// Whether the level to follow has changed.
    fn is_raised(&self) -> bool {
        self.alleged_level().is_some_and(|level| level != self.followed.get())
    }

    /// Lets the waiter go on, at the level that it was just asked to. It does not wait any more; the caller holds `vp`.
    fn wake(&self, vp: Masked<'_>) {
        let record = self.who.0;
        if vp.is_home_of(record) && record.state.get() == State::Parked {
            record.take_asked_level();
        }
        make_runnable_from(vp, self.who);
    }

    /// Asks the waiter, which serves, for the level that its caller has now.
    fn ask_level(&self) {
        if let Some(level) = self.alleged_level() {
            self.followed.set(level);
            self.who.0.ask_level(level);
        }
    }

    // ----- by the waiter -----------------------------------------------------------------------

    /// Puts it among those that wait, of `vp`, which the caller holds.
    pub(crate) fn link(&self, vp: Masked<'_>) {
        if !self.vp.get().is_some_and(|before| ptr::eq(before, vp.vp())) {
            self.unlink();
            self.vp.set(Some(vp.vp()));
        }
        vp.bell.awaiting.put(self, Place::Waits);
    }

    /// Its wait is over, however it ended. Masked.
    pub(crate) fn leave(&self) {
        if let Some(vp) = self.vp.get() {
            vp.bell.awaiting.put(self, self.place_afterwards());
        }
    }

    /// Serves from here on, at the level to follow as it is now. Masked, on `vp`.
    pub(crate) fn follow(&self, vp: Masked<'_>) {
        let vp = self.vp.get().unwrap_or(vp.vp());
        self.vp.set(Some(vp));
        vp.bell.awaiting.follow(self);
    }

    /// Takes it out of all lists. Masked.
    pub(crate) fn unlink(&self) {
        if let Some(vp) = self.vp.take() {
            vp.bell.awaiting.put(self, Place::Nowhere);
        }
    }

    fn place_afterwards(&self) -> Place {
        match self.afterwards {
            Afterwards::Ends => Place::Nowhere,
            Afterwards::Follows(_) => Place::Serves,
        }
    }
}

/// Nodes, the latest first.
struct List(*const Awaited);

impl List {
    const EMPTY: Self = Self(ptr::null());

    fn push(&mut self, awaited: &Awaited) {
        // SAFETY: null, or linked and so alive.
        if let Some(first) = unsafe { self.0.as_ref() } {
            first.before.set(awaited);
        }
        awaited.before.set(ptr::null());
        awaited.next.set(self.0);
        self.0 = awaited;
    }

    fn remove(&mut self, awaited: &Awaited) {
        let (before, next) = (awaited.before.get(), awaited.next.get());
        // SAFETY: null, or linked and so alive.
        match unsafe { before.as_ref() } {
            Some(before) => before.next.set(next),
            None => self.0 = next,
        }
        // SAFETY: as above.
        if let Some(next) = unsafe { next.as_ref() } {
            next.before.set(before);
        }
    }

    fn first(&self) -> Option<&Awaited> {
        // SAFETY: null, or linked and so alive while the lists' lock is held, which `self` shows.
        unsafe { self.0.as_ref() }
    }

    /// Its nodes; the one that was given last may be removed.
    fn iter(&self) -> impl Iterator<Item = &Awaited> + use<'_> {
        let mut at = self.0;
        core::iter::from_fn(move || {
            // SAFETY: as in `first`.
            let here = unsafe { at.as_ref() }?;
            at = here.next.get();
            Some(here)
        })
    }
}

/// Who waits and who serves.
struct Lists {
    waits: List,
    serves: List,
}

// SAFETY: what they point to is touched under their lock.
unsafe impl Send for Lists {}

impl Lists {
    fn list(&mut self, place: Place) -> Option<&mut List> {
        match place {
            Place::Nowhere => None,
            Place::Waits => Some(&mut self.waits),
            Place::Serves => Some(&mut self.serves),
        }
    }

    /// Moves `awaited` there. Who serves from here on is asked for the level of its caller.
    fn put(&mut self, awaited: &Awaited, place: Place) {
        let before = awaited.place.replace(place);
        if before == place && place != Place::Waits {
            return;
        }
        if let Some(list) = self.list(before) {
            list.remove(awaited);
        }
        if place == Place::Serves {
            awaited.ask_level();
        }
        if let Some(list) = self.list(place) {
            list.push(awaited);
        }
    }

    fn is_empty(&self) -> bool {
        self.waits.0.is_null() && self.serves.0.is_null()
    }
}

/// All waits of one virtual processor.
pub(crate) struct Awaiting {
    lists: AlwaysLock<Lists>,
    /// Whether there are any; changed under the lock.
    any: AtomicU32,
}

impl fmt::Debug for Awaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaiting").field("any", &self.any).finish_non_exhaustive()
    }
}

impl Awaiting {
    pub(crate) const fn new() -> Self {
        let lists = Lists { waits: List::EMPTY, serves: List::EMPTY };
        Self { lists: AlwaysLock::new(lists), any: AtomicU32::new(0) }
    }

    /// Whether somebody waits or serves here.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Relaxed) != 0
    }

    fn put(&self, awaited: &Awaited, place: Place) {
        let mut lists = self.lists.acquire();
        lists.put(awaited, place);
        self.any.store(u32::from(!lists.is_empty()), Ordering::SeqCst);
    }

    /// Puts `awaited` among those that serve, if it is not there, and asks for the level of its caller.
    fn follow(&self, awaited: &Awaited) {
        let mut lists = self.lists.acquire();
        lists.put(awaited, Place::Serves);
        awaited.ask_level();
        self.any.store(1, Ordering::SeqCst);
    }

    /// Makes those runnable whose words have changed, and passes levels on.
    pub(crate) fn look(&self, vp: Masked<'_>) -> bool {
        let mut lists = self.lists.acquire();
        let mut found = false;
        let mut at = lists.waits.0;
        // SAFETY: null, or linked and so alive; the next one is read before this one is moved.
        while let Some(awaited) = unsafe { at.as_ref() } {
            at = awaited.next.get();
            if awaited.has_changed() {
                lists.put(awaited, awaited.place_afterwards());
                awaited.wake(vp);
                found = true;
            }
        }
        for served in lists.serves.iter().filter(|served| served.is_raised()) {
            served.ask_level();
            served.who.0.post(remote::CHANGED);
            found = true;
        }
        self.any.store(u32::from(!lists.is_empty()), Ordering::SeqCst);
        found
    }

    /// Whether a look would find something.
    pub(crate) fn has_changed(&self) -> bool {
        let lists = self.lists.acquire();
        lists.waits.iter().any(Awaited::has_changed) || lists.serves.iter().any(Awaited::is_raised)
    }

    /// What is known of who will end the latest wait: its bells, its own one, and whether it was just woken.
    pub(crate) fn latest<R>(&self, tell: impl FnOnce(&Peer, u32, bool) -> R) -> Option<R> {
        let lists = self.lists.acquire();
        let latest = lists.waits.first()?;
        Some(tell(latest.peer()?, latest.bell.get(), latest.woken.get()))
    }

    /// What is known of who will answer the latest call: its bells, its own one, and how many loans to it were in vain.
    pub(crate) fn latest_call<R>(&self, tell: impl FnOnce(&Peer, u32, u32) -> R) -> Option<R> {
        let lists = self.lists.acquire();
        let call = lists.waits.iter().find(|awaited| awaited.is_call())?;
        Some(tell(call.peer()?, call.bell.get(), call.in_vain.get()))
    }

    /// A loan to who will answer the latest call is over.
    pub(crate) fn judge_loan(&self, was_in_vain: bool) {
        let lists = self.lists.acquire();
        if let Some(call) = lists.waits.iter().find(|awaited| awaited.is_call()) {
            call.in_vain.set(if was_in_vain { call.in_vain.get() + 1 } else { 0 });
        }
    }

    /// Forgets everybody: they never run again.
    pub(crate) fn forget(&self) {
        let mut lists = self.lists.acquire();
        *lists = Lists { waits: List::EMPTY, serves: List::EMPTY };
        self.any.store(0, Ordering::SeqCst);
    }
}
