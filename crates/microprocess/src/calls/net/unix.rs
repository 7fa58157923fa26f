//! Sockets within this machine, named by paths.

use core::time::Duration;
use std::{
    io::{ErrorKind, IoSlice, IoSliceMut, Read, Result, Write},
    net::Shutdown,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::SocketAddr,
    path::Path,
};

use socket2::{Domain, SockAddr, Type};

use super::{
    socket::Socket,
    tcp::{descriptor, limits, stream},
};

/// The most connections that may wait to be accepted, as in std.
const BACKLOG: i32 = 128;

/// A local address, converted from the form that sockets report: a path, an abstract name, or none.
/// Datagrams of unnamed sockets have no address at all.
fn local(address: &SockAddr) -> Result<SocketAddr> {
    if address.is_unnamed() || address.len() == 0 {
        // The address of a socket without a name.
        return SocketAddr::from_pathname("");
    }
    address.as_unix().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// A socket that accepts connections, as [`std::os::unix::net::UnixListener`].
#[derive(Debug)]
pub struct UnixListener {
    socket: Socket,
}

impl UnixListener {
    /// Listens on `path`, which must not exist yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM)?;
        let options = socket.options();
        options.bind(&SockAddr::unix(path)?)?;
        options.listen(BACKLOG)?;
        Ok(Self { socket })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn accept(&self) -> Result<UnixStream> {
        Ok(UnixStream { socket: self.socket.accept()? })
    }

    /// An iterator over incoming connections; never ends.
    pub fn incoming(&self) -> impl Iterator<Item = Result<UnixStream>> + '_ {
        core::iter::repeat_with(|| self.accept())
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        local(&self.socket.options().local_addr()?)
    }

    /// Limits how long an accept waits.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
    pub fn set_accept_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }
}

/// A connection, as [`std::os::unix::net::UnixStream`].
#[derive(Debug)]
pub struct UnixStream {
    socket: Socket,
}

impl UnixStream {
    /// Connects to the listener at `path`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM)?;
        socket.connect(&SockAddr::unix(path)?, None)?;
        Ok(Self { socket })
    }

    /// Two ends that are connected to each other.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pair() -> Result<(Self, Self)> {
        let (one, other) = std::os::unix::net::UnixStream::pair()?;
        Ok((one.into(), other.into()))
    }

    /// Shuts down one or both directions, which ends waits for them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.socket.options().shutdown(how)
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        local(&self.socket.options().peer_addr()?)
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        local(&self.socket.options().local_addr()?)
    }
}

/// A datagram socket within this machine, as [`std::os::unix::net::UnixDatagram`].
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use kyocho_microprocess::net::UnixDatagram;
/// let (one, other) = UnixDatagram::pair()?;
/// one.send(b"whole or not at all")?;
/// let mut buffer = [0; 64];
/// assert_eq!(other.recv(&mut buffer)?, 19);
/// # Ok::<(), std::io::Error>(()) }).unwrap().unwrap();
/// ```
#[derive(Debug)]
pub struct UnixDatagram {
    socket: Socket,
}

impl UnixDatagram {
    /// A socket at `path`, which must not exist yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self> {
        let socket = Self::unbound()?;
        socket.socket.options().bind(&SockAddr::unix(path)?)?;
        Ok(socket)
    }

    /// A socket without a name. It can send, and can receive if it is one of a pair.
    ///
    /// # Errors
    /// The kernel's.
    pub fn unbound() -> Result<Self> {
        Ok(Self { socket: Socket::new(Domain::UNIX, Type::DGRAM)? })
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pair() -> Result<(Self, Self)> {
        let (one, other) = std::os::unix::net::UnixDatagram::pair()?;
        Ok((one.into(), other.into()))
    }

    /// Sets the peer, to which [`send`](Self::send) then sends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(&self, path: impl AsRef<Path>) -> Result<()> {
        self.socket.connect(&SockAddr::unix(path)?, None)
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, buffer: &[u8]) -> Result<usize> {
        self.socket.send(buffer)
    }

    /// Sends a datagram to the socket at `path`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send_to(&self, buffer: &[u8], path: impl AsRef<Path>) -> Result<usize> {
        self.socket.send_to(buffer, &SockAddr::unix(path)?)
    }

    /// Waits for a datagram; the part that does not fit into `buffer` is lost.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn recv(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, 0)
    }

    /// As [`recv`](Self::recv), and returns the sender's address.
    ///
    /// # Errors
    /// As there.
    pub fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let (count, sender) = self.socket.receive_from(buffer, 0)?;
        Ok((count, local(&sender)?))
    }
}

stream!(UnixStream, std::os::unix::net::UnixStream);
descriptor!(UnixListener, std::os::unix::net::UnixListener);
limits!(UnixDatagram);
descriptor!(UnixDatagram, std::os::unix::net::UnixDatagram);
