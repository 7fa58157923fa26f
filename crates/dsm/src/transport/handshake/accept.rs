//! The accepting side. All connections are served side by side, so that none delays another.
//!
//! ```text
//!   accepted ── Hello ──> (answered by Hello) ── Proof ──> (answered by Proof) connected
//!      └──────────────── one deadline for both ─────────┘      otherwise dropped
//! ```
//!
//! At most [`PENDING_MAX`] connections are pending. If more arrive, the oldest one that has not
//! sent a hello is dropped first, because connecting costs a stranger nothing. A node whose
//! connection is dropped tries again.

use core::time::Duration;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use hmac::Mac;
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::messages::{HandshakeMessage, Hello, Reading, both, is_early, write};
use super::{
    ACCEPTOR, CONNECTOR, Cluster, EXCHANGE, JoinError, LaunchCheck, MAGIC, RETRY_AFTER, Refusal,
    SLICE, refused,
};
use crate::address::NodeId;
use crate::wire::VERSION;

/// Pending connections, at most.
const PENDING_MAX: usize = 256;

/// What is wrong with a connection.
enum Rejection {
    /// A stranger: it is ignored.
    Stranger(Refusal),
    /// It knows the secret: the cluster cannot form as it was launched.
    Member(JoinError),
}

impl From<Refusal> for Rejection {
    fn from(why: Refusal) -> Self {
        Self::Stranger(why)
    }
}

impl From<io::Error> for Rejection {
    fn from(_went_away: io::Error) -> Self {
        Self::Stranger(Refusal::Stranger)
    }
}

/// A connection whose peer has not proved its membership.
struct Pending {
    stream: TcpStream,
    until: Instant,
    reading: Reading,
    /// Both hellos, once they have been exchanged.
    hellos: Option<(Hello, Hello)>,
}

type Streams = Vec<(NodeId, TcpStream)>;

impl Pending {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (until, reading) = (Instant::now() + EXCHANGE, Reading::default());
        Ok(Self { stream, until, reading, hellos: None })
    }

    /// Processes what has arrived. Returns the peer's rank once it has proved its membership.
    fn process(
        &mut self,
        cluster: &Cluster,
        present: &Streams,
    ) -> Result<Option<NodeId>, Rejection> {
        loop {
            let message = match self.reading.read(&mut self.stream) {
                Err(why) if is_early(&why) => return Ok(None),
                answer => answer?,
            };
            let Some(message) = message else { continue };
            match (message, self.hellos.take()) {
                (HandshakeMessage::Hello(theirs), None) => self.greet(cluster, theirs)?,
                (HandshakeMessage::Proof(proof), Some(hellos)) => {
                    return self.prove(cluster, present, &proof, hellos).map(Some);
                }
                _ => return Err(Refusal::Stranger.into()),
            }
        }
    }

    fn greet(&mut self, cluster: &Cluster, theirs: Hello) -> Result<(), Rejection> {
        let mine = cluster.hello()?;
        if theirs.magic != MAGIC {
            return Err(Refusal::Stranger.into());
        }
        if theirs.version != VERSION {
            write(&mut self.stream, &HandshakeMessage::Refused(Refusal::Version, mine))?;
            return Err(Refusal::Version.into());
        }
        write(&mut self.stream, &HandshakeMessage::Hello(mine.clone()))?;
        self.hellos = Some((theirs, mine));
        Ok(())
    }

    fn prove(
        &mut self,
        cluster: &Cluster,
        present: &Streams,
        proof: &[u8; 32],
        (theirs, mine): (Hello, Hello),
    ) -> Result<NodeId, Rejection> {
        let hellos = both(&theirs, &mine)?;
        if cluster.secret.proof(CONNECTOR, &hellos).verify_slice(proof).is_err() {
            write(&mut self.stream, &HandshakeMessage::Refused(Refusal::Secret, mine))?;
            return Err(Refusal::Secret.into());
        }
        if let Some(why) = cluster.mistake_of(&theirs, present) {
            write(&mut self.stream, &HandshakeMessage::Refused(why, mine))?;
            return Err(Rejection::Member(refused(NodeId(theirs.rank), why, &theirs)));
        }
        let proof = cluster.secret.proof(ACCEPTOR, &hellos).finalize().into_bytes().into();
        write(&mut self.stream, &HandshakeMessage::Proof(proof))?;
        Ok(NodeId(theirs.rank))
    }
}

/// Drops the oldest stranger, or the oldest connection if all have sent a hello.
fn drop_one(pending: &mut Vec<Pending>) {
    let stranger = pending.iter().position(|one| one.hellos.is_none());
    if !pending.is_empty() {
        pending.remove(stranger.unwrap_or(0));
    }
}

/// Accepts all waiting connections. Returns whether there were any.
fn accept_all(listener: &TcpListener, pending: &mut Vec<Pending>) -> bool {
    let mut found = false;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                found = true;
                if pending.len() >= PENDING_MAX {
                    drop_one(pending);
                }
                pending.extend(Pending::new(stream));
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if is_early(&why) => return found,
            // It has gone already, or there is no descriptor left for it.
            Err(_) => {
                drop_one(pending);
                thread::park_timeout(RETRY_AFTER);
                return found;
            }
        }
    }
}

/// Waits until a peer connects or sends something, at most for `limit`.
fn wait(listener: &TcpListener, pending: &[Pending], limit: Duration) {
    let all = [listener.as_fd()].into_iter().chain(pending.iter().map(|one| one.stream.as_fd()));
    let mut all: Vec<_> = all.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
    let limit = Timespec::try_from(limit).ok();
    // A signal interrupted the wait; the caller checks all connections.
    let _early = poll(&mut all, limit.as_ref());
}

impl Cluster {
    /// Accepts connections until all higher ranks have joined. A peer that does not know the secret
    /// gets the reason and is disconnected.
    pub(super) fn accept(
        &self,
        listener: &TcpListener,
        until: Instant,
        streams: &mut Streams,
        check: LaunchCheck<'_>,
    ) -> Result<(), JoinError> {
        listener.set_nonblocking(true)?;
        let (mut pending, mut refusal) = (Vec::new(), None);
        while streams.len() + 1 < self.addresses.len() {
            check()?;
            let found = accept_all(listener, &mut pending);
            let mut still = Vec::new();
            for mut one in pending {
                match one.process(self, streams) {
                    Ok(Some(peer)) => streams.push((peer, one.stream)),
                    Ok(None) if one.until > Instant::now() => still.push(one),
                    Ok(None) => refusal = Some(Refusal::Stranger),
                    Err(Rejection::Stranger(why)) => refusal = Some(why),
                    Err(Rejection::Member(why)) => return Err(why),
                }
            }
            pending = still;
            let now = Instant::now();
            // A peer that is connected already is served even after the deadline.
            if now >= until && ((pending.is_empty() && !found) || now >= until + EXCHANGE) {
                return Err(JoinError::Missing(self.missing(streams), refusal));
            }
            if streams.len() + 1 < self.addresses.len() {
                let next =
                    pending.iter().map(|one| one.until).chain([until]).filter(|at| *at > now);
                let left = next.min().map(|at| at.saturating_duration_since(now));
                wait(listener, &pending, left.unwrap_or(SLICE).min(SLICE));
            }
        }
        Ok(())
    }

    fn missing(&self, present: &Streams) -> Vec<NodeId> {
        let all = (self.me.0 + 1..self.addresses.len() as u16).map(NodeId);
        all.filter(|node| present.iter().all(|(peer, _)| peer != node)).collect()
    }
}
