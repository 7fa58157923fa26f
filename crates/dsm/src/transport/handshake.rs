//! Authentication of nodes, and connections between them: one per pair.
//!
//! ```text
//!   higher rank                                             lower rank
//!       ── Hello {version, rank, nodes, layout, number} ──>
//!      <── Hello {the same of its own} ──
//!       ── Proof: HMAC-SHA256(secret, 1, both hellos) ──>
//!      <── Proof: HMAC-SHA256(secret, 2, both hellos) ──
//!
//!   After the hellos the lower rank refuses a wrong version, the higher rank a wrong rank. After
//!   the first proof the lower rank refuses a peer that does not know the secret, then a wrong
//!   count, layout or rank. After the second proof the higher rank refuses a peer that does not
//!   know the secret.
//! ```
//!
//! Both hellos contain a random number, so no proof can be replayed. The secret itself is never
//! sent. Later bytes are neither encrypted nor signed: the network between nodes is trusted with
//! the data, but not with membership.

mod accept;
mod messages;

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::net::{TcpListener, TcpStream};

use hmac::{Hmac, Mac};
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::thread;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::address::NodeId;
use crate::wire::VERSION;
use messages::{HandshakeMessage, Hello, both, read_until, write};

const MAGIC: [u8; 6] = *b"KYODSM";
/// Time limit of the accepting side for the whole handshake with a peer, and of the connecting side
/// for sending a message.
const EXCHANGE: Duration = Duration::from_secs(5);
/// Longest wait of a joining node between two launch checks.
const SLICE: Duration = Duration::from_millis(250);
const RETRY_AFTER: Duration = Duration::from_millis(20);
const CONNECTOR: u8 = 1;
const ACCEPTOR: u8 = 2;

/// Returns an error if joining has become pointless.
pub(super) type LaunchCheck<'a> = &'a dyn Fn() -> Result<(), JoinError>;

/// Why a handshake with a lower rank failed.
enum HandshakeError {
    /// The connection failed; another one may work.
    Gone(io::Error),
    /// One side refuses the other.
    Refused(JoinError),
}

impl From<io::Error> for HandshakeError {
    fn from(why: io::Error) -> Self {
        Self::Gone(why)
    }
}

impl From<JoinError> for HandshakeError {
    fn from(why: JoinError) -> Self {
        Self::Refused(why)
    }
}

/// A secret that only the nodes of a cluster know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Creates a random secret.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn random() -> io::Result<Self> {
        Ok(Self(random()?))
    }

    /// As 64 hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits: Vec<u32> =
            digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Some(Self(bytes))
    }

    fn proof(&self, side: u8, hellos: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(&[side]);
        mac.update(hellos);
        mac
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|why| io::Error::other(why.to_string()))?;
    Ok(bytes)
}

/// One node's place in a cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// This node.
    pub me: NodeId,
    /// Where each node listens, by rank.
    pub addresses: Vec<SocketAddr>,
    /// The secret of the cluster.
    pub secret: Secret,
    /// What all nodes must agree on beside their number: pages, locks and so on.
    pub layout: [u64; 4],
    /// Time limit until all nodes have joined.
    pub join_within: Duration,
}

