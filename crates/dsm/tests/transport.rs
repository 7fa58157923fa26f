//! One suite for all transports. Then, for connections: nonsense, silence, and [mistakes of
//! launching](launching).
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use kyocho_dsm::NodeId;
use kyocho_dsm::transport::{
    Arrival, Cause, Cluster, JoinError, Local, SHM_NODES_MAX, Secret, Shared, Shm, Tcp,
    TcpSettings, Traffic, Transport, Waiter,
};

#[path = "transport/launching.rs"]
mod launching;

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);

const SETTINGS: TcpSettings =
    TcpSettings { deadline: WATCHDOG, message_bytes_max: 64 << 20, queue_bytes_max: 64 << 20 };

fn listeners(nodes: u16) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    (listeners, addresses)
}

fn clusters(addresses: &[SocketAddr]) -> Vec<Cluster> {
    let secret = Secret::random().unwrap();
    let place = |me| Cluster {
        me: NodeId(me),
        addresses: addresses.to_vec(),
        secret: secret.clone(),
        layout: [1, 2, 3, 4],
        join_within: WATCHDOG,
    };
    (0..addresses.len() as u16).map(place).collect()
}

type Joined = Result<Tcp, JoinError>;

/// All nodes join at once, with listeners of their own.
fn join_all(clusters: &[Cluster], listeners: &[TcpListener], settings: TcpSettings) -> Vec<Joined> {
    thread::scope(|scope| {
        let joining: Vec<_> = clusters
            .iter()
            .zip(listeners)
            .map(|(cluster, listener)| {
                scope.spawn(move || Tcp::join_by(cluster, settings, listener))
            })
            .collect();
        joining.into_iter().map(|joining| joining.join().unwrap()).collect()
    })
}

fn tcp(nodes: u16, settings: TcpSettings) -> Vec<Tcp> {
    let (listeners, addresses) = listeners(nodes);
    let joined = join_all(&clusters(&addresses), &listeners, settings);
    joined.into_iter().map(Result::unwrap).collect()
}

fn shm(nodes: u16, settings: TcpSettings) -> Vec<Shm> {
    let (listeners, addresses) = listeners(nodes);
    let shared = Shared::new(nodes).unwrap();
    thread::scope(|scope| {
        let joining: Vec<_> = clusters(&addresses)
            .into_iter()
            .zip(&listeners)
            .map(|(cluster, listener)| {
                let shared = shared.try_clone().unwrap();
                scope.spawn(move || Shm::join_by(&cluster, settings, listener, shared).unwrap())
            })
            .collect();
        joining.into_iter().map(|joining| joining.join().unwrap()).collect()
    })
}

type Mesh = Vec<Box<dyn Transport>>;

fn boxed<T: Transport + 'static>(nodes: Vec<T>) -> Mesh {
    nodes.into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
}

/// Transports whose nodes are processes.
fn connected(nodes: u16, settings: TcpSettings) -> Vec<Mesh> {
    vec![boxed(tcp(nodes, settings)), boxed(shm(nodes, settings))]
}

fn meshes(nodes: u16) -> Vec<Mesh> {
    let mut meshes = connected(nodes, SETTINGS);
    meshes.push(boxed(Local::mesh(nodes)));
    meshes
}

/// Receives so many arrivals.
fn receive(transport: &dyn Transport, count: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    while arrivals.len() < count {
        let more = transport.receive(WATCHDOG);
        assert!(!more.is_empty(), "only {} arrivals of {count} came", arrivals.len());
        arrivals.extend(more);
    }
    arrivals
}

#[test]
fn messages_arrive_in_order_from_all_peers() {
    for mesh in meshes(3) {
        for round in 0..200_u32 {
            mesh[1].send(NodeId(0), &round.to_le_bytes());
            mesh[2].send(NodeId(0), &round.to_le_bytes());
        }
        let arrivals = receive(&*mesh[0], 400);
        for from in [NodeId(1), NodeId(2)] {
            let sent = (0..200_u32).map(|round| Arrival::Message(from, round.to_le_bytes().into()));
            let came = arrivals.iter().filter(
                |arrival| matches!(arrival, Arrival::Message(sender, _) if *sender == from),
            );
            assert!(came.cloned().eq(sent), "{:?}", mesh[0]);
        }
        let traffic = mesh[0].traffic();
        assert_eq!((traffic.messages_received, traffic.bytes_received), (400, 1600));
        assert_eq!((mesh[1].traffic().messages_sent, mesh[1].traffic().bytes_sent), (200, 800));
    }
}

