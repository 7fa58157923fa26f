//! The pure node bound to real pages and a network.
//!
//! ```text
//!   program's threads: call ─> collect written pages ─> step ─┐                      ┌─> send
//!   their faults:        hidden page ─> step(Fetch) ────────────┤─> node ─> actions ───┼─> show, hide, own, disown pages
//!   who receives:      take ─> step(Message) ──────────────────┘   (one lock)         └─> return: wake the program's thread
//! ```
//!
//! Who waits for its call's return receives messages itself, so that the answer needs no hand-over: one thread of the program at a time. The
//! service thread receives what comes while nobody waits ([`Waiter`]). What is taken from the transport is handled under the same lock, so
//! messages of one peer keep their order, whoever takes them.
//!
//! The node's copy of a page is what the program saw when the page was last watched. Before a call that ends an interval, what
//! differs from it was written by the program, and is told to the node.
//!
//! **Invariant:** whoever holds the lock touches shared memory through the runtime's view alone, so no fault waits for itself.

mod calls;
mod regions;
mod service;
mod usual;
mod writes;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::clock::Instant;

use crate::address::{LockId, PageId, ThreadId};
use crate::interface::{Action, Call, DsmError, Event, Outcome, Subject};
use crate::node::Node;
use crate::runtime::meeting::{Came, Meeting};
use crate::runtime::statistics::Statistics;
use crate::transport::{Arrival, Transport};
use crate::watch::{Answer, Fault, Faulting, Watch};
use crate::wire;

pub(super) use calls::Limit;
pub(super) use regions::bounds;
pub(super) use service::Outside;
use usual::Usual;

/// Exit code of a program that lost a page for good.
const EXIT_LOST: i32 = 75;
/// Threads that wait for pages they touched are numbered from here on.
const FETCHING_FIRST: u16 = 1 << 15;
/// Protocol error, as Linux numbers it.
const EPROTO: i32 = 71;
/// Who waits for no set time looks that often whether all is as it was, should it not be told.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A node at work.
#[derive(Debug)]
pub(super) struct Core {
    state: Mutex<State>,
    /// A call has returned, or a peer has left; who sleeps until then is counted.
    changed: Condvar,
    transport: Box<dyn Transport>,
    /// The process that this node is.
    process: u32,
}

#[derive(Debug)]
struct State {
    node: Node,
    watch: Watch,
    usual: Usual,
    /// Calls that have returned, and whose threads do not know it.
    returned: BTreeMap<ThreadId, Result<Outcome, DsmError>>,
    /// The program's thread that receives.
    receiving: Option<ThreadId>,
    /// Numbers calls as the node does.
    calls: u64,
    left: usize,
    /// Others wait for what this node is told.
    hurries: bool,
    /// Threads that sleep until something changes.
    sleeping: usize,
    meeting: Meeting,
    ended: bool,
    /// What the host refused: nothing is right here since.
    refused: Option<Errno>,
    statistics: Statistics,
}

impl Core {
    pub(super) fn new(node: Node, watch: Watch, transport: Box<dyn Transport>) -> Self {
        let state = State {
            node,
            watch,
            usual: Usual::new(),
            returned: BTreeMap::new(),
            receiving: None,
            calls: 0,
            left: 0,
            hurries: false,
            sleeping: 0,
            meeting: Meeting::default(),
            ended: false,
            refused: None,
            statistics: Statistics::default(),
        };
        let process = std::process::id();
        Self { state: Mutex::new(state), changed: Condvar::new(), transport, process }
    }

