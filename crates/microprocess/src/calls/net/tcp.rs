//! TCP.

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result, Write},
    net::{Shutdown, ToSocketAddrs},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use socket2::{Domain, SockAddr, Type};

use super::socket::Socket;

/// The most connections that may wait to be accepted, as in std.
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

/// An internet address, converted from the form that sockets report.
pub(super) fn internet(address: &SockAddr) -> Result<SocketAddr> {
    address.as_socket().ok_or_else(|| ErrorKind::InvalidData.into())
}

/// A socket that accepts connections, as [`std::net::TcpListener`].
#[derive(Debug)]
pub struct TcpListener {
    socket: Socket,
}

impl TcpListener {
    /// Listens on the first of `addresses` that is available; port 0 means any free port.
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
    /// The kernel's, and [`ErrorKind::TimedOut`].
    pub fn accept(&self) -> Result<(TcpStream, SocketAddr)> {
        let stream = TcpStream { socket: self.socket.accept()? };
        let peer = stream.peer_addr()?;
        Ok((stream, peer))
    }

    /// An iterator over incoming connections; never ends.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// The address on which it listens.
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
    /// Connects to the first of `addresses` that accepts.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn connect(addresses: impl ToSocketAddrs) -> Result<Self> {
        first_of(addresses, |address| Self::connect_within(address, None))
    }

    /// Connects; waits for at most `limit`.
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

    /// The address of the other end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().peer_addr()?)
    }

    /// The address of this end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().local_addr()?)
    }

    /// Shuts down one or both directions, which ends waits for them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.socket.options().shutdown(how)
    }

    /// Sends small segments at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_nodelay(&self, nodelay: bool) -> Result<()> {
        self.socket.options().set_tcp_nodelay(nodelay)
    }

    /// Whether small segments are sent at once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn nodelay(&self) -> Result<bool> {
        self.socket.options().tcp_nodelay()
    }

    /// Reads without consuming: the next read returns the same bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, libc::MSG_PEEK)
    }
}

/// The time limits of operations that receive or send.
macro_rules! limits {
    ($socket:ty) => {
        impl $socket {
            /// Limits how long a receive or read waits.
            ///
            /// # Errors
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
            pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<()> {
                self.socket.read_limit.set(limit)
            }

            /// The time limit of a receive or read.
            #[must_use]
            pub fn read_timeout(&self) -> Option<Duration> {
                self.socket.read_limit.get()
            }

            /// Limits how long a send or write waits.
            ///
            /// # Errors
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
            pub fn set_write_timeout(&self, limit: Option<Duration>) -> Result<()> {
                self.socket.write_limit.set(limit)
            }

            /// The time limit of a send or write.
            #[must_use]
            pub fn write_timeout(&self) -> Option<Duration> {
                self.socket.write_limit.get()
            }
        }
    };
}

/// Reading, writing and converting, the same for all kinds of stream.
macro_rules! stream {
    ($stream:ty, $of_std:ty) => {
        impl Read for &$stream {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                self.socket.receive(buffer, 0)
            }

            fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> Result<usize> {
                self.socket.receive_vectored(parts)
            }
        }

        impl Read for $stream {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                (&*self).read(buffer)
            }

            fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> Result<usize> {
                (&*self).read_vectored(parts)
            }
        }

        impl Write for &$stream {
            fn write(&mut self, buffer: &[u8]) -> Result<usize> {
                self.socket.send(buffer)
            }

            fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> Result<usize> {
                self.socket.send_vectored(parts)
            }

            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }

        impl Write for $stream {
            fn write(&mut self, buffer: &[u8]) -> Result<usize> {
                (&*self).write(buffer)
            }

            fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> Result<usize> {
                (&*self).write_vectored(parts)
            }

            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }

        $crate::net::tcp::limits!($stream);
        $crate::net::tcp::descriptor!($stream, $of_std);
    };
}

/// Conversions and the descriptor, the same for all kinds of socket.
macro_rules! descriptor {
    ($socket:ty, $of_std:ty) => {
        impl $socket {
            /// Another handle to the same socket, with the same time limits. It lets one
            /// microprocess read while another one writes; two `&` references to one handle do as
            /// well.
            ///
            /// # Errors
            /// The kernel's.
            pub fn try_clone(&self) -> Result<Self> {
                Ok(Self { socket: self.socket.try_clone()? })
            }

            /// Takes the pending error of the socket.
            ///
            /// # Errors
            /// The kernel's.
            pub fn take_error(&self) -> Result<Option<std::io::Error>> {
                self.socket.options().take_error()
            }
        }

        impl AsFd for $socket {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.socket.as_fd()
            }
        }

        impl From<$of_std> for $socket {
            /// Takes over the socket, which should be in blocking mode.
            fn from(socket: $of_std) -> Self {
                Self::from(OwnedFd::from(socket))
            }
        }

        impl From<OwnedFd> for $socket {
            fn from(descriptor: OwnedFd) -> Self {
                Self { socket: socket2::Socket::from(descriptor).into() }
            }
        }

        impl From<$socket> for OwnedFd {
            fn from(socket: $socket) -> Self {
                socket.socket.into_inner().into()
            }
        }
    };
}

pub(super) use {descriptor, limits, stream};

stream!(TcpStream, std::net::TcpStream);
descriptor!(TcpListener, std::net::TcpListener);
