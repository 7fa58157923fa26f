//! Sockets: kinds, addresses, options.

mod messages;
mod options;

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, number, pass};
use crate::user;
pub(crate) use messages::{receive, send};

/// FreeBSD's and the host's numbers of families.
const FAMILIES: [(u8, u16); 4] = [(0, 0), (1, 1), (2, 2), (28, 10)];
/// Longest address of either system.
const ADDRESS_BYTES_MAX: usize = 128;

fn family_to_host(family: u64) -> Result<u16, Errno> {
    let known = FAMILIES.iter().find(|(ours, _)| u64::from(*ours) == family);
    known.map(|(_, host)| *host).ok_or(Errno::AFNOSUPPORT)
}

/// The host's kind of socket, with flags.
fn kind_to_host(kind: u64) -> u64 {
    const CLOSE_ON_EXECUTION: (u64, u64) = (0x1000_0000, 0o2_000_000);
    const NO_WAITING: (u64, u64) = (0x2000_0000, 0o4000);
    let flags = [CLOSE_ON_EXECUTION, NO_WAITING];
    let host =
        flags.iter().filter(|(ours, _)| kind & ours != 0).fold(0, |all, (_, host)| all | host);
    kind & 0xff | host
}

/// `socket`.
pub(crate) fn create(family: u64, kind: u64, protocol: u64) -> Answer {
    pass(number::SOCKET, &[family_to_host(family)?.into(), kind_to_host(kind), protocol])
}

/// `socketpair`.
pub(crate) fn create_pair(words: &[u64; 6]) -> Answer {
    let [family, kind, protocol, pair, ..] = *words;
    let words = [family_to_host(family)?.into(), kind_to_host(kind), protocol, pair];
    pass(number::SOCKETPAIR, &words)
}

/// An address in the host's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address {
    bytes: [u8; ADDRESS_BYTES_MAX],
    count: usize,
}

impl Address {
    const NONE: Self = Self { bytes: [0; ADDRESS_BYTES_MAX], count: ADDRESS_BYTES_MAX };

    /// Reads a FreeBSD address of `count` bytes at `place`. Its length and its family are a byte
    /// each.
    fn read(place: u64, count: u64) -> Result<Self, Errno> {
        let count = count as u32 as usize;
        if !(2..=ADDRESS_BYTES_MAX).contains(&count) {
            return Err(Errno::INVAL);
        }
        let mut address = Self { count, ..Self::NONE };
        user::read_bytes(place, &mut address.bytes[..count])?;
        let family = family_to_host(u64::from(address.bytes[1]))?;
        address.bytes[..2].copy_from_slice(&family.to_le_bytes());
        Ok(address)
    }

    /// The address in FreeBSD's form.
    fn to_freebsd(self) -> [u8; ADDRESS_BYTES_MAX] {
        let mut bytes = self.bytes;
        let host = u16::from_le_bytes([bytes[0], bytes[1]]);
        let family = FAMILIES.iter().find(|(_, known)| *known == host).map_or(0, |(ours, _)| *ours);
        bytes[..2].copy_from_slice(&[self.count as u8, family]);
        bytes
    }

    /// Writes the address to `place`, cut to the room at `count_place`, and replaces that by its
    /// whole length.
    fn write(self, place: u64, count_place: u64) -> Result<(), Errno> {
        if place == 0 || count_place == 0 {
            return Ok(());
        }
        let room: u32 = user::read(count_place)?;
        let count = self.count.min(ADDRESS_BYTES_MAX);
        let bytes = if count == 0 { [0; ADDRESS_BYTES_MAX] } else { self.to_freebsd() };
        user::write_bytes(place, &bytes[..count.min(room as usize)])?;
        user::write(count_place, &(count as u32))
    }
}

/// Calls `ask` with a buffer for an address and for its length, and returns the address that the
/// host stores there.
fn address_result(place: u64, count: u64, ask: impl FnOnce(u64, u64) -> Answer) -> Answer {
    let mut result = Address::NONE;
    let mut room = ADDRESS_BYTES_MAX as u32;
    let answer = ask(address(&mut result.bytes), address(&mut room))?;
    result.count = room as usize;
    result.write(place, count)?;
    Ok(answer)
}

/// `bind` and `connect`, by the host's number.
pub(crate) fn name(call: u32, socket: u64, place: u64, count: u64) -> Answer {
    let mut wanted = Address::read(place, count)?;
    pass(call, &[socket, address(&mut wanted.bytes), wanted.count as u64])
}

/// `getsockname` and `getpeername`, by the host's number.
pub(crate) fn name_of(call: u32, socket: u64, place: u64, count: u64) -> Answer {
    address_result(place, count, |place, count| pass(call, &[socket, place, count]))
}

