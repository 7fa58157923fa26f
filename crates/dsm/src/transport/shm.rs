//! Shared memory: rings between the nodes of one machine, and one event counter (*bell*) per node,
//! on which its threads sleep.
//!
//! ```text
//!   memory (memfd): [ node 0: looking, rung, core, waiting | node 1 .. | rings 0 to 0, 0 to 1 .. ]
//!   ring:           [ tail: bytes put in | head: bytes taken, stuck | 64 KiB ]
//!
//!   write: bytes, tail ── does no thread poll there? ──> ring its bell
//!   read:  bytes, head ── is the writer stuck? ──> ring its bell
//! ```
//!
//! A calling thread polls the rings from the beginning of its call to its end. No bell is rung for
//! a node that polls, so a message to it takes no system call. A message that may wait
//! ([`Urgency::WhenWaiting`]) rings no bell either, unless the receiver waits for messages. A
//! sender that polls itself, and was answered without a bell before, delays the bell: two programs
//! that call all the time wake no thread.
//!
//! A thread that only waits polls for a while before it sleeps, if each node has a core. If another
//! node was last seen on the same core, it could not answer meanwhile. Then one of the two moves to
//! a free core, or this one sleeps. Both waiting threads of a node sleep on its bell
//! ([`super::readiness`]).
//!
//! Beside each pair of rings is the TCP connection by which the two nodes met. It authenticates
//! them, and ends with its process, which is how a death is noticed. No data is sent over it.
//!
//! All nodes map all rings. They belong to one user, who could inspect their memory by other means
//! as well. What is read from a ring is an allegation all the same: it is copied first and then
//! checked, like bytes from TCP.
//!
//! **Invariant:** a thread that stops polling polls once more afterwards; a thread that was woken
//! resets `rung` before it polls. A sender puts the bytes in before it checks whether the receiver
//! polls. So one of the two sees the other. Delayed bells are rung before the thread stops polling.

mod memory;

use core::time::Duration;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};

use kyocho_sys::prim::atomic::unmodelled::{AtomicBool, AtomicU32, Ordering, fence};
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::hint;
use kyocho_sys::scheduling::{self, CpuSet};
use kyocho_sys::task::ThreadId;

use crate::address::NodeId;
use crate::transport::connections::{Connections, Medium, transport_by_connections};
use crate::transport::handshake::LaunchCheck;
use crate::transport::readiness::Readiness;
use crate::transport::{Cluster, JoinError, TcpSettings, Urgency, Waiter};
use memory::{Corrupt, RING_BYTES, Ring};

pub use memory::{SHM_NODES_MAX, Shared};

/// How long a calling thread polls before it sleeps, if every node has a core: several times the
/// time that a peer takes to answer. It does not yield its core meanwhile, because the host might
/// give it to others for milliseconds.
const LOOK_FOR: Duration = Duration::from_micros(200);
/// Polls before delayed bells are rung: some 10 µs.
const LOOKS_BEFORE_BELL: u32 = 256;
/// Polls between two looks at the clock.
const LOOKS_A_CLOCK: u32 = 16;

/// One node's ends of its rings.
#[derive(Debug)]
pub struct Shm(Connections<Rings>);

#[derive(Debug)]
struct Rings {
    me: NodeId,
    shared: Shared,
    peers: Vec<RingPeer>,
    readiness: Readiness,
    /// The calling thread must stop waiting.
    roused: AtomicBool,
    look_for: Duration,
    /// Polls until delayed bells are rung; 0 if there are none.
    bells_in: AtomicU32,
}

/// A peer, and the connection beside its rings.
#[derive(Debug)]
struct RingPeer {
    node: NodeId,
    stream: TcpStream,
    /// Something happened to the connection, which can only be its end.
    disturbed: AtomicBool,
    /// The connection has ended.
    ended: AtomicBool,
    ignored: AtomicBool,
    /// The peer took the last bytes without a bell, or was about to.
    lively: AtomicBool,
    /// Bytes were put in whose bell is delayed.
    unrung: AtomicBool,
}

