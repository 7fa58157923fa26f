//! UDP.

use core::{net::SocketAddr, time::Duration};
use std::{
    io::Result,
    net::ToSocketAddrs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use socket2::{Domain, Type};

use super::{
    socket::Socket,
    tcp::{descriptor, first_of, internet},
};

/// A socket for datagrams, as [`std::net::UdpSocket`].
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
}

impl UdpSocket {
    /// Takes the first of `addresses` that can be had; port 0 stands for any free one.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn bind(addresses: impl ToSocketAddrs) -> Result<Self> {
        first_of(addresses, |address| {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM)?;
            socket.options().bind(&address.into())?;
            Ok(Self { socket })
        })
    }

    /// Waits for a datagram; what does not fit into `buffer` is lost.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let (count, sender) = self.socket.receive_from(buffer)?;
        Ok((count, internet(&sender)?))
    }

    /// Sends a datagram to the first of `addresses`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send_to(&self, buffer: &[u8], addresses: impl ToSocketAddrs) -> Result<usize> {
        first_of(addresses, |address| self.socket.send_to(buffer, &address.into()))
    }

    /// Fixes the peer: [`send`](Self::send) and [`recv`](Self::recv) deal with it alone.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> Result<()> {
        first_of(addresses, |address| self.socket.connect(&address.into(), None))
    }

    /// Waits for a datagram of the peer.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn recv(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, 0)
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, buffer: &[u8]) -> Result<usize> {
        self.socket.send(buffer)
    }

    /// Its own address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().local_addr()?)
    }

    /// Limits how long a receive waits.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }
}

descriptor!(UdpSocket, std::net::UdpSocket);
