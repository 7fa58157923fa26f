//! Binds the pure node to real pages and a network.
//!
//! ```text
//!   program's threads: call ─> collect written pages ─> step ┐         ┌─> send
//!   their faults:      hidden page ─> step(Fetch) ───────────┼─> node ─┼─> show, hide, own, disown
//!   receiving thread:  take ─> step(Message) ────────────────┘         └─> return: wakes a thread
//!
//!   One lock protects the node and the pages.
//! ```
//!
//! A thread that waits for the return of its call receives messages itself, so that no other thread
//! has to wake it. Only one thread of the program does so at a time. The service thread receives
//! messages while no thread of the program waits ([`Waiter`]). Messages are taken from the
//! transport and processed under one lock, so messages of one peer stay in order, whichever thread
//! takes them.
//!
//! The node's copy of a page has the contents that the program saw when the page was last watched.
//! Before a call that ends an interval, the differences are the program's writes, and are passed to
//! the node.
//!
//! **Invariant:** the holder of the lock accesses shared memory only through the runtime's view, so
//! a fault never waits for itself.

mod calls;
mod compared;
mod regions;
mod service;
mod writes;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::clock::Instant;

use crate::address::{LockId, NodeId, PageId, ThreadId};
use crate::interface::{Action, Call, DsmError, Event, Outcome, Subject};
use crate::node::Node;
use crate::runtime::meeting::{CallResult, Meeting};
use crate::runtime::statistics::Statistics;
use crate::transport::{Arrival, Traffic, Transport};
use crate::watch::{Answer, Fault, Faulting, Watch};
use crate::wire;

pub(super) use calls::Limit;
use compared::ComparedPages;
pub(super) use regions::bounds;
pub(super) use service::OtherProcesses;

/// Exit code of a program that has lost a page.
const EXIT_LOST: i32 = 75;
/// First number of threads that wait for a page they have accessed.
const FETCHING_FIRST: u16 = 1 << 15;
/// The error number `EPROTO` of Linux.
const EPROTO: i32 = 71;
/// Longest wait of a thread before it checks the state again, should a wake-up be missing.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A running node.
#[derive(Debug)]
pub(super) struct Core {
    state: Mutex<State>,
    /// A call has returned, or a peer has left. Threads that sleep on this are counted.
    changed: Condvar,
    transport: Box<dyn Transport>,
    /// Process id of the node.
    process: u32,
}

#[derive(Debug)]
struct State {
    node: Node,
    watch: Watch,
    compared: ComparedPages,
    /// Results of calls whose threads have not taken them yet.
    returned: BTreeMap<ThreadId, Result<Outcome, DsmError>>,
    /// The thread of the program that receives messages.
    receiving: Option<ThreadId>,
    /// Number of calls, as the node counts them.
    calls: u64,
    /// Number of peers that have left or are lost.
    left: usize,
    /// Requests wait for a lock that this node manages.
    hurries: bool,
    /// Number of threads that sleep until something changes.
    sleeping: usize,
    meeting: Meeting,
    ended: bool,
    /// An error of the host, or `EPROTO` after a panic. The node's state is wrong since then.
    refused: Option<Errno>,
    statistics: Statistics,
}

