//! MPI: connects the processes of one job, started by `mpirun` or Slurm, over any network that MPI
//! supports. Feature `mpi`.
//!
//! ```text
//!   send: frames that have credit ──> MPI_Isend        take: MPI_Improbe ──> messages, credit
//!            └── the rest, when credit arrives ──^                └─ silence ──> Lost
//! ```
//!
//! Frames, credit and heartbeats are those of TCP. MPI does not notify of arrivals. A calling
//! thread polls without a pause at first ([`LOOK_HARD`]), then with short pauses. The service
//! thread polls at intervals, and not while a calling thread waits. MPI has no connections either.
//! The death of a peer shows as silence, or `mpirun` ends the job first, as it does by default.

mod port;

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_sys::prim::atomic::unmodelled::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::{hint, thread};

use crate::address::NodeId;
use crate::transport::credit::{FRAME_MAX, Incoming, Outgoing, Received};
use crate::transport::handshake::NODES_MAX;
use crate::transport::{Arrival, Cause, JoinError, TcpSettings, Traffic, Transport, Waiter};
use crate::wire::VERSION;
use port::{Kind, Port};

/// Bytes of a stream in one MPI message, at most.
const PIECE_MAX: usize = 2 * FRAME_MAX;
/// How long a calling thread polls without sleeping; afterwards it sleeps between polls.
const LOOK_HARD: Duration = Duration::from_millis(2);
/// Polls between two yields: some 20 µs. The host may give milliseconds to other threads.
const LOOKS_A_YIELD: u32 = 100;
const CALLER_PAUSE: Duration = Duration::from_micros(50);
/// Sleeps of the service thread, which grow while nothing arrives.
const SERVICE_PAUSES: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(200)];
/// When the job ends, how long to wait for unfinished sends.
const LINGER: Duration = Duration::from_millis(500);

/// The first message of every process.
type Hello = [u64; 5];

#[derive(Debug)]
struct Peer {
    node: NodeId,
    out: Outgoing,
    input: Incoming,
    spoke: Instant,
    last_received: Instant,
    /// The peer gets nothing more.
    is_lost: bool,
    /// How the peer has ended.
    over: Option<Arrival>,
    traffic: Traffic,
}

#[derive(Debug)]
struct State {
    port: Port,
    /// By rank, without this process.
    peers: Vec<Peer>,
    /// What the next call of `take` reports.
    untold: Vec<Arrival>,
    look_next: Instant,
    left: bool,
}

/// One process of an MPI job.
#[derive(Debug)]
pub struct Mpi {
    me: NodeId,
    nodes: u16,
    settings: TcpSettings,
    state: Mutex<State>,
    caller_waits: AtomicBool,
    roused: AtomicBool,
    closed: AtomicBool,
}

impl Mpi {
    /// Joins the job; a process that was started without `mpirun` is a job of one. Blocks until all
    /// have joined, for at most `join_within`. Call once per process, on the thread that will
    /// leave: MPI must be finalised by the thread that initialised it.
    ///
    /// # Errors
    /// [`JoinError::Mpi`], [`JoinError::Size`]; [`JoinError::Missing`], [`JoinError::Version`] or
    /// [`JoinError::Layout`] of a peer.
    pub fn join(
        layout: [u64; 4],
        join_within: Duration,
        settings: TcpSettings,
    ) -> Result<Self, JoinError> {
        let (port, rank, size) = Port::begin().ok_or(JoinError::Mpi)?;
        if size as usize > NODES_MAX {
            return Err(JoinError::Size(size as usize));
        }
        let (me, nodes, now) = (NodeId(rank as u16), size as u16, Instant::now());
        let peer = |node| Peer {
            node,
            out: Outgoing::new(settings.queue_bytes_max),
            input: Incoming::new(settings.message_bytes_max),
            spoke: now,
            last_received: now,
            is_lost: false,
            over: None,
            traffic: Traffic::default(),
        };
        let peers = (0..nodes).map(NodeId).filter(|node| *node != me).map(peer).collect();
        let mut state = State { port, peers, untold: Vec::new(), look_next: now, left: false };
        let [pages, locks, scheme, other] = layout;
        state.greet([u64::from(VERSION), pages, locks, scheme, other], now + join_within)?;
        Ok(Self {
            me,
            nodes,
            settings,
            state: Mutex::new(state),
            caller_waits: AtomicBool::new(false),
            roused: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        })
    }

    /// This process's rank.
    #[must_use]
    pub fn rank(&self) -> NodeId {
        self.me
    }

    /// Number of processes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Interval at which silence is checked: half of that between heartbeats.
    fn look_every(&self) -> Duration {
        self.settings.deadline / 8
    }