/// Why a node cannot join.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// A peer has another secret, or none.
    WrongSecret(NodeId),
    /// A peer has another version of the protocol.
    Version(NodeId, u16),
    /// A peer expects another number of nodes.
    NodeCount(NodeId, u16),
    /// A peer has another layout: pages, locks, scheme.
    Layout(NodeId),
    /// A peer, or the process that listens at its address, does not have this rank.
    Rank(NodeId),
    /// There are two nodes with this rank.
    DuplicateRank(NodeId),
    /// It cannot be reached at its address: no process listens, or what listens is no node.
    Unreachable(NodeId, SocketAddr, io::Error),
    /// Nodes of these ranks did not join in time; and why the last stranger was rejected.
    Missing(Vec<NodeId>, Option<Refusal>),
    /// This node cannot listen at its address.
    Listen(SocketAddr, io::Error),
    /// There must be 1 to 4,096 nodes, including this one.
    Size(usize),
    /// A node ended before all had joined; and why it could not be reached, if that was tried.
    Ended(NodeId, Option<(SocketAddr, io::Error)>),
    /// The launcher has ended; this node would be left over.
    Launcher,
    /// MPI was initialised before in this process, or does not support calls from several threads.
    Mpi,
    /// An error of the host.
    Io(io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongSecret(NodeId(node)) => write!(
                f,
                "node {node} was started with another secret: start all nodes by the same `kyocho dsm run`"
            ),
            Self::Version(NodeId(node), version) => write!(
                f,
                "node {node} speaks version {version} of the protocol, this one {VERSION}: \
                 install one version everywhere"
            ),
            Self::NodeCount(NodeId(node), nodes) => {
                write!(f, "node {node} expects {nodes} nodes: start all with the same number")
            }
            Self::Layout(NodeId(node)) => write!(
                f,
                "node {node} has another size of memory, number of locks or scheme: \
                 start all with the same"
            ),
            Self::Rank(NodeId(node)) => {
                write!(f, "the process at the address of node {node} has another rank")
            }
            Self::DuplicateRank(NodeId(node)) => write!(f, "two nodes have rank {node}"),
            Self::Unreachable(NodeId(node), address, why) => {
                write!(f, "node {node} cannot be reached at {address}: {why}")
            }
            Self::Missing(nodes, refusal) => {
                let ranks: Vec<_> = nodes.iter().map(|node| node.0.to_string()).collect();
                write!(f, "nodes that did not join in time: {}", ranks.join(", "))?;
                refusal.map_or(Ok(()), |why| write!(f, "; a connection was rejected: {why}"))
            }
            Self::Listen(address, why) => {
                write!(f, "cannot listen at {address}: {why}; choose another port")
            }
            Self::Size(nodes) => write!(
                f,
                "{nodes} nodes are not possible: a cluster has 1 to 4096, each with a rank below their number"
            ),
            Self::Ended(NodeId(node), unreachable) => {
                write!(f, "node {node} ended before all nodes had joined")?;
                unreachable.as_ref().map_or(Ok(()), |(address, why)| {
                    write!(f, "; node {node} cannot be reached at {address}: {why}")
                })
            }
            Self::Launcher => f.write_str("the launcher of this node has ended"),
            Self::Mpi => f.write_str(
                "MPI was initialised before in this process, or cannot be called by several threads: \
                 join once, and do not initialise MPI yourself",
            ),
            Self::Io(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for JoinError {}

impl From<io::Error> for JoinError {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

/// Nodes of a cluster, at most.
pub(super) const NODES_MAX: usize = 4096;

/// Why a node was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// It does not know the secret.
    Secret,
    /// It has another version of the protocol.
    Version,
    /// It expects another number of nodes.
    NodeCount,
    /// It has another layout.
    Layout,
    /// Its rank is too large, or not expected on this connection.
    Rank,
    /// A node of that rank has already joined.
    DuplicateRank,
    /// It uses another protocol.
    Stranger,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "it does not know the secret",
            Self::Version => "it speaks another version of the protocol",
            Self::NodeCount => "it expects another number of nodes",
            Self::Layout => "it has another size of memory, number of locks or scheme",
            Self::Rank => "its rank was not expected",
            Self::DuplicateRank => "another node has its rank already",
            Self::Stranger => "it is no node",
        })
    }
}

impl Cluster {
    /// Listens at this node's own address.
    pub(crate) fn listen(&self) -> Result<TcpListener, JoinError> {
        let none = || JoinError::Size(self.addresses.len());
        let at = *self.addresses.get(usize::from(self.me.0)).ok_or_else(none)?;
        TcpListener::bind(at).map_err(|why| JoinError::Listen(at, why))
    }

    /// Connects to all other nodes: to lower ranks actively, and to higher ranks by `listener`.
    /// Every [`SLICE`] it asks `check` whether joining has become pointless.
    pub(super) fn connect(
        &self,
        listener: &TcpListener,
        check: LaunchCheck<'_>,
    ) -> Result<Vec<(NodeId, TcpStream)>, JoinError> {
        let nodes = self.addresses.len();
        let me = usize::from(self.me.0);
        if nodes > NODES_MAX || me >= nodes {
            return Err(JoinError::Size(nodes));
        }
        let until = Instant::now() + self.join_within;
        let lower = (0..self.me.0).map(NodeId);
        let mut streams: Vec<_> = lower
            .map(|peer| self.reach(peer, until, check).map(|stream| (peer, stream)))
            .collect::<Result<_, _>>()?;
        self.accept(listener, until, &mut streams, check)?;
        Ok(streams)
    }

