//! Connections over a medium that a test controls.

use core::time::Duration;
use std::io;
use std::sync::{Arc, mpsc};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use kyocho_sys::prim::thread;

use super::{Connections, Medium, READS_MAX, Silence};
use crate::address::NodeId;
use crate::transport::credit::{Incoming, Outgoing, Received};
use crate::transport::{Arrival, TcpSettings, Transport, Urgency, Waiter};

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);
const BYTES_MAX: usize = 1 << 20;

/// Peer 0 sends heartbeats without end, peer 1 one message.
#[derive(Debug, Default)]
struct Flood {
    reads: [AtomicUsize; 2],
    written: [AtomicUsize; 2],
    waits: AtomicUsize,
    rouses: AtomicUsize,
}

/// The bytes that a peer sends.
fn sent(send: impl FnOnce(&mut Outgoing)) -> Vec<u8> {
    let mut out = Outgoing::new(BYTES_MAX);
    send(&mut out);
    out.ready().to_vec()
}

impl Medium for Flood {
    fn write(&self, place: usize, bytes: &[u8], _urgency: Urgency) -> io::Result<usize> {
        self.written[place].fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<usize> {
        let reads = self.reads[place].fetch_add(1, Ordering::Relaxed);
        assert!(reads < 100 * READS_MAX, "it reads without end");
        let bytes = match (place, reads) {
            (0, _) => sent(Outgoing::alive),
            (_, 0) => sent(|out| out.message(b"hello").expect("it is short")),
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        };
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn finish(&self, _place: usize) {}

    fn lose(&self, _place: usize) {}

    fn ignore(&self, _place: usize) {}

    fn wait(&self, _waiter: Waiter, _timeout: Duration, _each: impl FnMut(usize)) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    fn rouse(&self, waiter: Waiter) {
        assert_eq!(waiter, Waiter::Service);
        self.rouses.fetch_add(1, Ordering::Relaxed);
    }
}

fn flooded(deadline: Duration) -> Connections<Flood> {
    let settings =
        TcpSettings { deadline, message_bytes_max: BYTES_MAX, queue_bytes_max: BYTES_MAX };
    Connections::new(&[NodeId(1), NodeId(2)], 3, settings, Flood::default())
}

#[test]
fn a_peer_that_sends_without_end_delays_no_other() {
    let connections = flooded(WATCHDOG);
    let hello = Arrival::Message(NodeId(2), b"hello".to_vec());
    assert_eq!(Transport::take(&connections), [hello]);
    let medium = connections.medium();
    assert_eq!(medium.reads[0].load(Ordering::Relaxed), READS_MAX);
    assert_eq!(medium.rouses.load(Ordering::Relaxed), 1, "the service thread reads on");
    assert!(connections.wait(Waiter::Service, WATCHDOG));
    assert_eq!(medium.waits.load(Ordering::Relaxed), 0, "there is something to read");
    assert_eq!(Transport::take(&connections), []);
    assert_eq!(medium.reads[0].load(Ordering::Relaxed), 2 * READS_MAX);
    assert_eq!(medium.reads[1].load(Ordering::Relaxed), 2, "it had sent all");
}

#[test]
fn heartbeats_wait_for_no_thread_that_receives() {
    let connections = Arc::new(flooded(Duration::ZERO));
    let receiving = connections.receiver();
    let (done, is_done) = mpsc::channel();
    let sending = connections.clone();
    drop(thread::spawn(move || {
        let every = sending.send_heartbeats();
        done.send(every).expect("the test waits");
    }));
    assert_eq!(is_done.recv_timeout(WATCHDOG), Ok(Some(Duration::ZERO)));
    drop(receiving);
    let heartbeat = sent(Outgoing::alive).len();
    let written = connections.medium().written.each_ref();
    assert!(written.iter().all(|bytes| bytes.load(Ordering::Relaxed) >= heartbeat), "{written:?}");
}

#[test]
fn a_heartbeat_is_no_message() {
    let mut received = Vec::new();
    let taken = Incoming::new(BYTES_MAX).take(&sent(Outgoing::alive), |one| received.push(one));
    assert_eq!((taken, received), (Ok(()), Vec::<Received>::new()));
}

#[test]
fn the_time_in_which_a_node_did_not_run_is_not_its_peers_silence() {
    const MOST: Duration = Duration::from_secs(2);
    let second = Duration::from_secs(1);
    let mut silence = Silence::default();
    assert_eq!(silence.lasts(second, MOST), second);
    assert_eq!(silence.lasts(60 * second, MOST), 3 * second, "this node slept for a minute");
    assert_eq!(silence.lasts(second, MOST), 4 * second);
    silence.break_off();
    assert_eq!(silence.lasts(60 * second, MOST), Duration::ZERO, "something came");
    assert_eq!(silence.lasts(second, MOST), second);
}
