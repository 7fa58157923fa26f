//! The words for which microprocesses of one virtual processor wait, or which they follow. Two
//! lists of nodes, which lie in the frames of the microprocesses.
//!
//! ```text
//!   link ──► waits ── the word changed, or the wait ended otherwise ──► in no list
//!              ▲                    └─ the waiter has a post ─────────► serves: its level follows a word
//!              └────────────────────── its next wait ──────────────────────┘
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

/// What happens to a node after its wait.
pub(crate) enum AfterWait {
    /// It leaves the lists.
    Ends,
    /// The waiter continues at the level in this word, and follows the word.
    Follows(*const AtomicU32),
}

/// Which list a node is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeState {
    Unlinked,
    Waits,
    Serves,
}

/// The node of one waiter, in its own frame. While the node is not in the list of waits, the waiter
/// may access the cells up to `in_vain`. It may always read `vp` and `expected`, which only it
/// writes. All other accesses need the lock of the lists.
pub(crate) struct Awaited {
    word: *const AtomicU32,
    over: *const AtomicU32,
    microprocess: MicroprocessRef,
    after: AfterWait,
    /// The virtual processor whose lists the node is in.
    vp: Cell<Option<&'static Vp>>,
    expected: Cell<u32>,
    peer: Cell<*const Peer>,
    bell: Cell<u32>,
    woken: Cell<bool>,
    /// Number of donations that ended while the recipient slept.
    in_vain: Cell<u32>,
    /// The level that the waiter was last asked to take.
    followed: Cell<u8>,
    state: Cell<NodeState>,
    before: Cell<*const Self>,
    next: Cell<*const Self>,
}

impl Awaited {
    pub(crate) fn new(
        word: &AtomicU32,
        over: Option<&AtomicU32>,
        record: &'static Record,
        after: AfterWait,
    ) -> Self {
        Self {
            word,
            over: over.map_or(ptr::null(), ptr::from_ref),
            microprocess: MicroprocessRef(record),
            after,
            vp: Cell::new(None),
            expected: Cell::new(0),
            peer: Cell::new(ptr::null()),
            bell: Cell::new(0),
            woken: Cell::new(false),
            in_vain: Cell::new(0),
            followed: Cell::new(0),
            state: Cell::new(NodeState::Unlinked),
            before: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// The microprocess that waits.
    pub(crate) fn record(&self) -> &'static Record {
        self.microprocess.0
    }

    pub(crate) fn word_address(&self) -> usize {
        self.word.addr()
    }

    /// Sets what the next wait is for. Call as the waiter, outside a wait.
    pub(crate) fn expect(&self, expected: u32, from: Option<(&Peer, u32)>, woken: bool) {
        let (peer, bell) =
            from.map_or((ptr::null(), 0), |(peer, bell)| (ptr::from_ref(peer), bell));
        self.expected.set(expected);
        self.peer.set(peer);
        self.bell.set(bell);
        self.woken.set(woken);
        self.in_vain.set(0);
    }

    /// The word's value, if it is not the expected one.
    pub(crate) fn changed(&self) -> Option<u32> {
        // SAFETY: borrowed for the waiter's wait or post, which removes this node from the lists
        // before it ends.
        let now = unsafe { (*self.word).load(Ordering::SeqCst) };
        Some(now).filter(|&now| now != self.expected.get())
    }

    /// Whether the wait is over, whatever the value of the word.
    pub(crate) fn is_over(&self) -> bool {
        // SAFETY: null, or borrowed for as long as the word.
        unsafe { self.over.as_ref() }.is_some_and(|over| over.load(Ordering::SeqCst) != 0)
    }

    /// The process that will change the word, if known.
    fn peer(&self) -> Option<&Peer> {
        // SAFETY: null, or borrowed for as long as the word.
        unsafe { self.peer.get().as_ref() }
    }

    /// Whether this is a call, which a peer will answer. A waiter with a post waits for a call that
    /// may never come.
    fn is_call(&self) -> bool {
        matches!(self.after, AfterWait::Ends) && !self.peer.get().is_null()
    }

    /// Whether the wait is over.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed().is_some() || self.is_over()
    }

