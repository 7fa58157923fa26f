//! TCP: one connection per pair of nodes.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use crate::address::NodeId;
use crate::transport::connections::{Connections, Medium, transport_by_connections};
use crate::transport::handshake::LaunchCheck;
use crate::transport::readiness::Readiness;
use crate::transport::{Cluster, JoinError, TcpSettings, Urgency, Waiter};

/// Connections to all other nodes.
#[derive(Debug)]
pub struct Tcp(Connections<Sockets>);

#[derive(Debug)]
struct Sockets {
    streams: Vec<TcpStream>,
    readiness: Readiness,
}

impl Tcp {
    /// Joins the cluster, listening at this node's own address.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(cluster: &Cluster, settings: TcpSettings) -> Result<Self, JoinError> {
        Self::join_by(cluster, settings, &cluster.listen()?)
    }

    /// Joins the cluster with a socket that already listens.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join_by(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
    ) -> Result<Self, JoinError> {
        Self::join_while(cluster, settings, listener, &|| Ok(()))
    }

    /// Joins the cluster. Stops if `check` returns an error.
    pub(crate) fn join_while(
        cluster: &Cluster,
        settings: TcpSettings,
        listener: &TcpListener,
        check: LaunchCheck<'_>,
    ) -> Result<Self, JoinError> {
        let connected = cluster.connect(listener, check)?;
        let (peers, streams): (Vec<_>, Vec<_>) = connected.into_iter().unzip();
        let readiness = Readiness::new()?;
        for (place, stream) in streams.iter().enumerate() {
            stream.set_nonblocking(true)?;
            readiness.add(place, stream)?;
        }
        let sockets = Sockets { streams, readiness };
        Ok(Self(Connections::new(&peers, cluster.addresses.len(), settings, sockets)))
    }

    /// The address of a peer.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn peer_address(&self, node: NodeId) -> io::Result<SocketAddr> {
        let place = self.0.place(node).ok_or(io::ErrorKind::NotFound)?;
        self.0.medium().streams[place].peer_addr()
    }
}

impl Medium for Sockets {
    fn write(&self, place: usize, bytes: &[u8], _urgency: Urgency) -> io::Result<usize> {
        (&self.streams[place]).write(bytes)
    }

    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<usize> {
        (&self.streams[place]).read(into)
    }

    fn finish(&self, place: usize) {
        // It fails if the connection has ended already.
        let _ended = self.streams[place].shutdown(Shutdown::Write);
    }

    fn lose(&self, place: usize) {
        let _ended = self.streams[place].shutdown(Shutdown::Both);
    }

    // The edge-triggered epoll reports nothing more of a socket that is not read.
    fn ignore(&self, _place: usize) {}

    fn wait(&self, waiter: Waiter, timeout: Duration, each: impl FnMut(usize)) {
        self.readiness.wait(waiter, timeout, each);
    }

    fn rouse(&self, waiter: Waiter) {
        self.readiness.rouse(waiter);
    }
}

transport_by_connections!(Tcp);
