//! Nodes that find each other: mistakes of launching are named, strangers keep no node out.

use core::time::Duration;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;

use kyocho_dsm::NodeId;
use kyocho_dsm::transport::{Cluster, JoinError, Secret, Tcp};
use kyocho_dsm::wire::VERSION;

use super::{
    Joined, SETTINGS, clusters, join_all, listeners, pass_letter, read_letter, write_letter,
};

/// The results of two nodes if the second one's settings are changed.
fn mistaken(change: impl FnOnce(&mut Cluster)) -> Vec<Joined> {
    let (listeners, addresses) = listeners(2);
    let mut places = clusters(&addresses);
    change(&mut places[1]);
    join_all(&places, &listeners, SETTINGS)
}

#[test]
fn another_layout_is_named_on_both_sides() {
    let joined = mistaken(|place| place.layout[2] = 9);
    assert!(matches!(joined[0], Err(JoinError::Layout(NodeId(1)))), "{joined:?}");
    assert!(matches!(joined[1], Err(JoinError::Layout(NodeId(0)))), "{joined:?}");
}

#[test]
fn another_number_of_nodes_is_named_on_both_sides() {
    let (_listener, third) = listeners(1);
    let joined = mistaken(|place| place.addresses.extend(third));
    assert!(matches!(joined[0], Err(JoinError::NodeCount(NodeId(1), 3))), "{joined:?}");
    assert!(matches!(joined[1], Err(JoinError::NodeCount(NodeId(0), 2))), "{joined:?}");
}

#[test]
fn the_second_node_of_a_rank_is_named_on_both_sides() {
    let (listeners, addresses) = listeners(3);
    let mut places = clusters(&addresses);
    places[2].me = NodeId(1);
    thread::scope(|scope| {
        let first = scope.spawn(|| Tcp::join_by(&places[0], SETTINGS, &listeners[0]));
        // One of the two joins, and waits for a third node until its time is up.
        let twins: Vec<_> = places[1..]
            .iter()
            .zip(&listeners[1..])
            .map(|(place, listener)| {
                let place = Cluster { join_within: Duration::from_millis(100), ..place.clone() };
                scope.spawn(move || Tcp::join_by(&place, SETTINGS, listener))
            })
            .collect();
        let first = first.join().unwrap();
        assert!(matches!(first, Err(JoinError::DuplicateRank(NodeId(1)))), "{first:?}");
        let twins: Vec<_> = twins.into_iter().map(|twin| twin.join().unwrap()).collect();
        let is_duplicate =
            |twin: &&Joined| matches!(twin, Err(JoinError::DuplicateRank(NodeId(0))));
        assert_eq!(twins.iter().filter(is_duplicate).count(), 1, "{twins:?}");
    });
}

#[test]
fn a_node_without_the_secret_is_refused_with_the_reason_and_keeps_no_node_out() {
    let (listeners, addresses) = listeners(2);
    let places = clusters(&addresses);
    let ignorant = Cluster { secret: Secret::random().unwrap(), ..places[1].clone() };
    thread::scope(|scope| {
        let first = scope.spawn(|| Tcp::join_by(&places[0], SETTINGS, &listeners[0]));
        let refused = Tcp::join_by(&ignorant, SETTINGS, &listeners[1]);
        assert!(matches!(refused, Err(JoinError::WrongSecret(NodeId(0)))), "{refused:?}");
        let second = Tcp::join_by(&places[1], SETTINGS, &listeners[1]);
        assert!(second.is_ok(), "{second:?}");
        assert!(first.join().unwrap().is_ok());
    });
}

#[test]
fn another_version_is_named() {
    let (listeners, addresses) = listeners(2);
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut places = clusters(&addresses);
    places[1].addresses[0] = relay.local_addr().unwrap();
    places[0].join_within = Duration::from_millis(100);
    thread::scope(|scope| {
        let newer = scope.spawn(|| Tcp::join_by(&places[1], SETTINGS, &listeners[1]));
        let (mut from_newer, _) = relay.accept().unwrap();
        let mut to_node = TcpStream::connect(addresses[0]).unwrap();
        let mut hello = read_letter(&mut from_newer);
        // After the kind of letter and six bytes of magic.
        hello[7] += 1;
        write_letter(&mut to_node, &hello);
        let first = scope.spawn(|| Tcp::join_by(&places[0], SETTINGS, &listeners[0]));
        pass_letter(&mut to_node, &mut from_newer);
        let newer = newer.join().unwrap();
        assert!(matches!(newer, Err(JoinError::Version(NodeId(0), VERSION))), "{newer:?}");
        let first = first.join().unwrap().unwrap_err().to_string();
        assert!(
            first.contains("in time: 1; a connection was rejected: it speaks another"),
            "{first}"
        );
    });
}

#[test]
fn nodes_that_are_missing_or_unreachable_are_named() {
    let (listeners, addresses) = listeners(3);
    let mut place = clusters(&addresses).remove(0);
    place.join_within = Duration::from_millis(1);
    let missing = Tcp::join_by(&place, SETTINGS, &listeners[0]).unwrap_err();
    assert_eq!(missing.to_string(), "nodes that did not join in time: 1, 2");
    let mut place = clusters(&addresses).remove(1);
    place.join_within = Duration::from_millis(1);
    // No process listens at the first port, which needs privileges.
    place.addresses[0].set_port(1);
    let unreachable = Tcp::join_by(&place, SETTINGS, &listeners[1]).unwrap_err();
    assert!(matches!(unreachable, JoinError::Unreachable(NodeId(0), ..)), "{unreachable:?}");
    place.addresses.truncate(1);
    assert!(matches!(Tcp::join_by(&place, SETTINGS, &listeners[1]), Err(JoinError::Size(1))));
}

#[test]
fn a_port_in_use_is_named() {
    let (_listeners, addresses) = listeners(2);
    let place = clusters(&addresses).remove(0);
    let why = Tcp::join(&place, SETTINGS).unwrap_err();
    assert!(matches!(why, JoinError::Listen(at, _) if at == addresses[0]), "{why:?}");
    assert!(why.to_string().contains("choose another port"));
}

#[test]
fn strangers_are_rejected_and_keep_no_node_out() {
    let (listeners, addresses) = listeners(2);
    let places = clusters(&addresses);
    for hello in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xFF; 300], &[5, 0, 1, 2, 3, 4, 5]] {
        let mut stranger = TcpStream::connect(addresses[0]).unwrap();
        stranger.write_all(hello).unwrap();
    }
    let joined = join_all(&places, &listeners, SETTINGS);
    assert!(joined.iter().all(Result::is_ok), "{joined:?}");
}

#[test]
fn secrets_are_read_as_they_are_written() {
    let secret = Secret::random().unwrap();
    assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret.clone()));
    assert_eq!(format!("{secret:?}"), "Secret(..)");
    for wrong in ["", "12", &"g".repeat(64), &"1".repeat(63), &"1".repeat(66)] {
        assert_eq!(Secret::from_hex(wrong), None, "{wrong}");
    }
}
