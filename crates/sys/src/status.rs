//! Status of files as the raw bytes that the kernel returns, for callers that pass them on unread.
#![expect(unsafe_code, reason = "system calls that fill structures")]

use core::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// Bytes of `struct stat`.
pub const STAT_BYTES: usize = size_of::<libc::stat>();
/// Bytes of `struct statx`.
pub const STATX_BYTES: usize = size_of::<libc::statx>();
/// Bytes of `struct statfs`.
pub const STATFS_BYTES: usize = size_of::<libc::statfs>();

/// `stat` of an open file.
///
/// # Errors
/// What the file system says. Injected errors.
pub fn stat(file: BorrowedFd<'_>) -> Result<[u8; STAT_BYTES], Errno> {
    fault::check(Call::Read)?;
    let mut bytes = [0; STAT_BYTES];
    let arguments = [file.as_raw_fd() as usize, bytes.as_mut_ptr().addr()];
    // SAFETY: the kernel writes one `struct stat`, which has that many bytes.
    unsafe { call(libc::SYS_fstat, arguments) }?;
    Ok(bytes)
}

/// `statx` of an open file.
///
/// # Errors
/// `INVAL`: flags or mask. What the file system says. Injected errors.
pub fn statx(file: BorrowedFd<'_>, flags: u32, mask: u32) -> Result<[u8; STATX_BYTES], Errno> {
    fault::check(Call::Read)?;
    let mut bytes = [0; STATX_BYTES];
    let empty: &CStr = c"";
    let flags = (flags | libc::AT_EMPTY_PATH as u32) as usize;
    let place = bytes.as_mut_ptr().addr();
    let file = file.as_raw_fd() as usize;
    let arguments = [file, empty.as_ptr().addr(), flags, mask as usize, place];
    // SAFETY: the kernel reads an empty string and writes one `struct statx`, which has that many
    // bytes.
    unsafe { call(libc::SYS_statx, arguments) }?;
    Ok(bytes)
}

/// `statfs` of the file system of an open file.
///
/// # Errors
/// What the file system says. Injected errors.
pub fn statfs(file: BorrowedFd<'_>) -> Result<[u8; STATFS_BYTES], Errno> {
    fault::check(Call::Read)?;
    let mut bytes = [0; STATFS_BYTES];
    let arguments = [file.as_raw_fd() as usize, bytes.as_mut_ptr().addr()];
    // SAFETY: the kernel writes one `struct statfs`, which has that many bytes.
    unsafe { call(libc::SYS_fstatfs, arguments) }?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{stat, statfs, statx};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn bytes_are_the_kernels_structures() {
        let file = File::open("/proc/self/exe").unwrap();
        let inode = file.metadata().unwrap().ino().to_ne_bytes();
        assert_eq!(stat(file.as_fd()).unwrap()[8..16], inode);
        let all = libc::STATX_BASIC_STATS;
        assert_eq!(statx(file.as_fd(), 0, all).unwrap()[32..40], inode);
        assert!(statfs(file.as_fd()).unwrap()[8..16].iter().any(|byte| *byte != 0), "a block size");
    }
}
