//! Byte streams to all other nodes, one per pair. Any thread sends; one thread at a time receives.
//!
//! ```text
//!   send: queue ── as much as the medium accepts ──> peer  take: bytes arrived ─> messages, credit
//!            └── the rest, when it accepts more ──^              └─ silence ──> Lost
//! ```
//!
//! The bytes travel by a [`Medium`]: sockets ([`super::Tcp`]) or rings in memory ([`super::Shm`]).
//!
//! **Lock order:** the receiver, then one peer's queue. A sender locks a queue alone.

mod counts;
mod delegate;
mod peer;
mod silence;

use core::fmt;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_sys::prim::atomic::unmodelled::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::clock::Instant;

use crate::address::NodeId;
use crate::transport::credit::{Incoming, Outgoing, Received};
use crate::transport::{Arrival, Cause, TcpSettings, Traffic, Transport, Urgency, Waiter};
use peer::Peer;
use silence::Silence;

pub(super) use delegate::transport_by_connections;

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Reads from one peer in a row, at most. A peer that sends without pause delays neither the other
/// peers nor the clock.
const READS_MAX: usize = 64;

/// When connections are closed, how long to read what peers still send.
const LINGER: Duration = Duration::from_millis(500);

/// Carries bytes to and from peers, which are named by index. Only [`Medium::wait`] blocks.
pub(super) trait Medium: fmt::Debug + Send + Sync {
    /// Sends as many bytes as the medium accepts now. The urgency only tells when the peer has to
    /// be woken for them.
    ///
    /// # Errors
    /// `WouldBlock`: none are accepted now. Others: the peer is gone.
    fn write(&self, place: usize, bytes: &[u8], urgency: Urgency) -> io::Result<usize>;

    /// Reads what has arrived; 0 bytes are the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock`: nothing has arrived. `InvalidData`: the peer has violated the protocol.
    /// Others: it is gone.
    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<usize>;

    /// Ends the outgoing stream.
    fn finish(&self, place: usize);

    /// Ends both streams.
    fn lose(&self, place: usize);

    /// Reads nothing more from a peer, which has said goodbye.
    fn ignore(&self, place: usize);

    /// As [`Transport::begin_call`].
    fn begin_call(&self) {}

    /// As [`Transport::end_call`]; calls `each` as [`Self::wait`] does.
    fn end_call(&self, _each: impl FnMut(usize)) {}

    /// As [`Transport::hurry`].
    fn hurry(&self, _on: bool) {}

    /// Waits, and calls `each` with the index of every peer that has sent something, or accepts
    /// more, since the last report. May return without a reason.
    fn wait(&self, waiter: Waiter, timeout: Duration, each: impl FnMut(usize));

    /// Ends the wait of such a thread, or its next one.
    fn rouse(&self, waiter: Waiter);
}

/// The receiver's state of a peer.
#[derive(Debug)]
struct PeerInput {
    input: Incoming,
    silence: Silence,
    over: bool,
}

/// Whether a peer may have sent more than was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    Nothing,
    Perhaps,
}

#[derive(Debug)]
struct Receiver {
    hearing: Vec<PeerInput>,
    /// Peers that have to be read.
    ready: BTreeSet<usize>,
    /// When the silence of peers was last checked.
    looked: Instant,
    buffer: Vec<u8>,
}

/// Byte streams to all other nodes.
#[derive(Debug)]
pub(super) struct Connections<M> {
    peers: Vec<Peer>,
    /// Number of peers whose queues are full.
    full: Arc<AtomicUsize>,
    /// Index in `peers`, by rank.
    places: Vec<Option<usize>>,
    settings: TcpSettings,
    medium: M,
    receiver: Mutex<Receiver>,
    /// Some peers were not read to the end.
    is_behind: AtomicBool,
    /// The loss of some peer was noticed in sending, and must be reported.
    congested: AtomicBool,
    closed: AtomicBool,
}

