//! Rings that a peer breaks, and the connections beside them.

use core::time::Duration;
use std::io::Write;
use std::net::TcpListener;
use std::thread;

use kyocho_sys::prim::atomic::unmodelled::Ordering;
use kyocho_sys::scheduling::{self, CpuSet};
use kyocho_sys::task::ThreadId;
use proptest::prelude::*;

use super::{RING_BYTES, Shared, Shm};
use crate::address::NodeId;
use crate::transport::{Arrival, Cause, Cluster, Secret, TcpSettings, Transport, Urgency};

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Two nodes, and their memory as a third process sees it.
fn pair() -> (Vec<Shm>, Shared) {
    let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses: Vec<_> = listeners.iter().map(|one| one.local_addr().unwrap()).collect();
    let (secret, shared) = (Secret::random().unwrap(), Shared::new(2).unwrap());
    let settings =
        TcpSettings { deadline: WATCHDOG, message_bytes_max: 1 << 20, queue_bytes_max: 1 << 20 };
    let nodes = thread::scope(|scope| {
        let joining = listeners.iter().zip(0..).map(|(listener, me)| {
            let (addresses, secret) = (addresses.clone(), secret.clone());
            let (me, layout, join_within) = (NodeId(me), [0; 4], WATCHDOG);
            let cluster = Cluster { me, addresses, secret, layout, join_within };
            let shared = shared.try_clone().unwrap();
            scope.spawn(move || Shm::join_by(&cluster, settings, listener, shared).unwrap())
        });
        joining.collect::<Vec<_>>().into_iter().map(|node| node.join().unwrap()).collect()
    });
    (nodes, shared)
}

#[test]
fn a_peer_that_breaks_a_ring_is_lost() {
    for (from, to) in [(1, 0), (0, 1)] {
        let (nodes, shared) = pair();
        let ring = shared.ring(NodeId(from), NodeId(to));
        ring.tail().fetch_add(RING_BYTES + 1, Ordering::Relaxed);
        shared.call(NodeId(0));
        let arrivals = nodes[0].receive(WATCHDOG);
        assert_eq!(arrivals, [Arrival::Lost(NodeId(1), Cause::InvalidMessage)], "{from} to {to}");
    }
}

#[test]
fn a_peer_whose_ring_holds_no_frames_is_lost() {
    let (nodes, shared) = pair();
    assert_eq!(shared.ring(NodeId(1), NodeId(0)).put(&[0xFF; 64]).ok(), Some(64));
    shared.call(NodeId(0));
    assert_eq!(nodes[0].receive(WATCHDOG), [Arrival::Lost(NodeId(1), Cause::InvalidMessage)]);
}

#[test]
fn a_peer_that_speaks_beside_its_ring_is_lost() {
    let (nodes, _shared) = pair();
    (&nodes[1].0.medium().peers[0].stream).write_all(b"hello").unwrap();
    assert_eq!(nodes[0].receive(WATCHDOG), [Arrival::Lost(NodeId(1), Cause::InvalidMessage)]);
}

#[test]
fn messages_sent_before_a_death_arrive_before_it_is_reported() {
    let (mut nodes, _shared) = pair();
    let last = nodes.pop().unwrap();
    (0..10).for_each(|_| last.send(NodeId(0), &[7; 1000]));
    drop(last);
    let mut arrivals = Vec::new();
    while arrivals.len() < 11 {
        arrivals.extend(nodes[0].receive(WATCHDOG));
    }
    let lost = arrivals.pop();
    assert_eq!(lost, Some(Arrival::Lost(NodeId(1), Cause::Closed)));
    assert!(arrivals.iter().all(|one| *one == Arrival::Message(NodeId(1), vec![7; 1000])));
}

#[test]
fn messages_during_a_call_or_that_may_wait_wake_no_thread() {
    let (nodes, shared) = pair();
    let was_rung = || shared.rung(NodeId(0)).swap(0, Ordering::Relaxed) == 1;
    let message = || Arrival::Message(NodeId(1), vec![7; 100]);
    was_rung();
    nodes[0].begin_call();
    nodes[1].send(NodeId(0), &[7; 100]);
    assert!(!was_rung(), "a calling thread polls, so no bell rings");
    assert!(nodes[0].end_call(), "and is told at its end that something came");
    assert_eq!(nodes[0].take(), [message()]);
    nodes[1].send_with(NodeId(0), &[7; 100], Urgency::WhenWaiting);
    assert!(!was_rung(), "it may wait");
    shared.waiting(NodeId(0)).store(1, Ordering::Relaxed);
    nodes[1].send_with(NodeId(0), &[7; 100], Urgency::WhenWaiting);
    assert!(was_rung(), "a thread waits, so its bell rings");
    shared.waiting(NodeId(0)).store(0, Ordering::Relaxed);
    nodes[1].send(NodeId(0), &[7; 100]);
    assert!(was_rung(), "it may not wait");
    nodes[0].begin_call();
    assert!(nodes[0].end_call());
    assert_eq!(nodes[0].take(), [(); 3].map(|()| message()));
    // Messages that may wait do not fill the ring.
    for _ in 0..RING_BYTES / 1000 {
        nodes[1].send_with(NodeId(0), &[7; 1000], Urgency::WhenWaiting);
    }
    assert!(was_rung());
}

