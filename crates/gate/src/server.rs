//! Listening for clients.

use core::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kyocho_microprocess::{Builder, Outside, Priority, channel, concurrency};
use kyocho_sys::passing::DESCRIPTORS_MAX;
use kyocho_sys::peer::Peer;
use kyocho_sys::robust::Living;
use kyocho_sys::scheduling::yield_to_host;
use kyocho_sys::sealed::{SealedMemory, Use, Writers};
use socket2::{SockAddr, Socket};

use crate::error::Error;
use crate::frame::{CREDITS_MAX, memory_bytes};
use crate::handshake::{self, Message};
use crate::keeper::{Life, keep};
use crate::region::REGION_BYTES_MAX;
use crate::service::Service;
use crate::worker::Line;

/// Most clients of one server at a time; others are refused.
const CLIENTS_MAX: usize = 256;
/// Clients that wait to be accepted.
const BACKLOG: i32 = 64;

const _: () = assert!(DESCRIPTORS_MAX >= 3, "a welcome carries three");

type Allows = dyn Fn(&Peer) -> bool + Send + Sync;

/// How to listen.
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
    /// How many calls a client may have under way at a time: 1 to [`CREDITS_MAX`], which it is when not called. Each costs 8 KiB of memory
    /// once it is used.
    ///
    /// # Panics
    /// `credits` is out of range.
    #[must_use]
    pub fn credits(mut self, credits: usize) -> Self {
        assert!((1..=CREDITS_MAX).contains(&credits), "1 to {CREDITS_MAX} credits");
        self.credits = credits;
        self
    }

    /// Who may connect, as the kernel tells of them; processes of the same user and of the superuser when not called.
    #[must_use]
    pub fn allow(mut self, allows: impl Fn(&Peer) -> bool + Send + Sync + 'static) -> Self {
        self.allows = Box::new(allows);
        self
    }

    /// Listens on `path`, which must not exist yet, and serves each client with `root`, until the server is dropped.
    ///
    /// # Errors
    /// [`Error::Connect`]: the path cannot be had. [`Error::Host`].
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn bind(self, path: impl AsRef<Path>, root: Arc<dyn Service>) -> Result<Server, Error> {
        let listener = handshake::socket()?;
        let path = path.as_ref().to_owned();
        let named = SockAddr::unix(&path).and_then(|address| listener.bind(&address));
        named.map_err(|error| Error::Connect(error.kind()))?;
        listener.listen(BACKLOG)?;
        let Self { credits, allows } = self;
        let (arrivals, arrived) = channel::unbounded::<Arc<Line>>();
        let gate =
            Arc::new(Gate { listener, credits, allows, root, lines: Mutex::default(), arrivals });
        // Made here, so that it is dropped where accepting ends.
        let outside = Outside::expect();
        let server = Server { gate: Arc::clone(&gate), path };
        keep(move || {
            gate.accept();
            drop((gate, outside));
        })?;
        let usher = Builder::new().name("gate usher").priority(Priority::HIGHEST);
        drop(usher.spawn(move || arrived.into_iter().for_each(|line| line.hire(concurrency())))?);
        Ok(server)
    }
}

/// What the threads of a server share.
struct Gate {
    listener: Socket,
    credits: usize,
    allows: Box<Allows>,
    root: Arc<dyn Service>,
    lines: Mutex<Vec<Arc<Line>>>,
    /// Connections on their way to the runtime, where their workers are hired.
    arrivals: channel::Sender<Arc<Line>>,
}

impl Gate {
    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts clients until the listener is shut down.
    fn accept(self: &Arc<Self>) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => self.begin(socket),
                // Shut down.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
                // The client has gone already, or descriptors are short for now.
                Err(error) => {
                    tracing::debug!(%error, "a client of a gate was not accepted");
                    yield_to_host();
                }
            }
        }
    }

    fn begin(self: &Arc<Self>, socket: Socket) {
        let gate = Arc::clone(self);
        // Refused: the socket closes, which the client sees.
        if let Err(errno) = keep(move || gate.keep(socket)) {
            tracing::warn!(%errno, "no kernel thread for a client of a gate");
        }
    }

    /// The life of one connection.
    fn keep(&self, socket: Socket) {
        let line = match self.admit(socket) {
            Ok(line) => line,
            Err(error) => return tracing::debug!(%error, "a client of a gate was turned away"),
        };
        // Until this thread is done with the connection, by whatever end.
        let living = Living::new(line.life_word()).map_err(Error::from);
        let _living = match living.and_then(|living| self.welcome(&line).map(|()| living)) {
            Ok(living) => living,
            Err(error) => return tracing::debug!(%error, "a client of a gate was not welcomed"),
        };
        while let Ok(Some((message, descriptors))) = Message::receive(line.life.socket()) {
            if !heed(&line, message, descriptors) {
                break;
            }
        }
        line.life.end();
        self.lines().retain(|other| !Arc::ptr_eq(other, &line));
    }

    fn admit(&self, socket: Socket) -> Result<Arc<Line>, Error> {
        let peer = Peer::of(socket.as_fd())?;
        // Heard before it is refused: what closes with words unread takes its own last words along.
        let client = handshake::hear(&socket, peer.process)?;
        if !(self.allows)(&peer) || self.lines().len() >= CLIENTS_MAX {
            Message::Refused.send(socket.as_fd(), &[])?;
            return Err(Error::Refused);
        }
        let frames = SealedMemory::new(memory_bytes(self.credits), Writers::All)?;
        let (life, root) = (Life::new(socket), Arc::clone(&self.root));
        Ok(Arc::new(Line::new(life, peer, client, frames, self.credits, root)))
    }

    /// Lets a client call.
    fn welcome(&self, line: &Arc<Line>) -> Result<(), Error> {
        handshake::welcome(line.life.socket(), line.frames(), self.credits)?;
        self.lines().push(Arc::clone(line));
        // Nobody ushers any more: the runtime has stopped, and so will the connection.
        drop(self.arrivals.send(Arc::clone(line)));
        Ok(())
    }
}

/// Does what a client says over its socket; whether it may say that.
fn heed(line: &Line, message: Message, mut descriptors: Vec<OwnedFd>) -> bool {
    match message {
        Message::Attach { number } => descriptors.pop().is_some_and(|memory| {
            let memory = SealedMemory::receive(memory, REGION_BYTES_MAX, Use::ReadWrite);
            memory.is_ok_and(|memory| line.attach(number, memory))
        }),
        Message::Detach { number } => {
            line.detach(number);
            true
        }
        Message::Hello | Message::Welcome { .. } | Message::Refused => false,
    }
}

/// A gate that is served, until dropped.
pub struct Server {
    gate: Arc<Gate>,
    path: PathBuf,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Server {
    /// How to listen.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder { credits: CREDITS_MAX, allows: Box::new(Peer::is_trusted) }
    }

    /// How many clients are connected.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.gate.lines().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Taken away by somebody else: as well.
        let _gone = std::fs::remove_file(&self.path);
        let _ended = self.gate.listener.shutdown(std::net::Shutdown::Both);
        let lines: Vec<_> = self.gate.lines().clone();
        lines.iter().for_each(|line| line.life.end());
    }
}
