//! What all kinds of socket have in common: the operations, and two time limits.
#![expect(unsafe_code, reason = "hands buffers and addresses to the kernel")]

use core::{mem::MaybeUninit, time::Duration};
use std::{
    io::Result,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd},
};

use io_uring::{opcode, types};
use kyocho_sys::poll::Interest;
use socket2::{Domain, SockAddr, SockAddrStorage, SockRef, Type};

use super::limit::Limit;
use crate::io::Operation;

/// The most bytes one operation moves, as for files.
const BYTES_MAX: usize = 0x7fff_f000;

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

    fn target(&self) -> types::Fd {
        types::Fd(self.inner.as_raw_fd())
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
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Write,
            entry: opcode::Connect::new(self.target(), address.as_ptr().cast(), address.len())
                .build(),
            call: || match limit {
                None => self.inner.connect(address).map(|()| 0),
                Some(limit) => self.inner.connect_timeout(address, limit).map(|()| 0),
            },
        };
        // SAFETY: the address is borrowed for the call.
        unsafe { operation.perform(limit) }.map(drop)
    }

    pub(super) fn accept(&self) -> Result<Self> {
        let (none, no_length) = (core::ptr::null_mut(), core::ptr::null_mut());
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Read,
            entry: opcode::Accept::new(self.target(), none, no_length)
                .flags(libc::SOCK_CLOEXEC)
                .build(),
            call: || {
                let (accepted, _) = self.inner.accept()?;
                Ok(accepted.into_raw_fd() as usize)
            },
        };
        // SAFETY: the entry points to nothing.
        let descriptor = unsafe { operation.perform(self.read_limit.get()) }?;
        // SAFETY: the kernel just made it for us.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(socket2::Socket::from(descriptor).into())
    }

    pub(super) fn receive(&self, buffer: &mut [u8], flags: i32) -> Result<usize> {
        let (address, bytes) = (buffer.as_mut_ptr(), length(buffer));
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Read,
            entry: opcode::Recv::new(self.target(), address, bytes).flags(flags).build(),
            call: || self.inner.recv_with_flags(uninit(buffer), flags),
        };
        // SAFETY: the buffer is borrowed for the call, for writing.
        unsafe { operation.perform(self.read_limit.get()) }
    }

    pub(super) fn send(&self, buffer: &[u8]) -> Result<usize> {
        // A peer that is gone is an error, not a signal.
        let flags = libc::MSG_NOSIGNAL;
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Write,
            entry: opcode::Send::new(self.target(), buffer.as_ptr(), length(buffer))
                .flags(flags)
                .build(),
            call: || self.inner.send_with_flags(buffer, flags),
        };
        // SAFETY: the buffer is borrowed for the call.
        unsafe { operation.perform(self.write_limit.get()) }
    }

    /// Receives a datagram and tells who sent it.
    pub(super) fn receive_from(&self, buffer: &mut [u8]) -> Result<(usize, SockAddr)> {
        let mut storage = SockAddrStorage::zeroed();
        let storage_bytes = storage.size_of();
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut header = empty_header();
        header.msg_name = (&raw mut storage).cast();
        header.msg_namelen = storage_bytes;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        let mut plain = None;
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Read,
            entry: opcode::RecvMsg::new(self.target(), &raw mut header).build(),
            call: || {
                let (count, sender) = self.inner.recv_from(uninit(buffer))?;
                plain = Some(sender);
                Ok(count)
            },
        };
        // SAFETY: header, part and storage live in this frame; the buffer is borrowed.
        let count = unsafe { operation.perform(self.read_limit.get()) }?;
        // SAFETY: the kernel wrote an address of that length.
        let sender = plain.unwrap_or_else(|| unsafe { SockAddr::new(storage, header.msg_namelen) });
        Ok((count, sender))
    }

    /// Sends a datagram to `address`.
    pub(super) fn send_to(&self, buffer: &[u8], address: &SockAddr) -> Result<usize> {
        let mut part =
            libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() };
        let mut header = empty_header();
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        let operation = Operation {
            descriptor: self.as_fd(),
            interest: Interest::Write,
            entry: opcode::SendMsg::new(self.target(), &raw const header)
                .flags(libc::MSG_NOSIGNAL as u32)
                .build(),
            call: || self.inner.send_to(buffer, address),
        };
        // SAFETY: header and part live in this frame; buffer and address are borrowed.
        unsafe { operation.perform(self.write_limit.get()) }
    }
}

/// A message header without anything.
fn empty_header() -> libc::msghdr {
    // SAFETY: a header of zeros is one without name, parts and control data.
    unsafe { core::mem::zeroed() }
}

/// The length of `buffer` as the kernel takes it; the rest is left for the next call.
fn length(buffer: &[u8]) -> u32 {
    buffer.len().min(BYTES_MAX) as u32
}

/// A buffer as `socket2` takes it.
fn uninit(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    let (address, bytes) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the same memory; `socket2` writes initialised bytes only.
    unsafe { core::slice::from_raw_parts_mut(address.cast(), bytes) }
}

impl From<socket2::Socket> for Socket {
    fn from(inner: socket2::Socket) -> Self {
        Self { inner, read_limit: Limit::default(), write_limit: Limit::default() }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