impl Shm {
    /// Joins the cluster, listening at this node's own address.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(
        cluster: &Cluster,
        settings: TcpSettings,
        shared: Shared,
    ) -> Result<Self, JoinError> {
        Self::join_by(cluster, settings, &cluster.listen()?, shared)
    }

    /// Joins the cluster with a socket that already listens.
    ///
    /// # Errors
    /// [`JoinError`]; [`JoinError::Size`] also if `shared` is for another number of nodes.
    pub fn join_by(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
        shared: Shared,
    ) -> Result<Self, JoinError> {
        Self::join_while(cluster, settings, listener, shared, &|| Ok(()))
    }

    /// Joins the cluster. Stops if `check` returns an error.
    pub(crate) fn join_while(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
        shared: Shared,
        check: LaunchCheck<'_>,
    ) -> Result<Self, JoinError> {
        let nodes = cluster.addresses.len();
        if nodes != shared.nodes() {
            return Err(JoinError::Size(nodes));
        }
        let readiness = Readiness::new()?;
        let mut peers = Vec::new();
        for (node, stream) in cluster.connect(listener, check)? {
            stream.set_nonblocking(true)?;
            readiness.add(peers.len(), &stream)?;
            let [disturbed, ended, ignored, lively, unrung] = [false; 5].map(AtomicBool::new);
            peers.push(RingPeer { node, stream, disturbed, ended, ignored, lively, unrung });
        }
        // After the indices of all peers.
        readiness.add(peers.len(), shared.bell(cluster.me))?;
        let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        // With too few cores, a polling thread would take the core from the peer that is to answer.
        let look_for = if nodes <= cores { LOOK_FOR } else { Duration::ZERO };
        let names: Vec<_> = peers.iter().map(|peer| peer.node).collect();
        let me = cluster.me;
        let (roused, bells_in) = (AtomicBool::new(false), AtomicU32::new(0));
        let rings = Rings { me, shared, peers, readiness, roused, look_for, bells_in };
        Ok(Self(Connections::new(&names, nodes, settings, rings)))
    }
}