    /// The level at which the waiter is to run, as another process alleges it.
    fn alleged_level(&self) -> Option<u8> {
        let AfterWait::Follows(word) = self.after else { return None };
        // SAFETY: borrowed for the waiter's post.
        let level = unsafe { (*word).load(Ordering::Relaxed) };
        Some(level.min(u32::from(Priority::HIGHEST.level())) as u8)
    }

    /// Whether the followed level has changed.
    fn is_raised(&self) -> bool {
        self.alleged_level().is_some_and(|level| level != self.followed.get())
    }

    /// Makes the waiter runnable at the level that it was last asked to take. It is no longer in
    /// the list of waits; the caller holds `vp`.
    fn wake(&self, vp: Masked<'_>) {
        let record = self.microprocess.0;
        if vp.is_home_of(record) && record.state.get() == State::Parked {
            record.take_asked_level();
        }
        make_runnable_from(vp, self.microprocess);
    }

    /// Asks the waiter, which serves a caller, to take the caller's present level.
    fn ask_level(&self) {
        if let Some(level) = self.alleged_level() {
            self.followed.set(level);
            self.microprocess.0.ask_level(level);
        }
    }

    // ----- called by the waiter ----------------------------------------------------------------

    /// Adds the node to the waits of `vp`, which the caller holds.
    pub(crate) fn link(&self, vp: Masked<'_>) {
        if !self.vp.get().is_some_and(|before| ptr::eq(before, vp.vp())) {
            self.unlink();
            self.vp.set(Some(vp.vp()));
        }
        vp.bell.awaiting.put(self, NodeState::Waits);
    }

    /// Ends the wait, whatever its outcome. Events must be masked.
    pub(crate) fn leave(&self) {
        if let Some(vp) = self.vp.get() {
            vp.bell.awaiting.put(self, self.state_after());
        }
    }

    /// Begins to serve, and to follow the present level of the caller. Call on `vp`, with events
    /// masked.
    pub(crate) fn follow(&self, vp: Masked<'_>) {
        let vp = self.vp.get().unwrap_or(vp.vp());
        self.vp.set(Some(vp));
        vp.bell.awaiting.follow(self);
    }

    /// Removes the node from all lists. Events must be masked.
    pub(crate) fn unlink(&self) {
        if let Some(vp) = self.vp.take() {
            vp.bell.awaiting.put(self, NodeState::Unlinked);
        }
    }

    fn state_after(&self) -> NodeState {
        match self.after {
            AfterWait::Ends => NodeState::Unlinked,
            AfterWait::Follows(_) => NodeState::Serves,
        }
    }
}

/// A list of nodes, latest first.
struct List(*const Awaited);

impl List {
    const EMPTY: Self = Self(ptr::null());

    fn push(&mut self, awaited: &Awaited) {
        // SAFETY: null, or linked and therefore alive.
        if let Some(first) = unsafe { self.0.as_ref() } {
            first.before.set(awaited);
        }
        awaited.before.set(ptr::null());
        awaited.next.set(self.0);
        self.0 = awaited;
    }

    fn remove(&mut self, awaited: &Awaited) {
        let (before, next) = (awaited.before.get(), awaited.next.get());
        // SAFETY: null, or linked and therefore alive.
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
        // SAFETY: null, or linked and therefore alive while the lists are locked; `self` proves the
        // lock.
        unsafe { self.0.as_ref() }
    }

    /// The nodes of the list. The node that was returned last may be removed.
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

/// The waits, and the nodes that serve.
struct Lists {
    waits: List,
    serves: List,
}

// SAFETY: the nodes that they point to are accessed only under the lock of the lists.
unsafe impl Send for Lists {}

impl Lists {
    fn list(&mut self, state: NodeState) -> Option<&mut List> {
        match state {
            NodeState::Unlinked => None,
            NodeState::Waits => Some(&mut self.waits),
            NodeState::Serves => Some(&mut self.serves),
        }
    }

