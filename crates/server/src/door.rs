//! A door: the server side of one protocol by which users connect to their sessions.
//!
//! ```text
//!   Protocol   data: its name, the forms of its addresses, its part of the configuration
//!      │
//!   Door ──open──► Listener ──serve_next──► a microprocess that serves one connection
//! ```
//!
//! To add a protocol:
//!
//! 1. Write `doors/NAME.rs` with a `static PROTOCOL: Protocol`, a type that implements [`Door`],
//!    and a type that implements [`Listener`]. `doors/unix.rs` is the shortest example.
//! 2. In `doors.rs`, add `mod NAME;` and the door's value to the table `DOORS`.
//!
//! The parser of addresses, the help text of `--listen` and the keys of the configuration file are
//! derived from the [`Protocol`].
//!
//! A door must identify the user of a connection before it opens a session:
//!
//! | user of the connection | function | example |
//! |---|---|---|
//! | the user of the process behind a Unix socket | `entrance::account_of_peer` | `unix` |
//! | the name with which the client has logged in | `Register::account_of` | `ssh` |
//! | the user that the configuration names | `Register::configured_account` | `telnet` |
//!
//! If the protocol carries lines of text, [`entrance::start_getty`](crate::entrance::start_getty)
//! starts a getty ([`getty`](crate::getty)), which opens the session. A protocol with other
//! messages opens its sessions itself with
//! [`System::open_session`](kyocho_lisp::system::System::open_session), as nREPL does.

use crate::address::Endpoint;
use crate::context::Context;
use crate::protocol::Protocol;
use core::fmt::Debug;
use std::io;
use std::sync::Arc;

/// The server side of one protocol.
pub(crate) trait Door: Sync {
    /// The protocol's name, addresses and configuration.
    fn protocol(&self) -> &'static Protocol;

    /// Listens on `endpoint`, a socket or a port as the protocol's [`Protocol`] permits.
    ///
    /// # Errors
    /// The host refuses, another server listens there, or the configuration names no user for this
    /// protocol.
    fn open(&self, endpoint: &Endpoint, context: &Arc<Context>) -> io::Result<Opened>;
}

/// An open door.
pub(crate) struct Opened {
    pub(crate) listener: Box<dyn Listener>,
    /// Files that are removed when this is dropped: the name of a socket, a file with a token. The
    /// server drops this when it ends. It never drops the listener, because microprocesses use that
    /// until the process exits.
    pub(crate) files: Option<Box<dyn Debug + Send>>,
}

/// Accepts the connections of an open door.
pub(crate) trait Listener: Send + Sync {
    /// The socket or port on which it listens. If port 0 was requested, this is the port that the
    /// host has chosen.
    ///
    /// # Errors
    /// The host does not report the address.
    fn endpoint(&self) -> io::Result<Endpoint>;

    /// Waits for the next connection, and starts a microprocess that serves it to its end. Called
    /// from a microprocess, in a loop.
    ///
    /// # Errors
    /// The host has no memory or descriptor for another connection. The caller reports the error,
    /// waits, and calls again.
    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()>;
}