impl Rings {
    fn to(&self, place: usize) -> Ring<'_> {
        self.shared.ring(self.me, self.peers[place].node)
    }

    fn from(&self, place: usize) -> Ring<'_> {
        self.shared.ring(self.peers[place].node, self.me)
    }

    /// Whether a peer has sent something, accepts more, or is gone.
    fn has_event(&self, place: usize) -> bool {
        let peer = &self.peers[place];
        if peer.ignored.load(Ordering::Relaxed) {
            return false;
        }
        let (from, to) = (self.from(place).filled(), self.to(place).filled());
        let (Ok(unread), Ok(unsent)) = (from, to) else { return true };
        let has_room =
            || unsent < RING_BYTES && self.to(place).stuck().load(Ordering::Relaxed) == 1;
        unread > 0 || peer.disturbed.load(Ordering::Relaxed) || has_room()
    }

    /// Reports all peers with an event. Returns whether there are any.
    fn look(&self, each: &mut impl FnMut(usize)) -> bool {
        let mut found = false;
        for place in (0..self.peers.len()).filter(|&place| self.has_event(place)) {
            found = true;
            each(place);
        }
        found
    }

    /// Makes a peer look at what was put in: at once, or later if a thread of this node polls until
    /// then. Call it after a fence.
    fn notify(&self, place: usize) {
        let peer = &self.peers[place];
        if self.shared.looks(peer.node) {
            return peer.lively.store(true, Ordering::Relaxed);
        }
        let may_be_soon = peer.lively.load(Ordering::Relaxed) && !self.look_for.is_zero();
        if !may_be_soon || !self.shared.looks(self.me) {
            return self.shared.call(peer.node);
        }
        peer.unrung.store(true, Ordering::SeqCst);
        let count = (LOOKS_BEFORE_BELL, Ordering::SeqCst);
        let _begun = self.bells_in.compare_exchange(0, count.0, count.1, count.1);
        fence(Ordering::SeqCst);
        if !self.shared.looks(self.me) {
            self.ring_bells();
        }
    }

    /// Rings the delayed bells of peers that have not taken everything yet.
    fn ring_bells(&self) {
        self.bells_in.store(0, Ordering::SeqCst);
        for (place, peer) in self.peers.iter().enumerate() {
            let unrung =
                peer.unrung.load(Ordering::SeqCst) && peer.unrung.swap(false, Ordering::SeqCst);
            if unrung && self.to(place).filled().is_ok_and(|said| said > 0) {
                peer.lively.store(self.shared.looks(peer.node), Ordering::Relaxed);
                self.shared.call(peer.node);
            }
        }
    }

    /// Counts a poll, and rings delayed bells in time.
    fn count_look(&self) {
        let left = self.bells_in.load(Ordering::Relaxed);
        if left > 1 {
            self.bells_in.store(left - 1, Ordering::Relaxed);
        } else if left == 1 {
            self.ring_bells();
        }
    }

    /// Whether this thread shares its core with another node's program, as far as is known. If this
    /// node has the higher rank, the thread first tries to move to another core.
    fn shares_core(&self) -> bool {
        let here = self.note_core();
        let beside = |peer: &&RingPeer| self.shared.core(peer.node).load(Ordering::Relaxed) == here;
        let beside: Vec<_> = self.peers.iter().filter(beside).collect();
        // Of two nodes, the one of the higher rank moves.
        let goes = beside.iter().any(|peer| peer.node < self.me);
        !beside.is_empty() && (!goes || !self.go_elsewhere())
    }

    /// Publishes the core that this thread is on, and returns it.
    fn note_core(&self) -> u32 {
        let core = scheduling::current_cpu() as u32 + 1;
        self.shared.core(self.me).store(core, Ordering::Relaxed);
        core
    }

    /// Moves this thread to a permitted core where no node is. Returns whether it has moved. The
    /// host leaves a woken thread on the core of the thread that woke it, even if others are free,
    /// and the two then keep each other from running.
    fn go_elsewhere(&self) -> bool {
        let me = ThreadId::current();
        let Ok(allowed) = scheduling::affinity(me) else { return false };
        let taken = |cpu: &usize| {
            let core = *cpu as u32 + 1;
            self.peers
                .iter()
                .any(|peer| self.shared.core(peer.node).load(Ordering::Relaxed) == core)
        };
        let Some(free) = allowed.iter().find(|cpu| !taken(cpu)) else { return false };
        let went = scheduling::set_affinity(me, &CpuSet::single(free)).is_ok();
        self.note_core();
        // The old affinity is restored: the thread may move again.
        went && scheduling::set_affinity(me, &allowed).is_ok()
    }

    /// Polls for a while. Returns whether there is something to do.
    fn look_hard(&self, limit: Duration, each: &mut impl FnMut(usize)) -> bool {
        let begun = Instant::now();
        for looks in 1_u32.. {
            if self.look(each) || self.roused.swap(false, Ordering::SeqCst) {
                return true;
            }
            let is_time = (looks - 1).is_multiple_of(LOOKS_A_CLOCK);
            if is_time && (begun.elapsed() >= limit || self.shares_core()) {
                break;
            }
            self.count_look();
            hint::spin_loop();
        }
        false
    }

    /// A calling thread stops polling. This rings delayed bells; the thread must poll once more
    /// afterwards.
    fn stop_looking(&self) {
        self.shared.looking(self.me).fetch_sub(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.ring_bells();
    }

    /// Sleeps until the bell rings, or something happens to a connection.
    fn sleep(&self, waiter: Waiter, timeout: Duration) {
        self.readiness.wait(waiter, timeout, |place| {
            if let Some(peer) = self.peers.get(place) {
                peer.disturbed.store(true, Ordering::Relaxed);
            }
        });
        self.shared.rung(self.me).store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether a connection has ended. No data is sent over it, so data is a violation.
    fn has_ended(&self, place: usize) -> io::Result<bool> {
        let peer = &self.peers[place];
        if peer.disturbed.swap(false, Ordering::Relaxed) && !peer.ended.load(Ordering::Relaxed) {
            match (&peer.stream).read(&mut [0]) {
                Ok(0) => peer.ended.store(true, Ordering::Relaxed),
                Ok(_) => return Err(Corrupt.into()),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => peer.ended.store(true, Ordering::Relaxed),
            }
        }
        Ok(peer.ended.load(Ordering::Relaxed))
    }
}

impl Medium for Rings {
    fn write(&self, place: usize, bytes: &[u8], urgency: Urgency) -> io::Result<usize> {
        let ring = self.to(place);
        let mut count = ring.put(bytes)?;
        if count == 0 {
            // The peer rings when it takes something; there may be room already.
            ring.stuck().store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            count = ring.put(bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        ring.stuck().store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // A message that may wait must leave room for urgent ones.
        let may_wait = urgency == Urgency::WhenWaiting && ring.filled()? <= RING_BYTES / 2;
        let waiting = self.shared.waiting(self.peers[place].node);
        if !may_wait || waiting.load(Ordering::SeqCst) > 0 {
            self.notify(place);
        }
        Ok(count)
    }

    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<usize> {
        let ring = self.from(place);
        // If the peer has broken the other ring, that is reported here as well.
        self.to(place).filled()?;
        let mut count = ring.take(into)?;
        if count == 0 {
            if !self.has_ended(place)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // What a peer put in before its end has arrived by now.
            count = ring.take(into)?;
        }
        fence(Ordering::SeqCst);
        if ring.stuck().load(Ordering::SeqCst) == 1 {
            self.shared.call(self.peers[place].node);
        }
        Ok(count)
    }

    fn finish(&self, place: usize) {
        self.to(place).stuck().store(0, Ordering::Relaxed);
        // It fails if the connection has ended already.
        let _ended = self.peers[place].stream.shutdown(Shutdown::Write);
    }

    fn lose(&self, place: usize) {
        let _ended = self.peers[place].stream.shutdown(Shutdown::Both);
        self.ignore(place);
    }

    fn ignore(&self, place: usize) {
        self.peers[place].ignored.store(true, Ordering::Relaxed);
    }

    fn begin_call(&self) {
        self.shared.looking(self.me).fetch_add(1, Ordering::SeqCst);
    }

    fn end_call(&self, mut each: impl FnMut(usize)) {
        self.stop_looking();
        self.look(&mut each);
    }

    fn hurry(&self, on: bool) {
        let waiting = self.shared.waiting(self.me);
        if on {
            waiting.fetch_add(1, Ordering::SeqCst);
        } else {
            waiting.fetch_sub(1, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
    }

    fn wait(&self, waiter: Waiter, timeout: Duration, mut each: impl FnMut(usize)) {
        let is_caller = waiter == Waiter::Caller;
        if is_caller && self.look_hard(timeout.min(self.look_for), &mut each) {
            return;
        }
        if is_caller {
            self.shared.waiting(self.me).fetch_add(1, Ordering::SeqCst);
            self.stop_looking();
        }
        if !self.look(&mut each) {
            self.sleep(waiter, timeout);
            self.look(&mut each);
        }
        if is_caller {
            self.shared.looking(self.me).fetch_add(1, Ordering::SeqCst);
            self.shared.waiting(self.me).fetch_sub(1, Ordering::SeqCst);
            if !self.look_for.is_zero() {
                self.shares_core();
            }
        }
    }

    fn rouse(&self, waiter: Waiter) {
        if waiter == Waiter::Caller {
            self.roused.store(true, Ordering::SeqCst);
        }
        self.readiness.rouse(waiter);
    }
}

transport_by_connections!(Shm);

#[cfg(test)]
mod tests;
