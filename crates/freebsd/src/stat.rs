//! Descriptions of files: `struct stat`, and directory entries.

use crate::errno::Errno;
use crate::files::at_flags;
use crate::host::{Answer, DONE, address, number, pass};
use crate::user::{self, plain};

/// The host's `struct stat`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct HostStat {
    device: u64,
    file: u64,
    links: u64,
    mode: u32,
    user: u32,
    group: u32,
    padding: u32,
    special: u64,
    bytes: u64,
    block_bytes: u64,
    blocks: u64,
    /// Access, modification and change: seconds and nanoseconds.
    times: [u64; 6],
    unused: [u64; 3],
}

/// FreeBSD's `struct stat`, since version 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Stat {
    device: u64,
    file: u64,
    links: u64,
    mode: u32,
    user: u32,
    group: u32,
    padding: u32,
    special: u64,
    times: [u64; 6],
    birth: [u64; 2],
    bytes: u64,
    blocks: u64,
    block_bytes: u32,
    flags: u32,
    generation: u64,
    spare: [u64; 10],
}

plain!(Stat);

impl From<HostStat> for Stat {
    fn from(host: HostStat) -> Self {
        /// The time of birth is unknown.
        const UNKNOWN: [u64; 2] = [u64::MAX, 0];
        Self {
            device: host.device,
            file: host.file,
            links: host.links,
            mode: host.mode,
            user: host.user,
            group: host.group,
            padding: 0,
            special: host.special,
            times: host.times,
            birth: UNKNOWN,
            bytes: host.bytes,
            blocks: host.blocks,
            block_bytes: host.block_bytes as u32,
            flags: 0,
            generation: 0,
            spare: [0; 10],
        }
    }
}

/// `fstat`.
pub(crate) fn of_file(file: u64, place: u64) -> Answer {
    let mut host = HostStat::default();
    pass(number::FSTAT, &[file, address(&mut host)])?;
    user::write(place, &Stat::from(host))?;
    DONE
}

/// `fstatat`.
pub(crate) fn of_path(directory: u64, path: u64, place: u64, flags: u64) -> Answer {
    let mut host = HostStat::default();
    pass(number::NEWFSTATAT, &[directory, path, address(&mut host), at_flags(flags)])?;
    user::write(place, &Stat::from(host))?;
    DONE
}

/// Most bytes of the host's entries that are converted at a time.
const ENTRIES_BYTES: usize = 2048;
/// The bytes before the name, on the host and on FreeBSD.
const HOST_HEADER: usize = 19;
const HEADER: usize = 24;

/// `getdirentries`: reads entries of `file` to `place`, and their position in the directory to
/// `base`.
pub(crate) fn entries(file: u64, place: u64, room: u64, base: u64) -> Answer {
    // FreeBSD's entry is longer by a third at most.
    let wanted = (room as usize / 4 * 3).min(ENTRIES_BYTES);
    let mut buffer = [0_u64; ENTRIES_BYTES / 8];
    const CURRENT: u64 = 1;
    let began = pass(number::LSEEK, &[file, 0, CURRENT])?;
    let got = pass(number::GETDENTS64, &[file, address(&mut buffer), wanted as u64])?;
    let mut bytes = [0; ENTRIES_BYTES];
    for (to, from) in bytes.chunks_exact_mut(8).zip(buffer) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    let mut at = 0;
    let mut rest = bytes.get(..got as usize).unwrap_or_default();
    while let Some((entry, behind)) = next_entry(rest) {
        let mut ours = [0; HEADER + 256 + 8];
        let length = translate(entry, &mut ours);
        user::write_bytes(place + at as u64, &ours[..length])?;
        at += length;
        rest = behind;
    }
    user::write_if_wanted(base, &began)?;
    Ok(at as u64)
}

/// The first of the host's entries, and the rest.
fn next_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u16::from_ne_bytes([*bytes.get(16)?, *bytes.get(17)?]) as usize;
    if length < HOST_HEADER { None } else { bytes.split_at_checked(length) }
}

