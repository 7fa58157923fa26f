//! Descriptions of file systems: `struct statfs`.
//!
//! The host describes the file system that a file is in. Inside an instance nothing says where it
//! is mounted, so every file system is shown as mounted at the root.

use crate::errno::Errno;
use crate::host::{Answer, DONE, address, number, pass};
use crate::user::{self, plain};

/// The host's structure: kind, bytes of a block, blocks, free blocks, free blocks for users, files,
/// free files, identity, longest name, bytes of a fragment, flags.
type HostVolume = [u64; 15];

const NAME_BYTES: usize = 1024;
const KIND_BYTES: usize = 16;

/// FreeBSD's structure, since version 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Volume {
    version: u32,
    kind: u32,
    flags: u64,
    block_bytes: u64,
    transfer_bytes: u64,
    blocks: u64,
    blocks_free: u64,
    blocks_for_all: u64,
    files: u64,
    files_free: u64,
    transfers: [u64; 4],
    spare: [u64; 10],
    name_bytes_max: u32,
    owner: u32,
    identity: [u32; 2],
    more_spare: [u8; 80],
    kind_name: [u8; KIND_BYTES],
    mounted_from: [u8; NAME_BYTES],
    mounted_at: [u8; NAME_BYTES],
}

plain!(Volume);

const _: () = assert!(size_of::<Volume>() == 2344);

/// FreeBSD's names for the kinds of file systems, by the host's numbers.
fn kind_name(kind: u64) -> &'static [u8] {
    match kind {
        0xef53 => b"ext2fs",
        0x0102_1994 => b"tmpfs",
        0x9fa0 => b"procfs",
        0x6969 => b"nfs",
        0x2fc1_2fc1 => b"zfs",
        0x5846_5342 => b"xfs",
        0x9123_683e => b"btrfs",
        0x794c_7630 => b"unionfs",
        _ => b"unknown",
    }
}

/// The host's and FreeBSD's flags: read-only, no set-user programs, no programs, synchronous, no
/// access times.
const FLAGS: [(u64, u64); 5] =
    [(1, 0x1), (1 << 1, 0x8), (1 << 3, 0x4), (1 << 4, 0x2), (1 << 10, 0x1000_0000)];

fn text<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
    core::array::from_fn(|index| text.get(index).copied().unwrap_or(0))
}

impl From<HostVolume> for Volume {
    fn from(host: HostVolume) -> Self {
        const VERSION: u32 = 0x2014_0518;
        let [
            kind,
            transfer,
            blocks,
            free,
            for_all,
            files,
            files_free,
            identity,
            name,
            fragment,
            flags,
            ..,
        ] = host;
        let has = |&&(flag, _): &&(u64, u64)| flags & flag != 0;
        Self {
            version: VERSION,
            kind: kind as u32,
            flags: FLAGS.iter().filter(has).map(|(_, flag)| flag).sum(),
            block_bytes: if fragment == 0 { transfer } else { fragment },
            transfer_bytes: transfer,
            blocks,
            blocks_free: free,
            blocks_for_all: for_all,
            files,
            files_free,
            transfers: [0; 4],
            spare: [0; 10],
            name_bytes_max: name as u32,
            owner: 0,
            identity: [identity as u32, (identity >> 32) as u32],
            more_spare: [0; 80],
            kind_name: text(kind_name(kind)),
            mounted_from: text(b"host"),
            mounted_at: text(b"/"),
        }
    }
}

fn ask(call: u32, what: u64) -> Result<Volume, Errno> {
    let mut host: HostVolume = [0; 15];
    pass(call, &[what, address(&mut host)])?;
    Ok(host.into())
}

/// `statfs`.
pub(crate) fn of_path(path: u64, result: u64) -> Answer {
    user::write(result, &ask(number::STATFS, path)?)?;
    DONE
}

/// `fstatfs`.
pub(crate) fn of_file(file: u64, result: u64) -> Answer {
    user::write(result, &ask(number::FSTATFS, file)?)?;
    DONE
}

/// `getfsstat`: describes the root. Returns how many file systems there are, or were written.
pub(crate) fn all(results: u64, bytes: u64) -> Answer {
    if results == 0 {
        return Ok(1);
    }
    if (bytes as i64) < size_of::<Volume>() as i64 {
        return Ok(0);
    }
    let root = *b"/\0";
    user::write(results, &ask(number::STATFS, crate::host::address_of(&root))?)?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::{Volume, all, of_file, of_path};
    use crate::errno::Errno;
    use crate::host::{address, address_of};
    use std::os::fd::AsRawFd;

    fn empty() -> Volume {
        [0; 15].into()
    }

    #[test]
    fn a_volume_is_described_by_path_by_file_and_in_the_list() {
        let (mut by_path, mut by_file, mut in_list) = (empty(), empty(), empty());
        assert_eq!(of_path(address_of(b"/\0"), address(&mut by_path)), Ok(0));
        let root = std::fs::File::open("/").unwrap();
        assert_eq!(of_file(root.as_raw_fd() as u64, address(&mut by_file)), Ok(0));
        let bytes = size_of::<Volume>() as u64;
        assert_eq!(all(address(&mut in_list), bytes), Ok(1));
        assert_eq!((all(0, 0), all(address(&mut in_list), bytes - 1)), (Ok(1), Ok(0)));
        for volume in [&by_path, &by_file, &in_list] {
            assert!(volume.blocks >= volume.blocks_free && volume.block_bytes >= 512);
            assert_eq!((volume.blocks, volume.files), (by_path.blocks, by_path.files));
            assert_eq!(volume.mounted_at[..2], *b"/\0");
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert_eq!(of_path(address_of(b"/no/such\0"), 0), Err(Errno::NOENT));
        assert_eq!(of_file(u64::MAX, 0), Err(Errno::BADF));
    }

    #[test]
    fn flags_and_kinds_are_freebsds() {
        let mut host = [0; 15];
        (host[0], host[10]) = (0x0102_1994, 1 | 2 | 8);
        let volume = Volume::from(host);
        assert_eq!((volume.flags, &volume.kind_name[..6]), (0x1 | 0x8 | 0x4, &b"tmpfs\0"[..]));
    }
}
