//! A node: one virtual process, and what it manages for the others.
//!
//! `step` takes one event and returns what is to be done. A call of the program returns by [`Action::Return`], at once or
//! after messages; until then its thread waits and makes no other.
//!
//! The program may have several threads, which share the node's copies as threads do. A lock has one holder among them, in any mode:
//! what is granted to a second one waits. At a barrier one of them stands for all, and the others make no call.

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
use crate::barrier::Gathering;
use crate::interface::{Action, Breach, Call, DsmError, Event, Outcome, Subject};
use crate::layout::Layout;
use crate::lock::{Lock, Mode};
use crate::log::{History, Log};
use crate::memory::{Absent, Memory};
use crate::message::{BarrierKind, Message, Move};
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::region::discord::Discord;
use crate::update::Update;
use early::Early;
use loss::{End, Loss};
use pages::Used;

/// The manager of barriers.
const BARRIER_MANAGER: NodeId = NodeId(0);

/// A call that has not returned, and its number.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    call: Call,
    number: u64,
}

/// A lock that came for a thread.
#[derive(Debug)]
struct Granted {
    thread: ThreadId,
    mode: Mode,
    stamp: u64,
    time: u64,
    updates: Vec<Update>,
}

/// The stamp of what the next release will bring, as long as its holder alone knows it.
const NEXT: u64 = 1;

/// A lock that a thread of the program holds.
#[derive(Debug)]
struct Held {
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
    /// What threads of the program wait for.
    waiting: BTreeMap<ThreadId, Waiting>,
    calls: u64,
    held: BTreeMap<LockId, Held>,
    /// Locks that came while another thread held them.
    granted: BTreeMap<LockId, VecDeque<Granted>>,
    /// Who waits for pages that are being disowned.
    disowning: BTreeMap<PageId, Vec<NodeId>>,
    /// Pages that were disowned in this epoch: written to, nobody knows where.
    unnoted: BTreeSet<PageId>,
    /// Pages of other managers that the program uses.
    used: BTreeMap<PageId, Used>,
    /// Who gets a managed page unasked, behind so many barriers that change it.
    followers: BTreeMap<PageId, BTreeMap<NodeId, u8>>,
    /// Pages that are asked for before the program does, behind a barrier.
    ahead: BTreeSet<PageId>,
    /// Those of them that the program sees meanwhile, as they were.
    in_sight: BTreeSet<PageId>,
    /// The program waits at a barrier that is crossed, for those.
    crossed: bool,
    /// Pages that may have been written to in this epoch.
    touched: BTreeSet<PageId>,
    /// Stamp of the newest update known of each lock, in this epoch.
    seen: BTreeMap<LockId, u64>,
    /// What was written under locks, where the last holder keeps it.
    logs: BTreeMap<LockId, History>,
    moves: Vec<Move>,
    /// Managers other than lock number modulo nodes.
    moved_locks: BTreeMap<LockId, NodeId>,
    /// Locks managed here that were asked for in this epoch.
    locks: BTreeMap<LockId, Lock>,
    /// Those of them that somebody waits for.
    awaited: BTreeSet<LockId>,
    gathering: Gathering,
    flushed: BTreeMap<NodeId, Vec<Update>>,
    masters: BTreeMap<PageId, Contents>,
    /// A region that is here, while nobody has said whether it is everywhere.
    founding: Option<RegionPlan>,
    /// Why none is made at this barrier.
    refused: Option<Discord>,
    /// Writers whose updates, and pages whose masters, must come before the epoch ends; after [`Message::Go`].
    ending: Option<Ending>,
    /// Messages of the next epoch.
    early: Early,
    /// Messages that waited for this epoch.
    begun: VecDeque<(NodeId, Message)>,
    /// The program crosses one barrier more, or none.
    is_last: bool,
    ended: bool,
    /// Peers that have crossed their last barrier, as this node has not.
    left: BTreeSet<NodeId>,
    lost: Option<Loss>,
    actions: Vec<Action>,
    /// Messages to itself.
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
            gathering: Gathering::default(),
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

    /// Writes a whole page: its words are these now. Costs less than [`Self::write_words`] where most of them are others than before.
    ///
    /// # Errors
    /// [`Absent`]: the page must be fetched.
    ///
    /// # Panics
    /// These are not as many words as a page has.
    pub fn write_page(&mut self, page: PageId, contents: Contents) -> Result<(), Absent> {
        assert_eq!(contents.len(), self.layout.words_a_page as usize, "a page has its words");
        self.memory.write_page(page, contents)
    }

    /// The program may have written to a page, perhaps what was there before: before a single-read-write barrier that counts as writing,
    /// as who writes there is to be left alone.
    pub fn touch(&mut self, page: PageId) {
        if !self.memory.is_owned(page) {
            self.touched.insert(page);
        }
    }

    /// What the nodes agree on.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many barriers this node has passed.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether somebody waits for a lock that is managed here.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// What the program waits for: its first thread that does.
    #[must_use]
    pub fn waits_for(&self) -> Option<Subject> {
        self.waiting.values().next().map(|waiting| waiting.call.subject())
    }

    /// Whether a call of this thread has not returned.
    #[must_use]
    pub fn is_waiting(&self, thread: ThreadId) -> bool {
        self.waiting.contains_key(&thread)
    }

    /// Takes one event and says what is to be done, in this order.
    pub fn step(&mut self, event: Event) -> Vec<Action> {
        let mut actions = self.begin_step(event);
        while let Some(mut more) = self.continue_step() {
            actions.append(&mut more);
        }
        actions
    }

    /// The same in parts, the rest by [`Self::continue_step`]: what others wait for can be sent before this node does its own part.
    pub fn begin_step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Call(thread, call) => self.call(thread, call),
            Event::Message(from, epoch, message) => self.message(from, epoch, message),
            Event::TimeUp(call) => self.time_up(call),
            Event::PeerLost(peer) => self.lose(Loss { peer, end: End::Dead }),
            Event::PeerLeft(peer) => self.said_goodbye(peer),
            Event::Nonsense(peer, why) => {
                self.lose(Loss { peer, end: End::Broke(Breach::Nonsense(why)) });
            }
            Event::Stranded => self.stranded(),
            Event::Disowned(page, contents) => self.disowned(page, contents),
        }
        self.take_actions()
    }

    /// Answers a message to itself, or one whose epoch has begun, if there is any.
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
        // What the program sees is right before its call returns.
        actions.append(&mut self.actions);
        actions
    }

    fn done(&mut self, thread: ThreadId, outcome: Outcome) {
        self.waiting.remove(&thread);
        self.actions.push(Action::Return(thread, Ok(outcome)));
    }

    /// Lets all threads go on whose calls are so.
    fn all_return(&mut self, is_so: impl Fn(Call) -> bool, result: Result<Outcome, DsmError>) {
        let over = self.waiting.iter().filter(|(_, waiting)| is_so(waiting.call));
        let threads: Vec<_> = over.map(|(thread, _)| *thread).collect();
        self.waiting.retain(|thread, _| !threads.contains(thread));
        self.actions.extend(threads.into_iter().map(|thread| Action::Return(thread, result)));
    }

    /// Ends an interval: what was written in it belongs to this epoch, and to the locks held.
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
