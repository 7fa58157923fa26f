//! Messages between processes that carry descriptors (`SCM_RIGHTS`).
#![expect(unsafe_code, reason = "lays out control messages")]

use core::mem;
use core::ptr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::error::Errno;
use crate::fault::{self, Call};

/// Most descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 4;

/// Memory for the control message, aligned as the kernel requires.
#[repr(C, align(8))]
struct Control([u8; 64]);

const PAYLOAD_MAX: usize = DESCRIPTORS_MAX * size_of::<RawFd>();
const _: () = {
    // SAFETY: computes a length.
    let bytes = unsafe { libc::CMSG_SPACE(PAYLOAD_MAX as u32) };
    assert!(bytes as usize <= 64);
};

/// Sends `bytes` with `descriptors` as one message. Blocks as the socket does. A peer that is gone
/// causes an error, not a signal.
///
/// # Errors
/// `INVAL`: more than [`DESCRIPTORS_MAX`]. `AGAIN`, `PIPE` and other errors of the socket. Injected
/// errors.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(Errno::INVAL);
    }
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    // SAFETY: a `msghdr` consists of numbers and pointers, for which zero is a valid value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let payload = size_of_val(descriptors.iter().as_slice()) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: computes a length.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as usize;
        // SAFETY: `message` describes `control`, which has room for one header.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: computes a length.
        let length = unsafe { libc::CMSG_LEN(payload) } as usize;
        let filled = libc::cmsghdr {
            cmsg_len: length,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        };
        // SAFETY: it points into `control`, which is aligned for it.
        unsafe { header.write(filled) };
        // SAFETY: the payload starts inside `control`.
        let place = unsafe { libc::CMSG_DATA(header) };
        // SAFETY: a borrowed descriptor is its number; the assertion above leaves room for all of
        // them.
        unsafe { ptr::copy_nonoverlapping(descriptors.as_ptr().cast(), place, payload as usize) };
    }
    // SAFETY: the kernel reads what `message` describes: `bytes` and `control`.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// Sends `bytes` as one message to the address in `name` (to the connected peer if it is empty),
/// with the control messages in `control`. Never blocks and never causes a signal. The kernel
/// checks all of it.
///
/// # Errors
/// `AGAIN`: this socket or the receiving one is full. Other errors of the socket. Injected errors.
pub fn send_as(
    socket: BorrowedFd<'_>,
    name: &[u8],
    bytes: &[u8],
    control: &[u8],
    flags: i32,
) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: as in `send`.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !name.is_empty() {
        message.msg_name = name.as_ptr().cast_mut().cast();
        message.msg_namelen = name.len() as u32;
    }
    if !control.is_empty() {
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len();
    }
    let flags = flags | libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the kernel reads what `message` describes: `name`, `bytes` and `control`.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| Errno::last())
}

/// Receives one message into `bytes`. Returns its length and its descriptors, which executed
/// programs do not inherit. Length 0 is the end. Blocks as the socket does. Allocates.
///
/// # Errors
/// `INVAL`: the message or its descriptors did not fit. `AGAIN` and other errors of the socket.
/// Injected errors.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    fault::check(Call::Read)?;
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    // SAFETY: as in `send`.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a length.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(PAYLOAD_MAX as u32) } as usize;
    let flags = libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the kernel writes to what `message` describes: `bytes` and `control`.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let received = usize::try_from(received).map_err(|_| Errno::last())?;
    let descriptors = taken_from(&message);
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(Errno::INVAL);
    }
    Ok((received, descriptors))
}

/// The descriptors of a message.
fn taken_from(message: &libc::msghdr) -> Vec<OwnedFd> {
    // SAFETY: the kernel has filled what `message` describes.
    let header = unsafe { libc::CMSG_FIRSTHDR(ptr::from_ref(message)) };
    // SAFETY: null, or inside the control buffer.
    let Some(found) = (unsafe { header.as_ref() }) else { return Vec::new() };
    if found.cmsg_level != libc::SOL_SOCKET || found.cmsg_type != libc::SCM_RIGHTS {
        return Vec::new();
    }
    // SAFETY: computes a length.
    let head = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = (found.cmsg_len.saturating_sub(head) / size_of::<RawFd>()).min(DESCRIPTORS_MAX);
    // SAFETY: inside the control buffer.
    let place = unsafe { libc::CMSG_DATA(header) };
    let number = |index: usize| {
        // SAFETY: the kernel wrote `count` numbers there.
        let at = unsafe { place.add(index * size_of::<RawFd>()) };
        // SAFETY: as above; no alignment is assumed.
        unsafe { at.cast::<RawFd>().read_unaligned() }
    };
    // SAFETY: the kernel has just created each of them, and nothing else owns them.
    (0..count).map(|index| unsafe { OwnedFd::from_raw_fd(number(index)) }).collect()
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTORS_MAX, receive, send};
    use crate::error::Errno;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_arrive_with_their_message() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        assert_eq!(send(one.as_fd(), b"here", &[writer.as_fd()]), Ok(4));
        drop(writer);
        let mut bytes = [0; 16];
        let (length, mut descriptors) = receive(other.as_fd(), &mut bytes).unwrap();
        assert_eq!((&bytes[..length], descriptors.len()), (&b"here"[..], 1));
        let mut writer = std::fs::File::from(descriptors.remove(0));
        writer.write_all(b"through").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(send(one.as_fd(), b"none", &[]), Ok(4));
        assert!(receive(other.as_fd(), &mut bytes).unwrap().1.is_empty());
    }

    #[test]
    fn too_many_descriptors_are_refused_and_a_closed_peer_is_an_error() {
        let (one, other) = UnixStream::pair().unwrap();
        let many = [one.as_fd(); DESCRIPTORS_MAX + 1];
        assert_eq!(send(one.as_fd(), b"x", &many), Err(Errno::INVAL));
        drop(other);
        assert_eq!(send(one.as_fd(), b"x", &[]), Err(Errno::new(libc::EPIPE)));
        let (length, _none) = receive(one.as_fd(), &mut [0; 4]).unwrap();
        assert_eq!(length, 0, "the end");
    }
}
