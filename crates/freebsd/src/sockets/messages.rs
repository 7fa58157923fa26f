//! Messages with control data: `sendmsg` and `recvmsg`, with descriptors.

use super::{ADDRESS_BYTES_MAX, Address};
use crate::errno::Errno;
use crate::host::{Answer, address, number, pass};
use crate::user::{self, plain};

/// FreeBSD's and the host's bits: flags of a call, and flags of a received message.
const FLAGS: [(u64, u64); 9] = [
    (0x1, 0x1),
    (0x2, 0x2),
    (0x4, 0x4),
    (0x8, 0x80),
    (0x10, 0x20),
    (0x20, 0x8),
    (0x40, 0x100),
    (0x80, 0x40),
    (0x4_0000, 0x4000_0000),
];
const NO_SIGNAL: (u64, u64) = (0x2_0000, 0x4000);

/// The host's flags for a call.
pub(super) fn flags_to_host(flags: u64) -> Result<u64, Errno> {
    let flags = flags & 0xffff_ffff;
    let list = FLAGS.iter().chain([&NO_SIGNAL]);
    let known = list.clone().fold(0, |all, (ours, _)| all | ours);
    if flags & !known != 0 {
        return Err(Errno::INVAL);
    }
    Ok(list.filter(|(ours, _)| flags & ours != 0).fold(0, |all, (_, host)| all | host))
}

fn flags_from_host(flags: u32) -> u32 {
    let list = FLAGS.iter().filter(|(_, host)| u64::from(flags) & host != 0);
    list.fold(0, |all, (ours, _)| all | *ours as u32)
}

/// FreeBSD's `struct msghdr`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Message {
    name: u64,
    name_bytes: u64,
    parts: u64,
    parts_count: u64,
    control: u64,
    control_bytes: u32,
    flags: u32,
}

plain!(Message);

/// The host's `struct msghdr`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct HostMessage {
    name: u64,
    name_bytes: u64,
    parts: u64,
    parts_count: u64,
    control: u64,
    control_bytes: u64,
    flags: u64,
}

/// Most bytes of control data.
const CONTROL_BYTES_MAX: usize = 512;
/// The header of an item: the length has four bytes on FreeBSD and eight on the host.
const HEADER: usize = 12;
const HOST_HEADER: usize = 16;
/// The offset of the data on both systems, rounded up to eight bytes.
const DATA: usize = 16;
const SOCKET: (u32, u32) = (0xffff, 1);

type Control = [u64; CONTROL_BYTES_MAX / 8];

/// Control data, as bytes.
struct Items {
    bytes: [u8; CONTROL_BYTES_MAX],
    count: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

/// Converts the headers of items. Items begin at the same offsets on both systems, and their
/// lengths differ only by the header: `from` bytes become `to`.
fn translate(items: &mut Items, from: usize, to: usize, levels: (u32, u32)) -> Result<(), Errno> {
    // The offsets of length, level and kind in a header of 12 or 16 bytes.
    let place = |header: usize| header - 8;
    let mut at = 0;
    while at + DATA <= items.count {
        let length = word(&items.bytes, at).ok_or(Errno::INVAL)? as usize;
        let data = length.checked_sub(if from == HEADER { DATA } else { HOST_HEADER });
        let data = data.filter(|data| at + DATA + data <= items.count).ok_or(Errno::INVAL)?;
        let level = word(&items.bytes, at + place(from)).ok_or(Errno::INVAL)?;
        let kind = word(&items.bytes, at + place(from) + 4).ok_or(Errno::INVAL)?;
        let level = if level == levels.0 { levels.1 } else { level };
        let length = (DATA + data) as u64;
        items.bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
        let header = at + place(to);
        items.bytes[header..header + 4].copy_from_slice(&level.to_le_bytes());
        items.bytes[header + 4..header + 8].copy_from_slice(&kind.to_le_bytes());
        at += (DATA + data).next_multiple_of(8);
    }
    Ok(())
}

fn to_words(items: &Items) -> Control {
    let mut words = [0; CONTROL_BYTES_MAX / 8];
    for (word, bytes) in words.iter_mut().zip(items.bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ]);
    }
    words
}

