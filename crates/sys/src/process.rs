//! Child processes as descriptors (`pidfd`).
#![expect(unsafe_code, reason = "system calls")]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::event;
use crate::fault::{self, Call};
use crate::raw::call;

/// A descriptor that is readable once the process `id` has ended. Not inherited by programs that are executed.
///
/// `id` must be a child that nobody has waited for: then no other process can have its number.
///
/// # Errors
/// `SRCH`: there is no such process. `NOSYS`: before Linux 5.3. `MFILE`: no more descriptors.
pub fn open(id: u32) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    // SAFETY: takes numbers.
    let descriptor = unsafe { call(libc::SYS_pidfd_open, [id as usize, 0]) }?;
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { event::owned(descriptor) })
}

/// Sends signal `number` to the process; 0 asks only whether it could be.
///
/// # Errors
/// `SRCH`: it has ended. `PERM`: it is another user's. `INVAL`: no such signal. Injected ones.
pub fn signal(process: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    fault::check(Call::Kill)?;
    let arguments = [process.as_raw_fd() as usize, number as usize, 0, 0];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_pidfd_send_signal, arguments) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::open;
    use crate::error::Errno;
    use crate::poll::{Interest, wait};
    use std::os::fd::AsFd;

    #[test]
    fn descriptor_is_readable_once_its_process_has_ended() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let descriptor = open(child.id()).unwrap();
        let at_once = Some(core::time::Duration::ZERO);
        assert_eq!(wait([(descriptor.as_fd(), Interest::Read)], at_once), Ok(false));
        drop(child.stdin.take());
        assert_eq!(wait([(descriptor.as_fd(), Interest::Read)], None), Ok(true));
        assert!(child.wait().unwrap().success());
        assert_eq!(open(i32::MAX as u32).unwrap_err(), Errno::SRCH);
    }
}
