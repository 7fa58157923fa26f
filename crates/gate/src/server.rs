//! The server: accepting clients, and the socket thread of each connection.

use core::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kyocho_microprocess::{Builder, Outside, Priority, channel, concurrency};
use kyocho_sys::passing::DESCRIPTORS_MAX;
use kyocho_sys::peer::Peer;
use kyocho_sys::robust::LivenessGuard;
use kyocho_sys::scheduling::yield_to_host;
use kyocho_sys::sealed::{SealedMemory, Use, Writers};
use socket2::{SockAddr, Socket};

use crate::error::Error;
use crate::frame::{CREDITS_MAX, memory_bytes};
use crate::handshake::{self, Message};
use crate::liveness::{Liveness, start_thread};
use crate::service::Service;
use crate::slice::REGION_BYTES_MAX;

mod connection;
mod worker;

use connection::Connection;
use worker::start_workers;

/// Most clients of one server at a time. Further clients are refused.
const CLIENTS_MAX: usize = 256;
/// Most clients that wait to be accepted.
const BACKLOG: i32 = 64;

const _: () = assert!(DESCRIPTORS_MAX >= 3, "a welcome carries three descriptors");

type Allows = dyn Fn(&Peer) -> bool + Send + Sync;

/// Options of a server.
pub struct ServerBuilder {
    credits: usize,
    allows: Box<Allows>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("credits", &self.credits).finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Sets how many concurrent calls a client may make: 1 to [`CREDITS_MAX`], the default. Each
    /// costs 8 KiB of memory once it is used.
    ///
    /// # Panics
    /// `credits` is out of range.
    #[must_use]
    pub fn credits(mut self, credits: usize) -> Self {
        assert!((1..=CREDITS_MAX).contains(&credits), "1 to {CREDITS_MAX} credits");
        self.credits = credits;
        self
    }

    /// Sets which processes may connect, by what the kernel says of them. By default: processes of
    /// the same user and of the superuser.
    #[must_use]
    pub fn allow(mut self, allows: impl Fn(&Peer) -> bool + Send + Sync + 'static) -> Self {
        self.allows = Box::new(allows);
        self
    }

    /// Listens on `path`, which must not exist yet. `root` serves the calls of each client until
    /// the server is dropped. Does not wait for clients.
    ///
    /// # Errors
    /// [`Error::Connect`]: the socket cannot be bound to `path`. [`Error::Host`].
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn bind(self, path: impl AsRef<Path>, root: Arc<dyn Service>) -> Result<Server, Error> {
        let listener = handshake::socket()?;
        let path = path.as_ref().to_owned();
        let named = SockAddr::unix(&path).and_then(|address| listener.bind(&address));
        named.map_err(|error| Error::Connect(error.kind()))?;
        listener.listen(BACKLOG)?;
        let Self { credits, allows } = self;
        let (arrivals, arrived) = channel::unbounded::<Arc<Connection>>();
        let shared = Arc::new(Shared {
            listener,
            credits,
            allows,
            root,
            connections: Mutex::default(),
            arrivals,
        });
        // Lives as long as the accepting thread, so that the runtime expects wakes from it.
        let outside = Outside::expect();
        let server = Server { shared: Arc::clone(&shared), path };
        start_thread(move || {
            shared.accept();
            drop((shared, outside));
        })?;
        let starter = Builder::new().name("gate worker starter").priority(Priority::HIGHEST);
        let start = |connection| start_workers(&connection, concurrency());
        drop(starter.spawn(move || arrived.into_iter().for_each(start))?);
        Ok(server)
    }
}

/// State that the threads of a server share.
struct Shared {
    listener: Socket,
    credits: usize,
    allows: Box<Allows>,
    root: Arc<dyn Service>,
    connections: Mutex<Vec<Arc<Connection>>>,
    /// New connections go to a microprocess, because only a microprocess can start workers.
    arrivals: channel::Sender<Arc<Connection>>,
}