impl<M: Medium> Connections<M> {
    /// Streams to `peers`, by index, in a cluster of so many nodes.
    pub(super) fn new(peers: &[NodeId], nodes: usize, settings: TcpSettings, medium: M) -> Self {
        let now = Instant::now();
        let mut places = vec![None; nodes];
        for (place, node) in peers.iter().enumerate() {
            places[usize::from(node.0)] = Some(place);
        }
        let full = Arc::new(AtomicUsize::new(0));
        let peer = |(place, node): (usize, &NodeId)| {
            Peer::new(*node, place, Outgoing::new(settings.queue_bytes_max), full.clone())
        };
        let hearing = peers.iter().map(|_| PeerInput {
            input: Incoming::new(settings.message_bytes_max),
            silence: Silence::default(),
            over: false,
        });
        let hearing = hearing.collect();
        // Something may have arrived before the first wait.
        let ready = (0..peers.len()).collect();
        let receiver = Receiver { hearing, ready, looked: now, buffer: vec![0; READ_BYTES] };
        Self {
            peers: peers.iter().enumerate().map(peer).collect(),
            full,
            places,
            settings,
            medium,
            receiver: Mutex::new(receiver),
            is_behind: AtomicBool::new(false),
            congested: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn medium(&self) -> &M {
        &self.medium
    }

    /// The index of a peer.
    pub(super) fn place(&self, node: NodeId) -> Option<usize> {
        self.places.get(usize::from(node.0)).copied().flatten()
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interval at which silence is checked: half of that between heartbeats.
    fn look_every(&self) -> Duration {
        self.settings.deadline / 8
    }

    /// Reads what a peer has sent, with at most [`READS_MAX`] reads.
    fn read_peer(
        &self,
        receiver: &mut Receiver,
        place: usize,
        arrivals: &mut Vec<Arrival>,
    ) -> Unread {
        let Receiver { hearing, buffer, .. } = receiver;
        let (peer, hearing) = (&self.peers[place], &mut hearing[place]);
        for _ in 0..READS_MAX {
            if hearing.over {
                return Unread::Nothing;
            }
            match self.medium.read(place, buffer) {
                Ok(0) => self.lose(peer, hearing, Cause::Closed, arrivals),
                Ok(bytes) => {
                    hearing.silence.break_off();
                    self.take(peer, hearing, &buffer[..bytes], arrivals);
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Unread::Nothing,
                Err(why) if why.kind() == io::ErrorKind::InvalidData => {
                    self.lose(peer, hearing, Cause::InvalidMessage, arrivals);
                }
                Err(_) => self.lose(peer, hearing, Cause::Closed, arrivals),
            }
        }
        Unread::Perhaps
    }

    /// Reads what the peers in `ready` have sent. The next call continues with those that were not
    /// read to the end; the service thread is woken to make it.
    fn read_ready(&self, receiver: &mut Receiver, arrivals: &mut Vec<Arrival>) {
        for place in core::mem::take(&mut receiver.ready) {
            if self.read_peer(receiver, place, arrivals) == Unread::Perhaps {
                receiver.ready.insert(place);
            }
            let peer = &self.peers[place];
            peer.push(&self.medium, &mut peer.queue(), Urgency::Now);
        }
        let is_behind = !receiver.ready.is_empty();
        self.is_behind.store(is_behind, Ordering::Release);
        if is_behind {
            self.medium.rouse(Waiter::Service);
        }
    }

    fn take(
        &self,
        peer: &Peer,
        hearing: &mut PeerInput,
        bytes: &[u8],
        arrivals: &mut Vec<Arrival>,
    ) {
        let (mut credit, mut goodbye) = (0_usize, false);
        let taken = hearing.input.take(bytes, |received| match received {
            Received::Message(message) => {
                peer.counts.received(&message);
                arrivals.push(Arrival::Message(peer.node, message));
            }
            Received::Credit(bytes) => credit = credit.saturating_add(bytes),
            Received::Goodbye => goodbye = true,
        });
        if taken.is_err() {
            return self.lose(peer, hearing, Cause::InvalidMessage, arrivals);
        }
        if goodbye {
            hearing.over = true;
            self.medium.ignore(peer.place);
            arrivals.push(Arrival::Left(peer.node));
            return;
        }
        let owed = hearing.input.owed();
        if credit > 0 || owed.is_some() {
            let mut queue = peer.queue();
            queue.out.credited(credit);
            owed.into_iter().for_each(|bytes| queue.out.give_credit(bytes));
            peer.push(&self.medium, &mut queue, Urgency::Now);
        }
    }

    fn lose(
        &self,
        peer: &Peer,
        hearing: &mut PeerInput,
        cause: Cause,
        arrivals: &mut Vec<Arrival>,
    ) {
        hearing.over = true;
        let mut queue = peer.queue();
        queue.over = true;
        let cause = queue.unsent.take().unwrap_or(cause);
        self.medium.lose(peer.place);
        arrivals.push(Arrival::Lost(peer.node, cause));
    }

    /// Reads what peers still send, until they close as well. Otherwise a socket that is closed
    /// with unread bytes makes its peer discard bytes too, which may tell which node died first.
    fn linger(&self) {
        let mut receiver = self.receiver();
        let until = Instant::now() + LINGER;
        let mut unheeded = Vec::new();
        self.medium.begin_call();
        while receiver.hearing.iter().any(|hearing| !hearing.over) && Instant::now() < until {
            (0..self.peers.len()).for_each(|place| {
                // The next turn reads the rest.
                let _unread = self.read_peer(&mut receiver, place, &mut unheeded);
            });
            unheeded.clear();
            let left = until.saturating_duration_since(Instant::now());
            // All peers are read in any case.
            self.medium.wait(Waiter::Caller, left.min(LINGER / 10), |_| {});
        }
        self.medium.end_call(|_| {});
    }

    /// Sends heartbeats, and reports peers that are silent for too long.
    fn look_at_clock(&self, receiver: &mut Receiver, arrivals: &mut Vec<Arrival>) {
        let (now, every) = (Instant::now(), self.look_every());
        let passed = now.saturating_duration_since(receiver.looked);
        if passed < every && !self.congested.swap(false, Ordering::AcqRel) {
            return;
        }
        receiver.looked = now;
        let deadline = self.settings.deadline;
        for (peer, hearing) in self.peers.iter().zip(&mut receiver.hearing) {
            let unsent = peer.send_heartbeat(&self.medium, now, deadline / 4);
            if hearing.over {
                continue;
            }
            let silence = hearing.silence.lasts(passed, 2 * every);
            if unsent {
                self.lose(peer, hearing, Cause::Congested, arrivals);
            } else if silence > deadline {
                self.lose(peer, hearing, Cause::Silent, arrivals);
            }
        }
    }
}

impl<M: Medium> Transport for Connections<M> {
    fn send(&self, to: NodeId, message: &[u8]) {
        self.send_with(to, message, Urgency::Now);
    }

    fn send_with(&self, to: NodeId, message: &[u8], urgency: Urgency) {
        let Some(peer) = self.place(to).map(|place| &self.peers[place]) else { return };
        let mut queue = peer.queue();
        if queue.over {
            return;
        }
        if queue.out.message(message).is_err() {
            (queue.over, queue.unsent) = (true, Some(Cause::Congested));
            self.congested.store(true, Ordering::Release);
            return self.medium.rouse(Waiter::Service);
        }
        peer.counts.sent(message);
        peer.push(&self.medium, &mut queue, urgency);
    }

    fn begin_call(&self) {
        self.medium.begin_call();
    }

    fn end_call(&self) -> bool {
        let mut ready = BTreeSet::new();
        self.medium.end_call(|place| ready.extend([place]));
        let is_something = !ready.is_empty();
        if is_something {
            self.receiver().ready.append(&mut ready);
        }
        is_something
    }

    fn hurry(&self, on: bool) {
        self.medium.hurry(on);
    }

    fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire) > 0
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        let timeout = match waiter {
            Waiter::Caller => timeout,
            Waiter::Service => timeout.min(self.look_every()),
        };
        let mut ready = BTreeSet::new();
        let has_something = self.is_behind.load(Ordering::Acquire);
        if !has_something && !self.closed.load(Ordering::Acquire) {
            self.medium.wait(waiter, timeout, |place| ready.extend([place]));
        }
        if !ready.is_empty() {
            self.receiver().ready.append(&mut ready);
        }
        !self.closed.load(Ordering::Acquire)
    }

    fn take(&self) -> Vec<Arrival> {
        let mut receiver = self.receiver();
        let mut arrivals = Vec::new();
        self.read_ready(&mut receiver, &mut arrivals);
        self.look_at_clock(&mut receiver, &mut arrivals);
        // The end of connections that this node has closed is not reported.
        if self.closed.load(Ordering::Acquire) { Vec::new() } else { arrivals }
    }

    fn send_heartbeats(&self) -> Option<Duration> {
        let now = Instant::now();
        for peer in &self.peers {
            // The receiving thread reports a loss that is noticed here.
            let _unsent = peer.send_heartbeat(&self.medium, now, self.settings.deadline / 4);
        }
        Some(self.look_every())
    }

    fn rouse(&self) {
        self.medium.rouse(Waiter::Caller);
    }

    fn leave(&self) {
        for peer in &self.peers {
            let mut queue = peer.queue();
            queue.out.goodbye();
            peer.push(&self.medium, &mut queue, Urgency::Now);
        }
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        for peer in &self.peers {
            let mut queue = peer.queue();
            peer.push(&self.medium, &mut queue, Urgency::Now);
            queue.over = true;
            self.medium.finish(peer.place);
        }
        [Waiter::Caller, Waiter::Service].into_iter().for_each(|waiter| self.medium.rouse(waiter));
        self.linger();
    }

    fn bound(&self, (message_bytes_max, queue_bytes_max): (usize, usize)) {
        let mut receiver = self.receiver();
        for (peer, hearing) in self.peers.iter().zip(&mut receiver.hearing) {
            hearing.input.bound(message_bytes_max);
            peer.queue().out.bound(queue_bytes_max);
        }
    }

    fn traffic(&self) -> Traffic {
        self.peers.iter().map(|peer| peer.counts.read()).sum()
    }

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        let place = self.place(peer);
        place.map_or_else(Traffic::default, |place| self.peers[place].counts.read())
    }
}

#[cfg(test)]
mod tests;
