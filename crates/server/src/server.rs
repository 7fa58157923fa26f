//! A server: its configuration, the doors that are open, and what it does from start to end.
//!
//! ```text
//!   init ── network (one a listener) ── getty (one a session) ── its user's threads
//!             accepts, asks who it is     reads, evaluates, shows
//! ```
//!
//! All of them are microprocesses (paper 4, §3.1) that wait in the kernel's rings: an idle server uses no processor time.

use crate::address::Address;
use crate::config::{Config, Wrong};
use crate::console::Console;
use crate::context::Context;
use crate::door::Opened;
use crate::register::Register;
use crate::{doors, heartbeat, notify};
use core::fmt;
use kyocho_lisp::system::{Options, System};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bound of exact integers: 78,000 digits. The slowest operation on them then takes some tens of
/// milliseconds. Its longest step that cannot be interrupted or collected takes less than ten.
const INTEGER_BITS_MAX: u64 = 1 << 18;

/// Why a server does not start, or keeps its configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The file with the configuration cannot be read, or something in it is wrong.
    Configuration(String),
    /// Nothing says where to listen, and the user has no directory of his own.
    NoDirectory(io::Error),
    /// A door does not open.
    Listen(Address, io::Error),
    /// The host has no memory for the heartbeat.
    Heartbeat(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(message) => f.write_str(message),
            Self::NoDirectory(error) => error.fmt(f),
            Self::Listen(address, error) => write!(f, "{address}: {error}"),
            Self::Heartbeat(error) => write!(f, "the heartbeat: {error}"),
        }
    }
}

impl core::error::Error for ServeError {}

impl From<Wrong> for ServeError {
    fn from(wrong: Wrong) -> Self {
        Self::Configuration(wrong.to_string())
    }
}

/// A server that is configured and not started: no door is open, and no system runs.
#[derive(Debug)]
pub struct Plan {
    path: Option<PathBuf>,
    config: Config,
    addresses: Vec<Address>,
    options: Options,
}

impl Plan {
    /// Reads the configuration. Without a file the user who runs the server may come in. The server will listen at `listen`, else where
    /// the file says, else at [`own_socket`](crate::own_socket). The system will have `options`, with the limits that a server needs.
    ///
    /// # Errors
    /// The configuration is wrong, or there is no place to listen.
    pub fn new(
        path: Option<PathBuf>,
        listen: Vec<Address>,
        options: Options,
    ) -> Result<Self, ServeError> {
        let config = read(path.as_deref())?;
        let addresses = addresses(&config, listen)?;
        let options = Options { integer_bits_max: INTEGER_BITS_MAX, ..options };
        Ok(Self { path, config, addresses, options })
    }

    /// What the system is to be booted with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Opens the doors of a system that was booted with [`options`](Self::options), and tells the service manager that users may come.
    ///
    /// # Errors
    /// A door does not open; the host has no memory for a service.
    pub fn start(self, system: System, console: Console) -> Result<Server, ServeError> {
        let register = Arc::new(Register::new(self.config, self.options.image));
        let context = Arc::new(Context { system: Arc::new(system), register, console });
        let mut files = Vec::new();
        for address in self.addresses {
            let left = open(&address, &context);
            files.extend(left.map_err(|error| ServeError::Listen(address, error))?);
        }
        heartbeat::start(&context).map_err(ServeError::Heartbeat)?;
        notify::ready(console);
        Ok(Server { path: self.path, context, _files: files })
    }
}

/// What a door has left in the file system, removed when this is dropped.
type Files = Box<dyn fmt::Debug + Send>;

/// Opens a door, and starts the service that serves its connections.
fn open(address: &Address, context: &Arc<Context>) -> io::Result<Option<Files>> {
    let Opened { listener, files } = doors::open(address, context)?;
    // If the address has port 0, the host has chosen a port.
    let place = listener.place().unwrap_or_else(|_| address.place.clone());
    let address = Address { place, ..address.clone() };
    let inner = Arc::clone(context);
    let body = move || doors::serve(listener.as_ref(), &inner);
    context.system.spawn_service(&format!("network {address}"), body)?;
    context.console.announce_service("network", &address.to_string());
    Ok(files)
}

/// A server whose doors are open.
#[derive(Debug)]
pub struct Server {
    path: Option<PathBuf>,
    context: Arc<Context>,
    _files: Vec<Files>,
}

impl Server {
    /// Reads the configuration again: users and limits change; where the server listens does not. Nothing changes if it is wrong.
    pub fn reload(&self) {
        let console = self.context.console;
        notify::reloading(console);
        match read(self.path.as_deref()) {
            Ok(config) => {
                self.context.register.replace(config);
                (console.announce)("kyocho: the configuration was read again");
            }
            Err(error) => console.complain(&format!("kyocho: {error}; nothing was changed")),
        }
        notify::ready(console);
    }

    /// Tells the service manager that the server ends, and removes what doors have left in the file system. The process is to exit then.
    pub fn stop(self) {
        notify::stopping(self.context.console);
    }
}

fn read(path: Option<&Path>) -> Result<Config, ServeError> {
    Ok(match path {
        Some(path) => Config::read(path, doors::protocols())?,
        None => Config::of_owner(kyocho_sys::peer::own_user(), doors::protocols()),
    })
}

/// Where to listen.
fn addresses(config: &Config, listen: Vec<Address>) -> Result<Vec<Address>, ServeError> {
    if !listen.is_empty() {
        return Ok(listen);
    }
    if config.listen.is_empty() {
        return doors::own_address().map(|own| vec![own]).map_err(ServeError::NoDirectory);
    }
    let parse = |text: &String| {
        text.parse()
            .map_err(|error| ServeError::Configuration(format!("listen = [\"{text}\"]: {error}")))
    };
    config.listen.iter().map(parse).collect()
}