    /// Connects to a lower rank. Tries again while no process listens, and while the peer drops
    /// this connection because too many strangers connect.
    fn reach(
        &self,
        peer: NodeId,
        until: Instant,
        check: LaunchCheck<'_>,
    ) -> Result<TcpStream, JoinError> {
        let address = self.addresses[usize::from(peer.0)];
        let mut failure = None;
        loop {
            check().map_err(|vain| match vain {
                JoinError::Ended(node, None) if node == peer => {
                    JoinError::Ended(node, failure.take().map(|why| (address, why)))
                }
                vain => vain,
            })?;
            let left = until.saturating_duration_since(Instant::now());
            let limit = left.min(SLICE).max(Duration::from_millis(1));
            let attempt =
                TcpStream::connect_timeout(&address, limit).map_err(HandshakeError::from).and_then(
                    |mut stream| self.introduce(&mut stream, peer, until, check).map(|()| stream),
                );
            match attempt {
                Ok(stream) => return Ok(stream),
                Err(HandshakeError::Refused(why)) => return Err(why),
                Err(HandshakeError::Gone(why))
                    if left.is_zero() || why.kind() == io::ErrorKind::InvalidData =>
                {
                    return Err(JoinError::Unreachable(peer, address, why));
                }
                Err(HandshakeError::Gone(why)) => {
                    failure = Some(why);
                    thread::park_timeout(RETRY_AFTER.min(left));
                }
            }
        }
    }

    fn hello(&self) -> io::Result<Hello> {
        Ok(Hello {
            magic: MAGIC,
            version: VERSION,
            rank: self.me.0,
            nodes: self.addresses.len() as u16,
            layout: self.layout,
            number: random()?,
        })
    }

    /// The connecting side.
    fn introduce(
        &self,
        stream: &mut TcpStream,
        peer: NodeId,
        until: Instant,
        check: LaunchCheck<'_>,
    ) -> Result<(), HandshakeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(EXCHANGE))?;
        // A peer that still connects to its own lower ranks answers later.
        let answer = |stream: &mut TcpStream| {
            read_until(stream, until, SLICE, || check().map_err(HandshakeError::Refused))
        };
        let mine = self.hello()?;
        write(stream, &HandshakeMessage::Hello(mine.clone()))?;
        let theirs = match answer(stream)? {
            HandshakeMessage::Hello(theirs) => theirs,
            HandshakeMessage::Refused(why, theirs) => {
                return Err(refused(peer, why, &theirs).into());
            }
            HandshakeMessage::Proof(_) => return Err(JoinError::Rank(peer).into()),
        };
        if theirs.rank != peer.0 {
            return Err(JoinError::Rank(peer).into());
        }
        let hellos = both(&mine, &theirs)?;
        let proof = self.secret.proof(CONNECTOR, &hellos).finalize().into_bytes().into();
        write(stream, &HandshakeMessage::Proof(proof))?;
        match answer(stream)? {
            HandshakeMessage::Proof(proof) => {
                let known = self.secret.proof(ACCEPTOR, &hellos).verify_slice(&proof);
                known.map_err(|_| JoinError::WrongSecret(peer).into())
            }
            HandshakeMessage::Refused(why, theirs) => Err(refused(peer, why, &theirs).into()),
            HandshakeMessage::Hello(_) => Err(JoinError::Rank(peer).into()),
        }
    }

    fn mistake_of(&self, theirs: &Hello, present: &[(NodeId, TcpStream)]) -> Option<Refusal> {
        if usize::from(theirs.nodes) != self.addresses.len() {
            Some(Refusal::NodeCount)
        } else if theirs.layout != self.layout {
            Some(Refusal::Layout)
        } else if present.iter().any(|(peer, _)| peer.0 == theirs.rank) || theirs.rank == self.me.0
        {
            Some(Refusal::DuplicateRank)
        } else if theirs.rank < self.me.0 || theirs.rank >= theirs.nodes {
            Some(Refusal::Rank)
        } else {
            None
        }
    }
}

/// The error for a node that `peer` has rejected.
fn refused(peer: NodeId, why: Refusal, theirs: &Hello) -> JoinError {
    match why {
        Refusal::Secret => JoinError::WrongSecret(peer),
        Refusal::Version => JoinError::Version(peer, theirs.version),
        Refusal::NodeCount => JoinError::NodeCount(peer, theirs.nodes),
        Refusal::Layout => JoinError::Layout(peer),
        Refusal::DuplicateRank => JoinError::DuplicateRank(peer),
        Refusal::Rank | Refusal::Stranger => JoinError::Rank(peer),
    }
}
