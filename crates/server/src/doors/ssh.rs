//! The SSH door: a client that proves to have a user's key gets a prompt on a terminal, or has a
//! text evaluated.
//!
//! ```text
//!   ssh ──TCP──► kernel thread "ssh" (tokio, russh) ──pair of sockets──► getty of the user
//!                        │ with a terminal                                  ▲
//!                        └──pseudo-terminal──► kyocho connect ──────────────┘
//! ```
//!
//! The protocol runs on a kernel thread of its own, outside of the runtime: russh needs tokio's
//! tasks and timers, and ciphers cost no virtual processor any time. To the getty, a client's
//! connection looks like that of `kyocho connect`, with the same protocol ([`frames`]). So a
//! session need not know SSH. `kyocho connect`, a process on a pseudo-terminal, edits the lines of
//! a terminal.

mod channel;
mod host_key;
mod limits;
mod login;
mod section;
mod terminal;

use crate::address::Endpoint;
use crate::console::Console;
use crate::context::Context;
use crate::door::{Door, Listener, Opened};
use crate::entrance::{socket_connection, start_getty};
use crate::frames;
use crate::protocol::{ConfiguredUser, Ports, Protocol};
use crate::register::Register;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use kyocho_microprocess::block_on;
use limits::ConnectionCounts;
use login::{Identity, Login};
use russh::server::{Config, run_stream};
use russh::{Disconnect, MethodKind, MethodSet};
use section::Limits;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpListener as StdListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

static PROTOCOL: Protocol = Protocol {
    name: "ssh",
    socket_prefix: None,
    own_socket: None,
    ports: Ports::Any,
    user: ConfiguredUser::None,
    read_section: Some(section::read),
};

/// Most sessions of identified users that no getty serves yet. Beyond that the tasks of further
/// channels wait.
const IDENTIFIED_MAX: usize = 16;
const STACK_BYTES: usize = 2 << 20;
/// Bytes that a client may send ahead on a channel.
const WINDOW_BYTES: u32 = 128 * 1024;
/// Most messages of a client that wait to be read. Beyond that nothing is read from the connection.
const MESSAGES_MAX: usize = 16;
/// Interval at which a silent client is asked whether it is alive. After three questions without an
/// answer the connection is closed.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Most keys that a client may try.
const ATTEMPTS_MAX: usize = 10;
/// Time to report to a client why its connection is closed.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause before the next connection is accepted, after the host had no descriptors for one.
const PAUSE: Duration = Duration::from_millis(100);

/// An identified user, and the user's connection.
pub(super) struct IdentifiedConnection {
    pub(super) user: String,
    pub(super) stream: UnixStream,
}

/// The SSH door.
#[derive(Debug)]
pub(crate) struct Ssh;

impl Door for Ssh {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn open(&self, endpoint: &Endpoint, context: &Arc<Context>) -> io::Result<Opened> {
        let Endpoint::Port(address) = endpoint else { return Err(ErrorKind::InvalidInput.into()) };
        let listener = Box::new(Port::open(*address, context)?);
        Ok(Opened { listener, files: None })
    }
}

/// Accepts the identified users.
#[derive(Debug)]
struct Port {
    address: SocketAddr,
    identified: Mutex<Receiver<IdentifiedConnection>>,
}

