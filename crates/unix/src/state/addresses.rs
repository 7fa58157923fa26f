//! Addresses of sockets, as clients write them and as the host stores those of `AF_UNIX`.
//!
//! ```text
//!   client           host
//!   "/dir/name"      "/proc/self/fd/N/name"   N is /dir, which the server keeps open
//!   "\0name"         "\0KEY/name"             KEY is the instance's own
//! ```
//!
//! **Invariant:** an address that the host stores can be translated back. `getsockname` and
//! `getpeername` are served for that reason. `accept` and messages return the host's own text,
//! which is accepted as an address.

use crate::errors::NO_FAMILY;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use kyocho_sys::error::Errno;
use rustix::net::SocketAddrUnix;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Longest address that is accepted.
pub(crate) const ADDRESS_BYTES_MAX: usize = 128;
/// Most directories that are kept open for the sockets in them. Sockets in other directories are
/// shown with the host's address.
pub(crate) const SOCKET_DIRECTORIES_MAX: usize = 256;
const KEY_BYTES: usize = 8;
pub(crate) const IN_DESCRIPTOR: &[u8] = b"/proc/self/fd/";

/// An address that a client wants to connect to or bind to.
#[derive(Debug)]
pub(crate) enum Address {
    Internet(SocketAddr),
    /// A path.
    Named(Vec<u8>),
    /// An abstract name, without a file.
    Abstract(Vec<u8>),
    /// No name: the host would choose one.
    Unnamed,
    /// The host's network (`AF_NETLINK`): port and groups.
    Netlink(u32, u32),
    /// `AF_UNSPEC`, which undoes a connection.
    Unspecified,
}

impl Address {
    /// # Errors
    /// `INVAL`: too short for its family. `AFNOSUPPORT`: of a family that is not supported.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Errno> {
        let family = bytes.first_chunk().ok_or(Errno::INVAL)?;
        match i32::from(u16::from_le_bytes(*family)) {
            libc::AF_INET => v4(bytes),
            libc::AF_INET6 => v6(bytes),
            libc::AF_UNIX => Ok(match &bytes[2..] {
                [] => Self::Unnamed,
                [0, name @ ..] => Self::Abstract(name.to_vec()),
                path => Self::Named(path.split(|byte| *byte == 0).next().unwrap_or(path).to_vec()),
            }),
            libc::AF_NETLINK => netlink(bytes),
            libc::AF_UNSPEC => Ok(Self::Unspecified),
            _ => Err(NO_FAMILY),
        }
    }
}

fn v4(bytes: &[u8]) -> Result<Address, Errno> {
    let bytes: &[u8; 8] = bytes.first_chunk().filter(|_| bytes.len() >= 16).ok_or(Errno::INVAL)?;
    let [_, _, port @ .., a, b, c, d] = *bytes;
    let address = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes(port));
    Ok(Address::Internet(address.into()))
}

fn v6(bytes: &[u8]) -> Result<Address, Errno> {
    let word = |at: usize| bytes.get(at..)?.first_chunk::<4>();
    let (Some(flow), Some(octets), Some(&[port_high, port_low])) = (
        word(4),
        bytes.get(8..).and_then(|rest| rest.first_chunk::<16>()),
        bytes.get(2..4).and_then(|port| port.first_chunk()),
    ) else {
        return Err(Errno::INVAL);
    };
    let scope = word(24).map_or(0, |scope| u32::from_le_bytes(*scope));
    let port = u16::from_be_bytes([port_high, port_low]);
    let octets = Ipv6Addr::from(*octets);
    Ok(Address::Internet(SocketAddrV6::new(octets, port, u32::from_be_bytes(*flow), scope).into()))
}

fn netlink(bytes: &[u8]) -> Result<Address, Errno> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
    let (port, groups) = word(4).zip(word(8)).ok_or(Errno::INVAL)?;
    Ok(Address::Netlink(port, groups))
}

/// The names of an instance's sockets.
#[derive(Debug)]
pub(crate) struct Names {
    key: [u8; KEY_BYTES],
    /// Directories with sockets, by the numbers of their descriptors.
    pub(crate) directories: HashMap<i32, SocketDirectory>,
}

#[derive(Debug)]
pub(crate) struct SocketDirectory {
    /// Kept open, so that its number and its identity remain its own.
    pub(crate) _kept: OwnedFd,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
    pub(crate) path: Vec<u8>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { key: random_digits(), directories: HashMap::new() }
    }

    /// The abstract name that the host stores. A name that came in a message has the key already,
    /// and remains as it is.
    pub(crate) fn hidden(&self, name: &[u8]) -> Vec<u8> {
        match self.behind_key(name) {
            Some(_) => name.to_vec(),
            None => [&self.key, b"/".as_slice(), name].concat(),
        }
    }

    fn behind_key<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        name.strip_prefix(&self.key)?.strip_prefix(b"/")
    }

    /// The path inside for the path that the host stores.
    pub(crate) fn path_inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(IN_DESCRIPTOR)?;
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let number = str::from_utf8(&rest[..slash]).ok()?.parse().ok()?;
        Some(crate::state::mounts::child(&self.directories.get(&number)?.path, &rest[slash + 1..]))
    }

    /// The address that a client sees for `address`; `None` if that is the host's.
    pub(crate) fn inside(&self, address: &SocketAddrUnix) -> Option<Vec<u8>> {
        if let Some(name) = address.abstract_name() {
            return Some([b"\0", self.behind_key(name)?].concat());
        }
        let mut path = self.path_inside(address.path_bytes()?)?;
        path.push(0);
        Some(path)
    }
}

/// Digits that cannot be guessed.
pub(crate) fn random_digits<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    // This cannot fail on a host that has started. If it did, all digits would be 0, and the names
    // could be guessed.
    let _ = rustix::rand::getrandom(bytes.as_mut_slice(), rustix::rand::GetRandomFlags::empty());
    bytes.map(|byte| b"0123456789abcdef"[usize::from(byte % 16)])
}

#[cfg(test)]
mod tests;
