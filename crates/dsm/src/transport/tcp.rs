//! TCP: one connection a pair, sent to by whoever has something to say, received from by one thread at a time.
//!
//! ```text
//!   send: queue ── as much as the socket takes ──> socket          take: readable ──> messages, credit
//!            └── the rest, when writable ──^                └─ nothing for long ──> Lost
//! ```
//!
//! **Lock order:** the receiver, then one peer's queue; a sender takes a queue alone.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_sys::prim::atomic::unmodelled::{AtomicBool, AtomicU64, Ordering};
use kyocho_sys::prim::clock::Instant;

use crate::address::NodeId;
use crate::transport::credit::{Incoming, Outgoing, Received};
use crate::transport::readiness::Readiness;
use crate::transport::{Arrival, Cause, Cluster, JoinError, Traffic, Transport, Waiter};

/// Bytes read from a socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// Who closes reads so long at most what is still sent to it.
const LINGER: Duration = Duration::from_millis(500);

/// Bounds.
#[derive(Debug, Clone, Copy)]
pub struct TcpSettings {
    /// Silence of a peer that means death. A living one speaks four times as often.
    pub deadline: Duration,
    /// Bytes of one message at most; a peer that sends more is lost.
    pub message_bytes_max: usize,
    /// Bytes that may wait for one peer; when it takes less, it is lost.
    pub queue_bytes_max: usize,
}

#[derive(Debug)]
struct Peer {
    node: NodeId,
    stream: TcpStream,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    out: Outgoing,
    spoke: Instant,
    /// It gets nothing any more; why, until that was told.
    over: bool,
    untold: Option<Cause>,
}

impl Peer {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what the socket takes now.
    fn push(&self, queue: &mut Queue) {
        while !queue.over && !queue.out.ready().is_empty() {
            match (&self.stream).write(queue.out.ready()) {
                Ok(bytes) => {
                    queue.out.sent(bytes);
                    queue.spoke = Instant::now();
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                // Reading tells what came of it: there may be a goodbye.
                Err(_) => queue.over = true,
            }
        }
    }

    /// Gives a sign of life when nothing was said for so long; whether its death is known here, and not told.
    fn breathe(&self, now: Instant, every: Duration) -> bool {
        let mut queue = self.queue();
        if !queue.over && now.saturating_duration_since(queue.spoke) >= every {
            queue.out.alive();
            // Also where the socket takes nothing: not to queue another at once.
            queue.spoke = now;
            self.push(&mut queue);
        }
        queue.untold.is_some()
    }
}

/// What the receiving thread knows of a peer.
#[derive(Debug)]
struct Hearing {
    input: Incoming,
    heard: Instant,
    over: bool,
}

#[derive(Debug)]
struct Receiver {
    hearing: Vec<Hearing>,
    /// At these something happened.
    ready: BTreeSet<usize>,
    look_next: Instant,
    buffer: Vec<u8>,
}

/// Connections to all other nodes.
#[derive(Debug)]
pub struct Tcp {
    peers: Vec<Peer>,
    /// By rank: the place in `peers`.
    places: Vec<Option<usize>>,
    settings: TcpSettings,
    readiness: Readiness,
    receiver: Mutex<Receiver>,
    /// There is a peer whose death was noticed in sending.
    congested: AtomicBool,
    closed: AtomicBool,
    traffic: [AtomicU64; 4],
}

impl Tcp {
    /// Listens at this node's own address and takes its place.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(cluster: &Cluster, settings: TcpSettings) -> Result<Self, JoinError> {
        let none = || JoinError::Size(cluster.addresses.len());
        let at = *cluster.addresses.get(usize::from(cluster.me.0)).ok_or_else(none)?;
        let listener = TcpListener::bind(at).map_err(|why| JoinError::Listen(at, why))?;
        Self::join_by(cluster, settings, &listener)
    }

