//! A peer that accepts less than it is sent blocks a program, and is not lost.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use kyocho_dsm::transport::{Arrival, Traffic, Transport, Urgency, Waiter};
use kyocho_dsm::watch::Detection;
use kyocho_dsm::{BarrierKind, ConditionId, Dsm, Error, LockId, NodeId, Scheme, Waiters};

use crate::nodes::{on_nodes, shm, tcp};

/// Number of signals of one node to the other's lock. No thread waits for them, and all of them are
/// more bytes than a queue may hold.
const SIGNALS: usize = 600_000;
/// Far more than may be in transit.
const AT_ONCE_MAX: usize = SIGNALS / 2;

/// Connections of a node that receives nothing until a door opens.
#[derive(Debug)]
struct SlowReceiver {
    door: Arc<AtomicBool>,
    inner: Box<dyn Transport>,
}

impl SlowReceiver {
    fn is_open(&self) -> bool {
        self.door.load(Ordering::Acquire)
    }
}

impl Transport for SlowReceiver {
    fn send(&self, to: NodeId, message: &[u8]) {
        self.inner.send(to, message);
    }

    fn send_with(&self, to: NodeId, message: &[u8], urgency: Urgency) {
        self.inner.send_with(to, message, urgency);
    }

    fn is_full(&self) -> bool {
        self.inner.is_full()
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        if self.is_open() {
            return self.inner.wait(waiter, timeout.min(Duration::from_millis(1)));
        }
        thread::park_timeout(Duration::from_millis(1));
        true
    }

    fn take(&self) -> Vec<Arrival> {
        if self.is_open() { self.inner.take() } else { Vec::new() }
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

/// What the threads of a test share.
#[derive(Default)]
struct Shared {
    doors: [Arc<AtomicBool>; 2],
    /// Number of nodes whose door is in the right state.
    ready: AtomicUsize,
    /// Number of signals that each node has sent.
    sent: [AtomicUsize; 2],
    over: AtomicBool,
}

impl Shared {
    fn sent(&self) -> [usize; 2] {
        self.sent.each_ref().map(|sent| sent.load(Ordering::Acquire))
    }

    /// Opens all doors once no node makes progress. Returns the progress until then.
    fn open_when_all_are_held_back(&self) -> [usize; 2] {
        let mut before = None;
        while before != Some(self.sent()) && !self.over.load(Ordering::Acquire) {
            before = (self.ready.load(Ordering::Acquire) == 2).then(|| self.sent());
            thread::park_timeout(Duration::from_millis(500));
        }
        self.doors.iter().for_each(|door| door.store(true, Ordering::Release));
        before.unwrap_or_default()
    }

    fn program(&self, mut dsm: Dsm, floods: &[u16], shut: &[u16]) -> Result<(), Error> {
        let (rank, me) = (dsm.rank(), usize::from(dsm.rank()));
        dsm.barrier(BarrierKind::Ordinary)?;
        self.doors[me].store(!shut.contains(&rank), Ordering::Release);
        self.ready.fetch_add(1, Ordering::AcqRel);
        while self.ready.load(Ordering::Acquire) < 2 {
            thread::park_timeout(Duration::from_millis(1));
        }
        for _ in 0..if floods.contains(&rank) { SIGNALS } else { 0 } {
            // The other node manages this lock.
            dsm.signal(LockId(u32::from(1 - rank)), ConditionId(0), Waiters::One)?;
            self.sent[me].fetch_add(1, Ordering::AcqRel);
        }
        dsm.barrier(BarrierKind::Ordinary)?;
        dsm.leave()
    }
}

/// The nodes in `floods` send all signals, while those in `shut` receive nothing.
fn run(mesh: Vec<Box<dyn Transport>>, floods: &[u16], shut: &[u16]) {
    let shared = &Shared::default();
    let behind = |(inner, door): (_, &Arc<AtomicBool>)| {
        door.store(true, Ordering::Release);
        Box::new(SlowReceiver { door: door.clone(), inner }) as Box<dyn Transport>
    };
    let transports = mesh.into_iter().zip(&shared.doors).map(behind).collect();
    thread::scope(|scope| {
        let opening = scope.spawn(|| shared.open_when_all_are_held_back());
        let came = on_nodes(transports, Scheme::LogAtManager, Detection::Protect, |dsm| {
            shared.program(dsm, floods, shut)
        });
        shared.over.store(true, Ordering::Release);
        came.into_iter().for_each(Result::unwrap);
        let held_back = opening.join().unwrap();
        assert!(
            shut.is_empty() || held_back.iter().all(|sent| *sent < AT_ONCE_MAX),
            "{held_back:?}"
        );
    });
    for node in floods {
        assert_eq!(shared.sent()[usize::from(*node)], SIGNALS);
    }
}

#[test]
fn a_peer_that_takes_nothing_for_a_while_holds_a_program_back() {
    run(tcp(2), &[1], &[0]);
    run(shm(2), &[1], &[0]);
}

#[test]
fn two_nodes_that_flood_each_other_do_not_wait_for_each_other_for_ever() {
    run(tcp(2), &[0, 1], &[]);
    run(shm(2), &[0, 1], &[]);
    run(tcp(2), &[0, 1], &[0, 1]);
}
