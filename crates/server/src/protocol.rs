//! A protocol as data: its name, where it listens, and what the configuration says about it.
//!
//! The reading of addresses and of the configuration needs no more than this, so both lie below the doors.

use crate::section::{Complaint, Section, Settings};

/// What is known of a protocol before any listener is open.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The word by which addresses and the configuration name it.
    pub(crate) name: &'static str,
    /// What the address of a Unix socket begins with, such as `unix:`, if the protocol can use one.
    pub(crate) socket_prefix: Option<&'static str>,
    /// The file name of the socket that the bare name stands for, in the user's own directory.
    pub(crate) own_socket: Option<&'static str>,
    /// Which TCP ports it may listen at.
    pub(crate) ports: Ports,
    /// Whose account a connection has that names no user itself: the key `NAME_user` of the configuration.
    pub(crate) user: ConfiguredUser,
    /// Reads the table `[NAME]` of the configuration, or gives what holds without it.
    pub(crate) read_section: Option<ReadSection>,
}

/// Reads a protocol's own table of the configuration.
///
/// # Errors
/// What is wrong in the table, and where.
pub(crate) type ReadSection = fn(Option<Section<'_>>) -> Result<Settings, Complaint>;

/// Which TCP ports a protocol may listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// None.
    None,
    /// Those of the loopback interface: the protocol has no cipher.
    Loopback,
    /// Those of any interface.
    Any,
}

/// Whose account a connection has that names no user itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfiguredUser {
    /// Every connection names its user. There is no key `NAME_user`.
    None,
    /// Any process of the machine can connect. The user may have no number on the host, no keys, no files and no say over policies.
    Anybody,
    /// The client shows a secret of the server. The user may be any.
    Trusted,
}
