//! TCP.

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{Error, ErrorKind, Read, Result, Write},
    net::{Shutdown, ToSocketAddrs},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use socket2::{Domain, SockAddr, Type};

use super::socket::Socket;

/// Connections that wait to be accepted, as in std.
const BACKLOG: i32 = 128;

/// Calls `attempt` for each of the addresses until one succeeds.
pub(super) fn first_of<T>(
    addresses: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> Result<T>,
) -> Result<T> {
    let mut failure = Error::new(ErrorKind::InvalidInput, "could not resolve to any addresses");
    for address in addresses.to_socket_addrs()? {
        match attempt(address) {
            Ok(done) => return Ok(done),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// An address of the internet, as sockets report theirs.
pub(super) fn internet(address: &SockAddr) -> Result<SocketAddr> {
    address.as_socket().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// A socket that accepts connections, as [`std::net::TcpListener`].
#[derive(Debug)]
pub struct TcpListener {
    socket: Socket,
}

impl TcpListener {
    /// Listens on the first of `addresses` that can be had; port 0 stands for any free one.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn bind(addresses: impl ToSocketAddrs) -> Result<Self> {
        first_of(addresses, |address| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM)?;
            let options = socket.options();
            options.set_reuse_address(true)?;
            options.bind(&address.into())?;
            options.listen(BACKLOG)?;
            Ok(Self { socket })
        })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self) -> Result<(TcpStream, SocketAddr)> {
        let stream = TcpStream { socket: self.socket.accept()? };
        let peer = stream.peer_addr()?;
        Ok((stream, peer))
    }

    /// The connections to come; never ends.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().local_addr()?)
    }

    /// Limits how long an accept waits.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a limit of zero.
    pub fn set_accept_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }
}

/// The connections of a [`TcpListener`].
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

/// A connection, as [`std::net::TcpStream`].
#[derive(Debug)]
pub struct TcpStream {
    socket: Socket,
}

impl TcpStream {
    /// Connects to the first of `addresses` that answers.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn connect(addresses: impl ToSocketAddrs) -> Result<Self> {
        first_of(addresses, |address| Self::connect_within(address, None))
    }

    /// Connects, waiting for at most `limit`.
    ///
    /// # Errors
    /// The kernel's, and [`ErrorKind::TimedOut`].
    pub fn connect_timeout(address: &SocketAddr, limit: Duration) -> Result<Self> {
        Self::connect_within(*address, Some(limit))
    }

    fn connect_within(address: SocketAddr, limit: Option<Duration>) -> Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM)?;
        socket.connect(&address.into(), limit)?;
        Ok(Self { socket })
    }

    /// The other end's address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().peer_addr()?)
    }

    /// This end's address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().local_addr()?)
    }

    /// Ends one or both directions; whoever waits on them is told.
    ///
    /// # Errors
    /// The kernel's.
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.socket.options().shutdown(how)
    }

    /// Another handle to the same connection, with the same time limits.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self { socket: self.socket.try_clone()? })
    }

    /// Sends small pieces at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_nodelay(&self, nodelay: bool) -> Result<()> {
        self.socket.options().set_tcp_nodelay(nodelay)
    }

    /// Whether small pieces are sent at once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn nodelay(&self) -> Result<bool> {
        self.socket.options().tcp_nodelay()
    }

    /// Limits how long a read waits.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a limit of zero.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }

    /// Limits how long a write waits.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a limit of zero.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.write_limit.set(limit)
    }

    /// Reads without taking: the next read gets the same bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, libc::MSG_PEEK)
    }
}

/// Reading, writing and converting, the same for all kinds of stream.
macro_rules! stream {
    ($stream:ty, $of_std:ty) => {
        impl Read for &$stream {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                self.socket.receive(buffer, 0)
            }
        }

        impl Read for $stream {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                (&*self).read(buffer)
            }
        }

        impl Write for &$stream {
            fn write(&mut self, buffer: &[u8]) -> Result<usize> {
                self.socket.send(buffer)
            }

            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }

        impl Write for $stream {
            fn write(&mut self, buffer: &[u8]) -> Result<usize> {
                (&*self).write(buffer)
            }

            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }

        $crate::net::tcp::descriptor!($stream, $of_std);
    };
}

/// Conversions and the descriptor, the same for all kinds of socket.
macro_rules! descriptor {
    ($socket:ty, $of_std:ty) => {
        impl AsFd for $socket {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.socket.as_fd()
            }
        }

        impl From<$of_std> for $socket {
            /// Takes the socket over; it should be in blocking mode.
            fn from(socket: $of_std) -> Self {
                Self::from(OwnedFd::from(socket))
            }
        }

        impl From<OwnedFd> for $socket {
            fn from(descriptor: OwnedFd) -> Self {
                Self { socket: socket2::Socket::from(descriptor).into() }
            }
        }
    };
}

pub(super) use {descriptor, stream};

stream!(TcpStream, std::net::TcpStream);
descriptor!(TcpListener, std::net::TcpListener);