    /// Takes its place with a socket that listens already.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join_by(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
    ) -> Result<Self, JoinError> {
        let streams = cluster.connect(listener)?;
        let readiness = Readiness::new()?;
        let mut peers = Vec::new();
        let mut places = vec![None; cluster.addresses.len()];
        let now = Instant::now();
        for (node, stream) in streams {
            stream.set_nonblocking(true)?;
            readiness.add(peers.len(), &stream)?;
            let out = Outgoing::new(settings.queue_bytes_max);
            let queue = Mutex::new(Queue { out, spoke: now, over: false, untold: None });
            places[usize::from(node.0)] = Some(peers.len());
            peers.push(Peer { node, stream, queue });
        }
        let hearing = peers.iter().map(|_| Hearing {
            input: Incoming::new(settings.message_bytes_max),
            heard: now,
            over: false,
        });
        let hearing = hearing.collect();
        // What came with the handshake's last bytes.
        let ready = (0..peers.len()).collect();
        let receiver = Receiver { hearing, ready, look_next: now, buffer: vec![0; READ_BYTES] };
        Ok(Self {
            peers,
            places,
            settings,
            readiness,
            receiver: Mutex::new(receiver),
            congested: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            traffic: Default::default(),
        })
    }

    /// Where a peer is.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn peer_address(&self, node: NodeId) -> io::Result<SocketAddr> {
        let place = self.places.get(usize::from(node.0)).copied().flatten();
        let place = place.ok_or(io::ErrorKind::NotFound)?;
        self.peers[place].stream.peer_addr()
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the clock is looked at: twice between two signs of life.
    fn look_every(&self) -> Duration {
        self.settings.deadline / 8
    }

    fn count(&self, which: usize, amount: u64) {
        self.traffic[which].fetch_add(amount, Ordering::Relaxed);
    }

    /// Reads all that a peer has sent.
    fn hear(&self, receiver: &mut Receiver, place: usize, arrivals: &mut Vec<Arrival>) {
        let Receiver { hearing, buffer, .. } = receiver;
        let (peer, hearing) = (&self.peers[place], &mut hearing[place]);
        while !hearing.over {
            match (&peer.stream).read(buffer) {
                Ok(0) => self.lose(peer, hearing, Cause::Closed, arrivals),
                Ok(bytes) => {
                    hearing.heard = Instant::now();
                    self.take(peer, hearing, &buffer[..bytes], arrivals);
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.lose(peer, hearing, Cause::Closed, arrivals),
            }
        }
    }

    fn take(&self, peer: &Peer, hearing: &mut Hearing, bytes: &[u8], arrivals: &mut Vec<Arrival>) {
        let (mut credit, mut goodbye) = (0_usize, false);
        let taken = hearing.input.take(bytes, |received| match received {
            Received::Message(message) => {
                self.count(2, 1);
                self.count(3, message.len() as u64);
                arrivals.push(Arrival::Message(peer.node, message));
            }
            Received::Credit(bytes) => credit = credit.saturating_add(bytes),
            Received::Goodbye => goodbye = true,
        });
        if taken.is_err() {
            return self.lose(peer, hearing, Cause::Nonsense, arrivals);
        }
        if goodbye {
            hearing.over = true;
            arrivals.push(Arrival::Left(peer.node));
            return;
        }
        let owed = hearing.input.owed();
        if credit > 0 || owed.is_some() {
            let mut queue = peer.queue();
            queue.out.credited(credit);
            owed.into_iter().for_each(|bytes| queue.out.give_credit(bytes));
            peer.push(&mut queue);
        }
    }

    fn lose(&self, peer: &Peer, hearing: &mut Hearing, cause: Cause, arrivals: &mut Vec<Arrival>) {
        hearing.over = true;
        let mut queue = peer.queue();
        queue.over = true;
        let cause = queue.untold.take().unwrap_or(cause);
        // It fails where the connection has ended, which is as well.
        let _ended = peer.stream.shutdown(Shutdown::Both);
        arrivals.push(Arrival::Lost(peer.node, cause));
    }

    /// Reads what peers still send, until they end as well. A socket that is closed with unread bytes makes the peer forget
    /// what it has not read, which may say who died first.
    fn linger(&self) {
        let mut receiver = self.receiver();
        let until = Instant::now() + LINGER;
        let mut unheeded = Vec::new();
        while receiver.hearing.iter().any(|hearing| !hearing.over) && Instant::now() < until {
            (0..self.peers.len()).for_each(|place| self.hear(&mut receiver, place, &mut unheeded));
            unheeded.clear();
            let left = until.saturating_duration_since(Instant::now());
            // All are looked at, whatever it tells.
            self.readiness.wait(Waiter::Caller, left.min(LINGER / 10), |_| {});
        }
    }

    /// Gives signs of life, and notices where there are none.
    fn look_at_clock(&self, receiver: &mut Receiver, arrivals: &mut Vec<Arrival>) {
        let now = Instant::now();
        if now < receiver.look_next && !self.congested.swap(false, Ordering::AcqRel) {
            return;
        }
        receiver.look_next = now + self.look_every();
        let deadline = self.settings.deadline;
        for (peer, hearing) in self.peers.iter().zip(&mut receiver.hearing) {
            let untold = peer.breathe(now, deadline / 4);
            if hearing.over {
                continue;
            }
            if untold {
                self.lose(peer, hearing, Cause::Congested, arrivals);
            } else if now.saturating_duration_since(hearing.heard) > deadline {
                self.lose(peer, hearing, Cause::Silent, arrivals);
            }
        }
    }
}

