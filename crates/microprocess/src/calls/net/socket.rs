//! The common part of all kinds of socket: the operations, and two time limits.

use core::time::Duration;
use std::{
    io::{IoSlice, IoSliceMut, Result},
    os::fd::{AsFd, BorrowedFd},
};

use socket2::{Domain, SockAddr, SockRef, Type};

use super::{limit::Limit, operation};
use crate::calls::io::routing;

/// An open socket.
#[derive(Debug)]
pub(super) struct Socket {
    inner: socket2::Socket,
    pub(super) read_limit: Limit,
    pub(super) write_limit: Limit,
}

impl Socket {
    pub(super) fn new(domain: Domain, kind: Type) -> Result<Self> {
        socket2::Socket::new(domain, kind, None).map(Self::from)
    }

    pub(super) fn into_inner(self) -> socket2::Socket {
        self.inner
    }

    /// Its options and addresses.
    pub(super) fn options(&self) -> SockRef<'_> {
        SockRef::from(&self.inner)
    }

    pub(super) fn try_clone(&self) -> Result<Self> {
        let clone = Self::from(self.inner.try_clone()?);
        clone.read_limit.set(self.read_limit.get())?;
        clone.write_limit.set(self.write_limit.get())?;
        Ok(clone)
    }

    pub(super) fn connect(&self, address: &SockAddr, limit: Option<Duration>) -> Result<()> {
        operation::connect(self.as_fd(), address, limit)
    }

    pub(super) fn accept(&self) -> Result<Self> {
        let accepted = operation::accept(self.as_fd(), self.read_limit.get())?;
        Ok(socket2::Socket::from(accepted).into())
    }

    pub(super) fn receive(&self, buffer: &mut [u8], flags: i32) -> Result<usize> {
        operation::receive(self.as_fd(), buffer, flags, self.read_limit.get())
    }

    pub(super) fn send(&self, buffer: &[u8]) -> Result<usize> {
        operation::send(self.as_fd(), buffer, 0, self.write_limit.get())
    }

    /// Receives a datagram and its sender's address.
    pub(super) fn receive_from(&self, buffer: &mut [u8], flags: i32) -> Result<(usize, SockAddr)> {
        let part = IoSliceMut::new(buffer);
        operation::receive_from(self.as_fd(), &mut [part], flags, self.read_limit.get())
    }

    /// Receives into several buffers, one after the other.
    pub(super) fn receive_vectored(&self, parts: &mut [IoSliceMut<'_>]) -> Result<usize> {
        let limit = self.read_limit.get();
        operation::receive_from(self.as_fd(), parts, 0, limit).map(|(count, _)| count)
    }

    /// Sends a datagram to `address`.
    pub(super) fn send_to(&self, buffer: &[u8], address: &SockAddr) -> Result<usize> {
        let parts = [IoSlice::new(buffer)];
        operation::send_to(self.as_fd(), &parts, Some(address), self.write_limit.get())
    }

    /// Sends several buffers, one after the other.
    pub(super) fn send_vectored(&self, parts: &[IoSlice<'_>]) -> Result<usize> {
        operation::send_to(self.as_fd(), parts, None, self.write_limit.get())
    }
}

impl From<socket2::Socket> for Socket {
    fn from(inner: socket2::Socket) -> Self {
        routing::forget(&inner);
        Self { inner, read_limit: Limit::default(), write_limit: Limit::default() }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