    /// Moves `awaited` to the list of `state`. If it serves from now on, its waiter is asked to
    /// take its caller's level.
    fn put(&mut self, awaited: &Awaited, state: NodeState) {
        let before = awaited.state.replace(state);
        if before == state && state != NodeState::Waits {
            return;
        }
        if let Some(list) = self.list(before) {
            list.remove(awaited);
        }
        if state == NodeState::Serves {
            awaited.ask_level();
        }
        if let Some(list) = self.list(state) {
            list.push(awaited);
        }
    }

    fn is_empty(&self) -> bool {
        self.waits.0.is_null() && self.serves.0.is_null()
    }
}

/// All awaited words of one virtual processor.
pub(crate) struct Awaiting {
    lists: AlwaysLock<Lists>,
    /// Not 0 if there is a node in a list. Changed under the lock.
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

    /// Whether a node waits or serves here.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Ordering::Relaxed) != 0
    }

    fn put(&self, awaited: &Awaited, state: NodeState) {
        let mut lists = self.lists.acquire();
        lists.put(awaited, state);
        self.any.store(u32::from(!lists.is_empty()), Ordering::SeqCst);
    }

    /// Moves `awaited` to the nodes that serve, and asks its waiter to take its caller's level.
    fn follow(&self, awaited: &Awaited) {
        let mut lists = self.lists.acquire();
        lists.put(awaited, NodeState::Serves);
        awaited.ask_level();
        self.any.store(1, Ordering::SeqCst);
    }

    /// Makes waiters runnable whose words have changed, and passes levels on.
    pub(crate) fn look(&self, vp: Masked<'_>) -> bool {
        let mut lists = self.lists.acquire();
        let mut found = false;
        let mut at = lists.waits.0;
        // SAFETY: null, or linked and therefore alive. The next node is read before this one is
        // moved.
        while let Some(awaited) = unsafe { at.as_ref() } {
            at = awaited.next.get();
            if awaited.has_changed() {
                lists.put(awaited, awaited.state_after());
                awaited.wake(vp);
                found = true;
            }
        }
        for served in lists.serves.iter().filter(|served| served.is_raised()) {
            served.ask_level();
            served.microprocess.0.post(remote::CHANGED);
            found = true;
        }
        self.any.store(u32::from(!lists.is_empty()), Ordering::SeqCst);
        found
    }

    /// Whether [`look`](Self::look) would find anything to do.
    pub(crate) fn has_changed(&self) -> bool {
        let lists = self.lists.acquire();
        lists.waits.iter().any(Awaited::has_changed) || lists.serves.iter().any(Awaited::is_raised)
    }

    /// Calls `tell` with what is known of the peer that will end the latest wait: its bells, the
    /// number of its bell, and whether it was just woken.
    pub(crate) fn latest<R>(&self, tell: impl FnOnce(&Peer, u32, bool) -> R) -> Option<R> {
        let lists = self.lists.acquire();
        let latest = lists.waits.first()?;
        Some(tell(latest.peer()?, latest.bell.get(), latest.woken.get()))
    }

    /// Calls `tell` with what is known of the peer that will answer the latest call: its bells, the
    /// number of its bell, and the number of donations in vain.
    pub(crate) fn latest_call<R>(&self, tell: impl FnOnce(&Peer, u32, u32) -> R) -> Option<R> {
        let lists = self.lists.acquire();
        let call = lists.waits.iter().find(|awaited| awaited.is_call())?;
        Some(tell(call.peer()?, call.bell.get(), call.in_vain.get()))
    }

    /// Records the outcome of a donation to the peer that will answer the latest call.
    pub(crate) fn judge_donation(&self, was_in_vain: bool) {
        let lists = self.lists.acquire();
        if let Some(call) = lists.waits.iter().find(|awaited| awaited.is_call()) {
            call.in_vain.set(if was_in_vain { call.in_vain.get() + 1 } else { 0 });
        }
    }

    /// Empties the lists. The microprocesses in them never run again.
    pub(crate) fn forget(&self) {
        let mut lists = self.lists.acquire();
        *lists = Lists { waits: List::EMPTY, serves: List::EMPTY };
        self.any.store(0, Ordering::SeqCst);
    }
}