#[test]
fn traffic_is_counted_by_peer() {
    for mesh in meshes(3) {
        mesh[0].send(NodeId(1), b"one");
        mesh[0].send(NodeId(2), b"three");
        mesh[0].send(NodeId(2), b"nine and a half");
        receive(&*mesh[1], 1);
        receive(&*mesh[2], 2);
        // Messages and bytes sent, then received.
        let counts = |traffic: Traffic| {
            let Traffic { messages_sent, bytes_sent, messages_received, bytes_received } = traffic;
            [messages_sent, bytes_sent, messages_received, bytes_received]
        };
        let between = |one: usize, other| counts(mesh[one].traffic_with(NodeId(other)));
        assert_eq!([between(0, 1), between(0, 2)], [[1, 3, 0, 0], [2, 20, 0, 0]]);
        assert_eq!([between(1, 0), between(2, 0)], [[0, 0, 1, 3], [0, 0, 2, 20]]);
        // Nothing passed between the others, to a node itself, or to a node that does not exist.
        assert_eq!([between(1, 2), between(0, 0), between(0, 3)], [[0; 4]; 3]);
        assert_eq!(counts(mesh[0].traffic()), [3, 23, 0, 0]);
    }
}

/// Receives one message, says goodbye, and waits for the peer's goodbye.
fn receive_and_leave(transport: &dyn Transport, from: NodeId, expected: Vec<u8>) {
    let mut arrivals = receive(transport, 1);
    // The peer's last piece may wait for credit that is returned here.
    transport.leave();
    let more = 2 - arrivals.len();
    arrivals.extend(receive(transport, more));
    assert!(arrivals == [Arrival::Message(from, expected), Arrival::Left(from)]);
}

#[test]
fn large_messages_pass_both_ways_at_once() {
    const BYTES: usize = 5 << 20;
    for mesh in meshes(2) {
        mesh[0].send(NodeId(1), &vec![1; BYTES]);
        mesh[1].send(NodeId(0), &vec![2; BYTES]);
        thread::scope(|scope| {
            scope.spawn(|| receive_and_leave(&*mesh[0], NodeId(1), vec![2; BYTES]));
            scope.spawn(|| receive_and_leave(&*mesh[1], NodeId(0), vec![1; BYTES]));
        });
    }
}

#[test]
fn a_node_that_leaves_is_not_lost_and_its_messages_arrive_first() {
    for mesh in meshes(2) {
        mesh[1].send(NodeId(0), b"last words");
        mesh[1].leave();
        mesh[1].close();
        let arrivals = receive(&*mesh[0], 2);
        let said = Arrival::Message(NodeId(1), b"last words".to_vec());
        assert_eq!(arrivals, [said, Arrival::Left(NodeId(1))]);
        mesh[0].send(NodeId(1), b"to no node");
    }
}

#[test]
fn a_node_that_closes_without_goodbye_is_lost() {
    for mut mesh in meshes(3) {
        drop(mesh.remove(1));
        for node in &mesh {
            assert_eq!(receive(&**node, 1), [Arrival::Lost(NodeId(1), Cause::Closed)]);
        }
    }
}

/// Takes and keeps arrivals until there are so many, both under one lock, as the users of
/// transports must.
fn hear(transport: &dyn Transport, waiter: Waiter, heard: &Mutex<Vec<Arrival>>, count: usize) {
    let heard_all = || {
        let mut heard = heard.lock().unwrap();
        heard.extend(transport.take());
        heard.len() == count
    };
    if waiter == Waiter::Caller {
        transport.begin_call();
    }
    while !heard_all() && transport.wait(waiter, WATCHDOG) {}
    transport.close();
}

#[test]
fn two_kinds_of_threads_that_wait_get_everything_once_and_in_order() {
    const COUNT: u32 = 2000;
    for mesh in meshes(2) {
        let heard = Mutex::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| hear(&*mesh[0], Waiter::Caller, &heard, COUNT as usize));
            scope.spawn(|| hear(&*mesh[0], Waiter::Service, &heard, COUNT as usize));
            for number in 0..COUNT {
                mesh[1].send(NodeId(0), &number.to_le_bytes());
            }
        });
        let sent =
            (0..COUNT).map(|number| Arrival::Message(NodeId(1), number.to_le_bytes().into()));
        assert!(heard.into_inner().unwrap().into_iter().eq(sent), "{:?}", mesh[0]);
    }
}

#[test]
fn rousing_ends_the_current_wait_of_a_caller_or_the_next_one() {
    for mesh in meshes(2) {
        mesh[0].begin_call();
        // Reports what is there from the start: sockets that can be written to.
        mesh[0].wait(Waiter::Caller, Duration::ZERO);
        let begun = Instant::now();
        mesh[0].rouse();
        assert!(mesh[0].wait(Waiter::Caller, WATCHDOG));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| mesh[0].wait(Waiter::Caller, WATCHDOG));
            mesh[0].rouse();
            assert!(waiting.join().unwrap());
        });
        assert!(begun.elapsed() < WATCHDOG, "it waited to the end");
    }
}

