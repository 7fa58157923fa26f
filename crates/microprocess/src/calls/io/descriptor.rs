//! Reading, writing and waiting on any descriptor. [`File`](super::File) uses these functions, and
//! so do interfaces without the types of this crate, such as C's.
//!
//! The microprocess waits, its kernel thread does not. Descriptors should be in blocking mode. In
//! non-blocking mode an operation through a ring waits all the same, while a plain call returns
//! [`WouldBlock`](io::ErrorKind::WouldBlock).
#![expect(unsafe_code, reason = "passes buffers to the kernel; views descriptors as files")]

use core::{mem::ManuallyDrop, time::Duration};
use std::{
    fs,
    io::{self, IoSlice, IoSliceMut, Read, Result, Write},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd},
    os::unix::fs::FileExt,
};

use io_uring::{opcode, types};
pub use kyocho_sys::poll::Interest;

use super::Operation;

/// Means the file's own position, which reading and writing advance.
pub(super) const AT_POSITION: u64 = u64::MAX;

/// The most bytes of one operation: the kernel's own limit, a page less than 2 GiB.
const BYTES_MAX: usize = 0x7fff_f000;

/// The most buffers of one operation: the kernel's own limit.
const PARTS_MAX: usize = 1024;

fn target(descriptor: BorrowedFd<'_>) -> types::Fd {
    types::Fd(descriptor.as_raw_fd())
}

/// A view of `descriptor` as std's file, during the borrow.
fn file(descriptor: BorrowedFd<'_>) -> ManuallyDrop<fs::File> {
    // SAFETY: it is open while it is borrowed. `ManuallyDrop` keeps the file from closing it.
    ManuallyDrop::new(unsafe { fs::File::from_raw_fd(descriptor.as_raw_fd()) })
}

/// The length of `buffer` as the kernel accepts it; the rest is left for the next call.
fn length(buffer: &[u8]) -> u32 {
    buffer.len().min(BYTES_MAX) as u32
}

/// Reads from the descriptor's position; returns 0 at the end.
///
/// # Errors
/// The kernel's.
pub fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    read_at(descriptor, buffer, AT_POSITION)
}

/// Writes at the descriptor's position; returns how many bytes were written.
///
/// # Errors
/// The kernel's.
pub fn write(descriptor: BorrowedFd<'_>, buffer: &[u8]) -> Result<usize> {
    write_at(descriptor, buffer, AT_POSITION)
}

pub(super) fn read_at(descriptor: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let (address, bytes) = (buffer.as_mut_ptr(), length(buffer));
    let operation = Operation {
        descriptor,
        interest: Interest::Read,
        entry: opcode::Read::new(target(descriptor), address, bytes).offset(offset).build(),
        call: || match offset {
            AT_POSITION => (&*file(descriptor)).read(buffer),
            offset => file(descriptor).read_at(buffer, offset),
        },
    };
    // SAFETY: the buffer is borrowed for the call, for writing.
    unsafe { operation.perform(None) }
}

pub(super) fn write_at(descriptor: BorrowedFd<'_>, buffer: &[u8], offset: u64) -> Result<usize> {
    let (address, bytes) = (buffer.as_ptr(), length(buffer));
    let operation = Operation {
        descriptor,
        interest: Interest::Write,
        entry: opcode::Write::new(target(descriptor), address, bytes).offset(offset).build(),
        call: || match offset {
            AT_POSITION => (&*file(descriptor)).write(buffer),
            offset => file(descriptor).write_at(buffer, offset),
        },
    };
    // SAFETY: the buffer is borrowed for the call.
    unsafe { operation.perform(None) }
}

/// Reads into `parts`, one after the other.
pub(super) fn read_vectored(
    descriptor: BorrowedFd<'_>,
    parts: &mut [IoSliceMut<'_>],
) -> Result<usize> {
    // `IoSliceMut` has the layout of an `iovec`.
    let (address, count) = (parts.as_mut_ptr().cast(), parts.len().min(PARTS_MAX) as u32);
    let operation = Operation {
        descriptor,
        interest: Interest::Read,
        entry: opcode::Readv::new(target(descriptor), address, count).offset(AT_POSITION).build(),
        call: || (&*file(descriptor)).read_vectored(parts),
    };
    // SAFETY: parts and buffers are borrowed for the call, for writing.
    unsafe { operation.perform(None) }
}

/// Writes from `parts`, one after the other.
pub(super) fn write_vectored(descriptor: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> Result<usize> {
    // `IoSlice` has the layout of an `iovec`.
    let (address, count) = (parts.as_ptr().cast(), parts.len().min(PARTS_MAX) as u32);
    let operation = Operation {
        descriptor,
        interest: Interest::Write,
        entry: opcode::Writev::new(target(descriptor), address, count).offset(AT_POSITION).build(),
        call: || (&*file(descriptor)).write_vectored(parts),
    };
    // SAFETY: parts and buffers are borrowed for the call.
    unsafe { operation.perform(None) }
}

/// What is written to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The contents, and what is needed to find them.
    Data,
    /// In addition, all metadata of the file system.
    All,
}

/// Waits until what was written is on the device.
pub(super) fn sync(descriptor: BorrowedFd<'_>, extent: Extent) -> Result<()> {
    let flags = match extent {
        Extent::Data => types::FsyncFlags::DATASYNC,
        Extent::All => types::FsyncFlags::empty(),
    };
    let operation = Operation {
        descriptor,
        interest: Interest::Write,
        entry: opcode::Fsync::new(target(descriptor)).flags(flags).build(),
        call: || match extent {
            Extent::Data => file(descriptor).sync_data().map(|()| 0),
            Extent::All => file(descriptor).sync_all().map(|()| 0),
        },
    };
    // SAFETY: the entry points to nothing.
    unsafe { operation.perform(None) }.map(drop)
}

/// Waits until `descriptor` is ready or has failed, but at most for `limit`.
///
/// # Errors
/// The kernel's, and [`TimedOut`](io::ErrorKind::TimedOut).
pub fn ready(
    descriptor: BorrowedFd<'_>,
    interest: Interest,
    limit: Option<Duration>,
) -> Result<()> {
    let events = match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    };
    let operation = Operation {
        descriptor,
        interest,
        entry: opcode::PollAdd::new(target(descriptor), events as u32).build(),
        call: || {
            kyocho_sys::poll::wait([(descriptor, interest)], None)
                .map(usize::from)
                .map_err(io::Error::from)
        },
    };
    // SAFETY: the entry points to nothing.
    unsafe { operation.perform(limit) }.map(drop)
}
