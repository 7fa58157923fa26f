//! The addresses of a server: the name of a protocol, and a Unix socket or a TCP port.
//!
//! ```text
//!   unix:PATH   ssh:ADDRESS:PORT   nrepl   nrepl:unix:PATH   nrepl:127.0.0.1:PORT
//!   telnet:127.0.0.1:PORT
//! ```

use crate::protocol::{Ports, Protocol};
use core::fmt;
use core::net::SocketAddr;
use std::path::PathBuf;

/// An address to listen on: a protocol, and its socket or port.
#[derive(Clone, Debug)]
pub struct Address {
    pub(crate) protocol: &'static Protocol,
    pub(crate) endpoint: Endpoint,
}

/// A socket or port on which a protocol listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A Unix socket. The kernel reports the user of each client.
    Socket(PathBuf),
    /// A TCP port.
    Port(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Socket(path) => {
                let prefix = self.protocol.socket_prefix.unwrap_or_default();
                write!(f, "{prefix}{}", path.display())
            }
            Endpoint::Port(port) => write!(f, "{}:{port}", self.protocol.name),
        }
    }
}

impl Address {
    /// Parses an address of one of these protocols.
    ///
    /// # Errors
    /// `text` is not an address. The error gives the reason.
    pub(crate) fn parse(
        text: &str,
        protocols: impl Iterator<Item = &'static Protocol> + Clone,
    ) -> Result<Self, String> {
        for protocol in protocols.clone() {
            let path = protocol.socket_prefix.and_then(|prefix| text.strip_prefix(prefix));
            if let Some(path) = path.filter(|path| !path.is_empty()) {
                return Ok(Self { protocol, endpoint: Endpoint::Socket(path.into()) });
            }
        }
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let named = protocols.clone().find(|protocol| protocol.name == name);
        let endpoint = match (named, rest) {
            (Some(protocol), None) => protocol.own_socket.map(own_socket),
            (Some(protocol), Some(port)) => port_of(protocol, port),
            (None, _) => None,
        };
        match (named, endpoint) {
            (Some(protocol), Some(endpoint)) => Ok(Self { protocol, endpoint: endpoint? }),
            _ => Err(format!("expected {}", forms(protocols))),
        }
    }
}

/// A socket in the user's own directory.
fn own_socket(name: &str) -> Result<Endpoint, String> {
    let folder = kyocho_sys::directory::of_user().map_err(|error| error.to_string())?;
    Ok(Endpoint::Socket(folder.join(name)))
}

/// Parses a port of this protocol. `None` if the protocol has no ports.
fn port_of(protocol: &Protocol, text: &str) -> Option<Result<Endpoint, String>> {
    let parsed = text.parse::<SocketAddr>();
    let port = match protocol.ports {
        Ports::None => return None,
        Ports::Any => parsed.map_err(|_| {
            format!("{text} is not an address and port, such as 0.0.0.0:2222 or [::]:2222")
        }),
        Ports::Loopback => match parsed {
            Err(_) => Err(format!("{text} is not an address and port, such as 127.0.0.1:2323")),
            Ok(port) if !port.ip().is_loopback() => {
                let name = protocol.name;
                Err(format!(
                    "{name} is not encrypted, so only loopback is allowed: 127.0.0.1 or [::1]"
                ))
            }
            Ok(port) => Ok(port),
        },
    };
    Some(port.map(Endpoint::Port))
}

/// The forms of addresses as a list, with "or" before the last one.
pub(crate) fn forms(protocols: impl Iterator<Item = &'static Protocol>) -> String {
    let forms: Vec<String> = protocols.flat_map(forms_of).collect();
    match forms.as_slice() {
        [most @ .., end] if !most.is_empty() => format!("{} or {end}", most.join(", ")),
        _ => forms.concat(),
    }
}

/// The forms of one protocol's addresses.
fn forms_of(protocol: &Protocol) -> Vec<String> {
    let name = protocol.name;
    let own = protocol.own_socket.map(|_| name.to_owned());
    let socket = protocol.socket_prefix.map(|prefix| format!("{prefix}PATH"));
    let port = match protocol.ports {
        Ports::None => None,
        Ports::Loopback => Some(format!("{name}:127.0.0.1:PORT")),
        Ports::Any => Some(format!("{name}:ADDRESS:PORT")),
    };
    [own, socket, port].into_iter().flatten().collect()
}
