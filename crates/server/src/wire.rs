//! The way to a user, for all who write to him: encoded, sent whole, in order.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is sent at a time of what a program writes.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// The sending half of a connection. A write that a signal interrupts has sent nothing.
pub(crate) trait Outlet: Write + Send {
    /// Ends the connection in both directions.
    fn hang_up(&self);
}

impl Outlet for std::os::unix::net::UnixStream {
    fn hang_up(&self) {
        // The user was quicker.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Outlet for std::net::TcpStream {
    fn hang_up(&self) {
        // The user was quicker.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// The way. Clones are the same.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Mutex<Line>>);

struct Line {
    writer: Box<dyn Outlet>,
    /// Encoded and not sent yet: less than what one message is.
    pending: Vec<u8>,
}

impl Line {
    /// Sends what is pending. A user who does not take it is gone: the session's other half is told.
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
    pub(crate) fn new(writer: Box<dyn Outlet>) -> Self {
        Self(Arc::new(Mutex::new(Line { writer, pending: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what `encode` adds.
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

    /// Sends the beginning of what a program writes, from Lisp threads: an interrupted write has taken nothing, or all.
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
            // The rest goes before whatever is written next.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(count),
            result => result.map(|()| count),
        }
    }

    /// Sends what an interrupted write has left.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.lock().flush()
    }

    /// Ends the connection: its other half reads no more.
    pub(crate) fn hang_up(&self) {
        self.lock().writer.hang_up();
    }
}

/// How many bytes to take so that no character is cut.
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
    fn no_character_is_cut() {
        let text = "aé€𝄞".repeat(20);
        for most in 4..text.len() + 2 {
            let count = whole_characters(text.as_bytes(), most);
            assert!(text.is_char_boundary(count) && count <= most && count > 0, "{most}: {count}");
        }
    }
}
