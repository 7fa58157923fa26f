//! UDP.

use core::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use std::{
    io::Result,
    net::ToSocketAddrs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use socket2::{Domain, Type};

use super::{
    socket::Socket,
    tcp::{descriptor, first_of, internet, limits},
};

/// A datagram socket, as [`std::net::UdpSocket`].
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
}

impl UdpSocket {
    /// Binds to the first of `addresses` that is available; port 0 means any free port.
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

    /// Waits for a datagram; the part that does not fit into `buffer` is lost.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let (count, sender) = self.socket.receive_from(buffer, 0)?;
        Ok((count, internet(&sender)?))
    }

    /// As [`recv_from`](Self::recv_from), without consuming the datagram.
    ///
    /// # Errors
    /// As there.
    pub fn peek_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let (count, sender) = self.socket.receive_from(buffer, libc::MSG_PEEK)?;
        Ok((count, internet(&sender)?))
    }

    /// Sends a datagram to the first of `addresses`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send_to(&self, buffer: &[u8], addresses: impl ToSocketAddrs) -> Result<usize> {
        first_of(addresses, |address| self.socket.send_to(buffer, &address.into()))
    }

    /// Sets the peer. From then on [`send`](Self::send) and [`recv`](Self::recv) exchange datagrams
    /// only with it.
    ///
    /// # Errors
    /// The kernel's, for the last address.
    pub fn connect(&self, addresses: impl ToSocketAddrs) -> Result<()> {
        first_of(addresses, |address| self.socket.connect(&address.into(), None))
    }

    /// Waits for a datagram from the peer.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn recv(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, 0)
    }

    /// As [`recv`](Self::recv), without consuming the datagram.
    ///
    /// # Errors
    /// As there.
    pub fn peek(&self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.receive(buffer, libc::MSG_PEEK)
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

    /// The peer's address, once it is set.
    ///
    /// # Errors
    /// The kernel's.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        internet(&self.socket.options().peer_addr()?)
    }

    /// Permits sending datagrams to broadcast addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_broadcast(&self, broadcast: bool) -> Result<()> {
        self.socket.options().set_broadcast(broadcast)
    }

    /// Receives what is sent to `group`, on the interface with the address `interface`; unspecified
    /// means any.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> Result<()> {
        self.socket.options().join_multicast_v4(group, interface)
    }

    /// Receives what is sent to `group`, on the interface with this number; 0 means any.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> Result<()> {
        self.socket.options().join_multicast_v6(group, interface)
    }
}

limits!(UdpSocket);
descriptor!(UdpSocket, std::net::UdpSocket);
