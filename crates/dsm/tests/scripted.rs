//! One node on real pages, beside a peer that the test plays: orders of messages that a network
//! seldom produces.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use kyocho_dsm::transport::{Arrival, Local, Traffic, Transport, Waiter};
use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::wire;
use kyocho_dsm::{
    BarrierKind, Dsm, DsmError, Error, Layout, LockId, Message, Mode, NodeId, PageId, Placement,
    ProtocolViolation, Scheme, SharedArray, Subject, ThreadId,
};

#[path = "support/permitted.rs"]
mod permitted;
use permitted::permitted;

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);
const PAGE: PageId = PageId(0);

/// Node 0 manages the only page and all locks except lock 1.
fn layout(nodes: u16) -> Layout {
    Layout {
        nodes,
        regions: vec![NodeId(0)].into(),
        words_a_page: WORDS_A_PAGE as u32,
        locks: 8,
        scheme: Scheme::LogAtManager,
    }
}

/// The peer that the test plays: node 1.
struct Peer {
    network: Local,
    arrived: VecDeque<Arrival>,
    epoch: u64,
}

impl Peer {
    fn send(&self, epoch: u64, message: &Message) {
        self.network.send(NodeId(0), &wire::encode(epoch, message));
    }

    /// Arrives at the barrier, and waits until all nodes have arrived.
    fn cross(&mut self, kind: BarrierKind) {
        let (held, moves, written) = (Vec::new(), Vec::new(), Vec::new());
        self.send(self.epoch, &Message::Arrive { time: 1, written, held, moves, kind });
        self.await_message(|message| matches!(message, Message::Go { .. }).then_some(()));
        self.epoch += 1;
    }

    /// The next message that `wanted` accepts; others are skipped.
    fn await_message<T>(&mut self, wanted: impl Fn(Message) -> Option<T>) -> T {
        loop {
            let heard = self.arrived.pop_front();
            if let Some(found) = heard.and_then(decoded).and_then(&wanted) {
                return found;
            }
            if self.arrived.is_empty() {
                self.arrived.extend(self.network.receive(WATCHDOG));
                assert!(!self.arrived.is_empty(), "what was waited for has not come");
            }
        }
    }
}

fn decoded(arrival: Arrival) -> Option<Message> {
    let Arrival::Message(_, bytes) = arrival else { return None };
    Some(wire::decode(&bytes, &layout(2)).unwrap().1)
}

/// Runs `program` on node 0 beside `peer`, which is node 1.
fn beside(
    detection: Detection,
    program: impl Fn(Dsm, SharedArray<u32>) + Sync,
    peer: impl FnOnce(Peer),
) {
    beside_over(|network| Box::new(network), detection, program, peer);
}

/// The same, over a network that wraps this one.
fn beside_over(
    over: impl FnOnce(Local) -> Box<dyn Transport>,
    detection: Detection,
    program: impl Fn(Dsm, SharedArray<u32>) + Sync,
    peer: impl FnOnce(Peer),
) {
    let mut mesh = Local::mesh(2);
    let network = mesh.pop().unwrap();
    let transport = over(mesh.pop().unwrap());
    thread::scope(|scope| {
        let node = scope.spawn(|| {
            let dsm = Dsm::inside(NodeId(0), layout(2), Some(detection), transport);
            let mut dsm = dsm.unwrap();
            let array = dsm.allocate(WORDS_A_PAGE, Placement::On(NodeId(0))).unwrap();
            program(dsm, array);
        });
        let mut played = Peer { network, arrived: VecDeque::new(), epoch: 0 };
        // The barrier of the allocation.
        played.cross(BarrierKind::Ordinary);
        peer(played);
        node.join().unwrap();
    });
}

#[test]
fn a_page_asked_for_before_its_writer_has_crossed_the_barrier_is_watched_again() {
    let rounds = [
        (1, BarrierKind::SingleReadWrite),
        (2, BarrierKind::Ordinary),
        (3, BarrierKind::SingleReadWrite),
        (4, BarrierKind::Ordinary),
    ];
    let test = "a_page_asked_for_before_its_writer_has_crossed_the_barrier_is_watched_again";
    for detection in permitted(test) {
        let program = |mut dsm: Dsm, array: SharedArray<u32>| {
            for (value, kind) in rounds {
                dsm.cells(&array)[5].set(value);
                dsm.barrier(kind).unwrap();
            }
            dsm.leave().unwrap();
        };
        let peer = |mut peer: Peer| {
            for (value, kind) in rounds {
                // A message of the epoch that starts with the barrier at which node 0 still is,
                // where it may become the owner of the page.
                peer.send(peer.epoch + 1, &Message::Fetch(PAGE, 0));
                peer.cross(kind);
                let word = peer.await_message(|message| match message {
                    Message::Page(PAGE, words) => Some(words[5]),
                    _ => None,
                });
                assert_eq!(word, value, "{detection}");
            }
            peer.cross(BarrierKind::Ordinary);
            peer.network.leave();
        };
        beside(detection, program, peer);
    }
}

