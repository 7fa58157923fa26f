//! Sends to a user's client, for several writers: messages are encoded, and sent whole and in
//! order.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of a program's output in one message.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// The sending half of a connection. A write that a signal interrupts has sent nothing.
pub(crate) trait ConnectionWriter: Write + Send {
    /// Ends the connection in both directions.
    fn hang_up(&self);
}

impl ConnectionWriter for std::os::unix::net::UnixStream {
    fn hang_up(&self) {
        // The client may have closed it already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl ConnectionWriter for std::net::TcpStream {
    fn hang_up(&self) {
        // The client may have closed it already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// The sender. All clones send to the same client.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Mutex<Line>>);

struct Line {
    writer: Box<dyn ConnectionWriter>,
    /// Encoded bytes that are not sent yet. While the lock is free: at most one message.
    pending: Vec<u8>,
}

impl Line {
    /// Sends the pending bytes. If the client does not accept them, the connection is closed, so
    /// its reader ends as well.
    fn flush(&mut self) -> io::Result<()> {
        let sent = self.send();
        if sent.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            self.writer.hang_up();
        }
        sent
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.writer.write(&self.pending)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => drop(self.pending.drain(..count)),
            }
        }
        Ok(())
    }
}

impl Wire {
    pub(crate) fn new(writer: Box<dyn ConnectionWriter>) -> Self {
        Self(Arc::new(Mutex::new(Line { writer, pending: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what `encode` appends.
    pub(crate) fn send(&self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut line = self.lock();
        encode(&mut line.pending);
        loop {
            match line.flush() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Sends the beginning of `bytes`, which a Lisp thread writes. Returns how many bytes were
    /// taken: all, or as many whole characters as a message may have.
    ///
    /// # Errors
    /// `Interrupted`: no bytes were taken. Otherwise the connection is closed.
    pub(crate) fn write(
        &self,
        bytes: &[u8],
        encode: impl FnOnce(&str, &mut Vec<u8>),
    ) -> io::Result<usize> {
        let mut line = self.lock();
        line.flush()?;
        let count = whole_characters(bytes, OUTPUT_BYTES_MAX);
        encode(&String::from_utf8_lossy(&bytes[..count]), &mut line.pending);
        match line.flush() {
            // The rest of the message is sent before the next one.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(count),
            result => result.map(|()| count),
        }
    }

    /// Sends what an interrupted write has left.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.lock().flush()
    }

    /// Closes the connection, so its reader ends.
    pub(crate) fn hang_up(&self) {
        self.lock().writer.hang_up();
    }
}

/// The largest number of bytes up to `most` that splits no character.
fn whole_characters(bytes: &[u8], most: usize) -> usize {
    if bytes.len() <= most {
        return bytes.len();
    }
    let is_boundary = |&at: &usize| bytes[at] & 0xc0 != 0x80;
    (most - 3..=most).rev().find(is_boundary).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn output_is_split_between_characters() {
        let text = "aé€𝄞".repeat(20);
        for most in 4..text.len() + 2 {
            let count = whole_characters(text.as_bytes(), most);
            assert!(text.is_char_boundary(count) && count <= most && count > 0, "{most}: {count}");
        }
    }
}
