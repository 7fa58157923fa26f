//! Errors of calls: the host's, and those that several calls have in common.

use kyocho_sys::error::Errno;

pub(crate) const NOT_FOUND: Errno = Errno::new(libc::ENOENT);
pub(crate) const NOT_A_DIRECTORY: Errno = Errno::new(libc::ENOTDIR);
/// A canonical path leads through no link: one that was taken for canonical does.
pub(crate) const THROUGH_LINK: Errno = Errno::new(libc::ELOOP);
/// There is no socket or address of this family.
pub(crate) const NO_FAMILY: Errno = Errno::new(libc::EAFNOSUPPORT);

/// The host's error as ours.
pub(crate) fn host(errno: rustix::io::Errno) -> Errno {
    Errno::new(errno.raw_os_error())
}