    /// Whether this thread has to poll. The service thread need not while a calling thread waits.
    fn is_mine(&self, waiter: Waiter) -> bool {
        waiter == Waiter::Caller || !self.caller_waits.load(Ordering::Acquire)
    }

    fn wait_for_event(&self, waiter: Waiter, timeout: Duration) -> bool {
        let begun = Instant::now();
        let [mut pause, pause_max] = SERVICE_PAUSES;
        for look in 1_u32.. {
            let is_roused = waiter == Waiter::Caller && self.roused.swap(false, Ordering::AcqRel);
            if self.is_closed() || is_roused || self.is_mine(waiter) && self.lock().has_event() {
                return !self.is_closed();
            }
            let waited = begun.elapsed();
            if waited >= timeout {
                return true;
            }
            match waiter {
                Waiter::Caller if waited < LOOK_HARD && !look.is_multiple_of(LOOKS_A_YIELD) => {
                    hint::spin_loop();
                }
                Waiter::Caller if waited < LOOK_HARD => thread::yield_now(),
                Waiter::Caller => thread::park_timeout(CALLER_PAUSE),
                Waiter::Service => {
                    thread::park_timeout(pause);
                    pause = (2 * pause).min(pause_max);
                }
            }
        }
        true
    }
}

impl State {
    /// Exchanges first messages with all others.
    fn greet(&mut self, mine: Hello, until: Instant) -> Result<(), JoinError> {
        let bytes: Vec<u8> = mine.iter().flat_map(|number| number.to_le_bytes()).collect();
        for peer in &self.peers {
            self.port.send(peer.node, Kind::Hello, &bytes);
        }
        let mut missing: Vec<_> = self.peers.iter().map(|peer| peer.node).collect();
        let mut wrong = None;
        while !missing.is_empty() || !self.port.settle() {
            match self.port.receive() {
                // A faster peer has sent more already, which is processed when all have joined.
                Some((from, Some(Kind::Stream), bytes)) => self.receive(from, &bytes),
                Some((from, kind, theirs)) => {
                    missing.retain(|node| *node != from);
                    wrong = wrong.or(mistake(from, kind, &bytes, &theirs));
                }
                None if Instant::now() >= until => return Err(JoinError::Missing(missing, None)),
                None => thread::yield_now(),
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    fn peer(&mut self, node: NodeId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.node == node)
    }

    fn has_event(&self) -> bool {
        !self.untold.is_empty() || self.port.has_more()
    }

    /// Sends what has credit to a peer.
    fn push(&mut self, to: NodeId) {
        let Self { port, peers, .. } = self;
        let Some(peer) = peers.iter_mut().find(|peer| peer.node == to && !peer.is_lost) else {
            return;
        };
        while !peer.out.ready().is_empty() {
            let ready = peer.out.ready();
            let bytes = ready.len().min(PIECE_MAX);
            port.send(to, Kind::Stream, &ready[..bytes]);
            peer.out.sent(bytes);
            peer.spoke = Instant::now();
        }
    }

    /// Processes what has arrived on a peer's stream.
    fn receive(&mut self, from: NodeId, bytes: &[u8]) {
        let (mut arrivals, mut credit, mut goodbye) = (Vec::new(), 0_usize, false);
        let Some(peer) = self.peer(from).filter(|peer| peer.over.is_none()) else { return };
        peer.last_received = Instant::now();
        let Peer { input, traffic, .. } = &mut *peer;
        let taken = input.take(bytes, |received| match received {
            Received::Message(message) => {
                traffic.received(&message);
                arrivals.push(Arrival::Message(from, message));
            }
            Received::Credit(bytes) => credit = credit.saturating_add(bytes),
            Received::Goodbye => goodbye = true,
        });
        peer.out.credited(credit);
        let owed = peer.input.owed();
        owed.into_iter().for_each(|bytes| peer.out.give_credit(bytes));
        self.untold.append(&mut arrivals);
        if taken.is_err() {
            self.over(from, Arrival::Lost(from, Cause::InvalidMessage));
        } else if goodbye {
            self.over(from, Arrival::Left(from));
        }
        self.push(from);
    }

    /// A peer's stream has ended.
    fn over(&mut self, node: NodeId, how: Arrival) {
        let Some(peer) = self.peer(node).filter(|peer| peer.over.is_none()) else { return };
        // A peer that has left may still wait for goodbyes.
        peer.is_lost |= matches!(how, Arrival::Lost(..));
        peer.over = Some(how.clone());
        self.untold.push(how);
    }

    /// Processes everything that has arrived.
    fn receive_all(&mut self) {
        while let Some((from, kind, bytes)) = self.port.receive() {
            match kind {
                Some(Kind::Stream) => self.receive(from, &bytes),
                Some(Kind::Closed) => self.over(from, Arrival::Lost(from, Cause::Closed)),
                Some(Kind::Hello) | None => {
                    self.over(from, Arrival::Lost(from, Cause::InvalidMessage))
                }
            }
        }
        self.port.settle();
    }

    /// Sends heartbeats, and reports peers that are silent for too long.
    fn look_at_clock(&mut self, now: Instant, deadline: Duration) {
        let mut speak = Vec::new();
        let mut silent = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| !peer.is_lost) {
            if now.saturating_duration_since(peer.spoke) >= deadline / 4 {
                peer.out.alive();
                speak.push(peer.node);
            }
            if peer.over.is_none() && now.saturating_duration_since(peer.last_received) > deadline {
                silent.push(peer.node);
            }
        }
        speak.into_iter().for_each(|node| self.push(node));
        silent.into_iter().for_each(|node| self.over(node, Arrival::Lost(node, Cause::Silent)));
    }

    /// Whether all peers have said goodbye.
    fn all_left(&self) -> bool {
        self.peers.iter().all(|peer| matches!(peer.over, Some(Arrival::Left(_))))
    }
}

/// Why a peer with this first message is rejected.
fn mistake(from: NodeId, kind: Option<Kind>, mine: &[u8], theirs: &[u8]) -> Option<JoinError> {
    if kind != Some(Kind::Hello) {
        return Some(JoinError::Missing(vec![from], None));
    }
    let version = theirs.first_chunk().map(|version| u64::from_le_bytes(*version));
    match version {
        Some(version) if version == u64::from(VERSION) => {
            (mine != theirs).then_some(JoinError::Layout(from))
        }
        other => Some(JoinError::Version(from, other.unwrap_or(0) as u16)),
    }
}

impl Transport for Mpi {
    fn send(&self, to: NodeId, message: &[u8]) {
        let mut state = self.lock();
        let Some(peer) = state.peer(to).filter(|peer| !peer.is_lost) else { return };
        if peer.out.message(message).is_err() {
            return state.over(to, Arrival::Lost(to, Cause::Congested));
        }
        peer.traffic.sent(message);
        state.push(to);
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        match waiter {
            Waiter::Caller => {
                self.caller_waits.store(true, Ordering::Release);
                let is_open = self.wait_for_event(waiter, timeout);
                self.caller_waits.store(false, Ordering::Release);
                is_open
            }
            Waiter::Service => self.wait_for_event(waiter, timeout.min(self.look_every())),
        }
    }

