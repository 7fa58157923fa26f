//! Input and output on descriptors: `kyocho_read`, `kyocho_write` and similar functions.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_void};
use core::slice;
use core::time::Duration;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use kyocho_microprocess::Deadline;
use kyocho_microprocess::io::descriptor::{self, Interest};
use kyocho_microprocess::net::operation;
use socket2::SockAddr;

use crate::answer::count;
use crate::error::{Code, Result};

/// The descriptor with this number.
///
/// # Safety
/// The descriptor stays open during the call, or is not open at all; then the kernel reports an
/// error.
unsafe fn borrowed<'a>(number: c_int) -> Result<BorrowedFd<'a>> {
    if number < 0 {
        return Err(Code(libc::EBADF));
    }
    // SAFETY: not negative; the rest is guaranteed by the caller.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}

/// A buffer of C, to be written.
///
/// # Safety
/// `buffer` is null, or has `bytes` bytes that no other thread accesses during the call.
unsafe fn buffer_mut<'a>(buffer: *mut c_void, bytes: usize) -> Result<&'a mut [u8]> {
    if bytes == 0 {
        return Ok(&mut []);
    }
    if buffer.is_null() || bytes > isize::MAX as usize {
        return Err(Code(libc::EFAULT));
    }
    // SAFETY: guaranteed by the caller. Bytes that C has not initialised are only written.
    Ok(unsafe { slice::from_raw_parts_mut(buffer.cast(), bytes) })
}

/// A buffer of C, to be read.
///
/// # Safety
/// `buffer` is null, or has `bytes` bytes that no thread changes during the call.
unsafe fn buffer_of<'a>(buffer: *const c_void, bytes: usize) -> Result<&'a [u8]> {
    if bytes == 0 {
        return Ok(&[]);
    }
    if buffer.is_null() || bytes > isize::MAX as usize {
        return Err(Code(libc::EFAULT));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { slice::from_raw_parts(buffer.cast(), bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_read(number: c_int, buffer: *mut c_void, bytes: usize) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let (number, buffer) =
            (unsafe { borrowed(number) }?, unsafe { buffer_mut(buffer, bytes) }?);
        Ok(descriptor::read(number, buffer)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_write(number: c_int, buffer: *const c_void, bytes: usize) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let (number, buffer) = (unsafe { borrowed(number) }?, unsafe { buffer_of(buffer, bytes) }?);
        Ok(descriptor::write(number, buffer)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_recv(
    socket: c_int,
    buffer: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let (socket, buffer) =
            (unsafe { borrowed(socket) }?, unsafe { buffer_mut(buffer, bytes) }?);
        Ok(operation::receive(socket, buffer, flags, None)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_send(
    socket: c_int,
    buffer: *const c_void,
    bytes: usize,
    flags: c_int,
) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let (socket, buffer) = (unsafe { borrowed(socket) }?, unsafe { buffer_of(buffer, bytes) }?);
        Ok(operation::send(socket, buffer, flags, None)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_accept(
    socket: c_int,
    address: *mut libc::sockaddr,
    address_bytes: *mut libc::socklen_t,
) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let accepted = operation::accept(unsafe { borrowed(socket) }?, None)?;
        if !address.is_null() {
            // SAFETY: guaranteed by the caller: memory for an address of the given length.
            let answer = unsafe { libc::getpeername(accepted.as_raw_fd(), address, address_bytes) };
            check(answer)?;
        }
        Ok(accepted.into_raw_fd() as usize)
    })
}

/// The result of a call of the C library. Reads `errno` at once, on the kernel thread of the call.
fn check(answer: c_int) -> Result<usize> {
    usize::try_from(answer).map_err(|_| Error::last_os_error().into())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_connect(
    socket: c_int,
    address: *const libc::sockaddr,
    address_bytes: libc::socklen_t,
) -> i64 {
    count(|| {
        if address.is_null() {
            return Err(Code(libc::EFAULT));
        }
        let copy = |storage: *mut socket2::SockAddrStorage, bytes: *mut libc::socklen_t| {
            // SAFETY: memory for the length of the address, which holds the capacity.
            let room = unsafe { bytes.replace(address_bytes) };
            if address_bytes > room {
                return Err(Error::from_raw_os_error(libc::EINVAL));
            }
            // SAFETY: guaranteed by the caller; there is room for the address.
            unsafe {
                storage.cast::<u8>().copy_from(address.cast::<u8>(), address_bytes as usize);
            };
            Ok(())
        };
        // SAFETY: `copy` fills in the address and its length.
        let ((), address) = unsafe { SockAddr::try_init(copy) }?;
        // SAFETY: guaranteed by the caller.
        operation::connect(unsafe { borrowed(socket) }?, &address, None)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_poll(
    descriptors: *mut libc::pollfd,
    number: usize,
    timeout_ms: c_int,
) -> i64 {
    count(|| {
        if descriptors.is_null() && number > 0 || number > isize::MAX as usize / 16 {
            return Err(Code(libc::EFAULT));
        }
        let wanted = if number == 0 {
            &mut []
        } else {
            // SAFETY: guaranteed by the caller: that many entries.
            unsafe { slice::from_raw_parts_mut(descriptors, number) }
        };
        let ready = ready_now(wanted)?;
        if ready > 0 || timeout_ms == 0 {
            return Ok(ready);
        }
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        wait(wanted, timeout.and_then(Deadline::after))
    })
}

/// Waits until some of `wanted` are ready, at most until `deadline`. Returns their number.
fn wait(wanted: &mut [libc::pollfd], deadline: Option<Deadline>) -> Result<usize> {
    let epoll = epoll_of(wanted)?;
    loop {
        let left = deadline.map(|deadline| {
            Duration::from_nanos(deadline.ns().saturating_sub(Deadline::now().ns()))
        });
        match descriptor::ready(epoll.as_fd(), Interest::Read, left).map_err(Code::from) {
            Err(Code::TIMED_OUT) => return Ok(0),
            answer => answer?,
        }
        // May be none, if another thread was faster.
        let ready = ready_now(wanted)?;
        if ready > 0 {
            return Ok(ready);
        }
    }
}

/// The number of `wanted` descriptors that are ready now.
fn ready_now(wanted: &mut [libc::pollfd]) -> Result<usize> {
    // SAFETY: that many entries.
    check(unsafe { libc::poll(wanted.as_mut_ptr(), wanted.len() as libc::nfds_t, 0) })
}

/// A descriptor that is readable when one of `wanted` is ready. Descriptors that cannot be polled
/// were ready at the first check.
fn epoll_of(wanted: &[libc::pollfd]) -> Result<OwnedFd> {
    // SAFETY: takes a number.
    let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: just created, and owned by nothing else.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll as c_int) };
    for (index, entry) in wanted.iter().enumerate().filter(|(_, entry)| entry.fd >= 0) {
        // One descriptor may be in several entries: it is watched once, for the events of all of
        // them.
        if wanted[..index].iter().any(|earlier| earlier.fd == entry.fd) {
            continue;
        }
        let all = wanted.iter().filter(|other| other.fd == entry.fd);
        // The events of the two calls have the same numbers.
        let events = all.fold(0, |events, other| events | other.events as u16);
        let mut event = libc::epoll_event { events: u32::from(events), u64: 0 };
        // SAFETY: both descriptors are numbers; the event is a local variable.
        check(unsafe {
            libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, entry.fd, &raw mut event)
        })?;
    }
    Ok(epoll)
}
