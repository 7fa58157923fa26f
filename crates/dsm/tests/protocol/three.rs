//! Three nodes in one thread, on a reliable network.

use std::collections::{BTreeMap, VecDeque};

use kyocho_dsm::{
    Action, Address, BarrierKind, Call, DsmError, Event, Layout, LockId, Message, Mode, Node,
    NodeId, Outcome, PageId, Scheme, ThreadId, WaitPolicy,
};

pub(crate) const LOCK: LockId = LockId(2);
pub(crate) const PAGE: PageId = PageId(0);
pub(crate) const WORD: Address = Address { page: PAGE, word: 1 };
pub(crate) const TAKE: Call = Call::Acquire(LOCK, Mode::Exclusive, WaitPolicy::Wait);
pub(crate) const CROSS: Call = Call::Barrier(BarrierKind::Ordinary);

/// Three nodes and the messages in transit, which are delivered in the order of sending.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    pub(crate) flying: VecDeque<(usize, NodeId, u64, Message)>,
    /// By node: the result of its first thread's call.
    pub(crate) returned: Vec<Option<Result<Outcome, DsmError>>>,
    /// The same of other threads.
    pub(crate) others: BTreeMap<(usize, ThreadId), Result<Outcome, DsmError>>,
    pub(crate) sent: Vec<Message>,
}

impl Cluster {
    /// Node 0 manages all pages, node 2 the lock.
    pub(crate) fn new(scheme: Scheme) -> Self {
        let layout = Layout {
            nodes: 3,
            regions: vec![NodeId(0); 2].into(),
            words_a_page: 4,
            locks: 3,
            scheme,
        };
        let nodes = (0..3).map(|rank| Node::new(NodeId(rank), layout.clone())).collect();
        let returned = vec![None; 3];
        Self { nodes, flying: VecDeque::new(), returned, others: BTreeMap::new(), sent: Vec::new() }
    }

    pub(crate) fn feed(&mut self, node: usize, event: Event) {
        for action in self.nodes[node].step(event) {
            match action {
                Action::Send(to, epoch, message) => {
                    self.sent.push(message.clone());
                    self.flying.push_back((usize::from(to.0), NodeId(node as u16), epoch, message));
                }
                Action::Return(ThreadId::FIRST, result) => self.returned[node] = Some(result),
                Action::Return(thread, result) => drop(self.others.insert((node, thread), result)),
                Action::Disown(page) => {
                    let contents = self.nodes[node].copy(page).expect("it is owned").clone();
                    self.feed(node, Event::Disowned(page, contents));
                }
                Action::Show(..) | Action::Update(..) | Action::Hide(_) | Action::Own(_) => {}
            }
        }
    }

    pub(crate) fn deliver_all(&mut self) {
        while let Some((to, from, epoch, message)) = self.flying.pop_front() {
            self.feed(to, Event::Message(from, epoch, message));
        }
    }

    /// Makes a call, delivers all messages, and returns the result if the call has returned.
    pub(crate) fn call(&mut self, node: usize, call: Call) -> Option<Result<Outcome, DsmError>> {
        self.returned[node] = None;
        self.feed(node, Event::Call(ThreadId::FIRST, call));
        self.deliver_all();
        self.returned[node]
    }

    /// The same for another thread of the node.
    pub(crate) fn call_by(
        &mut self,
        (node, thread): (usize, ThreadId),
        call: Call,
    ) -> Option<Result<Outcome, DsmError>> {
        self.others.remove(&(node, thread));
        self.feed(node, Event::Call(thread, call));
        self.deliver_all();
        self.others.get(&(node, thread)).copied()
    }

    pub(crate) fn must(&mut self, node: usize, call: Call) {
        assert_eq!(self.call(node, call), Some(Ok(Outcome::Done)), "node {node}: {call:?}");
    }

    /// All nodes cross a barrier.
    pub(crate) fn barrier(&mut self) {
        for node in 0..3 {
            self.call(node, CROSS);
        }
        assert_eq!(self.returned, vec![Some(Ok(Outcome::Done)); 3]);
    }

    pub(crate) fn write(&mut self, node: usize, value: u32) {
        if self.nodes[node].write(WORD, value).is_err() {
            self.must(node, Call::Fetch(PAGE));
            self.nodes[node].write(WORD, value).expect("it was fetched");
        }
    }

    pub(crate) fn read(&mut self, node: usize) -> u32 {
        if self.nodes[node].read(WORD).is_err() {
            self.must(node, Call::Fetch(PAGE));
        }
        self.nodes[node].read(WORD).expect("it is there")
    }

    /// Number of messages since the last call.
    pub(crate) fn messages(&mut self) -> usize {
        core::mem::take(&mut self.sent).len()
    }
}

pub(crate) fn both() -> [Cluster; 2] {
    [Cluster::new(Scheme::LogAtManager), Cluster::new(Scheme::LogAtLastHolder)]
}
