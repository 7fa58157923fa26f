//! File systems in memory (`tmpfs`) of limited size, which have no path: they are reached only
//! through a descriptor.
#![expect(unsafe_code, reason = "system calls on strings")]

use core::ffi::CStr;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{self, call};

/// `FSOPEN_CLOEXEC`
const OPEN_CLOSED_BY_EXECUTION: usize = 1;
/// `FSCONFIG_SET_STRING`
const SET_STRING: usize = 1;
/// `FSCONFIG_CMD_CREATE`
const CREATE: usize = 6;
/// `FSMOUNT_CLOEXEC`
const MOUNT_CLOSED_BY_EXECUTION: usize = 1;
/// `MOUNT_ATTR_NOSUID` and `MOUNT_ATTR_NODEV`
const WITHOUT_PRIVILEGES: usize = 0x2 | 0x4;

/// The size limits of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The most bytes of all files together, rounded up to whole pages. Not 0, which would mean no
    /// limit to the kernel.
    pub bytes_max: u64,
    /// The most files and directories, including the root. Not 0.
    pub files_max: u64,
}

/// Makes a file system and returns its root directory, which only the calling user may enter. It
/// lives as long as the root, or anything in it, is open or mapped. Programs that are executed do
/// not inherit the descriptor.
///
/// Beyond its size, `write` fails with `NOSPC`, and a store to a mapped page is a `SIGBUS`.
/// Allocates.
///
/// # Errors
/// `INVAL`: a size of 0. `PERM`: the process may not mount; see [`enter_namespaces`]. `NOSYS`:
/// before Linux 5.2. Injected ones.
pub fn make(size: Size) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    if size.bytes_max == 0 || size.files_max == 0 {
        return Err(Errno::INVAL);
    }
    let context = open_context()?;
    set(context.as_fd(), c"size", size.bytes_max.to_string())?;
    set(context.as_fd(), c"nr_inodes", size.files_max.to_string())?;
    set(context.as_fd(), c"mode", "0700".to_owned())?;
    // SAFETY: passes numbers.
    unsafe { call(libc::SYS_fsconfig, [context.as_raw_fd() as usize, CREATE, 0, 0, 0]) }?;
    let arguments = [context.as_raw_fd() as usize, MOUNT_CLOSED_BY_EXECUTION, WITHOUT_PRIVILEGES];
    // SAFETY: passes numbers.
    let root = unsafe { call(libc::SYS_fsmount, arguments) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { raw::owned(root) })
}

/// The context of a new file system, which is being configured.
fn open_context() -> Result<OwnedFd, Errno> {
    let kind = c"tmpfs".as_ptr().addr();
    // SAFETY: the kernel reads a string that ends with 0.
    let context = unsafe { call(libc::SYS_fsopen, [kind, OPEN_CLOSED_BY_EXECUTION]) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { raw::owned(context) })
}

fn set(context: BorrowedFd<'_>, key: &CStr, value: String) -> Result<(), Errno> {
    let value = CString::new(value).map_err(|_| Errno::INVAL)?;
    let (key, value) = (key.as_ptr().addr(), value.as_ptr().addr());
    let arguments = [context.as_raw_fd() as usize, SET_STRING, key, value, 0];
    // SAFETY: the kernel reads two strings that end with 0.
    unsafe { call(libc::SYS_fsconfig, arguments) }.map(drop)
}

/// Moves the calling process into a new user namespace, in which it has all capabilities, and into
/// a new mount namespace. Its user and its group do not change. The process cannot return.
/// Allocates.
///
/// # Errors
/// `INVAL`: the process has other kernel threads. `PERM`, `NOSPC`, `ACCES`: the host does not
/// permit its users namespaces, or not so many. Injected ones.
pub fn enter_namespaces() -> Result<(), Errno> {
    fault::check(Call::Open)?;
    // SAFETY: has no arguments.
    let user = unsafe { libc::geteuid() };
    // SAFETY: has no arguments.
    let group = unsafe { libc::getegid() };
    let flags = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize;
    // SAFETY: passes numbers.
    unsafe { call(libc::SYS_unshare, [flags]) }?;
    let write = |path: &str, text: &str| {
        std::fs::write(path, text)
            .map_err(|error| Errno::new(error.raw_os_error().unwrap_or(libc::EIO)))
    };
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    // Without it, an ordinary user may map no group.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
}

#[cfg(test)]
mod tests {
    use super::{Size, make};
    use crate::error::Errno;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn file_system_holds_its_limits_and_no_more() {
        const BYTES: usize = 1 << 20;
        let root = match make(Size { bytes_max: BYTES as u64, files_max: 4 }) {
            Err(errno) => {
                let why = format!("this user may not mount: {errno}");
                return crate::skip::skip("file_system_holds_its_limits_and_no_more", &why);
            }
            Ok(root) => root,
        };
        let file = |name: u32| {
            let path = format!("/proc/self/fd/{}/{name}", root.as_raw_fd());
            std::fs::File::create(path)
        };
        let mut written = 0;
        let mut first = file(0).unwrap();
        let full = loop {
            match first.write(&[1; 4096]) {
                Ok(bytes) => written += bytes,
                Err(error) => break error,
            }
            assert!(written <= BYTES);
        };
        assert_eq!((written, full.raw_os_error()), (BYTES, Some(libc::ENOSPC)));
        // The root, and three more.
        let made: Vec<bool> = (1..5).map(|name| file(name).is_ok()).collect();
        assert_eq!(made, [true, true, false, false]);
    }

    #[test]
    fn a_size_that_means_no_limit_is_refused() {
        for (bytes_max, files_max) in [(0, 1), (1, 0)] {
            assert_eq!(make(Size { bytes_max, files_max }).unwrap_err(), Errno::INVAL);
        }
    }
}
