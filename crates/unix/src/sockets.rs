//! Sockets: made and addressed here, used by clients without us.
//!
//! Datagram sockets of the host's own names (`AF_UNIX`) are not there: each of their messages could name any socket of the host.
//! On the loopback network a socket is bound to the interface before a client has it; only a privileged process could undo that.

use crate::server::{Answer, DONE, Network, Request, host};
use crate::walk::{Last, NOT_FOUND};
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::NonZeroU32;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::Inherited;
use rustix::fs::FileType;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::AsRawFd;

/// Longest address, and longest datagram that is sent to one.
const ADDRESS_BYTES_MAX: usize = 128;
const DATAGRAM_BYTES_MAX: u64 = 64 * 1024;
const NO_FAMILY: Errno = Errno::new(libc::EAFNOSUPPORT);

/// Where a client wants to go, or to be.
#[derive(Debug)]
enum Address {
    Internet(SocketAddr),
    /// A path.
    Named(Vec<u8>),
    /// Undoes a connection.
    Unspecified,
}

impl Request<'_> {
    pub(crate) fn socket(&self) -> Result<Answer, Errno> {
        const FLAGS: i32 = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let (family, kind) = (self.int(0), self.int(1) & !FLAGS);
        let stream = matches!(kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET);
        match family {
            libc::AF_UNIX if !stream => return Err(Errno::new(libc::EPROTONOSUPPORT)),
            libc::AF_UNIX => {}
            libc::AF_INET | libc::AF_INET6 if self.server.network == Network::None => {
                return Err(NO_FAMILY);
            }
            libc::AF_INET | libc::AF_INET6 if kind == libc::SOCK_RAW => return Err(Errno::PERM),
            libc::AF_INET | libc::AF_INET6 => {}
            _ => return Err(NO_FAMILY),
        }
        let flags = SocketFlags::from_bits_retain(self.int(1) as u32 & libc::SOCK_NONBLOCK as u32);
        let protocol = NonZeroU32::new(self.int(2) as u32).map(Protocol::from_raw);
        let file = rustix::net::socket_with(
            AddressFamily::from_raw(family as u16),
            SocketType::from_raw(kind as u32),
            flags | SocketFlags::CLOEXEC,
            protocol,
        )
        .map_err(host)?;
        if family != libc::AF_UNIX && self.server.network == Network::Loopback {
            let bound = socket2::SockRef::from(&file).bind_device(Some(b"lo"));
            bound.map_err(|_| Errno::new(libc::ENETDOWN))?;
        }
        let closed = self.int(1) & libc::SOCK_CLOEXEC != 0;
        let inherited = if closed { Inherited::No } else { Inherited::Yes };
        Ok(Answer::Descriptor(file, inherited))
    }

    /// The address that two arguments describe: where it is, how long.
    fn address(&self, place: usize, length: usize) -> Result<Address, Errno> {
        let bytes_count = self.word(length) as usize & 0xffff_ffff;
        if !(2..=ADDRESS_BYTES_MAX).contains(&bytes_count) {
            return Err(Errno::INVAL);
        }
        let mut bytes = [0; ADDRESS_BYTES_MAX];
        self.client.read(self.word(place), &mut bytes[..bytes_count])?;
        let family = i32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match family {
            libc::AF_INET if bytes_count >= 16 => {
                let address = Ipv4Addr::from(word(4));
                Ok(Address::Internet(SocketAddrV4::new(address, port).into()))
            }
            libc::AF_INET6 if bytes_count >= 24 => {
                let octets: [u8; 16] = bytes[8..24].try_into().map_err(|_| Errno::INVAL)?;
                let scope = if bytes_count >= 28 { u32::from_le_bytes(word(24)) } else { 0 };
                let flow = u32::from_be_bytes(word(4));
                let address = SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope);
                Ok(Address::Internet(address.into()))
            }
            libc::AF_UNIX => {
                let path = &bytes[2..bytes_count];
                let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
                match &path[..end] {
                    // Names without a file are the host's.
                    [] => Err(Errno::new(libc::EACCES)),
                    path => Ok(Address::Named(path.to_vec())),
                }
            }
            libc::AF_UNSPEC => Ok(Address::Unspecified),
            _ => Err(NO_FAMILY),
        }
    }

    fn base_for(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        if path.starts_with(b"/") { Ok(Vec::new()) } else { self.base_of(libc::AT_FDCWD) }
    }

    pub(crate) fn connect(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        match self.address(1, 2)? {
            Address::Internet(address) => rustix::net::connect(&socket, &address),
            Address::Unspecified => rustix::net::connect_unspec(&socket),
            Address::Named(path) => {
                let base = self.base_for(&path)?;
                let node = self.server.walk(&self.client, &base, &path, Last::Follow)?;
                if node.kind != FileType::Socket {
                    return Err(Errno::new(libc::ECONNREFUSED));
                }
                let shown = node.shown();
                let address = SocketAddrUnix::new(shown.as_str()).map_err(host)?;
                rustix::net::connect(&socket, &address)
            }
        }
        .map_err(host)?;
        DONE
    }

    pub(crate) fn bind(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        match self.address(1, 2)? {
            Address::Internet(address) => rustix::net::bind(&socket, &address).map_err(host)?,
            Address::Unspecified => return Err(Errno::INVAL),
            Address::Named(path) => {
                let base = self.base_for(&path)?;
                let slot = self.server.slot(&self.client, &base, &path)?;
                slot.directory.must_be_writable()?;
                let directory = self.open_directory(&slot.directory)?;
                let mut shown = format!("/proc/self/fd/{}/", directory.as_raw_fd()).into_bytes();
                shown.extend(&slot.name);
                let address = SocketAddrUnix::new(shown.as_slice()).map_err(host)?;
                rustix::net::bind(&socket, &address).map_err(|errno| match errno {
                    rustix::io::Errno::NOENT => NOT_FOUND,
                    other => host(other),
                })?;
            }
        }
        DONE
    }

    /// `sendto` with an address.
    pub(crate) fn send_to(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        let Address::Internet(address) = self.address(4, 5)? else {
            return Err(NO_FAMILY);
        };
        if self.word(2) > DATAGRAM_BYTES_MAX {
            return Err(Errno::new(libc::EMSGSIZE));
        }
        let mut bytes = vec![0; self.word(2) as usize];
        self.client.read(self.word(1), &mut bytes)?;
        let flags = SendFlags::from_bits_truncate(self.word(3) as u32) | SendFlags::NOSIGNAL;
        let sent = rustix::net::sendto(&socket, &bytes, flags, &address).map_err(host)?;
        Ok(Answer::Value(sent as i64))
    }
}
