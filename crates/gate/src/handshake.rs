//! Messages over the socket: the handshake before the first call, and attaching and detaching
//! regions.
//!
//! ```text
//!   client                                            server
//!   HELLO version      + its doorbells        ──────►
//!                                             ◄────── WELCOME credits  + its doorbells, the frames
//!                                                     (or REFUSED)
//!   ATTACH number      + a region's memory    ──────►
//!   DETACH number                             ──────►
//! ```
//!
//! A message is three numbers. The socket preserves message boundaries (`SOCK_SEQPACKET`).

use core::time::Duration;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use kyocho_microprocess::bell;
use kyocho_sys::error::Errno;
use kyocho_sys::passing;
use kyocho_sys::peer::Peer;
use kyocho_sys::sealed::{SealedMemory, Use};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::Error;
use crate::frame::{CREDITS_MAX, memory_bytes};

/// Version of the protocol; changes with the layout of frames and doorbells.
const VERSION: u32 = 2;
/// How long each side waits for a message of the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Length of a message.
const BYTES: usize = 12;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    Hello,
    Welcome { credits: u32 },
    Refused,
    Attach { number: u32 },
    Detach { number: u32 },
}

impl Message {
    fn encode(self) -> [u8; BYTES] {
        let (kind, number) = match self {
            Self::Hello => (1_u32, 0),
            Self::Welcome { credits } => (2, credits),
            Self::Refused => (3, 0),
            Self::Attach { number } => (4, number),
            Self::Detach { number } => (5, number),
        };
        let mut bytes = [0; BYTES];
        for (chunk, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip([kind, VERSION, number]) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    /// The message that `bytes` encode; `None` if they encode none.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let [kind, version, number] = *words else { return None };
        if !rest.is_empty() || u32::from_le_bytes(version) != VERSION {
            return None;
        }
        let number = u32::from_le_bytes(number);
        Some(match u32::from_le_bytes(kind) {
            1 => Self::Hello,
            2 => Self::Welcome { credits: number },
            3 => Self::Refused,
            4 => Self::Attach { number },
            5 => Self::Detach { number },
            _ => return None,
        })
    }

    /// Sends the message with `descriptors`.
    pub(crate) fn send(
        self,
        socket: BorrowedFd<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        passing::send(socket, &self.encode(), descriptors).map(drop)
    }

    /// Receives the next message and its descriptors; `None` at the end, or if the bytes are not a
    /// message.
    pub(crate) fn receive(socket: BorrowedFd<'_>) -> Result<Option<(Self, Vec<OwnedFd>)>, Errno> {
        let mut bytes = [0; BYTES + 1];
        loop {
            match passing::receive(socket, &mut bytes) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
                Ok((length, descriptors)) => {
                    return Ok(Self::decode(&bytes[..length]).map(|message| (message, descriptors)));
                }
            }
        }
    }
}

/// A new socket of the kind that gates use.
pub(crate) fn socket() -> Result<Socket, Error> {
    Ok(Socket::new(Domain::UNIX, Type::from(libc::SOCK_SEQPACKET), None)?)
}

/// Connects to the server at `path`. Returns the socket, the server's doorbells, the frames, and
/// their number.
pub(crate) fn connect(path: &Path) -> Result<(Socket, bell::Peer, SealedMemory, usize), Error> {
    let refused = |error: std::io::Error| Error::Connect(error.kind());
    let socket = socket()?;
    let address = SockAddr::unix(path).map_err(refused)?;
    socket.connect(&address).map_err(refused)?;
    socket.set_read_timeout(Some(HANDSHAKE_LIMIT))?;
    let (read_only, writable) = bell::descriptors()?;
    // A server that refuses this client may close before it reads the greeting; its refusal still
    // arrives.
    let greeted = Message::Hello.send(socket.as_fd(), &[read_only, writable]);
    let answer = Message::receive(socket.as_fd());
    let (credits, descriptors) = match answer {
        Ok(Some((Message::Welcome { credits }, descriptors))) => (credits, descriptors),
        Ok(Some((Message::Refused, _))) => return Err(Error::Refused),
        Ok(Some(_)) => return Err(Error::Protocol),
        Ok(None) | Err(_) => return Err(greeted.err().map_or(Error::Closed, Error::from)),
    };
    let [read_only, writable, frames] =
        <[OwnedFd; 3]>::try_from(descriptors).map_err(|_| Error::Protocol)?;
    let process = Peer::of(socket.as_fd())?.process;
    let server = bell::Peer::receive(read_only, writable, process).map_err(|_| Error::Protocol)?;
    let most = memory_bytes(CREDITS_MAX);
    let frames =
        SealedMemory::receive(frames, most, Use::ReadWrite).map_err(|_| Error::Protocol)?;
    let credits = credits as usize;
    if !(1..=CREDITS_MAX).contains(&credits) || frames.bytes() < memory_bytes(credits) {
        return Err(Error::Protocol);
    }
    socket.set_read_timeout(None)?;
    Ok((socket, server, frames, credits))
}

/// Receives the greeting of a client in `process`. Returns its doorbells.
pub(crate) fn receive_hello(socket: &Socket, process: u32) -> Result<bell::Peer, Error> {
    socket.set_read_timeout(Some(HANDSHAKE_LIMIT))?;
    let Some((Message::Hello, descriptors)) = Message::receive(socket.as_fd())? else {
        return Err(Error::Protocol);
    };
    socket.set_read_timeout(None)?;
    let [read_only, writable] =
        <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| Error::Protocol)?;
    bell::Peer::receive(read_only, writable, process).map_err(|_| Error::Protocol)
}

/// Answers a greeting with this process's doorbells and the client's `frames`, of which there are
/// `credits`.
pub(crate) fn welcome(
    socket: BorrowedFd<'_>,
    frames: &SealedMemory,
    credits: usize,
) -> Result<(), Error> {
    let (read_only, writable) = bell::descriptors()?;
    let message = Message::Welcome { credits: credits as u32 };
    Ok(message.send(socket, &[read_only, writable, frames.as_fd()])?)
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Message};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_that_are_not_a_message_are_not_decoded(bytes in prop::collection::vec(any::<u8>(), 0..2 * BYTES)) {
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }

        #[test]
        fn decoding_an_encoded_message_returns_it(number: u32) {
            for message in [Message::Hello, Message::Refused, Message::Welcome { credits: number },
                Message::Attach { number }, Message::Detach { number }] {
                let bytes = message.encode();
                prop_assert_eq!(Message::decode(&bytes), Some(message));
                prop_assert_eq!(Message::decode(&bytes[..BYTES - 1]), None);
            }
        }
    }
}
