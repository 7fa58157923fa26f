//! Sending with an address or descriptors: `sendto`, `sendmsg`, `sendmmsg`.
//!
//! The address of a message is in the client's memory, and a datagram socket of `AF_UNIX` could
//! send to any socket of the host. So the server copies messages and sends them through a
//! descriptor of the same socket. `write` and `send` name nothing and are native.
//!
//! A client may wait for room. The server waits in steps, so that a client that was killed does not
//! keep the socket.

use crate::clients::tree;
use crate::errors::{NO_FAMILY, host};
use crate::options::Network;
use crate::paths::walk::{FinalLink, Node};
use crate::server::{Answer, Request};
use crate::state::addresses::{ADDRESS_BYTES_MAX, Address};
use core::time::Duration;
use kyocho_microprocess::io::descriptor;
use kyocho_sys::error::Errno;
use kyocho_sys::passing;
use kyocho_sys::poll::Interest;
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketType};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Longest message of a socket that keeps message boundaries. Hosts permit less.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;
/// How much of a stream is copied at a time.
const CHUNK_BYTES: u64 = 256 << 10;
/// Most parts of a message, as on Linux.
const PARTS_MAX: usize = 1024;
/// Most bytes of control messages. 253 descriptors need a quarter of it.
const CONTROL_BYTES_MAX: usize = 4096;
/// How often the server checks that a waiting sender is alive.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the server pauses before it sends again. The receiver of a datagram may be full while
/// its sender is not, and no event reports when the receiver has room.
const PAUSE: Duration = Duration::from_millis(1);
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
const NETLINK_HEADER_BYTES: usize = 16;
/// Words of a `struct msghdr`, and bytes of a `struct mmsghdr`.
const MESSAGE_WORDS: usize = 7;
const COUNTED_MESSAGE_BYTES: u64 = 64;

/// The destination of a message, as the host reads it.
#[derive(Debug, Default)]
struct Destination {
    name: Vec<u8>,
    /// The node that the name leads through.
    _node: Option<Node>,
}

/// Control messages, as the host reads them.
#[derive(Debug, Default)]
struct Control {
    bytes: Vec<u8>,
    /// The descriptors that they carry, open until they are sent.
    carried: Vec<OwnedFd>,
}

/// A message, and the addresses of its bytes in the client.
#[derive(Debug, Default)]
struct Message {
    destination: Destination,
    control: Control,
    /// Address and length.
    parts: Vec<(u64, u64)>,
}

impl Message {
    fn bytes_count(&self) -> Result<u64, Errno> {
        let total = self.parts.iter().try_fold(0_u64, |sum, (_, bytes)| sum.checked_add(*bytes));
        total.filter(|total| i64::try_from(*total).is_ok()).ok_or(Errno::INVAL)
    }
}