impl Shared {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts clients until the listener is shut down.
    fn accept(self: &Arc<Self>) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.begin(socket),
                // The listener was shut down.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
                // The client has left already, or the process is out of descriptors for now.
                Err(error) => {
                    tracing::debug!(%error, "a client of a gate was not accepted");
                    yield_to_host();
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: Socket) {
        let shared = Arc::clone(self);
        // On failure the socket closes, which tells the client.
        if let Err(errno) = start_thread(move || shared.serve_connection(socket)) {
            tracing::warn!(%errno, "no kernel thread for a client of a gate");
        }
    }

    /// The socket thread of one connection: admits the client, then receives its messages until the
    /// end.
    fn serve_connection(&self, socket: Socket) {
        let connection = match self.admit(socket) {
            Ok(connection) => connection,
            Err(error) => return tracing::debug!(%error, "a client of a gate was not admitted"),
        };
        // Names this thread in the liveness word until it returns, unwinds or dies.
        let living = LivenessGuard::new(connection.liveness_word()).map_err(Error::from);
        let _living = match living.and_then(|living| self.welcome(&connection).map(|()| living)) {
            Ok(living) => living,
            Err(error) => return tracing::debug!(%error, "a client of a gate was not welcomed"),
        };
        while let Ok(Some((message, descriptors))) = Message::receive(connection.liveness.socket())
        {
            if !handle_message(&connection, message, descriptors) {
                break;
            }
        }
        connection.liveness.close();
        self.connections().retain(|other| !Arc::ptr_eq(other, &connection));
    }

    /// Receives the greeting of a client that may connect.
    fn admit(&self, socket: Socket) -> Result<Arc<Connection>, Error> {
        let peer = Peer::of(socket.as_fd())?;
        // Before any refusal: closing a socket with unread data would discard the refusal, too.
        let client = handshake::receive_hello(&socket, peer.process)?;
        if !(self.allows)(&peer) || self.connections().len() >= CLIENTS_MAX {
            Message::Refused.send(socket.as_fd(), &[])?;
            return Err(Error::Refused);
        }
        let frames = SealedMemory::new(memory_bytes(self.credits), Writers::All)?;
        let (liveness, root) = (Liveness::new(socket), Arc::clone(&self.root));
        Ok(Arc::new(Connection::new(liveness, peer, client, frames, self.credits, root)))
    }

    /// Allows a client to call.
    fn welcome(&self, connection: &Arc<Connection>) -> Result<(), Error> {
        handshake::welcome(connection.liveness.socket(), &connection.frames, self.credits)?;
        self.connections().push(Arc::clone(connection));
        // Fails only once the runtime has stopped; then the connection is about to close, too.
        drop(self.arrivals.send(Arc::clone(connection)));
        Ok(())
    }
}

/// Handles a message of an admitted client. Returns `false` if it breaks the protocol.
fn handle_message(
    connection: &Connection,
    message: Message,
    mut descriptors: Vec<OwnedFd>,
) -> bool {
    match message {
        Message::Attach { number } => descriptors.pop().is_some_and(|memory| {
            let memory = SealedMemory::receive(memory, REGION_BYTES_MAX, Use::ReadWrite);
            memory.is_ok_and(|memory| connection.regions.attach(number, memory))
        }),
        Message::Detach { number } => {
            connection.regions.detach(number);
            true
        }
        Message::Hello | Message::Welcome { .. } | Message::Refused => false,
    }
}

/// A server that listens until it is dropped. Dropping it closes all connections and removes the
/// path.
pub struct Server {
    shared: Arc<Shared>,
    path: PathBuf,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Server {
    /// Default options.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder { credits: CREDITS_MAX, allows: Box::new(Peer::is_trusted) }
    }

    /// Number of clients that are connected.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.shared.connections().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the path was removed already, which is as good.
        let _gone = std::fs::remove_file(&self.path);
        let _ended = self.shared.listener.shutdown(std::net::Shutdown::Both);
        let connections: Vec<_> = self.shared.connections().clone();
        connections.iter().for_each(|connection| connection.liveness.close());
    }
}
