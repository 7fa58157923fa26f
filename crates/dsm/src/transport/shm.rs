//! Shared memory: rings between nodes of one machine, and a bell a node for who sleeps.
//!
//! ```text
//!   memory (memfd):  [ node 0: looking, asleep, rung, core | node 1 .. | ring 0 to 0 | ring 0 to 1 | .. ]
//!   ring:            [ tail: bytes put in | head: bytes taken, stuck | 64 KiB ]
//!
//!   write: bytes, tail ── does nobody look there? ──> ring its bell      read: bytes, head ── is the writer stuck? ──> ring its bell
//! ```
//!
//! A thread that calls looks at the rings from the begin of its call to its end. While one looks, nobody rings: a message then takes no system
//! call. Nor does one that may wait ([`Urgency::WhenWaiting`]), unless somebody waits there. Who looks anyway, and was answered without a bell before, waits
//! a little for that before it rings: two programs that call all the time wake nobody. Who has nothing to do but wait looks for a
//! while before it sleeps, where each node has a core. Another node that was last seen on the same one would be kept from answering: one of the
//! two goes to a free core, else it sleeps. The bell is an event counter that both waiting threads sleep on ([`super::readiness`]). Beside each
//! pair of rings stands the TCP connection over which the two nodes met: it proves who they are, and ends with its process, which is how a death
//! is noticed. Nothing is sent over it.
//!
//! All nodes map all rings. They belong to one user, who started them: each could as well look into the others' memory by other means. What is
//! found there is an allegation all the same: copied first, then checked, as what comes by TCP.
//!
//! **Invariant:** who stops looking looks once more afterwards, and who was rung for takes that back before it looks. Who sends has put the bytes
//! in before it asks whether somebody looks. So one of the two sees the other. Bells that were not rung are, before who looks stops.

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
use crate::transport::handshake::News;
use crate::transport::readiness::Readiness;
use crate::transport::{Cluster, JoinError, TcpSettings, Urgency, Waiter};
use memory::{Broken, RING_BYTES, Ring};

pub use memory::{SHM_NODES_MAX, Shared};

/// Who calls looks for so long before it sleeps, where every node has a core: some times what a peer takes to answer. It does not yield its core
/// meanwhile: the host might give that to others for milliseconds.
const LOOK_FOR: Duration = Duration::from_micros(200);
/// Looks before bells are rung that need perhaps not be: some 10 µs.
const LOOKS_BEFORE_BELL: u32 = 256;
/// Looks between two looks at the clock.
const LOOKS_A_CLOCK: u32 = 16;

/// One node's end of the rings between it and the others.
#[derive(Debug)]
pub struct Shm(Connections<Rings>);

#[derive(Debug)]
struct Rings {
    me: NodeId,
    shared: Shared,
    peers: Vec<Beside>,
    readiness: Readiness,
    /// The thread that calls is to end its wait.
    roused: AtomicBool,
    look_for: Duration,
    /// Looks until bells are rung that were not yet; 0: there are none.
    bells_in: AtomicU32,
}

/// A peer, and the connection beside its rings.
#[derive(Debug)]
struct Beside {
    node: NodeId,
    stream: TcpStream,
    /// Something happened to the connection: nothing but its end can.
    disturbed: AtomicBool,
    /// It was found to have ended.
    ended: AtomicBool,
    ignored: AtomicBool,
    /// It took the last bytes, or was about to, without a bell.
    lively: AtomicBool,
    /// Bytes were put in that it may not know of.
    unrung: AtomicBool,
}

impl Shm {
    /// Listens at this node's own address and takes its place.
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

    /// Takes its place with a socket that listens already.
    ///
    /// # Errors
    /// [`JoinError`]; [`JoinError::Size`] also where `shared` is for another number of nodes.
    pub fn join_by(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
        shared: Shared,
    ) -> Result<Self, JoinError> {
        Self::join_while(cluster, settings, listener, shared, &|| Ok(()))
    }

