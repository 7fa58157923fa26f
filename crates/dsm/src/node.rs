//! A node: one virtual process, and what it manages for the others.
//!
//! `step` takes one event and returns actions. A call of the program returns by [`Action::Return`],
//! at once or after messages. Until then its thread waits and makes no other call.
//!
//! The program may have several threads, which share the node's copies. A lock has at most one
//! holder among them, in any mode: a grant for a second thread waits. At a barrier one thread
//! represents all of them, and the others make no call.

mod calls;
mod due;
mod early;
mod leaving;
mod locks;
mod loss;
mod manager;
mod pages;
mod regions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::address::{Address, LockId, NodeId, PageId, ThreadId};
use crate::barrier::EpochArrivals;
use crate::interface::{Action, Call, DsmError, Event, Outcome, ProtocolViolation, Subject};
use crate::layout::Layout;
use crate::lock::{Lock, Mode};
use crate::log::{History, Log};
use crate::memory::{Absent, Memory};
use crate::message::{BarrierKind, Message, Move};
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::region::mismatch::RegionMismatch;
use crate::update::Update;
use early::Early;
use loss::{End, Loss};
use pages::PageUse;

/// The manager of barriers.
const BARRIER_MANAGER: NodeId = NodeId(0);

/// A call that has not returned, and its number.
#[derive(Debug, Clone, Copy)]
struct PendingCall {
    call: Call,
    number: u64,
}

/// A lock that was granted to a thread.
#[derive(Debug)]
struct Granted {
    thread: ThreadId,
    mode: Mode,
    stamp: u64,
    time: u64,
    updates: Vec<Update>,
}

/// The stamp of writes that the holder has not released yet.
const NEXT: u64 = 1;

/// A lock that a thread of the program holds.
#[derive(Debug)]
struct HeldLock {
    thread: ThreadId,
    mode: Mode,
    writes: Log,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    me: NodeId,
    layout: Layout,
    memory: Memory,
    epoch: u64,
    /// Lamport time.
    time: u64,
    /// The outstanding calls, by thread.
    waiting: BTreeMap<ThreadId, PendingCall>,
    calls: u64,
    held: BTreeMap<LockId, HeldLock>,
    /// Grants that arrived while another thread held the lock.
    granted: BTreeMap<LockId, VecDeque<Granted>>,
    /// Nodes that wait for pages whose ownership is ending.
    disowning: BTreeMap<PageId, Vec<NodeId>>,
    /// Pages whose ownership ended in this epoch and that were written before. Which of their words
    /// were written is not known.
    unnoted: BTreeSet<PageId>,
    /// Pages of other managers that the program uses.
    used: BTreeMap<PageId, PageUse>,
    /// Nodes that get a managed page unasked, and after how many more barriers that change it.
    followers: BTreeMap<PageId, BTreeMap<NodeId, u8>>,
    /// Pages that were requested ahead, when a barrier dropped their copies.
    ahead: BTreeSet<PageId>,
    /// Pages of `ahead` whose old contents the program still sees.
    in_sight: BTreeSet<PageId>,
    /// The program waits for `ahead`, at a barrier that is crossed.
    crossed: bool,
    /// Pages that may have been written in this epoch.
    touched: BTreeSet<PageId>,
    /// Stamp of the newest known update of each lock, in this epoch.
    seen: BTreeMap<LockId, u64>,
    /// Histories of locks, where the last holder keeps them.
    logs: BTreeMap<LockId, History>,
    moves: Vec<Move>,
    /// Locks whose manager is not the lock's number modulo the number of nodes.
    moved_locks: BTreeMap<LockId, NodeId>,
    /// Locks managed here that were requested in this epoch.
    locks: BTreeMap<LockId, Lock>,
    /// Locks managed here for which requests wait.
    awaited: BTreeSet<LockId>,
    gathering: EpochArrivals,
    flushed: BTreeMap<NodeId, Vec<Update>>,
    masters: BTreeMap<PageId, Contents>,
    /// A region that this node has created, until the barrier tells whether all nodes have.
    founding: Option<RegionPlan>,
    /// Why no region is created at this barrier.
    refused: Option<RegionMismatch>,
    /// The end of an epoch, after [`Message::Go`]: the updates and masters that must arrive first.
    ending: Option<Ending>,
    /// Messages of the next epoch.
    early: Early,
    /// Messages that waited for this epoch.
    begun: VecDeque<(NodeId, Message)>,
    /// The program crosses at most one more barrier.
    is_last: bool,
    ended: bool,
    /// Peers that have crossed their last barrier.
    left: BTreeSet<NodeId>,
    lost: Option<Loss>,
    actions: Vec<Action>,
    /// Messages of this node to itself.
    loopback: VecDeque<Message>,
}

