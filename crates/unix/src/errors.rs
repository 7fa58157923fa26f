//! Error numbers that several kinds of calls return, and the conversion of the host's.

use kyocho_sys::error::Errno;

pub(crate) const NOT_FOUND: Errno = Errno::new(libc::ENOENT);
pub(crate) const NOT_A_DIRECTORY: Errno = Errno::new(libc::ENOTDIR);
/// A path that was taken for canonical leads through a symbolic link.
pub(crate) const THROUGH_LINK: Errno = Errno::new(libc::ELOOP);
/// There is no socket or address of this family.
pub(crate) const NO_FAMILY: Errno = Errno::new(libc::EAFNOSUPPORT);

/// The host's error in this project's type.
pub(crate) fn host(errno: rustix::io::Errno) -> Errno {
    Errno::new(errno.raw_os_error())
}