impl Request<'_> {
    /// `sendto` with an address.
    pub(crate) fn send_to(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        let message = Message {
            destination: self.destination(self.word(4), self.word(5) as u32)?,
            parts: vec![(self.word(1), self.word(2))],
            control: Control::default(),
        };
        self.send(&socket, &message, self.int(3)).map(Answer::Value)
    }

    /// `sendmsg`.
    pub(crate) fn send_message(&self) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        let message = self.message(self.word(1))?;
        self.send(&socket, &message, self.int(2)).map(Answer::Value)
    }

    /// `sendmmsg`. Sends as many as possible; only an error of the first is returned.
    pub(crate) fn send_messages(&self) -> Result<Answer, Errno> {
        const LENGTH_AT: u64 = COUNTED_MESSAGE_BYTES - 8;
        let socket = self.client.descriptor(self.int(0))?;
        let count = u64::from(self.word(2) as u32).min(PARTS_MAX as u64);
        for index in 0..count {
            let place = COUNTED_MESSAGE_BYTES * index;
            let place = self.word(1).checked_add(place).ok_or(Errno::FAULT)?;
            let sent = self
                .message(place)
                .and_then(|message| self.send(&socket, &message, self.int(3)))
                .and_then(|sent| {
                    self.client.write(place + LENGTH_AT, &(sent as u32).to_le_bytes())
                });
            match sent {
                Err(errno) if index == 0 => return Err(errno),
                Err(_) => return Ok(Answer::Value(index as i64)),
                Ok(()) => {}
            }
        }
        Ok(Answer::Value(count as i64))
    }

    /// The message that a `struct msghdr` at `place` describes.
    fn message(&self, place: u64) -> Result<Message, Errno> {
        let mut bytes = [0; 8 * MESSAGE_WORDS];
        self.client.read(place, &mut bytes)?;
        let [name, name_bytes, parts, parts_count, control, control_bytes, _] = words(&bytes);
        let count = usize::try_from(parts_count).ok().filter(|count| *count <= PARTS_MAX);
        let mut list = vec![0; 16 * count.ok_or(Errno::new(libc::EMSGSIZE))?];
        self.client.read(parts, &mut list)?;
        let parts = list.chunks_exact(16).map(words::<2>).map(|[at, bytes]| (at, bytes)).collect();
        let destination = match name {
            0 => Destination::default(),
            _ => self.destination(name, name_bytes as u32)?,
        };
        let control = match control {
            0 => Control::default(),
            _ => self.control(control, control_bytes)?,
        };
        Ok(Message { destination, control, parts })
    }

    fn destination(&self, place: u64, count: u32) -> Result<Destination, Errno> {
        let mut bytes = [0; ADDRESS_BYTES_MAX];
        let bytes = bytes.get_mut(..count as usize).ok_or(Errno::INVAL)?;
        if bytes.is_empty() {
            return Ok(Destination::default());
        }
        self.client.read(place, bytes)?;
        let unix = |rest: &[u8]| [&(libc::AF_UNIX as u16).to_ne_bytes(), rest].concat();
        Ok(match Address::read(bytes)? {
            Address::Internet(address) => {
                self.must_be_reachable(&address)?;
                Destination { name: bytes.to_vec(), _node: None }
            }
            Address::Netlink(..) => Destination { name: bytes.to_vec(), _node: None },
            Address::Abstract(name) => {
                let address = self.server.without_file(&name)?;
                let hidden = address.abstract_name().unwrap_or_default();
                Destination { name: unix(&[b"\0", hidden].concat()), _node: None }
            }
            Address::Named(path) => {
                let node = self.socket_at(&path)?;
                let name = unix(&[node.descriptor_path().as_bytes(), b"\0"].concat());
                Destination { name, _node: Some(node) }
            }
            Address::Unnamed => return Err(Errno::INVAL),
            Address::Unspecified => return Err(NO_FAMILY),
        })
    }

    /// The socket at a path. The path may have come in a message.
    pub(crate) fn socket_at(&self, path: &[u8]) -> Result<Node, Errno> {
        let base = self.base_for(path)?;
        let walked = self.server.walk(&self.client, &base, path, FinalLink::Follow);
        let node = walked.or_else(|errno| {
            let inside = self.server.socket_path(path).ok_or(errno)?;
            self.server.walk(&self.client, b"/", &inside, FinalLink::Follow)
        })?;
        if node.kind == rustix::fs::FileType::Socket {
            Ok(node)
        } else {
            Err(Errno::new(libc::ECONNREFUSED))
        }
    }

    /// Control messages in which descriptors of this process replace those of the client.
    fn control(&self, place: u64, count: u64) -> Result<Control, Errno> {
        let count = usize::try_from(count).ok().filter(|count| *count <= CONTROL_BYTES_MAX);
        let mut given = vec![0; count.ok_or(Errno::new(libc::ENOBUFS))?];
        self.client.read(place, &mut given)?;
        let mut control = Control::default();
        let mut rest = given.as_slice();
        while rest.len() >= HEADER_BYTES {
            let length = words::<1>(rest)[0] as usize;
            let one = rest.get(..length).filter(|one| one.len() >= HEADER_BYTES);
            self.add_control(&mut control, one.ok_or(Errno::INVAL)?)?;
            rest = rest.get(length.next_multiple_of(8)..).unwrap_or_default();
        }
        Ok(control)
    }

    fn add_control(&self, control: &mut Control, one: &[u8]) -> Result<(), Errno> {
        let (header, payload) = one.split_at(HEADER_BYTES);
        let number = |at: usize| header[at..].first_chunk().copied().map_or(0, i32::from_ne_bytes);
        let numbers = payload
            .chunks_exact(4)
            .map(|word| word.first_chunk().copied().map_or(-1, i32::from_ne_bytes));
        let carried = match (number(8), number(12)) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                let mut own = Vec::new();
                for number in numbers {
                    let descriptor = self.client.any_descriptor(number)?;
                    own.extend(descriptor.as_raw_fd().to_ne_bytes());
                    control.carried.push(descriptor);
                }
                own
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                // For receivers that ask for credentials, the host reports this server as the
                // sender.
                let own = self.client.process()? as i32;
                let said = numbers.clone().next();
                return if said == Some(own) { Ok(()) } else { Err(Errno::PERM) };
            }
            (level, kind) if self.is_harmless(level, kind) => payload.to_vec(),
            _ => return Err(Errno::INVAL),
        };
        control.bytes.extend(header);
        control.bytes.extend(carried);
        control.bytes.resize(control.bytes.len().next_multiple_of(8), 0);
        Ok(())
    }

    /// Whether a control message only says how a packet is sent. One that names an interface could
    /// leave the loopback network.
    fn is_harmless(&self, level: i32, kind: i32) -> bool {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) | (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.server.network == Network::Host
            }
            (libc::IPPROTO_IP, libc::IP_TOS | libc::IP_TTL)
            | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS | libc::IPV6_HOPLIMIT)
            | (libc::SOL_UDP, libc::UDP_SEGMENT) => true,
            _ => false,
        }
    }

    /// Sends a message. Of a stream, sends everything unless an error occurs. Returns how many
    /// bytes.
    fn send(&self, socket: &OwnedFd, message: &Message, flags: i32) -> Result<i64, Errno> {
        if flags & libc::MSG_FASTOPEN != 0 {
            return Err(Errno::new(libc::EOPNOTSUPP));
        }
        let total = message.bytes_count()?;
        let kind = rustix::net::sockopt::socket_type(socket).map_err(host)?;
        if kind != SocketType::STREAM {
            if total > MESSAGE_BYTES_MAX {
                return Err(Errno::new(libc::EMSGSIZE));
            }
            let bytes = self.gather(&message.parts, 0, total)?;
            if rustix::net::sockopt::socket_domain(socket) == Ok(AddressFamily::NETLINK) {
                must_only_ask(&bytes)?;
            }
            return self.send_bytes(socket, message, &bytes, &message.control.bytes, flags);
        }
        let mut sent = 0;
        loop {
            let bytes = self.gather(&message.parts, sent, CHUNK_BYTES.min(total - sent))?;
            // Descriptors are sent with the first byte.
            let control = if sent == 0 { message.control.bytes.as_slice() } else { &[] };
            match self.send_bytes(socket, message, &bytes, control, flags) {
                Err(_) if sent > 0 => return Ok(sent as i64),
                Err(errno) => {
                    self.signal_broken_pipe(errno, flags);
                    return Err(errno);
                }
                Ok(count) => sent += count as u64,
            }
            if sent >= total {
                return Ok(sent as i64);
            }
        }
    }

    /// Bytes of a message, starting at `from`.
    fn gather(&self, parts: &[(u64, u64)], from: u64, count: u64) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; count as usize];
        let (mut before, mut filled) = (from, 0);
        for &(address, length) in parts {
            let skipped = before.min(length);
            before -= skipped;
            let wanted = (length - skipped).min((bytes.len() - filled) as u64) as usize;
            if wanted > 0 {
                let address = address.checked_add(skipped).ok_or(Errno::FAULT)?;
                self.client.read(address, &mut bytes[filled..filled + wanted])?;
                filled += wanted;
            }
        }
        Ok(bytes)
    }

    /// Sends once there is room, unless the client does not want to wait.
    fn send_bytes(
        &self,
        socket: &OwnedFd,
        message: &Message,
        bytes: &[u8],
        control: &[u8],
        flags: i32,
    ) -> Result<i64, Errno> {
        let name = message.destination.name.as_slice();
        loop {
            match passing::send_as(socket.as_fd(), name, bytes, control, flags) {
                Err(Errno::AGAIN) if self.would_wait(socket, flags)? => {
                    // Ready or not, sending is tried again.
                    let _ = descriptor::ready(socket.as_fd(), Interest::Write, Some(LOOK_EVERY));
                    kyocho_microprocess::sleep(PAUSE);
                }
                other => return other.map(|sent| sent as i64),
            }
            if !self.listener.waits(self.asked.id) {
                return Err(Errno::SRCH);
            }
        }
    }

    fn would_wait(&self, socket: &OwnedFd, flags: i32) -> Result<bool, Errno> {
        let modes = rustix::fs::fcntl_getfl(socket).map_err(host)?;
        Ok(flags & libc::MSG_DONTWAIT == 0 && !modes.contains(OFlags::NONBLOCK))
    }

    /// Sends the signal that accompanies `PIPE`.
    fn signal_broken_pipe(&self, errno: Errno, flags: i32) {
        if errno.number() == libc::EPIPE && flags & libc::MSG_NOSIGNAL == 0 {
            // A process that is gone needs no signal.
            let _ = self.client.process().and_then(|process| tree::send(process, libc::SIGPIPE));
        }
    }
}

/// # Errors
/// `PERM`: one of the messages would change the host's network. This server may have the right to.
fn must_only_ask(bytes: &[u8]) -> Result<(), Errno> {
    /// The low bits of requests that only read (`RTM_GETLINK`, ...).
    const GET: u16 = 2;
    let mut rest = bytes;
    while !rest.is_empty() {
        if rest.len() < NETLINK_HEADER_BYTES {
            return Err(Errno::INVAL);
        }
        let length = rest.first_chunk().copied().map(u32::from_ne_bytes).ok_or(Errno::INVAL)?;
        let kind = rest.get(4..).and_then(|rest| rest.first_chunk()).copied();
        let kind = kind.map(u16::from_ne_bytes).ok_or(Errno::INVAL)?;
        if kind < libc::RTM_NEWLINK || kind & 3 != GET {
            return Err(Errno::PERM);
        }
        let next = (length as usize).max(NETLINK_HEADER_BYTES).next_multiple_of(4);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(())
}

/// The first words of `bytes`.
fn words<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let word = |index: usize| bytes.get(8 * index..).and_then(|rest| rest.first_chunk().copied());
    core::array::from_fn(|index| word(index).map_or(0, u64::from_le_bytes))
}