#[derive(Debug)]
struct Ending {
    time: u64,
    written: Vec<(PageId, Vec<NodeId>)>,
    held: Vec<(LockId, NodeId)>,
    moves: Vec<Move>,
    writers: BTreeSet<NodeId>,
    arriving: BTreeSet<PageId>,
    merged: bool,
    kind: BarrierKind,
}

impl Node {
    /// A node in epoch 0, with zeroed memory.
    ///
    /// # Panics
    /// A page's manager is outside of the layout.
    #[must_use]
    pub fn new(me: NodeId, layout: Layout) -> Self {
        assert!(
            layout.regions.iter().all(|(_, manager)| manager.0 < layout.nodes),
            "a page's manager is one of the nodes"
        );
        let mut memory = Memory::new(layout.words_a_page);
        memory.add(layout.regions.iter(), me);
        Self {
            me,
            layout,
            memory,
            epoch: 0,
            time: 0,
            waiting: BTreeMap::new(),
            calls: 0,
            held: BTreeMap::new(),
            granted: BTreeMap::new(),
            disowning: BTreeMap::new(),
            unnoted: BTreeSet::new(),
            touched: BTreeSet::new(),
            used: BTreeMap::new(),
            followers: BTreeMap::new(),
            ahead: BTreeSet::new(),
            in_sight: BTreeSet::new(),
            crossed: false,
            seen: BTreeMap::new(),
            logs: BTreeMap::new(),
            moves: Vec::new(),
            moved_locks: BTreeMap::new(),
            locks: BTreeMap::new(),
            awaited: BTreeSet::new(),
            gathering: EpochArrivals::default(),
            flushed: BTreeMap::new(),
            masters: BTreeMap::new(),
            founding: None,
            refused: None,
            ending: None,
            early: Early::default(),
            begun: VecDeque::new(),
            is_last: false,
            ended: false,
            left: BTreeSet::new(),
            lost: None,
            actions: Vec::new(),
            loopback: VecDeque::new(),
        }
    }

    /// A word, as this node sees it.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    ///
    /// # Panics
    /// The word lies outside of its page.
    pub fn read(&self, address: Address) -> Result<u32, Absent> {
        Ok(self.memory.copy(address.page)?[address.word as usize])
    }