/// `accept` and `accept4`. On FreeBSD, `accept` inherits the non-blocking mode of the socket.
/// Programs that depend on it set it themselves.
pub(crate) fn accept(socket: u64, place: u64, count: u64, flags: u64) -> Answer {
    let flags = kind_to_host(flags) & !0xff;
    address_result(place, count, |place, count| {
        pass(number::ACCEPT4, &[socket, place, count, flags])
    })
}

/// `sendto`.
pub(crate) fn send_to(words: &[u64; 6]) -> Answer {
    let [socket, bytes, count, flags, place, place_bytes] = *words;
    let flags = messages::flags_to_host(flags)?;
    if place == 0 {
        return pass(number::SENDTO, &[socket, bytes, count, flags, 0, 0]);
    }
    let mut to = Address::read(place, place_bytes)?;
    pass(number::SENDTO, &[socket, bytes, count, flags, address(&mut to.bytes), to.count as u64])
}

/// `recvfrom`.
pub(crate) fn receive_from(words: &[u64; 6]) -> Answer {
    let [socket, bytes, count, flags, place, place_bytes] = *words;
    let flags = messages::flags_to_host(flags)?;
    address_result(place, place_bytes, |from, from_bytes| {
        pass(number::RECVFROM, &[socket, bytes, count, flags, from, from_bytes])
    })
}

/// `setsockopt`.
pub(crate) fn set_option(words: &[u64; 6]) -> Answer {
    let [socket, level, name, place, bytes, _] = *words;
    let (level, name) = options::to_host(level, name)?;
    pass(number::SETSOCKOPT, &[socket, level, name, place, bytes])
}

/// `getsockopt`.
pub(crate) fn option(words: &[u64; 6]) -> Answer {
    let [socket, level, name, place, bytes, _] = *words;
    let (level, name) = options::to_host(level, name)?;
    pass(number::GETSOCKOPT, &[socket, level, name, place, bytes])?;
    if (level, name) == options::LAST_ERROR {
        let error: i32 = user::read(place)?;
        if error != 0 {
            user::write(place, &(Errno(error).freebsd() as i32))?;
        }
    }
    DONE
}

#[cfg(test)]
mod tests {
    use super::{
        Address, accept, create, kind_to_host, name, name_of, option, receive_from, send_to,
    };
    use crate::errno::Errno;
    use crate::host::{address, address_of, number, pass};

    /// 127.0.0.1 and a port, in FreeBSD's form.
    fn local(port: u16) -> [u8; 16] {
        let [high, low] = port.to_be_bytes();
        [16, 2, high, low, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    }

    fn own_name(socket: u64) -> [u8; 16] {
        let (mut result, mut bytes) = ([0_u8; 16], 16_u32);
        let asked = name_of(number::GETSOCKNAME, socket, address(&mut result), address(&mut bytes));
        assert_eq!((asked, bytes), (Ok(0), 16));
        result
    }

    #[test]
    fn kinds_carry_what_they_are_made_with() {
        let flags = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        assert_eq!(kind_to_host(0x3000_0001), flags as u64);
    }

    #[test]
    fn a_connection_has_names_on_both_sides() {
        let listening = create(2, 1, 0).unwrap();
        assert_eq!(name(number::BIND, listening, address_of(&local(0)), 16), Ok(0));
        pass(50, &[listening, 5]).unwrap();
        let place = own_name(listening);
        assert_eq!(place[..2], [16, 2]);
        let client = create(2, 0x1000_0001, 0).unwrap();
        assert_eq!(name(number::CONNECT, client, address_of(&place), 16), Ok(0));
        let (mut from, mut bytes) = ([0_u8; 16], 16_u32);
        let served =
            accept(listening, address(&mut from), address(&mut bytes), 0x1000_0000).unwrap();
        assert_eq!(from, own_name(client));
        let (mut error, mut bytes) = (7_u32, 4_u32);
        let asked = [client, 0xffff, 0x1007, address(&mut error), address(&mut bytes), 0];
        assert_eq!((option(&asked), error), (Ok(0), 0));
        let sent = [served, address_of(b"hello"), 5, 0, 0, 0];
        assert_eq!(send_to(&sent), Ok(5));
        let mut got = [0_u8; 8];
        assert_eq!(receive_from(&[client, address(&mut got), 8, 0, 0, 0]), Ok(5));
        assert_eq!(&got[..5], b"hello");
        for socket in [listening, client, served] {
            pass(number::CLOSE, &[socket]).unwrap();
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let place = local(1);
        assert_eq!(Address::read(address_of(&place), 1), Err(Errno::INVAL));
        assert_eq!(Address::read(address_of(&place), 4096), Err(Errno::INVAL));
        let strange = [16_u8, 99, 0, 0];
        assert_eq!(Address::read(address_of(&strange), 4), Err(Errno::AFNOSUPPORT));
    }
}