    /// The node, to do something with it.
    ///
    /// # Errors
    /// `PROTO`: a thread panicked in the middle of a step, and what it left is no state of a node. All
    /// calls fail from then on, and to the others this node is lost. `PERM`: this process is a copy,
    /// by `fork`, of the one that is a node.
    fn lock(&self) -> Result<MutexGuard<'_, State>, Errno> {
        if self.is_copy() {
            return Err(Errno::PERM);
        }
        self.state.lock().map_err(|_| self.broken())
    }

    /// The node, to look at what no step leaves half done, or to end it.
    fn lock_to_end(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all waits, and all work with others.
    fn broken(&self) -> Errno {
        self.changed.notify_all();
        self.transport.rouse();
        self.transport.close();
        Errno::new(EPROTO)
    }

    /// Whether this process is a copy, by `fork`, of the one that is a node: it has no threads that
    /// would serve it, and shares connections with the original.
    pub(super) fn is_copy(&self) -> bool {
        std::process::id() != self.process
    }

    /// Brings a page, unless it is here.
    pub(super) fn fetch(&self, thread: ThreadId, page: PageId) -> Came {
        let state = self.lock()?;
        if state.node.copy(page).is_ok() {
            return Ok(Ok(Outcome::Done));
        }
        self.step_and_wait(state, thread, Call::Fetch(page), Limit::None)
    }

    /// Reads words of a page from a given one on, once the page is here.
    pub(super) fn read(
        &self,
        thread: ThreadId,
        page: PageId,
        first: usize,
        words: &mut [u32],
    ) -> Result<Result<(), DsmError>, Errno> {
        let brought = self.with_page(thread, page, |state| {
            let copy = state.node.copy(page).expect("it is here");
            words.copy_from_slice(&copy[first..first + words.len()]);
        });
        Ok(brought?.map(drop))
    }

    /// Writes words of a page from a given one on, once the page is here.
    pub(super) fn write(
        &self,
        thread: ThreadId,
        page: PageId,
        first: usize,
        words: &[u32],
    ) -> Result<Result<(), DsmError>, Errno> {
        let words: Vec<(u32, u32)> = (first as u32..).zip(words.iter().copied()).collect();
        let brought = self.with_page(thread, page, |state| {
            state.node.touch(page);
            state.node.write_words(page, &words).expect("it is here");
            state.watch.at(page).put_words(page, &words);
        });
        Ok(brought?.map(drop))
    }

    /// Does something once a page is here.
    fn with_page(&self, thread: ThreadId, page: PageId, act: impl FnOnce(&mut State)) -> Came {
        loop {
            let mut state = self.lock()?;
            if state.node.copy(page).is_ok() {
                state.node.use_page(page);
                act(&mut state);
                return Ok(Ok(Outcome::Done));
            }
            state.statistics.read_faults += 1;
            if let Err(why) = self.step_and_wait(state, thread, Call::Fetch(page), Limit::None)? {
                return Ok(Err(why));
            }
        }
    }

    fn step(&self, state: &mut State, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = Some(state.node.begin_step(event));
            while let Some(now) = actions {
                self.act_or_refuse(state, now, &mut events);
                actions = state.node.continue_step();
            }
        }
        if state.hurries != state.node.is_awaited() {
            // All who receive look once more before they stop.
            state.hurries = !state.hurries;
            self.transport.hurry(state.hurries);
        }
    }

    fn act_or_refuse(&self, state: &mut State, actions: Vec<Action>, events: &mut Vec<Event>) {
        if let Err(errno) = self.act(state, actions, events) {
            // Whoever calls is told; nobody else could do anything about it.
            state.refused = Some(errno);
            self.tell(state);
        }
    }

    /// Something happened that threads of the program may wait for.
    fn tell(&self, state: &State) {
        self.wake(state);
        self.transport.rouse();
    }

    fn act(
        &self,
        state: &mut State,
        actions: Vec<Action>,
        events: &mut Vec<Event>,
    ) -> Result<(), Errno> {
        let (mut hidden, mut owned) = (Vec::new(), Vec::new());
        let (mut brought, mut returned) = (Vec::new(), Vec::new());
        for action in actions {
            match action {
                Action::Send(to, epoch, message) => {
                    self.transport.send_with(to, &wire::encode(epoch, &message), message.urgency());
                }
                Action::Return(thread, result) => returned.push((thread, result)),
                Action::Show(page, contents) => {
                    state.watch.at(page).put(page, &contents);
                    brought.push(page);
                }
                Action::Update(page, words) => state.watch.at(page).put_words(page, &words),
                Action::Hide(page) => {
                    state.usual.remove(page);
                    hidden.push(page);
                }
                Action::Own(page) => {
                    state.usual.remove(page);
                    owned.push(page);
                }
                Action::Disown(page) => {
                    // It may have been owned for no time at all: somebody asked before this node had crossed the barrier.
                    owned.retain(|other| *other != page);
                    // Watched first: what is written after that is found by comparing with what is taken now.
                    state.watch.show(&[page])?;
                    events.push(Event::Disowned(page, state.watch.at(page).take(page)));
                }
            }
        }
        let (in_sight, shown): (Vec<_>, Vec<_>) =
            brought.into_iter().partition(|page| state.watch.is_shown(*page));
        // Contents replace what a thread might be writing just then, so they come only while all
        // threads stand at a barrier. A hidden page cannot be written before it is watched.
        let none_writes = state.node.is_at_barrier() || !returned.is_empty();
        assert!(in_sight.is_empty() || none_writes, "a page in use is replaced at barriers alone");
        // What is brought into the program's sight is watched or compared already, and not worth watching if it happens again and again.
        let usual = state.usual.note(&in_sight);
        state.watch.show(&shown)?;
        state.watch.open(&usual)?;
        state.watch.hide(&hidden)?;
        state.watch.open(&owned)?;
        let for_receiver = returned.iter().any(|(thread, _)| state.receiving == Some(*thread));
        if for_receiver {
            self.transport.rouse();
        }
        if returned.len() > usize::from(for_receiver) {
            self.wake(state);
        }
        state.returned.extend(returned);
        Ok(())
    }

    /// Handles what has come.
    fn take(&self, state: &mut State) {
        for arrival in self.transport.take() {
            self.arrived(state, arrival);
        }
    }

    fn arrived(&self, state: &mut State, arrival: Arrival) {
        match arrival {
            Arrival::Message(from, bytes) => match wire::decode(&bytes, state.node.layout()) {
                Ok((epoch, message)) => self.step(state, Event::Message(from, epoch, message)),
                Err(nonsense) => self.step(state, Event::Nonsense(from, nonsense)),
            },
            Arrival::Lost(node, _) => {
                state.left += 1;
                self.step(state, Event::PeerLost(node));
            }
            Arrival::Left(node) => {
                state.left += 1;
                self.step(state, Event::PeerLeft(node));
            }
        }
        // Who meets the node's other threads, or takes leave, waits for no call.
        if state.left > 0 || state.node.lost(Subject::Barrier).is_some() {
            self.wake(state);
        }
    }

    /// Says goodbye, and waits until everybody has, at most for `limit`.
    pub(super) fn leave(&self, limit: Duration) {
        self.transport.leave();
        let begun = Instant::now();
        let Ok(mut state) = self.lock() else { return };
        let others = usize::from(state.node.layout().nodes) - 1;
        while state.left < others && begun.elapsed() < limit {
            let left = limit.saturating_sub(begun.elapsed());
            let Ok(awake) = self.sleep(state, left) else { return };
            state = awake;
        }
    }

    /// Ends the service and all connections.
    pub(super) fn end(&self) {
        if self.is_copy() {
            // The connections are the original's.
            return;
        }
        self.lock_to_end().ended = true;
        self.transport.close();
    }

    /// The locks that a thread of the program holds.
    pub(super) fn held_by(&self, thread: ThreadId) -> Vec<LockId> {
        self.lock_to_end().node.held_by(thread).collect()
    }

    pub(super) fn statistics(&self) -> Statistics {
        let mut statistics = self.lock_to_end().statistics;
        statistics.traffic = self.transport.traffic();
        statistics
    }

    fn answer(&self, page: PageId) -> Came {
        let began = Instant::now();
        let mut guard = self.lock()?;
        let state = &mut *guard;
        let fault = state.watch.fault(page)?;
        if fault == Fault::Noted {
            state.statistics.write_faults += 1;
            state.statistics.noting += began.elapsed();
            return Ok(Ok(Outcome::Done));
        }
        if let Ok(copy) = state.node.copy(page) {
            // Never touched since it came, or since the beginning.
            state.watch.at(page).put(page, copy);
            state.node.use_page(page);
            state.watch.show(&[page])?;
            return Ok(Ok(Outcome::Done));
        }
        state.statistics.read_faults += 1;
        // The handler does not know whose thread it is on.
        let mut fetching = (FETCHING_FIRST..=u16::MAX).map(ThreadId);
        let thread = fetching.find(|thread| !state.node.is_waiting(*thread)).ok_or(Errno::AGAIN)?;
        self.step_and_wait(guard, thread, Call::Fetch(page), Limit::None)
    }
}

/// Answers faults in the region that begins with the page `first`.
#[derive(Debug)]
pub(super) struct RegionFaults {
    pub(super) core: Arc<Core>,
    pub(super) first: PageId,
}

impl Faulting for RegionFaults {
    fn fault(&self, offset: usize) -> Answer {
        let page = PageId(self.first.0 + (offset / PAGE_BYTES) as u64);
        if self.core.is_copy() {
            super::last_words("kyocho-dsm: a process made by fork has no part of shared memory");
            return Answer::Forward;
        }
        let why = match self.core.answer(page) {
            Ok(Ok(_)) => return Answer::Again,
            Ok(Err(why)) => why.to_string(),
            Err(errno) => format!("page {}: the host refused: {errno}", page.0),
        };
        // An access has no way to fail, and there is nothing right to be read.
        super::last_words(&format!("kyocho-dsm: {why}"));
        self.core.end();
        std::process::exit(EXIT_LOST)
    }
}
