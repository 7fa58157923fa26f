//! Child processes: copies of this one, and descriptors of processes (`pidfd`).
#![expect(unsafe_code, reason = "forks; system calls")]

use core::panic::AssertUnwindSafe;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::panic::catch_unwind;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};
use crate::signal::Signal;

/// A descriptor that becomes readable when the process `id` ends. Executed programs do not inherit
/// it.
///
/// `id` must be a child that has not been waited for: then no other process can have its number.
///
/// # Errors
/// `SRCH`: there is no such process. `NOSYS`: before Linux 5.3. `MFILE`: no more descriptors.
pub fn open(id: u32) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    // SAFETY: takes numbers.
    let descriptor = unsafe { call(libc::SYS_pidfd_open, [id as usize, 0]) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { owned(descriptor) })
}

/// Sends signal `number` to the process; 0 only checks whether it could be sent.
///
/// # Errors
/// `SRCH`: it has ended. `PERM`: it is another user's. `INVAL`: no such signal. Injected errors.
pub fn signal(process: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    fault::check(Call::Kill)?;
    let arguments = [process.as_raw_fd() as usize, number as usize, 0, 0];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_pidfd_send_signal, arguments) }.map(drop)
}

/// Makes the host send `signal` to the calling process when the kernel thread that started it ends.
/// The setting survives execution of a program, but children do not inherit it. If the parent has
/// already ended, nothing is sent.
///
/// Async-signal-safe: may be called between `fork` and `exec`.
///
/// # Errors
/// No error is known.
pub fn signal_at_end_of_parent(signal: Signal) -> Result<(), Errno> {
    let arguments = [libc::PR_SET_PDEATHSIG as usize, signal.number() as usize, 0, 0, 0];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_prctl, arguments) }.map(drop)
}

/// Bytes of a `siginfo_t`.
pub const INFORMATION_BYTES: usize = size_of::<libc::siginfo_t>();

/// Sends signal `number` to the process with the information in a `siginfo_t`.
///
/// # Errors
/// As for [`signal`]; also `PERM` for information that only the kernel may send, `INVAL` if it
/// contains another number.
pub fn signal_with(
    process: BorrowedFd<'_>,
    number: i32,
    information: &[u8; INFORMATION_BYTES],
) -> Result<(), Errno> {
    fault::check(Call::Kill)?;
    let information = information.as_ptr().addr();
    let arguments = [process.as_raw_fd() as usize, number as usize, information, 0];
    // SAFETY: the kernel reads that many bytes.
    unsafe { call(libc::SYS_pidfd_send_signal, arguments) }.map(drop)
}

/// Checks that the host would execute `file` for this process: its mount permits that, and no
/// process has it open for writing.
///
/// # Errors
/// `ACCES`. `TXTBSY` (number 26). Only Linux 6.14 and later checks; earlier kernels always succeed.
/// Injected errors.
pub fn may_execute(file: BorrowedFd<'_>) -> Result<(), Errno> {
    /// `AT_EXECVE_CHECK`
    const CHECK: i32 = 0x1_0000;
    fault::check(Call::Open)?;
    let path = c"".as_ptr().addr();
    let (arguments, none) = ([path, 0], [0_usize]);
    let (arguments, none) = (arguments.as_ptr().addr(), none.as_ptr().addr());
    let flags = (CHECK | libc::AT_EMPTY_PATH) as usize;
    let words = [file.as_raw_fd() as usize, path, arguments, none, flags];
    // SAFETY: the kernel reads a path and two lists of strings that end with 0. With this flag it
    // executes nothing; a kernel that does not know the flag refuses it.
    match unsafe { call(libc::SYS_execveat, words) } {
        Err(Errno::INVAL) => Ok(()),
        other => other.map(drop),
    }
}

/// Starts a child that is a copy of this process, runs `body` and exits with its result, or with
/// 101 if it panics. `given` is passed to `body` in the child, and returned in the caller with the
/// child's number. No other value of the caller is dropped in the child.
///
/// # Errors
/// `BUSY`: there are other kernel threads, whose locks would stay locked in the child. Errors of
/// `fork`. Injected errors.
pub fn fork<T>(given: T, body: impl FnOnce(T) -> i32) -> Result<(u32, T), Errno> {
    const PANICKED: i32 = 101;
    fault::check(Call::ThreadStart)?;
    if !crate::task::is_only_thread() {
        return Err(Errno::BUSY);
    }
    // SAFETY: there is one kernel thread, so no lock is held in the child, which may do whatever
    // its parent may.
    match unsafe { libc::fork() } {
        0 => {
            let status = catch_unwind(AssertUnwindSafe(|| body(given))).unwrap_or(PANICKED);
            // SAFETY: ends the process.
            unsafe { libc::_exit(status) }
        }
        child if child > 0 => Ok((child as u32, given)),
        _ => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use super::{fork, may_execute, open};
    use crate::error::Errno;
    use crate::poll::{Interest, wait};
    use std::os::fd::AsFd;

    #[test]
    fn a_process_with_other_threads_is_not_copied() {
        let (stay, end) = std::sync::mpsc::channel::<()>();
        let other = crate::prim::thread::spawn(move || end.recv());
        assert_eq!(fork((), |()| 0), Err(Errno::BUSY));
        drop(stay);
        assert!(other.join().unwrap().is_err());
    }

    #[test]
    fn a_program_that_is_open_for_writing_is_not_executed() {
        const TEXT_BUSY: Errno = Errno::new(libc::ETXTBSY);
        let copy = std::env::temp_dir().join(format!("kyocho-busy-{}", std::process::id()));
        std::fs::copy("/bin/true", &copy).unwrap();
        let read = std::fs::File::open(&copy).unwrap();
        // A process that another test has just started may briefly have the copy open for writing.
        let becomes_free = || while may_execute(read.as_fd()) == Err(TEXT_BUSY) {};
        becomes_free();
        assert_eq!(may_execute(read.as_fd()), Ok(()));
        let write = std::fs::File::options().write(true).open(&copy).unwrap();
        std::fs::remove_file(&copy).unwrap();
        match may_execute(read.as_fd()) {
            Ok(()) => {
                let why = "only Linux 6.14 and newer tell of writers";
                crate::skip::skip("a_program_that_is_open_for_writing_is_not_executed", why);
            }
            refused => assert_eq!(refused, Err(TEXT_BUSY)),
        }
        drop(write);
        becomes_free();
        assert_eq!(may_execute(read.as_fd()), Ok(()));
    }

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