impl Transport for Tcp {
    fn send(&self, to: NodeId, message: &[u8]) {
        let Some(peer) = self.places[usize::from(to.0)].map(|place| &self.peers[place]) else {
            return;
        };
        let mut queue = peer.queue();
        if queue.over {
            return;
        }
        if queue.out.message(message).is_err() {
            (queue.over, queue.untold) = (true, Some(Cause::Congested));
            self.congested.store(true, Ordering::Release);
            return self.readiness.rouse(Waiter::Service);
        }
        self.count(0, 1);
        self.count(1, message.len() as u64);
        peer.push(&mut queue);
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        let timeout = match waiter {
            Waiter::Caller => timeout,
            Waiter::Service => timeout.min(self.look_every()),
        };
        let mut ready = BTreeSet::new();
        if !self.closed.load(Ordering::Acquire) {
            self.readiness.wait(waiter, timeout, |place| ready.extend([place]));
        }
        if !ready.is_empty() {
            self.receiver().ready.append(&mut ready);
        }
        !self.closed.load(Ordering::Acquire)
    }

    fn take(&self) -> Vec<Arrival> {
        let mut receiver = self.receiver();
        let mut arrivals = Vec::new();
        for place in core::mem::take(&mut receiver.ready) {
            self.hear(&mut receiver, place, &mut arrivals);
            let peer = &self.peers[place];
            peer.push(&mut peer.queue());
        }
        self.look_at_clock(&mut receiver, &mut arrivals);
        // What this node ended itself is no news.
        if self.closed.load(Ordering::Acquire) { Vec::new() } else { arrivals }
    }

    fn rouse(&self) {
        self.readiness.rouse(Waiter::Caller);
    }

    fn leave(&self) {
        for peer in &self.peers {
            let mut queue = peer.queue();
            queue.out.goodbye();
            peer.push(&mut queue);
        }
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        for peer in &self.peers {
            let mut queue = peer.queue();
            peer.push(&mut queue);
            queue.over = true;
            // It fails where the connection has ended, which is as well.
            let _ended = peer.stream.shutdown(Shutdown::Write);
        }
        [Waiter::Caller, Waiter::Service]
            .into_iter()
            .for_each(|waiter| self.readiness.rouse(waiter));
        self.linger();
    }

    fn traffic(&self) -> Traffic {
        let [messages_sent, bytes_sent, messages_received, bytes_received] =
            self.traffic.each_ref().map(|count| count.load(Ordering::Relaxed));
        Traffic { messages_sent, bytes_sent, messages_received, bytes_received }
    }
}
