//! The addresses of the launcher in every client, and the file that the host executes to map it.
//! Programs of FreeBSD have another file, in which the emulation library follows the launcher
//! (`build.rs` builds it).
//!
//! ```text
//!   0x10000    ELF header, program headers, the launcher of `arch`, library   read, execute
//!              (below GUARD, where no client may map)
//!   0x100000   the library's variables, if there is one;
//!              else what the entries of call sites know                       read, write
//!   MARK       one page that shows which program runs (`running.rs`)          read, write
//!   0x200000   ┄┄ GUARD ┄┄
//!              programs: at their own addresses, or from 0x5555_0000_0000 upwards
//!   BREAK      one page, after which the host puts the program break          read, write
//! ```
//!
//! **Invariant:** once a program has been entered, no byte from `BASE` to `GUARD` is free. So the
//! host never chooses an address there, whatever hint a client gives and however full the rest is.
//! Unused ranges are mapped without permissions; every plan maps the page at `MARK`.
//!
//! Source: Lites, the server of paper 2, maps its emulation library into every client in the same
//! way. This one also loads programs.

use crate::options::Personality;
use kyocho_arch::launcher::{LOCAL, LOCAL_BYTES, Launcher};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::os::fd::OwnedFd;

/// The start of the image: the lowest page that hosts let programs map.
pub(crate) const BASE: usize = 0x1_0000;
/// Clients cannot map, unmap or protect anything below this address.
pub(crate) const GUARD: u32 = 0x20_0000;
/// The page that shows which program a process runs: the last page below [`GUARD`].
pub(crate) const MARK: usize = GUARD as usize - MARK_BYTES;
/// The size of that page.
pub(crate) const MARK_BYTES: usize = 4096;
/// The launcher's path is at its beginning.
pub(crate) const PATH_ADDRESS: usize = BASE + CODE;
/// Bytes below the stack pointer that belong to the running function.
pub(crate) const RED_ZONE: u64 = 128;
/// The name of its mapping.
const NAME: &str = "kyocho-launcher";
/// The address of the page that precedes the program break.
const BREAK: u64 = 0x5a00_0000_0000;
/// The code's offset in the file.
const CODE: usize = 0x200;
/// The image for programs of FreeBSD, and the offset in it of the address at which their library
/// begins.
const FREEBSD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/freebsd-image"));
const FREEBSD_BEGIN: usize = 0x1f8;
const HEADER_BYTES: u16 = 64;
const SEGMENT_BYTES: u16 = 56;
const SEGMENT: usize = SEGMENT_BYTES as usize;

/// The address of an entry of the launcher, which is the same in every client.
pub(crate) fn address(entry: impl FnOnce(&Launcher) -> usize) -> u64 {
    (PATH_ADDRESS + entry(&Launcher::get())) as u64
}

/// The address at which the launcher continues once a program that begins at `entry` is mapped.
pub(crate) fn first_address(personality: Personality, entry: u64) -> u64 {
    match personality {
        Personality::Linux => entry,
        Personality::FreeBsd => {
            let word = FREEBSD[FREEBSD_BEGIN..].first_chunk().expect("the image is longer");
            u64::from_le_bytes(*word)
        }
    }
}

/// The image, as a memory file that cannot be changed.
///
/// # Errors
/// No descriptor, no memory.
pub(crate) fn image(personality: Personality) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(NAME, flags)?;
    let made = match personality {
        Personality::Linux => of_linux(owner()),
        Personality::FreeBsd => filled(FREEBSD),
    };
    let mut bytes = made.as_slice();
    while !bytes.is_empty() {
        bytes = &bytes[rustix::io::write(&file, bytes)?..];
    }
    fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK,
    )?;
    Ok(file)
}

/// Whether the path of a mapping is the image's.
pub(crate) fn is_image(path: &[u8]) -> bool {
    path.strip_prefix(b"/memfd:").is_some_and(|name| name.starts_with(NAME.as_bytes()))
}

