//! A stream of TLS over a socket, for a port at either end.
//!
//! The socket never blocks: who waits does so in `poll`, without the lock, so one thread reads while another writes. Whoever comes first
//! shakes hands with the other side, alone; after that only readers take what the socket has, so no reader waits for bytes that a
//! writer has taken. Bounds: what was not sent yet, and what was received and not read, are 64 KiB at most.

use super::turn::Turn;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use rustls::Connection;
use socket2::Socket;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What may wait to be sent.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Tls {
    socket: Socket,
    /// Held by who shakes hands.
    handshake: Turn<()>,
    /// Never held by who waits.
    connection: Mutex<Connection>,
}

/// Says that a wait is to end: its thread is wanted for something else.
type IsCut<'a> = &'a dyn Fn() -> bool;

impl Tls {
    /// A connection whose handshake is not made yet.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn new(socket: Socket, mut connection: Connection) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self { socket, handshake: Turn::default(), connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out who the other side is. Waits; once it is done, it costs nothing.
    ///
    /// # Errors
    /// The other side is not who it should be, speaks something else, or has gone. `Interrupted`: to be made again.
    pub(crate) fn shake_hands(&self, is_cut: IsCut<'_>) -> io::Result<()> {
        if !self.lock().is_handshaking() {
            return Ok(());
        }
        let cut = || io::Error::from(ErrorKind::Interrupted);
        let _alone = self.handshake.lock_unless(is_cut).ok_or_else(cut)?;
        self.receive_until(is_cut, |connection| (!connection.is_handshaking()).then_some(Ok(())))
    }

    /// Reads; 0 at the end, which the other side must have announced.
    pub(super) fn read(&self, buffer: &mut [u8], is_cut: IsCut<'_>) -> io::Result<usize> {
        self.shake_hands(is_cut)?;
        self.receive_until(is_cut, |connection| match connection.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let cut = "the connection was cut: its end was not announced";
                Some(Err(io::Error::new(ErrorKind::UnexpectedEof, cut)))
            }
            result => Some(result),
        })
    }

    /// Writes some bytes. Interrupted it has taken nothing; what it has taken and not sent goes before whatever is written next.
    pub(super) fn write(&self, bytes: &[u8], is_cut: IsCut<'_>) -> io::Result<usize> {
        self.shake_hands(is_cut)?;
        self.send_all(is_cut)?;
        let count = self.lock().writer().write(bytes)?;
        match self.send_all(is_cut) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(count),
            result => result.map(|()| count),
        }
    }

    /// Sends what the socket has room for, and waits for nothing: the rest is lost.
    pub(super) fn send_now(&self, bytes: &[u8]) {
        let mut connection = self.lock();
        if !connection.is_handshaking() {
            // There is nobody to tell of an error.
            let _ = self.send(&mut connection);
            let _ = connection.writer().write(bytes);
            let _ = self.send(&mut connection);
        }
    }

    /// Whether reading would not wait, as far as one can tell without it.
    pub(super) fn is_ready(&self) -> bool {
        let has_plaintext = !self.lock().wants_read();
        // Where polling fails, reading will say why, and not wait.
        has_plaintext || kyocho_sys::descriptor::is_readable(self.socket.as_fd()).unwrap_or(true)
    }

    /// Announces the end of what is written, if the socket has room for it.
    pub(crate) fn announce_end(&self) {
        let mut connection = self.lock();
        connection.send_close_notify();
        // The other side was quicker, or does not read: it takes this for a cut.
        let _ = self.send(&mut connection);
    }

    /// Receives until `step` has what it wants.
    fn receive_until<T>(
        &self,
        is_cut: IsCut<'_>,
        mut step: impl FnMut(&mut Connection) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        loop {
            let mut connection = self.lock();
            let is_sent = self.send(&mut connection)?;
            if let Some(result) = step(&mut connection) {
                return result;
            }
            if self.receive(&mut connection)? {
                continue;
            }
            drop(connection);
            self.wait(true, !is_sent, is_cut)?;
        }
    }

    fn send_all(&self, is_cut: IsCut<'_>) -> io::Result<()> {
        loop {
            let is_sent = self.send(&mut self.lock())?;
            if is_sent {
                return Ok(());
            }
            self.wait(false, true, is_cut)?;
        }
    }

    /// Sends what there is room for; whether that was all.
    fn send(&self, connection: &mut Connection) -> io::Result<bool> {
        while connection.wants_write() {
            match connection.write_tls(&mut &self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Receives what has come; whether there was something, be it the end.
    fn receive(&self, connection: &mut Connection) -> io::Result<bool> {
        let count = match connection.read_tls(&mut &self.socket) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        if let Err(error) = connection.process_new_packets() {
            // The other side is told why, if it still listens.
            let _ = self.send(connection);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        if count == 0 && connection.is_handshaking() {
            let gone = "the other side has gone before it said who it is";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, gone));
        }
        Ok(true)
    }

    fn wait(&self, for_bytes: bool, for_room: bool, is_cut: IsCut<'_>) -> io::Result<()> {
        let read = (self.socket.as_fd(), Interest::Read);
        let write = (self.socket.as_fd(), Interest::Write);
        let waited = match (for_bytes, for_room) {
            (true, true) => poll::wait([read, write], None),
            (true, false) => poll::wait([read], None),
            (false, _) => poll::wait([write], None),
        };
        match waited {
            Err(Errno::INTR) if !is_cut() => Ok(()),
            result => Ok(result.map(drop)?),
        }
    }
}