#[test]
fn closing_ends_the_wait() {
    for mesh in meshes(2) {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| mesh[0].receive(WATCHDOG));
            mesh[0].close();
            assert_eq!(waiting.join().unwrap(), []);
        });
    }
}

#[test]
fn a_silent_peer_is_lost() {
    let deadline = Duration::from_millis(300);
    for mesh in connected(2, TcpSettings { deadline, ..SETTINGS }) {
        // Node 1 lives, but no thread of it runs.
        assert_eq!(receive(&*mesh[0], 1), [Arrival::Lost(NodeId(1), Cause::Silent)]);
    }
}

#[test]
fn a_peer_that_accepts_nothing_is_lost_and_its_queue_bounded() {
    for mesh in connected(2, TcpSettings { queue_bytes_max: 4 << 20, ..SETTINGS }) {
        for _ in 0..40 {
            mesh[0].send(NodeId(1), &vec![0; 1 << 20]);
        }
        assert_eq!(receive(&*mesh[0], 1), [Arrival::Lost(NodeId(1), Cause::Congested)]);
    }
}

#[test]
fn memory_is_for_as_many_nodes_as_the_cluster_has() {
    let (listeners, addresses) = listeners(2);
    let place = clusters(&addresses).remove(0);
    let shared = Shared::new(3).unwrap();
    let refused = Shm::join_by(&place, SETTINGS, &listeners[0], shared);
    assert!(matches!(refused, Err(JoinError::Size(2))), "{refused:?}");
    assert!(Shared::new(0).is_err());
    assert!(Shared::new(SHM_NODES_MAX + 1).is_err());
    let mut descriptors: Vec<_> = Shared::new(3)
        .unwrap()
        .descriptors()
        .map(|one| one.try_clone_to_owned().unwrap())
        .collect();
    let bells = descriptors.split_off(2);
    assert!(Shared::receive(descriptors.remove(0), bells).is_err(), "there is one bell less");
}

/// Sends numbers, each after the answer to the previous one; or answers them.
fn converse(transport: &dyn Transport, peer: NodeId, begins: bool) {
    for number in 0..2000_u32 {
        let bytes = number.to_le_bytes();
        if begins {
            transport.send(peer, &bytes);
        }
        assert_eq!(receive(transport, 1), [Arrival::Message(peer, bytes.into())]);
        if !begins {
            transport.send(peer, &bytes);
        }
    }
}

#[test]
fn a_sleeping_receiver_gets_everything_once_and_in_time() {
    // Each answers the other, and both sleep in between: neither polls, so bells are needed.
    for mesh in meshes(2) {
        thread::scope(|scope| {
            scope.spawn(|| converse(&*mesh[1], NodeId(0), false));
            converse(&*mesh[0], NodeId(1), true);
        });
    }
}

/// A connection to a node that has completed the handshake, without a node on this side: node 1 of
/// two.
fn bare_peer() -> (Tcp, TcpStream) {
    let (mut listeners, addresses) = listeners(2);
    // A relay between the two nodes takes the connection over after the handshake.
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut places = clusters(&addresses);
    places[1].addresses[0] = relay.local_addr().unwrap();
    let own = listeners.remove(0);
    thread::scope(|scope| {
        let node = scope.spawn(|| Tcp::join_by(&places[0], SETTINGS, &own));
        let peer = scope.spawn(|| Tcp::join_by(&places[1], SETTINGS, &listeners[0]));
        let (mut from_peer, _) = relay.accept().unwrap();
        let mut to_node = TcpStream::connect(addresses[0]).unwrap();
        for _ in 0..2 {
            pass_letter(&mut from_peer, &mut to_node);
            pass_letter(&mut to_node, &mut from_peer);
        }
        let node = node.join().unwrap().unwrap();
        drop(peer.join().unwrap());
        (node, to_node)
    })
}

fn read_letter(from: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    from.read_exact(&mut length).unwrap();
    let mut letter = vec![0; usize::from(u16::from_le_bytes(length))];
    from.read_exact(&mut letter).unwrap();
    letter
}

fn write_letter(to: &mut TcpStream, letter: &[u8]) {
    to.write_all(&(letter.len() as u16).to_le_bytes()).unwrap();
    to.write_all(letter).unwrap();
}

fn pass_letter(from: &mut TcpStream, to: &mut TcpStream) {
    write_letter(to, &read_letter(from));
}

#[test]
fn a_peer_that_sends_nonsense_is_lost() {
    for nonsense in
        [&[0xFF; 64][..], &[0, 0, 0, 0], &[2, 0, 0, 0, 99, 0], b"GET / HTTP/1.1\r\n\r\n"]
    {
        let (node, mut peer) = bare_peer();
        peer.write_all(nonsense).unwrap();
        assert_eq!(
            receive(&node, 1),
            [Arrival::Lost(NodeId(1), Cause::InvalidMessage)],
            "{nonsense:?}"
        );
    }
}