impl Port {
    /// Listens on `address`, with a host key that is made on first use.
    ///
    /// # Errors
    /// The host refuses, or the key cannot be used.
    fn open(address: SocketAddr, context: &Context) -> io::Result<Self> {
        let key = host_key::get()?;
        context.console.announce_service("host key", &host_key::fingerprint(&key));
        if !context.register.has_keys() {
            context.console.complain(
                "kyocho: ssh: no user of the configuration has `keys`, so all are refused",
            );
        }
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (sender, identified) = mpsc::channel(IDENTIFIED_MAX);
        let config = Config {
            methods: MethodSet::from(&[MethodKind::PublicKey][..]),
            auth_rejection_time_initial: Some(Duration::ZERO),
            keys: vec![key],
            window_size: WINDOW_BYTES,
            channel_buffer_size: MESSAGES_MAX,
            max_auth_attempts: ATTEMPTS_MAX,
            inactivity_timeout: None,
            keepalive_interval: Some(KEEPALIVE),
            nodelay: true,
            ..Config::default()
        };
        let shared = Shared {
            config: Arc::new(config),
            register: Arc::clone(&context.register),
            console: context.console,
            identified: sender,
            counts: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        kyocho_sys::thread::start("ssh", STACK_BYTES, move || {
            runtime.block_on(shared.accept(listener));
        })?;
        Ok(Self { address, identified: Mutex::new(identified) })
    }

    /// Waits for the next identified user, as a microprocess.
    ///
    /// # Errors
    /// The SSH thread has ended.
    fn accept(&self) -> io::Result<IdentifiedConnection> {
        let mut identified = self.identified.lock().unwrap_or_else(PoisonError::into_inner);
        block_on(identified.recv()).ok_or_else(|| io::Error::other("the SSH service has ended"))
    }
}

impl Listener for Port {
    fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(Endpoint::Port(self.address))
    }

    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()> {
        let IdentifiedConnection { user, stream } = self.accept()?;
        // The configuration may have changed meanwhile.
        let refusal = || format!("user {user} is not known here");
        let account = context.register.account_of(&user).ok_or_else(refusal);
        let stream = OwnedFd::from(stream).into();
        let connection = socket_connection(stream, frames::Decoder::default(), frames::Encoder)?;
        start_getty(context, account, connection, || Ok(None))
    }
}

/// State that all connections share.
#[derive(Clone)]
struct Shared {
    config: Arc<Config>,
    register: Arc<Register>,
    console: Console,
    identified: Sender<IdentifiedConnection>,
    counts: Arc<ConnectionCounts>,
}

impl Shared {
    async fn accept(self, listener: StdListener) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return self.console.complain(&format!("kyocho: ssh: {error}")),
        };
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.spawn_connection(stream, peer.ip()),
                Err(error) => {
                    self.console.complain(&format!("kyocho: ssh: {error}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection in a task of its own. A connection above the limits is closed without an
    /// answer, which costs nothing.
    fn spawn_connection(&self, stream: TcpStream, address: IpAddr) {
        let limits =
            self.register.settings::<Limits>(&PROTOCOL).map_or_else(Limits::default, |own| *own);
        if let Some(counted) = self.counts.try_add(address, &limits) {
            let served = self.clone().serve(stream, limits);
            tokio::spawn(async move {
                let _counted = counted;
                // A failed connection concerns only its client.
                let _ = served.await;
            });
        }
    }

    /// Serves one connection to its end.
    async fn serve(self, stream: TcpStream, limits: Limits) -> Result<(), russh::Error> {
        let deadline = Instant::now() + limits.login;
        let stream = stream.into_std()?;
        let end = stream.try_clone()?;
        let (sender, logged_in) = oneshot::channel();
        let (config, register) = (Arc::clone(&self.config), Arc::clone(&self.register));
        let changes = register.changes();
        let login = Login::new(self, sender);
        let stream = TcpStream::from_std(stream)?;
        let mut running = timeout_at(deadline, run_stream(config, stream, login)).await??;
        let ends = async {
            // A client that has not logged in in time is disconnected without an answer.
            let Ok(Ok(identity)) = timeout_at(deadline, logged_in).await else { return None };
            until_key_removed(&register, changes, &identity).await;
            Some("the server's configuration no longer has this key for this user")
        };
        let reason = tokio::select! {
            result = &mut running => return result,
            reason = ends => reason,
        };
        if let Some(reason) = reason {
            let client = running.handle();
            let disconnection =
                client.disconnect(Disconnect::ByApplication, reason.into(), "en".into());
            // A client that does not read does not get the reason.
            let _ = timeout(DISCONNECT_TIMEOUT, disconnection).await;
            if let Ok(result) = timeout(DISCONNECT_TIMEOUT, &mut running).await {
                return result;
            }
        }
        // The client may have closed it already.
        let _ = end.shutdown(Shutdown::Both);
        running.await
    }
}

/// Waits until the client's key is no longer among its user's keys.
async fn until_key_removed(
    register: &Register,
    mut changes: watch::Receiver<()>,
    identity: &Identity,
) {
    while register.knows_key(&identity.user, &identity.key) {
        if changes.changed().await.is_err() {
            // The register is gone, so the process ends.
            return;
        }
    }
}
