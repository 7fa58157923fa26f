//! A server, from its start to its end: reads the configuration, opens the doors, and reads the
//! configuration again on request.
//!
//! ```text
//!   init ── network (one for each address) ── getty (one for each session) ── its user's threads
//!             accepts, identifies the user      reads, evaluates, prints
//! ```
//!
//! All of them are microprocesses (paper 4, §3.1) that wait in `io_uring`, so an idle server uses
//! no processor time.

use crate::address::Address;
use crate::config::{Config, ConfigError};
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

/// Why a server cannot start, or cannot read its configuration again.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration file cannot be read, or has a mistake.
    Configuration(String),
    /// No address is given, and the user's own directory, which has the default socket, cannot be
    /// determined.
    NoDirectory(io::Error),
    /// The server cannot listen on this address.
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
            Self::Heartbeat(error) => {
                write!(f, "cannot start the heartbeat for the service manager: {error}")
            }
        }
    }
}

impl core::error::Error for ServeError {}

impl From<ConfigError> for ServeError {
    fn from(error: ConfigError) -> Self {
        Self::Configuration(error.to_string())
    }
}

/// A server that is configured and not started: no door is open, and no system is booted.
#[derive(Debug)]
pub struct Plan {
    path: Option<PathBuf>,
    config: Config,
    addresses: Vec<Address>,
    options: Options,
}

impl Plan {
    /// Reads the configuration. Without a file, only the user who runs the server may connect.
    ///
    /// The server will listen on the addresses `listen`. If there are none, it listens on those of
    /// the file, and without such on [`own_socket`](crate::own_socket). The system will be booted
    /// with `options`, and with a server's limit for integers.
    ///
    /// # Errors
    /// The configuration has a mistake, or there is no address to listen on.
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

    /// The options with which the system must be booted.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Opens the doors of `system`, and notifies the service manager that the server is ready. The
    /// system must have been booted with [`options`](Self::options).
    ///
    /// # Errors
    /// The server cannot listen on an address, or the host has no memory for a service.
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

/// Files of a door, such as a socket's name. They are removed when this is dropped.
type Files = Box<dyn fmt::Debug + Send>;

/// Opens a door, and starts the service that serves its connections.
fn open(address: &Address, context: &Arc<Context>) -> io::Result<Option<Files>> {
    let Opened { listener, files } = doors::open(address, context)?;
    // If the address has port 0, the host has chosen a port.
    let endpoint = listener.endpoint().unwrap_or_else(|_| address.endpoint.clone());
    let address = Address { endpoint, ..address.clone() };
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
    /// Reads the configuration again: users and limits change, addresses do not. If the
    /// configuration has a mistake, nothing changes.
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

    /// Notifies the service manager that the server ends, and removes the files of the doors. Then
    /// the process must exit.
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

/// The addresses to listen on: those of the command line, else those of the file, else the user's
/// own socket.
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