impl Core {
    pub(super) fn new(node: Node, watch: Watch, transport: Box<dyn Transport>) -> Self {
        let state = State {
            node,
            watch,
            compared: ComparedPages::new(),
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

    /// Locks the node.
    ///
    /// # Errors
    /// `PROTO`: a thread panicked in the middle of a step, so the state is inconsistent. All calls
    /// fail from then on, and the other nodes lose this node. `PERM`: this process is a copy of the
    /// node, made by `fork`.
    fn lock(&self) -> Result<MutexGuard<'_, State>, Errno> {
        if self.is_copy() {
            return Err(Errno::PERM);
        }
        self.state.lock().map_err(|_| self.broken())
    }

    /// Locks the node even after a panic: to read what no step leaves inconsistent, or to end the
    /// node.
    fn lock_to_end(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all waits and all connections.
    fn broken(&self) -> Errno {
        self.changed.notify_all();
        self.transport.rouse();
        self.transport.close();
        Errno::new(EPROTO)
    }

    /// Whether this process is a copy of the node, made by `fork`. A copy has no service thread,
    /// and shares the connections of the original.
    pub(super) fn is_copy(&self) -> bool {
        std::process::id() != self.process
    }

    /// Fetches a page, unless it is present.
    pub(super) fn fetch(&self, thread: ThreadId, page: PageId) -> CallResult {
        let state = self.lock()?;
        if state.node.copy(page).is_ok() {
            return Ok(Ok(Outcome::Done));
        }
        self.step_and_wait(state, thread, Call::Fetch(page), Limit::None)
    }

    /// Reads words of a page, starting with the word `first`; fetches the page if necessary.
    pub(super) fn read(
        &self,
        thread: ThreadId,
        page: PageId,
        first: usize,
        words: &mut [u32],
    ) -> Result<Result<(), DsmError>, Errno> {
        let brought = self.with_page(thread, page, |state| {
            let copy = state.node.copy(page).expect("the page is present");
            words.copy_from_slice(&copy[first..first + words.len()]);
        });
        Ok(brought?.map(drop))
    }

    /// Writes words of a page, starting with the word `first`; fetches the page if necessary.
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
            state.node.write_words(page, &words).expect("the page is present");
            state.watch.at(page).put_words(page, &words);
        });
        Ok(brought?.map(drop))
    }

    /// Calls `act` once a page is present.
    fn with_page(
        &self,
        thread: ThreadId,
        page: PageId,
        act: impl FnOnce(&mut State),
    ) -> CallResult {
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
            // `hurry` requires that this node checks for messages afterwards. Each receiving thread
            // does so before it stops.
            state.hurries = !state.hurries;
            self.transport.hurry(state.hurries);
        }
    }

    fn act_or_refuse(&self, state: &mut State, actions: Vec<Action>, events: &mut Vec<Event>) {
        if let Err(errno) = self.act(state, actions, events) {
            // The next call reports the error; no other thread could do anything about it.
            state.refused = Some(errno);
            self.wake_all(state);
        }
    }

    /// Wakes threads of the program that may wait for what has happened.
    fn wake_all(&self, state: &State) {
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
                    state.compared.remove(page);
                    hidden.push(page);
                }
                Action::Own(page) => {
                    state.compared.remove(page);
                    owned.push(page);
                }
                Action::Disown(page) => {
                    // It may not be owned yet: another node asked before this one had crossed the
                    // barrier.
                    owned.retain(|other| *other != page);
                    // The page is watched first: a later write is found by comparing with the
                    // contents taken here.
                    state.watch.show(&[page])?;
                    events.push(Event::Disowned(page, state.watch.at(page).take(page)));
                }
            }
        }
        let (in_sight, visible): (Vec<_>, Vec<_>) =
            brought.into_iter().partition(|page| state.watch.is_visible(*page));
        // A page in sight is replaced only while all threads stand at a barrier, because a thread
        // could write to it otherwise. A hidden page cannot be written before it is watched.
        let none_writes = state.node.is_at_barrier() || !returned.is_empty();
        assert!(in_sight.is_empty() || none_writes, "a page in use is replaced only at barriers");
        // A page in sight is watched or compared already. It is not worth watching if it is
        // replaced repeatedly.
        let compared = state.compared.note(&in_sight);
        state.watch.show(&visible)?;
        state.watch.open(&compared)?;
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

    /// Processes all messages that have arrived.
    fn take(&self, state: &mut State) {
        for arrival in self.transport.take() {
            self.arrived(state, arrival);
        }
    }

    fn arrived(&self, state: &mut State, arrival: Arrival) {
        match arrival {
            Arrival::Message(from, bytes) => match wire::decode(&bytes, state.node.layout()) {
                Ok((epoch, message)) => self.step(state, Event::Message(from, epoch, message)),
                Err(nonsense) => self.step(state, Event::InvalidMessage(from, nonsense)),
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
        // Threads that meet before a barrier, or that leave, sleep without a call.
        if state.left > 0 || state.node.lost(Subject::Barrier).is_some() {
            self.wake(state);
        }
    }

    /// Says goodbye, and waits until all peers have, for at most `limit`.
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

    /// Ends the service thread and all connections.
    pub(super) fn end(&self) {
        if self.is_copy() {
            // The connections belong to the original.
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

    /// Messages and bytes exchanged with one peer.
    pub(super) fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.transport.traffic_with(peer)
    }

    fn answer(&self, page: PageId) -> CallResult {
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
            // The page was not accessed since its copy arrived, or since the start.
            state.watch.at(page).put(page, copy);
            state.node.use_page(page);
            state.watch.show(&[page])?;
            return Ok(Ok(Outcome::Done));
        }
        state.statistics.read_faults += 1;
        // The fault handler cannot tell which thread of the program has faulted. So it uses a
        // number that no thread of the program has (`FETCHING_FIRST`) and no other fault uses now.
        let mut fetching = (FETCHING_FIRST..=u16::MAX).map(ThreadId);
        let thread = fetching.find(|thread| !state.node.is_waiting(*thread)).ok_or(Errno::AGAIN)?;
        self.step_and_wait(guard, thread, Call::Fetch(page), Limit::None)
    }
}

/// Handles faults in the region that starts with the page `first`.
#[derive(Debug)]
pub(super) struct RegionFaults {
    pub(super) core: Arc<Core>,
    pub(super) first: PageId,
}

impl Faulting for RegionFaults {
    fn fault(&self, offset: usize) -> Answer {
        let page = PageId(self.first.0 + (offset / PAGE_BYTES) as u64);
        if self.core.is_copy() {
            super::last_words("kyocho-dsm: a process made by fork cannot use shared memory");
            return Answer::Forward;
        }
        let why = match self.core.answer(page) {
            Ok(Ok(_)) => return Answer::Again,
            Ok(Err(why)) => why.to_string(),
            Err(errno) => format!("page {}: the host refused: {errno}", page.0),
        };
        // An access cannot return an error, and there is nothing correct to read.
        super::last_words(&format!("kyocho-dsm: {why}"));
        self.core.end();
        std::process::exit(EXIT_LOST)
    }
}