/// A network that records whether its node hurries.
#[derive(Debug)]
struct RecordingNetwork(Local, Sender<bool>);

impl Transport for RecordingNetwork {
    fn send(&self, to: NodeId, message: &[u8]) {
        self.0.send(to, message);
    }

    fn hurry(&self, on: bool) {
        self.1.send(on).unwrap();
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        self.0.wait(waiter, timeout)
    }

    fn take(&self) -> Vec<Arrival> {
        self.0.take()
    }

    fn rouse(&self) {
        self.0.rouse();
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn close(&self) {
        self.0.close();
    }

    fn traffic(&self) -> Traffic {
        self.0.traffic()
    }

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.0.traffic_with(peer)
    }
}

#[test]
fn a_node_hurries_while_its_locks_are_waited_for() {
    let lock = LockId(0);
    let (noted, notes) = channel();
    let program = |mut dsm: Dsm, _: SharedArray<u32>| {
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        dsm.acquire(lock, Mode::Exclusive).unwrap();
        dsm.release(lock).unwrap();
        dsm.leave().unwrap();
    };
    let peer = |mut peer: Peer| {
        let (thread, mode) = (ThreadId::FIRST, Mode::Exclusive);
        let epoch = peer.epoch;
        peer.send(epoch, &Message::Acquire { lock, thread, mode, immediately: false, seen: 0 });
        peer.await_message(|message| matches!(message, Message::Grant { .. }).then_some(()));
        // The node holds the lock across the barrier.
        let (moves, written, kind) = (Vec::new(), Vec::new(), BarrierKind::Ordinary);
        peer.send(epoch, &Message::Arrive { time: 1, written, held: vec![lock], moves, kind });
        peer.await_message(|message| matches!(message, Message::Go { .. }).then_some(()));
        peer.epoch += 1;
        assert_eq!(notes.recv_timeout(WATCHDOG), Ok(true), "node 0 waits for its own lock");
        let updates = Vec::new();
        peer.send(
            epoch + 1,
            &Message::Release { lock, time: 1, updates, then_wait: None, seen: 0 },
        );
        assert_eq!(notes.recv_timeout(WATCHDOG), Ok(false));
        peer.cross(BarrierKind::Ordinary);
        peer.network.leave();
    };
    beside_over(
        |network| Box::new(RecordingNetwork(network, noted)),
        Detection::Protect,
        program,
        peer,
    );
}

fn broke(error: &Error) -> Option<(NodeId, ProtocolViolation, Subject)> {
    match error {
        Error::Protocol(DsmError::PeerBroke(node, breach, subject)) => {
            Some((*node, *breach, *subject))
        }
        _ => None,
    }
}

/// How a peer violates the protocol.
type Break = fn(&Peer);

#[test]
fn a_peer_that_breaks_the_protocol_is_named_and_what_is_here_can_be_saved() {
    let nonsense = |peer: &Peer| peer.network.send(NodeId(0), &[0xFF; 40]);
    let ill_timed = |peer: &Peer| peer.send(peer.epoch, &Message::Busy(LockId(3), ThreadId::FIRST));
    let breaches: [(Break, ProtocolViolation); 2] = [
        (nonsense, ProtocolViolation::InvalidMessage(wire::InvalidMessage::Malformed)),
        (ill_timed, ProtocolViolation::IllTimed("Busy")),
    ];
    for (break_it, breach) in breaches {
        let program = |mut dsm: Dsm, array: SharedArray<u32>| {
            dsm.cells(&array)[5].set(9);
            // Its manager is the peer, which never answers.
            let waited = dsm.acquire(LockId(1), Mode::Exclusive).unwrap_err();
            assert_eq!(broke(&waited), Some((NodeId(1), breach, Subject::Lock(LockId(1)))));
            let later = dsm.barrier(BarrierKind::Ordinary).unwrap_err();
            assert_eq!(broke(&later), Some((NodeId(1), breach, Subject::Barrier)));
            assert_eq!(dsm.cells(&array)[5].get(), 9, "what is here can be saved");
        };
        beside(Detection::Protect, program, |mut peer| {
            peer.await_message(|message| matches!(message, Message::Acquire { .. }).then_some(()));
            break_it(&peer);
        });
    }
}
