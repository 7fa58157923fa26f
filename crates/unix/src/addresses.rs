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

use crate::server::{Answer, DONE, Request, Server, host};
use crate::walk::Node;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use kyocho_sys::error::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// Longest address that is read.
pub(crate) const ADDRESS_BYTES_MAX: usize = 128;
/// Most directories that are kept open for the sockets in them. Names in others are shown as the host keeps them.
const HOMES_MAX: usize = 256;
const KEY_BYTES: usize = 8;
const IN_DESCRIPTOR: &[u8] = b"/proc/self/fd/";
pub(crate) const NO_FAMILY: Errno = Errno::new(libc::EAFNOSUPPORT);

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
    homes: HashMap<i32, Home>,
}

#[derive(Debug)]
struct Home {
    /// Open, so that its number and its identity stay its own.
    _kept: OwnedFd,
    /// Device and inode.
    identity: (u64, u64),
    path: Vec<u8>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { key: random_digits(), homes: HashMap::new() }
    }

    /// A name without a file as the host keeps it. One that a message brought stays as it is.
    fn hidden(&self, name: &[u8]) -> Vec<u8> {
        match self.behind_key(name) {
            Some(_) => name.to_vec(),
            None => [&self.key, b"/".as_slice(), name].concat(),
        }
    }

    fn behind_key<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        name.strip_prefix(&self.key)?.strip_prefix(b"/")
    }

    /// The path inside that the host keeps as `path`.
    fn path_inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(IN_DESCRIPTOR)?;
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let number = str::from_utf8(&rest[..slash]).ok()?.parse().ok()?;
        Some(crate::mounts::child(&self.homes.get(&number)?.path, &rest[slash + 1..]))
    }

    /// What a client sees of `address`; nothing where that is what the host shows.
    fn inside(&self, address: &SocketAddrUnix) -> Option<Vec<u8>> {
        if let Some(name) = address.abstract_name() {
            return Some([b"\0", self.behind_key(name)?].concat());
        }
        let mut path = self.path_inside(address.path_bytes()?)?;
        path.push(0);
        Some(path)
    }
}

/// Digits that nobody guesses.
fn random_digits<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    // The host has had randomness since long before; without it the names would be known, not open.
    let _ = rustix::rand::getrandom(bytes.as_mut_slice(), rustix::rand::GetRandomFlags::empty());
    bytes.map(|byte| b"0123456789abcdef"[usize::from(byte % 16)])
}

impl Server {
    /// The address of a name without a file.
    ///
    /// # Errors
    /// `INVAL`: it is too long.
    pub(crate) fn without_file(&self, name: &[u8]) -> Result<SocketAddrUnix, Errno> {
        let hidden = self.state().sockets.hidden(name);
        SocketAddrUnix::new_abstract_name(&hidden).map_err(|_| Errno::INVAL)
    }

    /// The path inside of a socket whose path a message brought as the host keeps it.
    pub(crate) fn socket_path(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.state().sockets.path_inside(path)
    }

    /// A name for a socket that is bound to none, such as the host would choose.
    pub(crate) fn any_name(&self) -> Result<SocketAddrUnix, Errno> {
        const DIGITS: usize = 5;
        self.without_file(&random_digits::<DIGITS>())
    }

    /// The address of `name` in `directory`.
    ///
    /// # Errors
    /// `NAMETOOLONG`.
    pub(crate) fn in_directory(
        &self,
        directory: &Node,
        name: &[u8],
    ) -> Result<SocketAddrUnix, Errno> {
        let number = self.home(directory)?;
        let shown = [IN_DESCRIPTOR, format!("{number}/").as_bytes(), name].concat();
        SocketAddrUnix::new(shown.as_slice()).map_err(host)
    }

    /// The number by which `directory` is open for as long as there is a server, or for now where there are too many.
    fn home(&self, directory: &Node) -> Result<i32, Errno> {
        let status = rustix::fs::fstat(&directory.file).map_err(host)?;
        let identity = (status.st_dev, status.st_ino);
        let mut state = self.state();
        let homes = &mut state.sockets.homes;
        let known =
            homes.iter().find(|(_, home)| home.identity == identity && home.path == directory.path);
        if let Some((number, _)) = known {
            return Ok(*number);
        }
        if homes.len() >= HOMES_MAX {
            return Ok(directory.file.as_raw_fd());
        }
        let kept = directory.file.try_clone().map_err(|_| Errno::new(libc::ENFILE))?;
        let number = kept.as_raw_fd();
        homes.insert(number, Home { _kept: kept, identity, path: directory.path.clone() });
        Ok(number)
    }
}

/// Whose name is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Own,
    Peer,
}

impl Request<'_> {
    /// The address that two arguments describe: where it is, how long.
    ///
    /// # Errors
    /// As for [`Address::read`], and `FAULT`.
    pub(crate) fn address(&self, place: usize, length: usize) -> Result<Address, Errno> {
        let bytes_count = self.word(length) as usize & 0xffff_ffff;
        let mut bytes = [0; ADDRESS_BYTES_MAX];
        let bytes = bytes.get_mut(..bytes_count).ok_or(Errno::INVAL)?;
        self.client.read(self.word(place), bytes)?;
        Address::read(bytes)
    }

    /// `getsockname`, `getpeername`.
    pub(crate) fn name_of_socket(&self, end: End) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        let address = match end {
            End::Own => rustix::net::getsockname(&socket).map(Some),
            End::Peer => rustix::net::getpeername(&socket),
        };
        let address = address.map_err(host)?;
        let of_path = address.filter(|address| address.address_family() == AddressFamily::UNIX);
        let of_path = of_path.and_then(|address| SocketAddrUnix::try_from(address).ok());
        let inside = of_path.and_then(|address| self.server.state().sockets.inside(&address));
        // What the host says is right: about its own descriptor, which needs no look at memory.
        let Some(inside) = inside else { return Ok(Answer::LetThrough) };
        self.put_address(&inside)
    }

    /// Hands an address of `AF_UNIX` over as the host does: cut to the room that there is, and its whole length.
    fn put_address(&self, name: &[u8]) -> Result<Answer, Errno> {
        let (place, length) = (self.word(1), self.word(2));
        let mut room = [0; 4];
        self.client.read(length, &mut room)?;
        let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::INVAL)?;
        let bytes = [&(libc::AF_UNIX as u16).to_le_bytes(), name].concat();
        self.client.write(place, &bytes[..room.min(bytes.len())])?;
        self.client.write(length, &(bytes.len() as u32).to_le_bytes())?;
        DONE
    }
}

#[cfg(test)]
mod tests;