    /// The same, until there are news that make it vain.
    pub(crate) fn join_while(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
        shared: Shared,
        news: News<'_>,
    ) -> Result<Self, JoinError> {
        let nodes = cluster.addresses.len();
        if nodes != shared.nodes() {
            return Err(JoinError::Size(nodes));
        }
        let readiness = Readiness::new()?;
        let mut peers = Vec::new();
        for (node, stream) in cluster.connect(listener, news)? {
            stream.set_nonblocking(true)?;
            readiness.add(peers.len(), &stream)?;
            let [disturbed, ended, ignored, lively, unrung] = [false; 5].map(AtomicBool::new);
            peers.push(Beside { node, stream, disturbed, ended, ignored, lively, unrung });
        }
        // Behind the places of all peers.
        readiness.add(peers.len(), shared.bell(cluster.me))?;
        let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        // Who looks takes the core from a peer that would answer, where there are not enough.
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

    /// Whether a peer has said something, can be told more, or is gone.
    fn has_news(&self, place: usize) -> bool {
        let peer = &self.peers[place];
        if peer.ignored.load(Ordering::Relaxed) {
            return false;
        }
        let (from, to) = (self.from(place).filled(), self.to(place).filled());
        let (Ok(heard), Ok(said)) = (from, to) else { return true };
        let has_room = || said < RING_BYTES && self.to(place).stuck().load(Ordering::Relaxed) == 1;
        heard > 0 || peer.disturbed.load(Ordering::Relaxed) || has_room()
    }

    /// Tells of all peers that have news; whether there is any.
    fn look(&self, each: &mut impl FnMut(usize)) -> bool {
        let mut found = false;
        for place in (0..self.peers.len()).filter(|&place| self.has_news(place)) {
            found = true;
            each(place);
        }
        found
    }

    /// Sees to it that a peer looks at what was put in, behind a fence: at once, or soon, where a thread here looks until then.
    fn tell(&self, place: usize) {
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

    /// Rings the bells of peers that have not taken all yet.
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

    /// One look less until bells are rung.
    fn count_look(&self) {
        let left = self.bells_in.load(Ordering::Relaxed);
        if left > 1 {
            self.bells_in.store(left - 1, Ordering::Relaxed);
        } else if left == 1 {
            self.ring_bells();
        }
    }

    /// Whether another node's program is on this core, as far as is known, and stays there.
    fn shares_core(&self) -> bool {
        let here = self.note_core();
        let beside = |peer: &&Beside| self.shared.core(peer.node).load(Ordering::Relaxed) == here;
        let beside: Vec<_> = self.peers.iter().filter(beside).collect();
        // One of two goes: who comes later in the order.
        let goes = beside.iter().any(|peer| peer.node < self.me);
        !beside.is_empty() && (!goes || !self.go_elsewhere())
    }

    /// Notes the core that this thread is on, and tells it.
    fn note_core(&self) -> u32 {
        let core = scheduling::current_cpu() as u32 + 1;
        self.shared.core(self.me).store(core, Ordering::Relaxed);
        core
    }

    /// Moves this thread to a core where no node is, if there is one that it may use; whether it did. The host leaves a thread that was woken by
    /// another on that one's core, though others be free, and the two of them keep each other from running.
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
        // It has only been sent: it may go where it could before.
        went && scheduling::set_affinity(me, &allowed).is_ok()
    }

    /// Looks for a while; whether there is something to be done.
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

    /// A thread that calls looks no more; what it owes others is done, and it looks once more.
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

    /// Whether a connection has ended. Nothing is sent over it, so whatever else comes is nonsense.
    fn has_ended(&self, place: usize) -> io::Result<bool> {
        let peer = &self.peers[place];
        if peer.disturbed.swap(false, Ordering::Relaxed) && !peer.ended.load(Ordering::Relaxed) {
            match (&peer.stream).read(&mut [0]) {
                Ok(0) => peer.ended.store(true, Ordering::Relaxed),
                Ok(_) => return Err(Broken.into()),
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
            // Who takes something out from now on rings; there may be room already.
            ring.stuck().store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            count = ring.put(bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        ring.stuck().store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // What may wait is not in the way of what may not.
        let may_wait = urgency == Urgency::WhenWaiting && ring.filled()? <= RING_BYTES / 2;
        let waiting = self.shared.waiting(self.peers[place].node);
        if !may_wait || waiting.load(Ordering::SeqCst) > 0 {
            self.tell(place);
        }
        Ok(count)
    }

    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<usize> {
        let ring = self.from(place);
        // Where it has broken the other one, that is told here as well.
        self.to(place).filled()?;
        let mut count = ring.take(into)?;
        if count == 0 {
            if !self.has_ended(place)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // What a peer put in before its end is here by now.
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
        // It fails where the connection has ended, which is as well.
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
