//! The messages of the handshake.

use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use kyocho_sys::prim::clock::Instant;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// Bytes of a hello, a proof or a refusal at most.
const MESSAGE_BYTES_MAX: usize = 256;
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
pub(super) enum HandshakeMessage {
    Hello(Hello),
    Proof([u8; 32]),
    Refused(Refusal, Hello),
}

/// What proofs authenticate: the connector's hello, then the acceptor's.
pub(super) fn both(connector: &Hello, acceptor: &Hello) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(&(connector, acceptor)).map_err(io::Error::other)
}

/// Sends a message. It is short, and the first or second one, so a socket accepts it at once.
pub(super) fn write(stream: &mut TcpStream, message: &HandshakeMessage) -> io::Result<()> {
    let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
    stream.write_all(&[&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat())
}

/// A message that arrives byte by byte. No byte after it is read.
#[derive(Debug, Default)]
pub(super) struct Reading(Vec<u8>);

impl Reading {
    /// Reads once. Returns the message when it is complete. So a deadline can be checked between
    /// any two bytes.
    ///
    /// # Errors
    /// `WouldBlock`, `TimedOut`: nothing has arrived. `InvalidData`: this is no message. Others:
    /// the peer is gone.
    pub(super) fn read(&mut self, stream: &mut TcpStream) -> io::Result<Option<HandshakeMessage>> {
        let mut buffer = [0; LENGTH + MESSAGE_BYTES_MAX];
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
        let message = postcard::from_bytes(&bytes[LENGTH..]);
        message.map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// How many bytes are still to come, as far as is known.
    fn missing(&self) -> io::Result<usize> {
        let length = self.0.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
        match length {
            None => Ok(LENGTH - self.0.len()),
            Some(length) if (1..=MESSAGE_BYTES_MAX).contains(&length) => {
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

/// Waits for a complete message until a deadline, and calls `meanwhile` every `slice`. If
/// `meanwhile` fails, a message that has arrived by then is still returned: a peer that refuses
/// this node ends soon after, and the refusal says more than its end.
pub(super) fn read_until<E: From<io::Error>>(
    stream: &mut TcpStream,
    until: Instant,
    slice: Duration,
    mut meanwhile: impl FnMut() -> Result<(), E>,
) -> Result<HandshakeMessage, E> {
    let mut reading = Reading::default();
    loop {
        if let Err(why) = meanwhile() {
            return arrived(&mut reading, stream)?.ok_or(why);
        }
        let left = until.saturating_duration_since(Instant::now());
        let limit = left.min(slice).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(limit))?;
        match reading.read(stream) {
            Err(why) if is_early(&why) && !left.is_zero() => {}
            Err(why) if is_early(&why) => return Err(E::from(io::ErrorKind::TimedOut.into())),
            Err(why) => return Err(E::from(why)),
            Ok(Some(message)) => return Ok(message),
            Ok(None) if left.is_zero() => return Err(E::from(io::ErrorKind::TimedOut.into())),
            Ok(None) => {}
        }
    }
}

/// The message, if all of it has arrived.
fn arrived(reading: &mut Reading, stream: &mut TcpStream) -> io::Result<Option<HandshakeMessage>> {
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    loop {
        match reading.read(stream) {
            Ok(None) => {}
            Ok(message) => return Ok(message),
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_refusal_that_has_arrived_is_read_though_its_sender_has_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let hello = Hello {
            magic: *b"KYODSM",
            version: 1,
            rank: 0,
            nodes: 2,
            layout: [0; 4],
            number: [0; 32],
        };
        write(&mut sender, &HandshakeMessage::Refused(Refusal::Layout, hello)).unwrap();
        drop(sender);
        let until = Instant::now() + Duration::from_secs(60);
        let mut read = || {
            let ended = || Err(io::Error::from(io::ErrorKind::NotConnected));
            read_until::<io::Error>(&mut stream, until, Duration::from_secs(1), ended)
        };
        let message = read();
        assert!(
            matches!(message, Ok(HandshakeMessage::Refused(Refusal::Layout, _))),
            "{message:?}"
        );
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::NotConnected, "no second message");
    }
}
