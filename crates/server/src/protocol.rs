//! A protocol as data: its name, its addresses, and its part of the configuration.
//!
//! The parsers of addresses and of the configuration need only this, so they lie below the doors.

use crate::section::{ConfigMistake, Section, Settings};

/// Describes a protocol.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The protocol's name in addresses and in the configuration.
    pub(crate) name: &'static str,
    /// The prefix of an address that is a Unix socket, such as `unix:`. `None` if the protocol
    /// cannot use a Unix socket.
    pub(crate) socket_prefix: Option<&'static str>,
    /// The file name of the socket in the user's own directory that the bare name of the protocol
    /// denotes as an address. `None` if the bare name is not an address.
    pub(crate) own_socket: Option<&'static str>,
    /// The TCP ports on which the protocol may listen.
    pub(crate) ports: Ports,
    /// Whether the key `NAME_user` of the configuration names the user of connections that do not
    /// identify one.
    pub(crate) user: ConfiguredUser,
    /// Reads the table `[NAME]` of the configuration. `None` if the protocol has no such table.
    pub(crate) read_section: Option<ReadSection>,
}

/// Reads a protocol's own table of the configuration. Returns the defaults if the table is missing.
///
/// # Errors
/// The mistake in the table, and its place.
pub(crate) type ReadSection = fn(Option<Section<'_>>) -> Result<Settings, ConfigMistake>;

/// The TCP ports on which a protocol may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// None.
    None,
    /// Ports of the loopback interface, because the protocol is not encrypted.
    Loopback,
    /// Ports of any interface.
    Any,
}

/// Whether the configuration names the user of connections that do not identify one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfiguredUser {
    /// No: every connection identifies its user. There is no key `NAME_user`.
    None,
    /// Yes, and any process of the machine can connect. The user must have no number on the host,
    /// no keys and no files, and may not install policies.
    Unidentified,
    /// Yes, and each client sends a secret of the server. So it may be any user.
    Trusted,
}