#[test]
fn a_polling_sender_that_was_answered_without_a_bell_delays_the_next() {
    let (nodes, shared) = pair();
    if nodes[1].0.medium().look_for.is_zero() {
        let test = "a_polling_sender_that_was_answered_without_a_bell_delays_the_next";
        return eprintln!("skipped {test}: no thread polls on one core");
    }
    let was_rung = || shared.rung(NodeId(0)).swap(0, Ordering::Relaxed) == 1;
    let say = || nodes[1].send(NodeId(0), &[7; 100]);
    was_rung();
    nodes[1].begin_call();
    say();
    assert!(was_rung(), "nothing is known of it yet");
    nodes[0].begin_call();
    say();
    assert!(nodes[0].end_call() && !was_rung(), "it looked");
    say();
    assert!(!was_rung(), "it may look again soon");
    drop(nodes[0].take());
    nodes[1].end_call();
    assert!(!was_rung(), "and has");
    nodes[1].begin_call();
    say();
    nodes[1].end_call();
    assert!(was_rung(), "a node that has stopped polling is rung");
    nodes[1].begin_call();
    nodes[0].begin_call();
    say();
    assert!(nodes[0].end_call() && !was_rung());
    drop(nodes[0].take());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !was_rung() {
                thread::yield_now();
            }
            nodes[0].send(NodeId(1), &[9]);
        });
        say();
        let found = nodes[1].0.medium().look_hard(WATCHDOG, &mut |_| {});
        assert!(found, "a node that has polled for long is rung as well");
    });
    drop(nodes[0].take());
    say();
    assert!(was_rung(), "and at once the next time");
    nodes[1].end_call();
}

#[test]
fn messages_that_may_wait_ring_the_bell_of_a_node_that_is_waited_for() {
    let (nodes, shared) = pair();
    let say = || nodes[1].send_with(NodeId(0), &[7; 100], Urgency::WhenWaiting);
    let was_rung = || shared.rung(NodeId(0)).swap(0, Ordering::Relaxed) == 1;
    was_rung();
    nodes[0].hurry(true);
    say();
    assert!(was_rung());
    nodes[0].hurry(false);
    say();
    assert!(!was_rung());
}

#[test]
fn of_two_nodes_on_one_core_the_higher_rank_moves_to_a_free_one() {
    let (nodes, shared) = pair();
    let me = ThreadId::current();
    let allowed = scheduling::affinity(me).unwrap();
    let beside = |peer: u16| {
        shared.core(NodeId(peer)).store(scheduling::current_cpu() as u32 + 1, Ordering::Relaxed);
        nodes[usize::from(1 - peer)].0.medium().shares_core()
    };
    let goes = !beside(0);
    assert_eq!(goes, allowed.count() > 1, "it goes where there is another core");
    let [core, other] = [1, 0].map(|node| shared.core(NodeId(node)).load(Ordering::Relaxed));
    assert_eq!(core != other, goes);
    assert_eq!(scheduling::affinity(me).unwrap(), allowed, "it may use what it might before");
    // The first node does not move meanwhile: this thread may use only one core.
    scheduling::set_affinity(me, &CpuSet::single(scheduling::current_cpu())).unwrap();
    assert!(beside(1) && beside(0));
}

proptest! {
    #[test]
    fn bytes_come_out_as_they_went_in(
        start in any::<u32>(),
        pieces in prop::collection::vec((0..=80_000_usize, 0..=80_000_usize), 1..20),
    ) {
        let shared = Shared::new(1).unwrap();
        let ring = shared.ring(NodeId(0), NodeId(0));
        ring.tail().store(start, Ordering::Relaxed);
        ring.head().store(start, Ordering::Relaxed);
        let (mut sent, mut came) = (0_usize, 0_usize);
        let byte = |place: usize| (place * 31 % 251) as u8;
        for (put, take) in pieces {
            let bytes: Vec<u8> = (sent..sent + put).map(byte).collect();
            let count = ring.put(&bytes).ok().unwrap();
            prop_assert_eq!(count, put.min(RING_BYTES as usize - (sent - came)));
            sent += count;
            let mut into = vec![0; take];
            let count = ring.take(&mut into).ok().unwrap();
            prop_assert_eq!(count, take.min(sent - came));
            prop_assert!(into[..count].iter().copied().eq((came..came + count).map(byte)));
            came += count;
        }
    }
}
