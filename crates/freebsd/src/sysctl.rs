//! `sysctl`: properties of the system, by numbers or by names.

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, number, pass};
use crate::user;

/// The release that programs see.
pub(crate) const RELEASE_DATE: u32 = 1_302_001;
const RELEASE: &[u8] = b"13.2-RELEASE\0";
const VERSION: &[u8] = b"FreeBSD 13.2-RELEASE (Kyocho)\0";

/// The value of an entry.
#[derive(Debug, Clone, Copy)]
enum Value {
    Text(&'static [u8]),
    Int(u32),
    /// The host's name, without the domain.
    HostName,
    /// How many processors the process may use.
    Processors,
    /// Random bytes.
    Random,
    /// The path of the program that the process runs.
    Program,
}

/// Name, numbers, value. FreeBSD assigns the numbers of some entries when it starts. Here, they are
/// numbered from `FOUND` on.
type Entry = (&'static str, &'static [u32], Value);

const FOUND: u32 = 0x4000_0000;

const ENTRIES: [Entry; 24] = [
    ("kern.ostype", &[1, 1], Value::Text(b"FreeBSD\0")),
    ("kern.osrelease", &[1, 2], Value::Text(RELEASE)),
    ("kern.osrevision", &[1, 3], Value::Int(199_506)),
    ("kern.version", &[1, 4], Value::Text(VERSION)),
    ("kern.maxproc", &[1, 6], Value::Int(32_768)),
    ("kern.maxfiles", &[1, 7], Value::Int(65_536)),
    ("kern.argmax", &[1, 8], Value::Int(262_144)),
    ("kern.hostname", &[1, 10], Value::HostName),
    ("kern.proc.pathname", &[1, 14, 12], Value::Program),
    ("kern.ngroups", &[1, 18], Value::Int(1023)),
    ("kern.osreldate", &[1, 24], Value::Int(RELEASE_DATE)),
    ("kern.maxfilesperproc", &[1, 27], Value::Int(65_536)),
    ("kern.iov_max", &[1, 35], Value::Int(1024)),
    ("kern.arandom", &[1, 37], Value::Random),
    ("kern.smp.maxcpus", &[1, FOUND, 1], Value::Int(1024)),
    ("kern.smp.cpus", &[1, FOUND, 2], Value::Processors),
    ("kern.ipc.somaxconn", &[1, FOUND, 3], Value::Int(4096)),
    ("kern.ipc.soacceptqueue", &[1, FOUND, 4], Value::Int(4096)),
    ("hw.machine", &[6, 1], Value::Text(b"amd64\0")),
    ("hw.model", &[6, 2], Value::Text(b"amd64\0")),
    ("hw.ncpu", &[6, 3], Value::Processors),
    ("hw.byteorder", &[6, 4], Value::Int(1234)),
    ("hw.pagesize", &[6, 7], Value::Int(4096)),
    ("hw.machine_arch", &[6, 11], Value::Text(b"amd64\0")),
];

/// Most numbers of an entry, and the longest name.
const NUMBERS_MAX: usize = 24;
const NAME_BYTES_MAX: usize = 128;
/// The entry that asks for the numbers of a name.
const NUMBERS_OF_NAME: [u32; 2] = [0, 3];

/// `__sysctl`: numbers, their count, old value and its room, new value and its length.
pub(crate) fn by_numbers(words: &[u64; 6]) -> Answer {
    let [numbers, count, old, room, new, new_bytes] = *words;
    let mut wanted = [0_u32; NUMBERS_MAX];
    let count = Some(count as u32 as usize).filter(|count| (1..=NUMBERS_MAX).contains(count));
    let wanted = &mut wanted[..count.ok_or(Errno::INVAL)?];
    for (index, number) in wanted.iter_mut().enumerate() {
        *number = user::read(numbers + 4 * index as u64)?;
    }
    if *wanted == NUMBERS_OF_NAME {
        let numbers = named(new, new_bytes)?.1;
        let mut bytes = [0; 4 * NUMBERS_MAX];
        for (to, from) in bytes.chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        return copy_out(old, room, &bytes[..4 * numbers.len()]);
    }
    let means = |entry: &&Entry| match entry.2 {
        // The process follows. Only the caller's own is answered.
        Value::Program => wanted.strip_prefix(entry.1).is_some_and(|rest| rest == [u32::MAX]),
        _ => *wanted == *entry.1,
    };
    answer(ENTRIES.iter().find(means).ok_or(Errno::NOENT)?, old, room, new)
}

/// `__sysctlbyname`: the name and its length, then as above.
pub(crate) fn by_name(words: &[u64; 6]) -> Answer {
    let [name, name_bytes, old, room, new, _] = *words;
    answer(named(name, name_bytes)?, old, room, new)
}

fn named(name: u64, bytes: u64) -> Result<&'static Entry, Errno> {
    let mut text = [0; NAME_BYTES_MAX];
    let text = text.get_mut(..bytes as usize).ok_or(Errno(36))?;
    user::read_bytes(name, text)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    ENTRIES.iter().find(|(name, ..)| name.as_bytes() == text).ok_or(Errno::NOENT)
}