    fn take(&self) -> Vec<Arrival> {
        let mut state = self.lock();
        state.receive_all();
        let now = Instant::now();
        if now >= state.look_next {
            state.look_next = now + self.look_every();
            state.look_at_clock(now, self.settings.deadline);
        }
        let arrivals = core::mem::take(&mut state.untold);
        // The end of a job that this node has ended is not reported.
        if self.is_closed() { Vec::new() } else { arrivals }
    }

    fn rouse(&self) {
        self.roused.store(true, Ordering::Release);
    }

    fn is_full(&self) -> bool {
        self.lock().peers.iter().any(|peer| !peer.is_lost && peer.out.is_full())
    }

    fn leave(&self) {
        let mut state = self.lock();
        if core::mem::replace(&mut state.left, true) {
            return;
        }
        state.peers.iter_mut().for_each(|peer| peer.out.goodbye());
        for at in 0..state.peers.len() {
            let node = state.peers[at].node;
            state.push(node);
        }
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.lock();
        if !state.left {
            for at in 0..state.peers.len() {
                let node = state.peers[at].node;
                state.port.send(node, Kind::Closed, &[]);
            }
        }
        // What others send meanwhile must be received, or their sends and these wait for each
        // other.
        let until = Instant::now() + LINGER;
        while !state.port.settle() && Instant::now() < until {
            state.receive_all();
            thread::yield_now();
        }
        let together = state.left && state.all_left();
        state.port.end(together);
    }

    fn bound(&self, (message_bytes_max, queue_bytes_max): (usize, usize)) {
        for peer in &mut self.lock().peers {
            peer.input.bound(message_bytes_max);
            peer.out.bound(queue_bytes_max);
        }
    }

    fn traffic(&self) -> Traffic {
        self.lock().peers.iter().map(|peer| peer.traffic).sum()
    }

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.lock().peer(peer).map_or_else(Traffic::default, |peer| peer.traffic)
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.close();
    }
}
