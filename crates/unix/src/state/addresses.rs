//! Addresses of sockets: as clients write them, and as the host keeps those of `AF_UNIX`.
//!
//! ```text
//!   client           host
//!   "/dir/name"      "/proc/self/fd/N/name"   N is /dir, which the server keeps open from now on
//!   "\0name"         "\0KEY/name"             KEY is the instance's: its names without a file are its own
//! ```
//!
//! **Invariant:** what the host keeps leads back to what it means inside: `getsockname` and `getpeername` are served for that. `accept` and messages bring the
//! host's own text; as an address, it is understood.

use crate::errors::NO_FAMILY;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use kyocho_sys::error::Errno;
use rustix::net::SocketAddrUnix;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Longest address that is read.
pub(crate) const ADDRESS_BYTES_MAX: usize = 128;
/// Most directories that are kept open for the sockets in them. Names in others are shown as the host keeps them.
pub(crate) const HOMES_MAX: usize = 256;
const KEY_BYTES: usize = 8;
pub(crate) const IN_DESCRIPTOR: &[u8] = b"/proc/self/fd/";

/// Where a client wants to go, or to be.
#[derive(Debug)]
pub(crate) enum Address {
    Internet(SocketAddr),
    /// A path.
    Named(Vec<u8>),
    /// A name without a file.
    Abstract(Vec<u8>),
    /// No name yet: the host would choose one.
    Unnamed,
    /// The host's own network: port and groups.
    Netlink(u32, u32),
    /// Undoes a connection.
    Unspecified,
}

impl Address {
    /// # Errors
    /// `INVAL`: too short for its family. `AFNOSUPPORT`: of no family that is there.
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

/// What an instance knows of its sockets' names.
#[derive(Debug)]
pub(crate) struct Names {
    key: [u8; KEY_BYTES],
    /// Directories that sockets lie in, by their descriptors' numbers.
    pub(crate) homes: HashMap<i32, Home>,
}

#[derive(Debug)]
pub(crate) struct Home {
    /// Open, so that its number and its identity stay its own.
    pub(crate) _kept: OwnedFd,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
    pub(crate) path: Vec<u8>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { key: random_digits(), homes: HashMap::new() }
    }

    /// A name without a file as the host keeps it. One that a message brought stays as it is.
    pub(crate) fn hidden(&self, name: &[u8]) -> Vec<u8> {
        match self.behind_key(name) {
            Some(_) => name.to_vec(),
            None => [&self.key, b"/".as_slice(), name].concat(),
        }
    }

    fn behind_key<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        name.strip_prefix(&self.key)?.strip_prefix(b"/")
    }

    /// The path inside that the host keeps as `path`.
    pub(crate) fn path_inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(IN_DESCRIPTOR)?;
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let number = str::from_utf8(&rest[..slash]).ok()?.parse().ok()?;
        Some(crate::state::mounts::child(&self.homes.get(&number)?.path, &rest[slash + 1..]))
    }

    /// What a client sees of `address`; nothing where that is what the host shows.
    pub(crate) fn inside(&self, address: &SocketAddrUnix) -> Option<Vec<u8>> {
        if let Some(name) = address.abstract_name() {
            return Some([b"\0", self.behind_key(name)?].concat());
        }
        let mut path = self.path_inside(address.path_bytes()?)?;
        path.push(0);
        Some(path)
    }
}

/// Digits that nobody guesses.
pub(crate) fn random_digits<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    // The host has had randomness since long before; without it the names would be known, not open.
    let _ = rustix::rand::getrandom(bytes.as_mut_slice(), rustix::rand::GetRandomFlags::empty());
    bytes.map(|byte| b"0123456789abcdef"[usize::from(byte % 16)])
}

#[cfg(test)]
mod tests;
