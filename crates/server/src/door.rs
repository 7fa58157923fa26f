//! A door: one protocol by which users reach their sessions.
//!
//! ```text
//!   Protocol  data: name, forms of its addresses, what the configuration says about it
//!      │
//!   Door ──open(place)──► Listener ──serve_next──► a microprocess that serves one connection
//! ```
//!
//! To add a protocol, write a file in `doors/` with a type that implements [`Door`], and name it in the table of `doors.rs`.
//! Addresses, the help of the command and the configuration file follow from its [`Protocol`].
//!
//! A connection is worth nothing until the door knows whose it is. [`entrance`](crate::entrance) has the ways: the user whom the
//! kernel names at the other end of a Unix socket, the user of a public key, the user whom the configuration names. It also starts
//! a getty ([`getty`](crate::getty)) for a protocol that carries lines of text. A protocol of another shape opens its sessions itself with
//! [`System::open_session`](kyocho_lisp::system::System::open_session), as nREPL does.

use crate::address::Place;
use crate::context::Context;
use crate::protocol::Protocol;
use core::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A protocol by which users come in.
pub(crate) trait Door: Sync {
    /// The protocol, as data.
    fn protocol(&self) -> &'static Protocol;

    /// Listens at `place`, which is of a kind that the protocol permits.
    ///
    /// # Errors
    /// The host's; a socket where a server listens already; the configuration lets nobody in this way.
    fn open(&self, place: &Place, context: &Arc<Context>) -> io::Result<Opened>;
}

/// What a door is when it has been opened.
pub(crate) struct Opened {
    pub(crate) listener: Box<dyn Listener>,
    /// What it has left in the file system: a socket's name, a file with a token. The server drops this when it ends, and the
    /// listener never, since microprocesses use it until the process exits.
    pub(crate) files: Option<Box<dyn Debug + Send>>,
}

/// An open door.
pub(crate) trait Listener: Send + Sync {
    /// Where it listens. The host has chosen the port if 0 was asked for.
    ///
    /// # Errors
    /// The host's.
    fn place(&self) -> io::Result<Place>;

    /// Waits for the next connection and starts a microprocess that serves it to its end. Called from a microprocess, in a loop.
    ///
    /// # Errors
    /// The host has no memory or descriptor for one more. The caller reports the error, waits and calls again.
    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()>;
}