/// Converts one entry to FreeBSD's form. Returns its length.
fn translate(entry: &[u8], into: &mut [u8; HEADER + 256 + 8]) -> usize {
    let name = &entry[HOST_HEADER..];
    let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len()).min(255)];
    let length = (HEADER + name.len() + 1).next_multiple_of(8);
    // Number and position are at the same offsets. Kinds of files have the same numbers.
    into[..16].copy_from_slice(&entry[..16]);
    into[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
    into[18] = entry[18];
    into[20..22].copy_from_slice(&(name.len() as u16).to_ne_bytes());
    into[HEADER..HEADER + name.len()].copy_from_slice(name);
    length
}

/// `mknodat`. It makes pipes, and what else the host permits.
pub(crate) fn make_node(directory: u64, path: u64, mode: u64, device: u64) -> Answer {
    let device = u32::try_from(device).map_err(|_| Errno::INVAL)?;
    pass(number::MKNODAT, &[directory, path, mode, u64::from(device)])
}

#[cfg(test)]
mod tests {
    use super::{HostStat, Stat, entries, next_entry, of_file, of_path, translate};
    use crate::files::HERE;
    use crate::host::address;
    use core::mem::offset_of;
    use proptest::prelude::{any, proptest};
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn the_layouts_are_those_of_the_systems() {
        assert_eq!(size_of::<HostStat>(), size_of::<libc::stat>());
        assert_eq!(size_of::<Stat>(), 224);
        assert_eq!(offset_of!(Stat, times), 48);
        assert_eq!(offset_of!(Stat, bytes), 112);
        assert_eq!(offset_of!(Stat, block_bytes), 128);
    }

    #[test]
    fn a_file_is_described() {
        let path = std::env::current_exe().unwrap();
        let known = std::fs::metadata(&path).unwrap();
        let mut stat = [0_u64; 28];
        let name = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(of_path(HERE, name.as_ptr().addr() as u64, address(&mut stat), 0), Ok(0));
        assert_eq!((stat[1], stat[14]), (known.ino(), known.len()));
        assert_eq!(stat[3] as u32, known.mode());
        let mut again = [0_u64; 28];
        let file = std::fs::File::open(&path).unwrap();
        assert_eq!(of_file(file.as_raw_fd() as u64, address(&mut again)), Ok(0));
        assert_eq!(again[1], stat[1]);
    }

    /// The names in FreeBSD's entries.
    fn names_of(mut entries: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        while !entries.is_empty() {
            let half = |at| u16::from_ne_bytes([entries[at], entries[at + 1]]) as usize;
            let (entry, rest) = entries.split_at(half(16));
            names.push(String::from_utf8(entry[24..24 + half(20)].to_vec()).unwrap());
            entries = rest;
        }
        names
    }

    fn listed(folder: &Path, room: usize) -> Vec<String> {
        let file = std::fs::File::open(folder).unwrap();
        let mut buffer = vec![0_u8; room];
        let mut names = Vec::new();
        loop {
            let place = buffer.as_mut_ptr().expose_provenance() as u64;
            let got = entries(file.as_raw_fd() as u64, place, room as u64, 0).unwrap() as usize;
            if got == 0 {
                names.sort();
                return names;
            }
            names.extend(names_of(&buffer[..got]));
        }
    }

    #[test]
    fn a_directory_is_listed_whatever_the_room() {
        let folder = std::env::temp_dir().join(format!("kyocho-freebsd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut names: Vec<String> = (1..60).map(|length| "n".repeat(length)).collect();
        for name in &names {
            std::fs::write(folder.join(name), "").unwrap();
        }
        names.extend([".".to_owned(), "..".to_owned()]);
        names.sort();
        for room in [400, 1000, 8192] {
            assert_eq!(listed(&folder, room), names);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_apart_within_their_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = bytes.as_slice();
            while let Some((entry, behind)) = next_entry(rest) {
                let length = translate(entry, &mut [0; 24 + 256 + 8]);
                assert!(length <= 288);
                rest = behind;
            }
        }
    }
}
