//! Sockets of this machine, named by paths.

use core::time::Duration;
use std::{
    io::{Read, Result, Write},
    net::Shutdown,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use socket2::{Domain, SockAddr, Type};

use super::{
    socket::Socket,
    tcp::{descriptor, stream},
};

/// Connections that wait to be accepted, as in std.
const BACKLOG: i32 = 128;

/// A socket that accepts connections, as [`std::os::unix::net::UnixListener`].
#[derive(Debug)]
pub struct UnixListener {
    socket: Socket,
}

impl UnixListener {
    /// Listens on `path`, which must not exist yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bind(path: impl AsRef<Path>) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM)?;
        let options = socket.options();
        options.bind(&SockAddr::unix(path)?)?;
        options.listen(BACKLOG)?;
        Ok(Self { socket })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The kernel's, and [`TimedOut`](std::io::ErrorKind::TimedOut).
    pub fn accept(&self) -> Result<UnixStream> {
        Ok(UnixStream { socket: self.socket.accept()? })
    }

    /// Limits how long an accept waits.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
    pub fn set_accept_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }
}

/// A connection, as [`std::os::unix::net::UnixStream`].
#[derive(Debug)]
pub struct UnixStream {
    socket: Socket,
}

impl UnixStream {
    /// Connects to the listener at `path`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM)?;
        socket.connect(&SockAddr::unix(path)?, None)?;
        Ok(Self { socket })
    }

    /// Two ends that are connected to each other.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pair() -> Result<(Self, Self)> {
        let (one, other) = std::os::unix::net::UnixStream::pair()?;
        Ok((one.into(), other.into()))
    }

    /// Ends one or both directions; whoever waits on them is told.
    ///
    /// # Errors
    /// The kernel's.
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        self.socket.options().shutdown(how)
    }

    /// Another handle to the same connection, with the same time limits.
    ///
    /// # Errors
    /// The kernel's.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self { socket: self.socket.try_clone()? })
    }

    /// Limits how long a read waits.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.read_limit.set(limit)
    }

    /// Limits how long a write waits.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) for a limit of zero.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> Result<()> {
        self.socket.write_limit.set(limit)
    }
}

stream!(UnixStream, std::os::unix::net::UnixStream);
descriptor!(UnixListener, std::os::unix::net::UnixListener);