/// Returns the value of `entry`. Nothing can be changed.
fn answer(entry: &Entry, old: u64, room: u64, new: u64) -> Answer {
    const NOT_PERMITTED: Errno = Errno(1);
    if new != 0 {
        return Err(NOT_PERMITTED);
    }
    match entry.2 {
        Value::Text(text) => copy_out(old, room, text),
        Value::Int(value) => copy_out(old, room, &value.to_le_bytes()),
        Value::Processors => copy_out(old, room, &processors()?.to_le_bytes()),
        Value::HostName => host_name(old, room),
        Value::Random => random(old, room),
        Value::Program => program(old, room),
    }
}

/// Writes `value` to `old`, if it fits into the room at `room`, and replaces that by its length.
fn copy_out(old: u64, room: u64, value: &[u8]) -> Answer {
    if room == 0 {
        return DONE;
    }
    let permitted: u64 = user::read(room)?;
    user::write(room, &(value.len() as u64))?;
    if old == 0 {
        return DONE;
    }
    let written = value.len().min(permitted as usize);
    user::write_bytes(old, &value[..written])?;
    if written < value.len() { Err(Errno::NOMEM) } else { DONE }
}

/// How many processors the caller may use.
pub(crate) fn processors() -> Result<u32, Errno> {
    let mut mask = [0_u64; 16];
    let bytes = size_of_val(&mask) as u64;
    pass(number::SCHED_GETAFFINITY, &[0, bytes, address(&mut mask)])?;
    Ok(mask.iter().map(|word| word.count_ones()).sum())
}

fn host_name(old: u64, room: u64) -> Answer {
    /// Six texts of this length. The second is the name.
    const TEXT_BYTES: usize = 65;
    let mut texts = [0_u8; 6 * TEXT_BYTES];
    pass(number::UNAME, &[address(&mut texts)])?;
    let name = &texts[TEXT_BYTES..2 * TEXT_BYTES];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(TEXT_BYTES - 1);
    copy_out(old, room, &name[..=end])
}

fn random(old: u64, room: u64) -> Answer {
    const GETRANDOM: u32 = 318;
    let mut bytes = [0_u8; 256];
    let wanted = if room == 0 { 0 } else { user::read::<u64>(room)?.min(bytes.len() as u64) };
    pass(GETRANDOM, &[address(&mut bytes), wanted, 0])?;
    copy_out(old, room, &bytes[..wanted as usize])
}

fn program(old: u64, room: u64) -> Answer {
    const READLINKAT: u32 = 267;
    const PATH_BYTES_MAX: usize = 1024;
    let mut path = [0_u8; PATH_BYTES_MAX];
    let link = crate::host::address_of(b"/proc/self/exe\0");
    let words = [crate::files::HERE, link, address(&mut path), PATH_BYTES_MAX as u64 - 1];
    let bytes = pass(READLINKAT, &words)?;
    // With the NUL after it.
    copy_out(old, room, &path[..=bytes as usize])
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES, by_name, by_numbers};
    use crate::errno::Errno;
    use crate::host::{address, address_of};

    fn named(name: &str) -> Result<Vec<u8>, Errno> {
        let (mut value, mut bytes) = ([0_u8; 1024], 1024_u64);
        let (name_at, name_bytes) = (name.as_ptr().expose_provenance() as u64, name.len() as u64);
        by_name(&[name_at, name_bytes, address(&mut value), address(&mut bytes), 0, 0])?;
        Ok(value[..bytes as usize].to_vec())
    }

    #[test]
    fn names_and_numbers_say_the_same() {
        for (name, numbers, _) in ENTRIES {
            let query = [0_u32, 3];
            let (mut found, mut bytes) = ([0_u32; 24], 96_u64);
            let words = [
                address_of(&query),
                2,
                address(&mut found),
                address(&mut bytes),
                name.as_ptr().expose_provenance() as u64,
                name.len() as u64,
            ];
            assert_eq!(by_numbers(&words), Ok(0), "{name}");
            let mut found = found[..bytes as usize / 4].to_vec();
            assert_eq!(found, numbers);
            if name == "kern.proc.pathname" {
                found.push(u32::MAX);
            }
            let (mut value, mut bytes) = ([0_u8; 1024], 1024_u64);
            let at = found.as_mut_ptr().expose_provenance() as u64;
            let words = [at, found.len() as u64, address(&mut value), address(&mut bytes), 0, 0];
            assert_eq!(by_numbers(&words), Ok(0), "{name}");
            if name != "kern.arandom" {
                assert_eq!(named(name).unwrap(), value[..bytes as usize], "{name}");
            }
        }
        assert_eq!(named("kern.ostype").unwrap(), b"FreeBSD\0");
        assert_eq!(named("no.such"), Err(Errno::NOENT));
    }

    #[test]
    fn what_has_no_room_is_cut_and_its_length_reported() {
        let name = b"kern.ostype";
        let (mut value, mut bytes) = ([0_u8; 4], 4_u64);
        let words = [address_of(name), 11, address(&mut value), address(&mut bytes), 0, 0];
        assert_eq!(by_name(&words), Err(Errno::NOMEM));
        assert_eq!((&value, bytes), (b"Free", 8));
        let words = [address_of(name), 11, 0, address(&mut bytes), 0, 0];
        assert_eq!((by_name(&words), bytes), (Ok(0), 8));
        let words = [address_of(name), 11, 0, 0, address_of(name), 4];
        assert_eq!(by_name(&words), Err(Errno(libc::EPERM)));
    }
}
