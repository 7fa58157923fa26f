//! Sockets: made and addressed by the server, used by clients without it.
//!
//! Messages with an address are sent by `messages`.
//!
//! On the loopback network, a socket is bound to the interface before a client gets it. Its address
//! and its peers can only be the host's own. Undoing a connection would also undo that binding, so
//! the server binds the socket again before it can receive anything (`disconnect`). Other ways to
//! choose an interface, by options or control messages, are refused.

use crate::errors::{NO_FAMILY, NOT_FOUND, host};
use crate::options::Network;
use crate::server::{Answer, DONE, Request};
use crate::state::addresses::Address;
use core::net::SocketAddr;
use core::num::NonZeroU32;
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::Inherited;
use rustix::fs::Mode;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, SocketAddrUnix, SocketFlags, SocketType};
use socket2::SockRef;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

/// The interface of the loopback network.
const LOOPBACK: &[u8] = b"lo";
/// How often another name is chosen if one is taken already.
const CHOICES_MAX: usize = 16;

impl Request<'_> {
    pub(crate) fn socket(&self) -> Result<Answer, Errno> {
        const FLAGS: i32 = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let (family, kind) = (self.int(0), self.int(1) & !FLAGS);
        match family {
            libc::AF_UNIX => {}
            libc::AF_INET | libc::AF_INET6 if self.server.network == Network::None => {
                return Err(NO_FAMILY);
            }
            libc::AF_INET | libc::AF_INET6 => self.must_be_internet(kind, self.int(2))?,
            // Questions about the network that is shared with the host. Requests to change it are
            // refused in `messages`, or by the host if the client sends them itself.
            libc::AF_NETLINK if self.is_about_routes() => {}
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
        if matches!(family, libc::AF_INET | libc::AF_INET6)
            && self.server.network == Network::Loopback
        {
            let bound = SockRef::from(&file).bind_device(Some(LOOPBACK));
            bound.map_err(|_| Errno::new(libc::ENETDOWN))?;
        }
        let closed = self.int(1) & libc::SOCK_CLOEXEC != 0;
        let inherited = if closed { Inherited::No } else { Inherited::Yes };
        Ok(Answer::Descriptor(file, inherited))
    }

    /// # Errors
    /// `PERM`: it would receive packets of others (`SOCK_PACKET` of `AF_INET` is another family in
    /// disguise). `SOCKTNOSUPPORT`, `PROTONOSUPPORT`: not supported; on the loopback network this
    /// includes everything with interfaces or peers of its own.
    fn must_be_internet(&self, kind: i32, protocol: i32) -> Result<(), Errno> {
        const PACKET: i32 = 10;
        match (kind, protocol) {
            (libc::SOCK_RAW | PACKET, _) => Err(Errno::PERM),
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP)
            | (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Ok(()),
            (libc::SOCK_STREAM | libc::SOCK_DGRAM, _) if self.server.network == Network::Host => {
                Ok(())
            }
            (libc::SOCK_STREAM | libc::SOCK_DGRAM, _) => Err(Errno::new(libc::EPROTONOSUPPORT)),
            _ => Err(Errno::new(libc::ESOCKTNOSUPPORT)),
        }
    }

    /// # Errors
    /// `NETUNREACH`: `address` is outside the instance's network. A scope changes nothing:
    /// addresses of the loopback network have none.
    pub(crate) fn must_be_reachable(&self, address: &SocketAddr) -> Result<(), Errno> {
        let address = address.ip().to_canonical();
        match self.server.network {
            Network::Host => Ok(()),
            Network::Loopback if address.is_loopback() || address.is_unspecified() => Ok(()),
            Network::Loopback | Network::None => Err(Errno::new(libc::ENETUNREACH)),
        }
    }

    /// Undoes a connection. The host then also unbinds a datagram socket from its interface. The
    /// socket must receive nothing before it is bound again.
    fn disconnect(&self, socket: &OwnedFd) -> Result<(), Errno> {
        /// A filter that drops all packets.
        const NOTHING: [socket2::SockFilter; 1] = [socket2::SockFilter::new(RETURN, 0, 0, 0)];
        const RETURN: u16 = 0x06;
        let lost = |error: std::io::Error| Errno::new(error.raw_os_error().unwrap_or(libc::EIO));
        let domain = rustix::net::sockopt::socket_domain(socket).map_err(host)?;
        let internet = matches!(domain, AddressFamily::INET | AddressFamily::INET6);
        // A stream socket stays bound. For it, the host permits ordinary users no filter.
        let kind = rustix::net::sockopt::socket_type(socket).map_err(host)?;
        let stays = !internet || kind == SocketType::STREAM;
        if stays || self.server.network == Network::Host {
            return rustix::net::connect_unspec(socket).map_err(host);
        }
        // A concurrent call on the same socket would remove the filter too early.
        let _alone = self.server.rebinding.lock().unwrap_or_else(PoisonError::into_inner);
        let options = SockRef::from(socket);
        options.attach_filter(&NOTHING).map_err(lost)?;
        let undone = rustix::net::connect_unspec(socket).map_err(host);
        if options.device().map_err(lost)?.is_none() {
            // If it cannot be bound, the filter stays.
            options.bind_device(Some(LOOPBACK)).map_err(lost)?;
        }
        options.detach_filter().map_err(lost)?;
        undone
    }

    /// `setsockopt` with an option that chooses interfaces, joins groups, or attaches something.
    /// Permitted on the host's network alone.
    pub(crate) fn set_option(&self) -> Result<Answer, Errno> {
        match self.server.network {
            Network::Host => Ok(Answer::LetThrough),
            Network::None | Network::Loopback => Err(Errno::PERM),
        }
    }

    /// Whether the call asks for a socket of `AF_NETLINK` that describes interfaces and routes, and
    /// the instance shares the host's.
    fn is_about_routes(&self) -> bool {
        self.server.network == Network::Host && self.int(2) == libc::NETLINK_ROUTE
    }

    pub(crate) fn base_for(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        if path.starts_with(b"/") { Ok(Vec::new()) } else { self.base_of(libc::AT_FDCWD) }
    }

    pub(crate) fn connect(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        match self.address(1, 2)? {
            Address::Internet(address) => {
                self.must_be_reachable(&address)?;
                rustix::net::connect(&socket, &address)
            }
            Address::Netlink(port, groups) => {
                rustix::net::connect(&socket, &SocketAddrNetlink::new(port, groups))
            }
            Address::Unspecified => return self.disconnect(&socket).and(DONE),
            Address::Unnamed => return Err(Errno::INVAL),
            Address::Abstract(name) => {
                rustix::net::connect(&socket, &self.server.without_file(&name)?)
            }
            Address::Named(path) => {
                let node = self.socket_at(&path)?;
                let host_path = node.descriptor_path();
                let address = SocketAddrUnix::new(host_path.as_str()).map_err(host)?;
                rustix::net::connect(&socket, &address)
            }
        }
        .map_err(host)?;
        DONE
    }

    pub(crate) fn bind(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        match self.address(1, 2)? {
            Address::Internet(address) => {
                self.must_be_reachable(&address).map_err(|_| Errno::new(libc::EADDRNOTAVAIL))?;
                rustix::net::bind(&socket, &address).map_err(host)?;
            }
            Address::Netlink(port, groups) => {
                rustix::net::bind(&socket, &SocketAddrNetlink::new(port, groups)).map_err(host)?;
            }
            Address::Unspecified => return Err(Errno::INVAL),
            Address::Unnamed => self.bind_anywhere(&socket)?,
            Address::Abstract(name) => {
                rustix::net::bind(&socket, &self.server.without_file(&name)?).map_err(host)?;
            }
            Address::Named(path) => {
                let base = self.base_for(&path)?;
                let slot = self.server.slot(&self.client, &base, &path)?;
                slot.directory.must_be_writable()?;
                self.open_directory(&slot.directory)?;
                let address = self.server.in_directory(&slot.directory, &slot.name)?;
                self.bind_to_path(&socket, &address)?;
            }
        }
        DONE
    }

    /// Binds a socket to a path. The file gets the socket's permissions. The server's mask is
    /// empty, so the client's mask is applied to the socket first.
    fn bind_to_path(&self, socket: &OwnedFd, address: &SocketAddrUnix) -> Result<(), Errno> {
        let mode = rustix::fs::fstat(socket).map_err(host)?.st_mode & 0o777;
        let masked = Mode::from_raw_mode(mode & !self.client.umask()?);
        rustix::fs::fchmod(socket, masked).map_err(host)?;
        let bound = rustix::net::bind(socket, address);
        rustix::fs::fchmod(socket, Mode::from_raw_mode(mode)).map_err(host)?;
        bound.map_err(|errno| match errno {
            rustix::io::Errno::NOENT => NOT_FOUND,
            other => host(other),
        })
    }

    /// Binds a socket to an unused name.
    fn bind_anywhere(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let mut bound = Err(rustix::io::Errno::ADDRINUSE);
        for _ in 0..CHOICES_MAX {
            bound = rustix::net::bind(socket, &self.server.any_name()?);
            if bound != Err(rustix::io::Errno::ADDRINUSE) {
                break;
            }
        }
        bound.map_err(host)
    }

    /// `ioctl` that describes the host's network interfaces. Permitted if the instance's network is
    /// the host's.
    pub(crate) fn interfaces(&self) -> Result<Answer, Errno> {
        match self.server.network {
            Network::Host => Ok(Answer::LetThrough),
            Network::None | Network::Loopback => Err(Errno::new(libc::ENODEV)),
        }
    }
}
