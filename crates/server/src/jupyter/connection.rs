//! The connection file: the addresses of the kernel's sockets, and the key for signatures.

use serde::Deserialize;
use std::path::Path;

/// A connection file, as Jupyter writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Connection {
    transport: String,
    ip: String,
    pub(super) shell_port: u16,
    pub(super) iopub_port: u16,
    pub(super) stdin_port: u16,
    pub(super) control_port: u16,
    pub(super) hb_port: u16,
    /// Without a key, messages are not signed.
    pub(super) key: String,
    signature_scheme: String,
}

/// The only supported signature scheme.
const SCHEME: &str = "hmac-sha256";

impl Connection {
    /// Reads a connection file.
    ///
    /// # Errors
    /// The file cannot be read, is not a connection file, or requires something that is not
    /// supported.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let named = |message: String| format!("{}: {message}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        let own: Self = serde_json::from_str(&text).map_err(|error| named(error.to_string()))?;
        if own.transport != "tcp" {
            return Err(named(format!("transport {} is not supported: use tcp", own.transport)));
        }
        if !own.key.is_empty() && own.signature_scheme != SCHEME {
            let scheme = &own.signature_scheme;
            return Err(named(format!("signature scheme {scheme} is not supported: use {SCHEME}")));
        }
        Ok(own)
    }

    /// A port as `ZeroMQ` names it.
    pub(super) fn endpoint(&self, port: u16) -> String {
        format!("tcp://{}:{port}", self.ip)
    }
}
