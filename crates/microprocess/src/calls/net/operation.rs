//! Socket operations on any descriptor, for interfaces without the types of this crate, such as
//! C's.
//!
//! The microprocess waits, its kernel thread does not. `limit` ends a wait with
//! [`ErrorKind::TimedOut`](std::io::ErrorKind::TimedOut), without effect.
#![expect(unsafe_code, reason = "passes buffers and addresses to the kernel")]

use core::{mem::MaybeUninit, time::Duration};
use std::{
    io::{IoSlice, IoSliceMut, Result},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd},
};

use io_uring::{opcode, types};
use kyocho_sys::poll::Interest;
use socket2::{MaybeUninitSlice, SockAddr, SockAddrStorage, SockRef};

use crate::calls::io::Operation;

/// The most bytes of one operation, as for files.
const BYTES_MAX: usize = 0x7fff_f000;

/// The most buffers of one operation: the kernel's own limit.
const PARTS_MAX: usize = 1024;

fn target(socket: BorrowedFd<'_>) -> types::Fd {
    types::Fd(socket.as_raw_fd())
}

/// Connects `socket` to `address`.
///
/// # Errors
/// The kernel's.
pub fn connect(socket: BorrowedFd<'_>, address: &SockAddr, limit: Option<Duration>) -> Result<()> {
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Write,
        entry: opcode::Connect::new(target(socket), address.as_ptr().cast(), address.len()).build(),
        call: || match limit {
            None => SockRef::from(&socket).connect(address).map(|()| 0),
            Some(limit) => SockRef::from(&socket).connect_timeout(address, limit).map(|()| 0),
        },
    };
    // SAFETY: the address is borrowed for the call.
    unsafe { operation.perform(limit) }.map(drop)
}

/// Accepts a connection on `socket`, which listens. The connection is not inherited by programs
/// that the process executes.
///
/// # Errors
/// The kernel's.
pub fn accept(socket: BorrowedFd<'_>, limit: Option<Duration>) -> Result<OwnedFd> {
    let (none, no_length) = (core::ptr::null_mut(), core::ptr::null_mut());
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Read,
        entry: opcode::Accept::new(target(socket), none, no_length)
            .flags(libc::SOCK_CLOEXEC)
            .build(),
        call: || {
            let (accepted, _) = SockRef::from(&socket).accept()?;
            Ok(accepted.into_raw_fd() as usize)
        },
    };
    // SAFETY: the entry points to nothing.
    let descriptor = unsafe { operation.perform(limit) }?;
    // SAFETY: the kernel has just made it for this caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Receives into `buffer`, with `flags` as `recv` takes them.
///
/// # Errors
/// The kernel's.
pub fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: i32,
    limit: Option<Duration>,
) -> Result<usize> {
    let (address, bytes) = (buffer.as_mut_ptr(), length(buffer));
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Read,
        entry: opcode::Recv::new(target(socket), address, bytes).flags(flags).build(),
        call: || SockRef::from(&socket).recv_with_flags(uninit(buffer), flags),
    };
    // SAFETY: the buffer is borrowed for the call, for writing.
    unsafe { operation.perform(limit) }
}

/// Sends from `buffer`, with `flags` as `send` takes them. If the peer has closed the connection,
/// the result is an error, not a signal.
///
/// # Errors
/// The kernel's.
pub fn send(
    socket: BorrowedFd<'_>,
    buffer: &[u8],
    flags: i32,
    limit: Option<Duration>,
) -> Result<usize> {
    let flags = flags | libc::MSG_NOSIGNAL;
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Write,
        entry: opcode::Send::new(target(socket), buffer.as_ptr(), length(buffer))
            .flags(flags)
            .build(),
        call: || SockRef::from(&socket).send_with_flags(buffer, flags),
    };
    // SAFETY: the buffer is borrowed for the call.
    unsafe { operation.perform(limit) }
}

/// Receives into `parts`, one after the other; also returns the sender's address.
///
/// # Errors
/// The kernel's.
pub fn receive_from(
    socket: BorrowedFd<'_>,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    limit: Option<Duration>,
) -> Result<(usize, SockAddr)> {
    let mut storage = SockAddrStorage::zeroed();
    let storage_bytes = storage.size_of();
    let mut header = empty_header();
    header.msg_name = (&raw mut storage).cast();
    header.msg_namelen = storage_bytes;
    // `IoSliceMut` has the layout of an `iovec`.
    header.msg_iov = parts.as_mut_ptr().cast();
    header.msg_iovlen = parts.len().min(PARTS_MAX);
    let mut plain = None;
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Read,
        entry: opcode::RecvMsg::new(target(socket), &raw mut header).flags(flags as u32).build(),
        call: || {
            let mut parts: Vec<_> =
                parts.iter_mut().map(|part| MaybeUninitSlice::new(uninit(part))).collect();
            let socket = SockRef::from(&socket);
            let (count, _, sender) = socket.recv_from_vectored_with_flags(&mut parts, flags)?;
            plain = Some(sender);
            Ok(count)
        },
    };
    // SAFETY: header and storage live in this frame; the buffers are borrowed for the call, for
    // writing.
    let count = unsafe { operation.perform(limit) }?;
    // SAFETY: the kernel wrote an address of that length.
    let sender = plain.unwrap_or_else(|| unsafe { SockAddr::new(storage, header.msg_namelen) });
    Ok((count, sender))
}

/// Sends `parts`, one after the other, to `address`, or to the peer. If the peer has closed the
/// connection, the result is an error, not a signal.
///
/// # Errors
/// The kernel's.
pub fn send_to(
    socket: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    address: Option<&SockAddr>,
    limit: Option<Duration>,
) -> Result<usize> {
    let mut header = empty_header();
    if let Some(address) = address {
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
    }
    // `IoSlice` has the layout of an `iovec`.
    header.msg_iov = parts.as_ptr().cast_mut().cast();
    header.msg_iovlen = parts.len().min(PARTS_MAX);
    let operation = Operation {
        descriptor: socket,
        interest: Interest::Write,
        entry: opcode::SendMsg::new(target(socket), &raw const header)
            .flags(libc::MSG_NOSIGNAL as u32)
            .build(),
        call: || {
            let socket = SockRef::from(&socket);
            match address {
                Some(address) => {
                    socket.send_to_vectored_with_flags(parts, address, libc::MSG_NOSIGNAL)
                }
                None => socket.send_vectored_with_flags(parts, libc::MSG_NOSIGNAL),
            }
        },
    };
    // SAFETY: the header lives in this frame; buffers and address are borrowed.
    unsafe { operation.perform(limit) }
}

/// An empty message header.
fn empty_header() -> libc::msghdr {
    // SAFETY: a header of zeros is valid: without name, parts and control data.
    unsafe { core::mem::zeroed() }
}

/// The length of `buffer` as the kernel accepts it; the rest is left for the next call.
fn length(buffer: &[u8]) -> u32 {
    buffer.len().min(BYTES_MAX) as u32
}

/// A buffer in the form that `socket2` takes.
fn uninit(buffer: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    let (address, bytes) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the same memory; `socket2` writes only initialised bytes.
    unsafe { core::slice::from_raw_parts_mut(address.cast(), bytes) }
}
