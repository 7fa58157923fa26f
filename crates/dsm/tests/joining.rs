//! Strangers that connect while nodes join, and send nothing or little: they keep no node out.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use kyocho_dsm::NodeId;
use kyocho_dsm::transport::{Cluster, JoinError, Secret, Tcp, TcpSettings};

const SETTINGS: TcpSettings = TcpSettings {
    deadline: Duration::from_secs(60),
    message_bytes_max: 1 << 20,
    queue_bytes_max: 1 << 20,
};

/// Less time than all strangers together take, and more than nodes need.
const JOIN_WITHIN: Duration = Duration::from_secs(20);

fn listeners() -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    (listeners, addresses)
}

fn clusters(addresses: &[SocketAddr]) -> [Cluster; 2] {
    let secret = Secret::random().unwrap();
    [0, 1].map(|me| Cluster {
        me: NodeId(me),
        addresses: addresses.to_vec(),
        secret: secret.clone(),
        layout: [0; 4],
        join_within: JOIN_WITHIN,
    })
}

/// Two nodes join beside strangers, of which `few` connect first.
fn join_beside<T>(few: impl FnOnce(SocketAddr) -> T, more: impl FnOnce(SocketAddr) + Send) {
    let (listeners, addresses) = listeners();
    let places = clusters(&addresses);
    let _there = few(addresses[0]);
    thread::scope(|scope| {
        let join = |node: usize| Tcp::join_by(&places[node], SETTINGS, &listeners[node]);
        let first = scope.spawn(move || join(0));
        let strangers = scope.spawn(|| more(addresses[0]));
        join(1).unwrap();
        first.join().unwrap().unwrap();
        strangers.join().unwrap();
    });
}

#[test]
fn idle_connections_keep_no_node_out() {
    let eight = |address| [(); 8].map(|()| TcpStream::connect(address).unwrap());
    join_beside(eight, |_| {});
}

#[test]
fn more_idle_connections_than_may_be_pending_keep_no_node_out() {
    join_beside(
        |_| {},
        |address| {
            // Strangers for which there is no room, because all nodes have joined, are refused.
            let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok();
            drop((0..300).map_while(connect).collect::<Vec<_>>());
        },
    );
}

/// Sends a letter byte by byte until the connection is closed.
fn dribble(mut to: TcpStream) {
    let letter = [&[0, 1][..], &[7; 256]].concat();
    for byte in letter {
        if to.write_all(&[byte]).is_err() {
            return;
        }
        thread::park_timeout(Duration::from_millis(100));
    }
}

#[test]
fn a_stranger_that_sends_byte_by_byte_keeps_no_node_out() {
    join_beside(
        |address| {
            let to = TcpStream::connect(address).unwrap();
            // It ends with the connection.
            drop(thread::spawn(move || dribble(to)));
        },
        |_| {},
    );
}

#[test]
fn a_peer_that_answers_byte_by_byte_has_one_deadline() {
    let (listeners, addresses) = listeners();
    let place =
        Cluster { join_within: Duration::from_millis(500), ..clusters(&addresses)[1].clone() };
    thread::scope(|scope| {
        let node = scope.spawn(|| Tcp::join_by(&place, SETTINGS, &listeners[1]));
        let (peer, _) = listeners[0].accept().unwrap();
        dribble(peer);
        let why = node.join().unwrap().unwrap_err();
        let JoinError::Unreachable(NodeId(0), _, why) = why else { panic!("{why}") };
        assert_eq!(why.kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_node_that_was_dropped_before_it_could_speak_tries_again() {
    let (listeners, addresses) = listeners();
    let places = clusters(&addresses);
    thread::scope(|scope| {
        let second = scope.spawn(|| Tcp::join_by(&places[1], SETTINGS, &listeners[1]));
        let (mut dropped, _) = listeners[0].accept().unwrap();
        dropped.read_exact(&mut [0; 2]).unwrap();
        drop(dropped);
        assert!(Tcp::join_by(&places[0], SETTINGS, &listeners[0]).is_ok());
        assert!(second.join().unwrap().is_ok());
    });
}
