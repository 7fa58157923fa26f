//! The messages of the handshake (*letters*).

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use kyocho_sys::prim::clock::Instant;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// Bytes of a hello, a proof or a refusal at most.
const LETTER_MAX: usize = 256;
const LENGTH: usize = 2;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) magic: [u8; 6],
    pub(super) version: u16,
    pub(super) rank: u16,
    pub(super) nodes: u16,
    pub(super) layout: [u64; 4],
    pub(super) number: [u8; 32],
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Letter {
    Hello(Hello),
    Proof([u8; 32]),
    Refused(Refusal, Hello),
}

/// What proofs authenticate: the connector's hello, then the acceptor's.
pub(super) fn both(connector: &Hello, acceptor: &Hello) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(&(connector, acceptor)).map_err(io::Error::other)
}

/// Sends a letter. It is short, and the first or second one, so a socket accepts it at once.
pub(super) fn write(stream: &mut TcpStream, letter: &Letter) -> io::Result<()> {
    let bytes = postcard::to_stdvec(letter).map_err(io::Error::other)?;
    stream.write_all(&[&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat())
}

/// A letter that arrives byte by byte. No byte after it is read.
#[derive(Debug, Default)]
pub(super) struct Reading(Vec<u8>);

impl Reading {
    /// Reads once. Returns the letter when it is complete. So a deadline can be checked between any
    /// two bytes.
    ///
    /// # Errors
    /// `WouldBlock`, `TimedOut`: nothing has arrived. `InvalidData`: this is no letter. Others: the
    /// peer is gone.
    pub(super) fn read(&mut self, stream: &mut TcpStream) -> io::Result<Option<Letter>> {
        let mut buffer = [0; LENGTH + LETTER_MAX];
        let missing = self.missing()?;
        match stream.read(&mut buffer[..missing]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => self.0.extend_from_slice(&buffer[..bytes]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
        if self.missing()? > 0 {
            return Ok(None);
        }
        let bytes = core::mem::take(&mut self.0);
        let letter = postcard::from_bytes(&bytes[LENGTH..]);
        letter.map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// How many bytes are still to come, as far as is known.
    fn missing(&self) -> io::Result<usize> {
        let length = self.0.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
        match length {
            None => Ok(LENGTH - self.0.len()),
            Some(length) if (1..=LETTER_MAX).contains(&length) => {
                Ok(LENGTH + length - self.0.len())
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Whether the call may succeed later.
pub(super) fn is_early(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Waits for a complete letter until a deadline, and calls `meanwhile` every `slice`.
pub(super) fn read_until<E: From<io::Error>>(
    stream: &mut TcpStream,
    until: Instant,
    slice: Duration,
    mut meanwhile: impl FnMut() -> Result<(), E>,
) -> Result<Letter, E> {
    let mut reading = Reading::default();
    loop {
        meanwhile()?;
        let left = until.saturating_duration_since(Instant::now());
        let limit = left.min(slice).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(limit))?;
        match reading.read(stream) {
            Err(why) if is_early(&why) && !left.is_zero() => {}
            Err(why) if is_early(&why) => return Err(E::from(io::ErrorKind::TimedOut.into())),
            Err(why) => return Err(E::from(why)),
            Ok(Some(letter)) => return Ok(letter),
            Ok(None) if left.is_zero() => return Err(E::from(io::ErrorKind::TimedOut.into())),
            Ok(None) => {}
        }
    }
}