    /// The node's copy of a page.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    pub fn copy(&self, page: PageId) -> Result<&Contents, Absent> {
        self.memory.copy(page)
    }

    /// Writes a word.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    ///
    /// # Panics
    /// The word lies outside of its page.
    pub fn write(&mut self, address: Address, value: u32) -> Result<(), Absent> {
        self.memory.write(address.page, &[(address.word, value)])
    }

    /// Writes words of a page, by number and value.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    ///
    /// # Panics
    /// A word lies outside of the page.
    pub fn write_words(&mut self, page: PageId, words: &[(u32, u32)]) -> Result<(), Absent> {
        self.memory.write(page, words)
    }

    /// Writes a whole page. Cheaper than [`Self::write_words`] if most words change.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    ///
    /// # Panics
    /// The number of words is not that of a page.
    pub fn write_page(&mut self, page: PageId, contents: Contents) -> Result<(), Absent> {
        assert_eq!(
            contents.len(),
            self.layout.words_a_page as usize,
            "the number of words is that of a page"
        );
        self.memory.write_page(page, contents)
    }

    /// Records that the program may have written to a page, perhaps without changing it. A
    /// single-read-write barrier counts that as a write, so that no other node takes the page over.
    pub fn touch(&mut self, page: PageId) {
        if !self.memory.is_owned(page) {
            self.touched.insert(page);
        }
    }

    /// What all nodes agree on.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of barriers that this node has crossed.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether requests wait for a lock that is managed here.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// What the waiting thread with the lowest number waits for; `None` if no thread waits.
    #[must_use]
    pub fn waits_for(&self) -> Option<Subject> {
        self.waiting.values().next().map(|waiting| waiting.call.subject())
    }

    /// Whether a call of this thread is outstanding.
    #[must_use]
    pub fn is_waiting(&self, thread: ThreadId) -> bool {
        self.waiting.contains_key(&thread)
    }

    /// Processes one event. Returns the actions, in the order in which they must be carried out.
    pub fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = self.begin_step(event);
        while let Some(mut more) = self.continue_step() {
            actions.append(&mut more);
        }
        actions
    }

    /// Begins to process an event; [`Self::continue_step`] does the rest. So messages can be sent
    /// before this node does its own part.
    pub fn begin_step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Call(thread, call) => self.call(thread, call),
            Event::Message(from, epoch, message) => self.message(from, epoch, message),
            Event::TimeUp(call) => self.time_up(call),
            Event::PeerLost(peer) => self.lose(Loss { peer, end: End::Dead }),
            Event::PeerLeft(peer) => self.said_goodbye(peer),
            Event::InvalidMessage(peer, why) => {
                self.lose(Loss { peer, end: End::Broke(ProtocolViolation::InvalidMessage(why)) });
            }
            Event::Stranded => self.stranded(),
            Event::Disowned(page, contents) => self.disowned(page, contents),
        }
        self.take_actions()
    }

    /// Processes one message of this node to itself, or one that waited for this epoch. Returns
    /// `None` if there is none.
    pub fn continue_step(&mut self) -> Option<Vec<Action>> {
        if let Some(message) = self.loopback.pop_front() {
            self.handle(self.me, message);
        } else {
            let (from, message) = self.begun.pop_front()?;
            self.message(from, self.epoch, message);
        }
        Some(self.take_actions())
    }

    fn take_actions(&mut self) -> Vec<Action> {
        let mut actions = self.memory.take_changed();
        // The program's view must be right before its call returns.
        actions.append(&mut self.actions);
        actions
    }

    fn done(&mut self, thread: ThreadId, outcome: Outcome) {
        self.waiting.remove(&thread);
        self.actions.push(Action::Return(thread, Ok(outcome)));
    }

    /// Returns from all calls that `is_so` selects.
    fn all_return(&mut self, is_so: impl Fn(Call) -> bool, result: Result<Outcome, DsmError>) {
        let over = self.waiting.iter().filter(|(_, waiting)| is_so(waiting.call));
        let threads: Vec<_> = over.map(|(thread, _)| *thread).collect();
        self.waiting.retain(|thread, _| !threads.contains(thread));
        self.actions.extend(threads.into_iter().map(|thread| Action::Return(thread, result)));
    }

    /// Ends an interval: its writes belong to this epoch, and to the locks held exclusively.
    fn end_interval(&mut self) {
        let updates = self.memory.take_dirty(self.time);
        for held in self.held.values_mut().filter(|held| held.mode == Mode::Exclusive) {
            held.writes.append(NEXT, updates.iter().copied());
        }
        self.time += 1;
    }

    /// The locks that threads of the program hold exclusively.
    fn exclusive(&self) -> BTreeSet<LockId> {
        let exclusive = self.held.iter().filter(|(_, held)| held.mode == Mode::Exclusive);
        exclusive.map(|(lock, _)| *lock).collect()
    }

    fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me;
        (0..self.layout.nodes).map(NodeId).filter(move |other| *other != me)
    }

    fn lock_manager(&self, lock: LockId) -> NodeId {
        let usual = NodeId((lock.0 % u32::from(self.layout.nodes)) as u16);
        self.moved_locks.get(&lock).copied().unwrap_or(usual)
    }

    fn page_manager(&self, page: PageId) -> NodeId {
        self.layout.regions.manager(page).expect("a page of the layout")
    }

    fn send(&mut self, to: NodeId, message: Message) {
        if to == self.me {
            self.loopback.push_back(message);
        } else {
            self.actions.push(Action::Send(to, self.epoch, message));
        }
    }
}
