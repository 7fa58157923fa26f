//! File systems that are interfaces to the host's kernel: no mount of an instance shows them
//! unchanged.
//!
//! The server resolves paths with its own rights. On the host's `/proc`, a path leads to the
//! server's memory. On other such file systems, writing configures the host with the rights of the
//! user who started the server.

use crate::errors::{NOT_FOUND, host};
use crate::options::StartError;
use kyocho_sys::error::Errno;
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// `PROC_SUPER_MAGIC`
const PROCESSES: u32 = 0x9fa0;
/// File systems that are for reading alone, whatever their mounts say.
const OF_KERNEL: [u32; 17] = [
    // sysfs, debugfs, tracefs, securityfs, configfs
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    // cgroup, cgroup2, bpf, binfmt_misc, efivarfs, pstore
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x4249_4e4d,
    0xde5e_81e4,
    0x6165_676c,
    // selinuxfs, smackfs, fusectl, nfsd, rpc_pipefs, resctrl
    0xf97c_ff8c,
    0x4341_5d53,
    0x6573_5543,
    0x6e66_7364,
    0x6759_6969,
    0x0765_5821,
];

/// What is permitted on a file's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystemAccess {
    /// Whatever its mount permits.
    All,
    Reading,
}

/// # Errors
/// `NOENT`: it is the host's `/proc`, where instances find nothing.
pub(crate) fn permitted(file: &OwnedFd) -> Result<FileSystemAccess, Errno> {
    // The low half is the number; some architectures extend its sign above it.
    match rustix::fs::fstatfs(file).map_err(host)?.f_type as u32 {
        PROCESSES => Err(NOT_FOUND),
        kind if OF_KERNEL.contains(&kind) => Ok(FileSystemAccess::Reading),
        _ => Ok(FileSystemAccess::All),
    }
}

/// A host directory, and its canonical path.
pub(crate) fn open_directory(path: &Path) -> Result<(OwnedFd, Vec<u8>), StartError> {
    let failed = |errno| StartError::Mount(path.to_path_buf(), host(errno));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let canonical = std::fs::canonicalize(path).map_err(|error| {
        StartError::Mount(path.to_path_buf(), Errno::new(error.raw_os_error().unwrap_or(libc::EIO)))
    })?;
    Ok((root, canonical.into_os_string().into_vec()))
}

#[cfg(test)]
mod tests {
    use super::{FileSystemAccess, permitted};
    use crate::errors::NOT_FOUND;
    use std::os::fd::OwnedFd;

    fn of(path: &str) -> Option<Result<FileSystemAccess, kyocho_sys::error::Errno>> {
        Some(permitted(&OwnedFd::from(std::fs::File::open(path).ok()?)))
    }

    #[test]
    fn file_systems_of_the_kernel_are_known() {
        assert_eq!(of("/proc/self/status"), Some(Err(NOT_FOUND)));
        assert_eq!(of("/proc"), Some(Err(NOT_FOUND)));
        assert_eq!(of("/"), Some(Ok(FileSystemAccess::All)));
        let system = std::fs::read_to_string("/proc/self/mounts").unwrap();
        for (place, kind) in system.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        }) {
            let kernel = [
                "sysfs",
                "debugfs",
                "tracefs",
                "securityfs",
                "configfs",
                "cgroup",
                "cgroup2",
                "bpf",
            ];
            // A place that this user may not open, or that another mount hides, shows nothing.
            if let (true, Some(found)) = (kernel.contains(&kind), of(place)) {
                assert_eq!(found, Ok(FileSystemAccess::Reading), "{place} is {kind}");
            }
        }
    }
}
