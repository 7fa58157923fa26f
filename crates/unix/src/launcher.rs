//! Where the launcher stands in every client, and the file that the host executes to put it there.
//!
//! ```text
//!   0x10000    ELF header, three program headers, the launcher of `arch`    read and execute; below GUARD, where no client may map
//!   0x200000   ┄┄ GUARD ┄┄
//!              programs: theirs, or from 0x5555_0000_0000 upwards
//!   BREAK      one page, so that the host puts the program break behind it   read and write
//! ```
//!
//! Source: Paper 2 maps its emulation library into every client in the same way; ours also loads programs.

use kyocho_arch::launcher::Launcher;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::os::fd::OwnedFd;

/// Where the image begins: the lowest page that hosts let programs map.
pub(crate) const BASE: usize = 0x1_0000;
/// No client maps, unmaps or protects anything below.
pub(crate) const GUARD: u32 = 0x20_0000;
/// The launcher's path stands at its beginning.
pub(crate) const PATH_ADDRESS: usize = BASE + CODE;
/// The name by which its mapping is known.
pub(crate) const NAME: &str = "kyocho-launcher";
/// Where the page in front of the program break lies.
const BREAK: u64 = 0x5a00_0000_0000;
/// The code's offset in the file.
const CODE: usize = 0x100;
const HEADER_BYTES: u16 = 64;
const SEGMENT_BYTES: u16 = 56;

/// An entry of the launcher as an address in every client.
pub(crate) fn address(entry: impl FnOnce(&Launcher) -> usize) -> u64 {
    (PATH_ADDRESS + entry(&Launcher::get())) as u64
}

/// The image, in memory that nobody can change.
///
/// # Errors
/// No descriptor, no memory.
pub(crate) fn image() -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(NAME, flags)?;
    let bytes = elf(Launcher::get().code, address(|launcher| launcher.start));
    let written = rustix::io::write(&file, &bytes)?;
    if written != bytes.len() {
        return Err(std::io::ErrorKind::WriteZero.into());
    }
    fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK,
    )?;
    Ok(file)
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
    for half in [HEADER_BYTES, SEGMENT_BYTES, 3, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut segment = |kind: u32, flags: u32, address: u64, in_file: u64, in_memory: u64| {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for word in [0, address, address, in_file, in_memory, 4096] {
            file.extend(word.to_le_bytes());
        }
    };
    segment(libc::PT_LOAD, READ_EXECUTE, BASE as u64, bytes, bytes);
    segment(libc::PT_LOAD, READ_WRITE, BREAK, 0, 4096);
    segment(libc::PT_GNU_STACK, READ_WRITE, 0, 0, 0);
    file.resize(CODE, 0);
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::{CODE, address, elf, image};
    use kyocho_arch::launcher::Launcher;

    #[test]
    fn the_image_is_a_program_whose_path_stands_where_the_filter_looks() {
        let launcher = Launcher::get();
        let file = elf(launcher.code, address(|launcher| launcher.start));
        assert!(file[CODE..].starts_with(b"/proc/self/exe\0"));
        assert_eq!(file[24..32], address(|launcher| launcher.start).to_le_bytes());
        // As a program of a client it lies too low.
        let bytes = file.len() as u64;
        assert_eq!(crate::elf::Elf::read(&file, bytes), Err(crate::elf::Unfit::Broken));
    }

    #[test]
    fn the_image_cannot_be_changed() {
        let file = image().unwrap();
        assert_eq!(rustix::io::pwrite(&file, b"x", 0), Err(rustix::io::Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 0), Err(rustix::io::Errno::PERM));
    }
}