/// The user and group numbers of every client: user, effective user, group, effective group. `None`
/// if a client can change them. Clients have no capabilities. So a client can change a number only
/// if its real, effective and saved numbers differ.
pub(crate) fn owner() -> Option<[u32; 4]> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
        let first = words.next()??;
        words.all(|word| word == Some(first)).then_some(first)
    };
    let (user, group) = (one(line("Uid:")?)?, one(line("Gid:")?)?);
    Some([user, user, group, group])
}

/// The image for programs of Linux, in clients with this [`owner`].
fn of_linux(owner: Option<[u32; 4]>) -> Vec<u8> {
    let launcher = Launcher::get();
    let mut code = launcher.code.to_vec();
    let known = owner.iter().flatten().chain(owner.is_some().then_some(&1));
    let numbers: Vec<u8> = known.flat_map(|number| number.to_le_bytes()).collect();
    code[launcher.owner..][..numbers.len()].copy_from_slice(&numbers);
    filled(&elf(&code, address(|launcher| launcher.start)))
}

/// Adds segments to the image: each gap between its segments below [`MARK`] is mapped without
/// permissions.
///
/// # Panics
/// If its header has no room for them, or its segments are out of order. Both are built with this
/// crate.
fn filled(image: &[u8]) -> Vec<u8> {
    const COUNT_AT: usize = 56;
    let number = |at: usize| image[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
    let count = usize::from(image[COUNT_AT]);
    let table = usize::from(HEADER_BYTES)..usize::from(HEADER_BYTES) + count * SEGMENT;
    let (mut entries, mut end) = (Vec::new(), BASE as u64);
    for at in table.clone().step_by(SEGMENT) {
        let (address, bytes) = (number(at + 16), number(at + 40));
        let until = address.min(MARK as u64);
        if image[at] == libc::PT_LOAD as u8 {
            if until > end {
                entries.extend(segment(libc::PT_LOAD, 0, end, until - end, until - end));
            }
            end = (address + bytes).next_multiple_of(4096);
        }
        entries.extend(&image[at..at + SEGMENT]);
    }
    let room = &image[table.end..table.start + entries.len()];
    assert!(room.iter().all(|byte| *byte == 0), "there is room for more segments");
    let mut filled = image.to_vec();
    filled[COUNT_AT] = (entries.len() / SEGMENT) as u8;
    filled[table.start..][..entries.len()].copy_from_slice(&entries);
    filled
}

/// A program header for a segment that begins at offset 0 of the file.
fn segment(kind: u32, flags: u32, address: u64, in_file: u64, in_memory: u64) -> Vec<u8> {
    let words = [0, address, address, in_file, in_memory, 4096];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    kind.to_le_bytes().into_iter().chain(flags.to_le_bytes()).chain(words).collect()
}

/// An ELF file that maps itself at [`BASE`].
fn elf(code: &[u8], entry: u64) -> Vec<u8> {
    const READ_EXECUTE: u32 = libc::PF_R | libc::PF_X;
    const READ_WRITE: u32 = libc::PF_R | libc::PF_W;
    let bytes = (CODE + code.len()) as u64;
    let mut file = Vec::with_capacity(bytes as usize);
    // Class 64, little-endian, version 1; executable, x86-64.
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(libc::ET_EXEC.to_le_bytes());
    file.extend(libc::EM_X86_64.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    file.extend(entry.to_le_bytes());
    file.extend(u64::from(HEADER_BYTES).to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    for half in [HEADER_BYTES, SEGMENT_BYTES, 4, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend(segment(libc::PT_LOAD, READ_EXECUTE, BASE as u64, bytes, bytes));
    file.extend(segment(libc::PT_LOAD, READ_WRITE, LOCAL as u64, 0, LOCAL_BYTES as u64));
    file.extend(segment(libc::PT_LOAD, READ_WRITE, BREAK, 0, 4096));
    file.extend(segment(libc::PT_GNU_STACK, READ_WRITE, 0, 0, 0));
    file.resize(CODE, 0);
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::{
        BASE, BREAK, CODE, FREEBSD, MARK, Personality, address, elf, filled, first_address, image,
        of_linux,
    };
    use kyocho_arch::launcher::Launcher;

    #[test]
    fn the_image_is_a_program_whose_path_stands_where_the_filter_looks() {
        let launcher = Launcher::get();
        let file = elf(launcher.code, address(|launcher| launcher.start));
        assert!(file[CODE..].starts_with(b"/proc/self/exe\0"));
        assert_eq!(file[24..32], address(|launcher| launcher.start).to_le_bytes());
        // As a program of a client it would lie too low.
        let bytes = file.len() as u64;
        assert_eq!(
            crate::program::elf::Elf::read(&file, bytes),
            Err(crate::program::elf::ImageError::Broken)
        );
    }

    #[test]
    fn the_owner_stands_where_the_launcher_reads_it() {
        let offset = CODE + Launcher::get().owner;
        let words = |file: &[u8]| -> Vec<u32> {
            let words = file[offset..offset + 20].chunks_exact(4);
            words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        };
        assert_eq!(words(&of_linux(Some([1, 2, 3, 4]))), [1, 2, 3, 4, 1]);
        assert_eq!(words(&of_linux(None)), [0; 5]);
    }

    /// The program headers of an image: kind, flags, address, bytes in memory.
    fn segments(image: &[u8]) -> Vec<(u32, u32, u64, u64)> {
        let half = |at: usize| u16::from_le_bytes(image[at..at + 2].try_into().unwrap());
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
        let table = long(32) as usize;
        let headers = (0..usize::from(half(56))).map(|index| table + 56 * index);
        headers.map(|at| (word(at), word(at + 4), long(at + 16), long(at + 40))).collect()
    }

    #[test]
    fn the_image_for_freebsd_has_the_launcher_at_the_same_place_and_nothing_where_programs_are() {
        let launcher = Launcher::get();
        assert!(FREEBSD[CODE..].starts_with(launcher.code));
        assert_eq!(FREEBSD[24..32], address(|launcher| launcher.start).to_le_bytes());
        let segments = segments(FREEBSD);
        let [code, data, end, stack] = segments.as_slice() else { panic!("{segments:x?}") };
        let mark = MARK as u64;
        assert_eq!((code.0, code.1, code.2), (libc::PT_LOAD, libc::PF_R | libc::PF_X, 0x1_0000));
        assert!(code.2 + code.3 <= data.2 && data.2 + data.3 <= mark, "{segments:x?}");
        assert_eq!((data.0, data.1), (libc::PT_LOAD, libc::PF_R | libc::PF_W));
        assert_eq!((end.0, end.2, end.3), (libc::PT_LOAD, BREAK, 4096));
        assert_eq!((stack.0, stack.1), (libc::PT_GNU_STACK, libc::PF_R | libc::PF_W));
        let first = first_address(Personality::FreeBsd, 0);
        assert!((code.2..code.2 + code.3).contains(&first));
        assert_eq!(first_address(Personality::Linux, 7), 7);
    }

    #[test]
    fn nothing_below_the_mark_is_free() {
        for image in [of_linux(None), of_linux(Some([1, 2, 3, 4])), filled(FREEBSD)] {
            let segments = segments(&image);
            let mut end = BASE as u64;
            let below = |segment: &&(u32, u32, u64, u64)| {
                segment.0 == libc::PT_LOAD && segment.2 < MARK as u64
            };
            for (_, _, at, bytes) in segments.iter().filter(below) {
                assert_eq!(*at, end, "{segments:x?}");
                end = (at + bytes).next_multiple_of(4096);
            }
            assert_eq!(end, MARK as u64);
            assert_eq!(segments.iter().filter(|segment| segment.1 & libc::PF_X != 0).count(), 1);
            assert_eq!(segments.last().unwrap().0, libc::PT_GNU_STACK);
        }
    }

    #[test]
    fn the_image_cannot_be_changed() {
        let file = image(Personality::FreeBsd).unwrap();
        assert_eq!(rustix::io::pwrite(&file, b"x", 0), Err(rustix::io::Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 0), Err(rustix::io::Errno::PERM));
    }
}
