//! A TLS stream over a socket, shared by an input port and an output port.
//!
//! The socket is non-blocking. A thread waits in `poll` without the lock, so one thread can read
//! while another writes. The first thread to use the connection performs the handshake alone.
//! Afterwards only readers receive from the socket. So no reader waits for bytes that a writer has
//! received. Bounds: bytes not sent yet, and bytes received and not read, are 64 KiB at most.

use super::interruptible_lock::InterruptibleLock;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use rustls::Connection;
use socket2::Socket;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes that may wait to be sent.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Tls {
    socket: Socket,
    /// Locked by the thread that performs the handshake.
    handshake: InterruptibleLock<()>,
    /// Never locked by a thread that waits.
    connection: Mutex<Connection>,
}

/// Returns whether a wait must end, because its thread must stop.
type IsCut<'a> = &'a dyn Fn() -> bool;

impl Tls {
    /// A connection before its handshake.
    ///
    /// # Errors
    /// The host's error.
    pub(crate) fn new(socket: Socket, mut connection: Connection) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self {
            socket,
            handshake: InterruptibleLock::default(),
            connection: Mutex::new(connection),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs the handshake, which authenticates the other side. Waits. When the handshake is
    /// done, further calls cost nothing.
    ///
    /// # Errors
    /// The other side has the wrong identity, violates the protocol, or has gone. `Interrupted`:
    /// the call must be repeated.
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

    /// Writes some bytes. If interrupted, it has accepted nothing. Bytes accepted and not sent yet
    /// are sent before any later ones.
    pub(super) fn write(&self, bytes: &[u8], is_cut: IsCut<'_>) -> io::Result<usize> {
        self.shake_hands(is_cut)?;
        self.send_all(is_cut)?;
        let count = self.lock().writer().write(bytes)?;
        match self.send_all(is_cut) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(count),
            result => result.map(|()| count),
        }
    }

    /// Sends as much as the socket accepts without waiting. The rest is lost.
    pub(super) fn send_now(&self, bytes: &[u8]) {
        let mut connection = self.lock();
        if !connection.is_handshaking() {
            // An error cannot be reported.
            let _ = self.send(&mut connection);
            let _ = connection.writer().write(bytes);
            let _ = self.send(&mut connection);
        }
    }

    /// Whether reading would probably not block.
    pub(super) fn is_ready(&self) -> bool {
        let has_plaintext = !self.lock().wants_read();
        // If polling fails, reading reports why, and does not block.
        has_plaintext || kyocho_sys::descriptor::is_readable(self.socket.as_fd()).unwrap_or(true)
    }

    /// Announces the end of the output, if the socket accepts it.
    pub(crate) fn announce_end(&self) {
        let mut connection = self.lock();
        connection.send_close_notify();
        // The other side has closed already, or does not read. It will treat this as a broken
        // connection.
        let _ = self.send(&mut connection);
    }

    /// Receives until `step` returns a result.
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

    /// Sends as much as the socket accepts. Returns whether that was everything.
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

    /// Receives what has arrived. Returns whether there was anything, or the end.
    fn receive(&self, connection: &mut Connection) -> io::Result<bool> {
        let count = match connection.read_tls(&mut &self.socket) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        if let Err(error) = connection.process_new_packets() {
            // Send the reason to the other side, if it still reads.
            let _ = self.send(connection);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        if count == 0 && connection.is_handshaking() {
            let gone = "the other side closed the connection during the handshake";
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
