//! A node that dies at any of its messages. All other nodes get an error that names it, and none
//! hangs.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use kyocho_dsm::transport::{Arrival, Cause, Local, Traffic, Transport, Waiter};
use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, DsmError, Error, Layout, LockId, Mode, NodeId, Placement,
    Scheme, Waiters,
};

const NODES: u16 = 3;
const LOCK: LockId = LockId(1);
const CONDITION: ConditionId = ConditionId(0);

/// A node's connections, which close before it sends more than `sends_max` messages.
#[derive(Debug)]
struct DyingTransport {
    me: u16,
    inner: Local,
    sends: AtomicU64,
    sends_max: u64,
    /// Whether its own program has been told.
    is_notified: AtomicBool,
}

impl DyingTransport {
    fn is_dead(&self) -> bool {
        self.sends.load(Ordering::Acquire) > self.sends_max
    }
}

impl Transport for DyingTransport {
    fn send(&self, to: NodeId, message: &[u8]) {
        if self.sends.fetch_add(1, Ordering::AcqRel) < self.sends_max {
            self.inner.send(to, message);
        } else {
            self.inner.close();
        }
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        self.is_dead() || self.inner.wait(waiter, timeout)
    }

    fn take(&self) -> Vec<Arrival> {
        if !self.is_dead() {
            return self.inner.take();
        }
        // Its own program must end as well: it is told that all others are lost.
        let peers = if self.is_notified.swap(true, Ordering::AcqRel) { 0..0 } else { 0..NODES };
        let lost = |peer| Arrival::Lost(NodeId(peer), Cause::Closed);
        peers.filter(|peer| *peer != self.me).map(lost).collect()
    }

    fn rouse(&self) {
        self.inner.rouse();
    }

    fn leave(&self) {
        self.inner.leave();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.inner.traffic_with(peer)
    }
}

/// Every kind of call, including requests that other nodes answer and answers that they need.
fn work(dsm: &mut Dsm) -> Result<(), Error> {
    let counter = dsm.allocate::<u32>(WORDS_A_PAGE, Placement::On(NodeId(0)))?;
    let pages = counter.pages(0..1);
    for (round, kind) in
        [BarrierKind::Ordinary, BarrierKind::SingleReadWrite].into_iter().enumerate()
    {
        dsm.acquire(LOCK, Mode::Exclusive)?;
        // An access to the page would end the program; this call only fails.
        dsm.fetch(pages[0])?;
        let cell = &dsm.cells(&counter)[0];
        cell.set(cell.get() + 1);
        while dsm.cells(&counter)[0].get() < u32::from(NODES) * (round as u32 + 1) {
            dsm.wait(LOCK, CONDITION)?;
        }
        dsm.release(LOCK)?;
        dsm.signal(LOCK, CONDITION, Waiters::All)?;
        dsm.try_acquire(LockId(2), Mode::NonExclusive)?
            .then(|| dsm.release(LockId(2)))
            .transpose()?;
        dsm.move_lock(LOCK, NodeId(dsm.rank()))?;
        dsm.move_page(pages[0], NodeId(dsm.rank()))?;
        dsm.barrier(kind)?;
    }
    Ok(())
}

/// The results of all nodes if `victim` may send `sends_max` messages; whether the victim had
/// reached its last barrier.
fn come_to(scheme: Scheme, victim: u16, sends_max: u64) -> (Vec<Result<(), Error>>, bool) {
    let regions = (0..4).map(|page| NodeId(page % NODES)).collect::<Vec<_>>().into();
    let words_a_page = WORDS_A_PAGE as u32;
    let layout = &Layout { nodes: NODES, regions, words_a_page, locks: 4, scheme };
    let was_done = &AtomicBool::new(false);
    let program = move |me: u16, inner: Local| {
        let sends_max = if me == victim { sends_max } else { u64::MAX };
        let (sends, is_notified) = (AtomicU64::new(0), AtomicBool::new(false));
        let mortal = DyingTransport { me, inner, sends, sends_max, is_notified };
        let detection = Some(Detection::Protect);
        let mut dsm = Dsm::inside(NodeId(me), layout.clone(), detection, Box::new(mortal)).unwrap();
        work(&mut dsm)?;
        if me == victim {
            was_done.store(true, Ordering::Release);
        }
        dsm.leave()
    };
    let came = thread::scope(|scope| {
        let nodes = Local::mesh(NODES).into_iter().zip(0..);
        let nodes: Vec<_> =
            nodes.map(|(inner, me)| scope.spawn(move || program(me, inner))).collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    });
    (came, was_done.load(Ordering::Acquire))
}

/// Makes a node die at its first message, at its second, and so on, until it survives.
fn die_everywhere(scheme: Scheme, victim: u16) {
    for sends_max in 0..200 {
        let (came, was_done) = come_to(scheme, victim, sends_max);
        if came.iter().all(Result::is_ok) {
            assert!(sends_max > 10, "it sends more than {sends_max} messages");
            return;
        }
        for (node, came) in came.iter().enumerate().filter(|(node, _)| *node != usize::from(victim))
        {
            match came {
                // The victim's last message released this node.
                Ok(()) => assert!(was_done, "node {node} missed nothing, {scheme:?}, {sends_max}"),
                Err(Error::Protocol(DsmError::PeerLost(NodeId(dead), _))) => {
                    assert_eq!(*dead, victim, "node {node}, {scheme:?}, {sends_max}");
                }
                Err(why) => panic!("node {node}, {scheme:?}, {sends_max}: {why}"),
            }
        }
    }
    panic!("a node that may send 200 messages lives to the end");
}

#[test]
fn a_manager_of_barriers_that_dies_at_any_message_is_named() {
    die_everywhere(Scheme::LogAtManager, 0);
    die_everywhere(Scheme::LogAtLastHolder, 0);
}

#[test]
fn a_worker_that_dies_at_any_message_is_named() {
    die_everywhere(Scheme::LogAtManager, 2);
    die_everywhere(Scheme::LogAtLastHolder, 2);
}