/// `sendmsg`.
pub(crate) fn send(socket: u64, place: u64, flags: u64) -> Answer {
    let message: Message = user::read(place)?;
    let mut host = HostMessage {
        parts: message.parts,
        parts_count: u64::from(message.parts_count as u32),
        ..HostMessage::default()
    };
    let mut to = match message.name {
        0 => None,
        name => Some(Address::read(name, message.name_bytes)?),
    };
    if let Some(to) = &mut to {
        (host.name, host.name_bytes) = (address(&mut to.bytes), to.count as u64);
    }
    let mut items = Items { bytes: [0; CONTROL_BYTES_MAX], count: message.control_bytes as usize };
    if message.control != 0 && items.count > 0 {
        let bytes = items.bytes.get_mut(..items.count).ok_or(Errno::INVAL)?;
        user::read_bytes(message.control, bytes)?;
        translate(&mut items, HEADER, HOST_HEADER, SOCKET)?;
    } else {
        items.count = 0;
    }
    let mut control = to_words(&items);
    if items.count > 0 {
        (host.control, host.control_bytes) = (address(&mut control), items.count as u64);
    }
    pass(number::SENDMSG, &[socket, address(&mut host), flags_to_host(flags)?])
}

/// `recvmsg`.
pub(crate) fn receive(socket: u64, place: u64, flags: u64) -> Answer {
    let mut message: Message = user::read(place)?;
    let (mut from, mut control): (Address, Control) = (Address::NONE, [0; CONTROL_BYTES_MAX / 8]);
    let control_bytes = (message.control_bytes as usize).min(CONTROL_BYTES_MAX);
    let mut host = HostMessage {
        parts: message.parts,
        parts_count: u64::from(message.parts_count as u32),
        ..HostMessage::default()
    };
    if message.name != 0 {
        (host.name, host.name_bytes) = (address(&mut from.bytes), ADDRESS_BYTES_MAX as u64);
    }
    if message.control != 0 {
        (host.control, host.control_bytes) = (address(&mut control), control_bytes as u64);
    }
    let got = pass(number::RECVMSG, &[socket, address(&mut host), flags_to_host(flags)?])?;
    if message.name != 0 {
        from.count = (host.name_bytes as usize).min(ADDRESS_BYTES_MAX);
        let room = (message.name_bytes as u32 as usize).min(from.count);
        if from.count > 0 {
            user::write_bytes(message.name, &from.to_freebsd()[..room])?;
        }
        message.name_bytes = from.count as u64;
    }
    let mut items = Items { bytes: [0; CONTROL_BYTES_MAX], count: host.control_bytes as usize };
    items.count = items.count.min(control_bytes);
    for (bytes, word) in items.bytes.chunks_exact_mut(8).zip(control) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    translate(&mut items, HOST_HEADER, HEADER, (SOCKET.1, SOCKET.0))?;
    user::write_bytes(message.control, &items.bytes[..items.count])?;
    message.control_bytes = items.count as u32;
    message.flags = flags_from_host(host.flags as u32);
    user::write(place, &message)?;
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::{Items, Message, flags_to_host, receive, send, translate};
    use crate::errno::Errno;
    use crate::host::{address, address_of, number, pass};
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_descriptor_travels_beside_a_message() {
        let mut pair = [0_i32; 2];
        pass(number::SOCKETPAIR, &[1, 1, 0, address(&mut pair)]).unwrap();
        let [sender, receiver] = pair.map(|file| file as u64);
        // Length 20, level, kind, and the descriptor after 16 bytes.
        let mut beside = [20 | 0xffff_u64 << 32, 1, sender];
        let part = [address_of(b"byte"), 4_u64];
        let mut message = Message {
            name: 0,
            name_bytes: 0,
            parts: address_of(&part),
            parts_count: 1,
            control: address(&mut beside),
            control_bytes: 24,
            flags: 0,
        };
        assert_eq!(send(sender, address(&mut message), 0x2_0000), Ok(4));
        let mut bytes = [0_u8; 4];
        let part = [address(&mut bytes), 4];
        (message.parts, beside) = (address_of(&part), [0; 3]);
        message.control = address(&mut beside);
        assert_eq!(receive(receiver, address(&mut message), 0x4_0000), Ok(4));
        assert_eq!(&bytes, b"byte");
        assert_eq!((beside[0] as u32, beside[0] >> 32, beside[1] as u32), (20, 0xffff, 1));
        let copy = beside[2] & 0xffff_ffff;
        assert!(copy != sender && copy != 0);
        for file in [sender, receiver, copy] {
            pass(number::CLOSE, &[file]).unwrap();
        }
    }

    #[test]
    fn flags_that_the_host_does_not_have_are_refused() {
        assert_eq!(
            flags_to_host(0x80 | 0x2_0000),
            Ok((libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u64)
        );
        assert_eq!(flags_to_host(1 << 31), Err(Errno::INVAL));
    }

    proptest! {
        #[test]
        fn hostile_items_are_refused_or_stay_within_their_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let mut items = Items { bytes: [0; 512], count: bytes.len() };
            items.bytes[..bytes.len()].copy_from_slice(&bytes);
            let _ = translate(&mut items, 12, 16, (1, 2));
            let _ = translate(&mut items, 16, 12, (2, 1));
        }
    }
}
