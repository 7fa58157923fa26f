//! Kernel threads as the host sees them: whether they run, and where they sleep; limits of the
//! process's descriptors.
//!
//! A reader keeps `/proc/self/task/TID/...` open and reads it with `pread` into a buffer on the
//! stack: no allocation, 1-2 µs for each read.
#![expect(unsafe_code, reason = "system calls on buffers")]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};

mod life;

pub use crate::thread_id::ThreadId;
pub use life::ThreadLife;

/// Raises the process's limit of descriptors to the maximum.
///
/// # Errors
/// `MFILE`: it is at the maximum already.
pub fn raise_descriptor_limit() -> Result<(), Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one local structure.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if got != 0 || limit.rlim_cur >= limit.rlim_max {
        return Err(Errno::MFILE);
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads one local structure.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Whether the caller is the only thread of the process; `false` if that is unknown. A thread that
/// was joined may count for some microseconds.
pub fn is_only_thread() -> bool {
    // A link for each thread, and two of the directory itself.
    std::fs::metadata("/proc/self/task").is_ok_and(|threads| threads.nlink() == 3)
}

/// Makes room for `count` descriptors, or for as many as the process may have.
///
/// The kernel doubles a full table of descriptors. If threads share the table, it waits for every
/// CPU before it frees the old one: milliseconds in which no other thread of the process can open
/// anything. While the process has one thread, it does not wait.
///
/// # Errors
/// `MFILE`, `NOMEM`: the table stays as it is.
pub fn reserve_descriptors(count: u32) -> Result<(), Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one local structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(Errno::last());
    }
    let highest = u64::from(count).min(limit.rlim_cur).saturating_sub(1);
    let some = File::open("/proc/self/stat").map_err(|_| Errno::MFILE)?;
    let command = libc::F_DUPFD_CLOEXEC as usize;
    let arguments = [some.as_raw_fd() as usize, command, highest as usize];
    // SAFETY: takes numbers.
    let copy = unsafe { call(libc::SYS_fcntl, arguments) }?;
    // SAFETY: the call created it, and nothing else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(copy as i32) });
    Ok(())
}

/// The scheduling state of a thread, from `/proc/.../stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On a CPU, or waiting for one.
    Running,
    /// Asleep in the kernel; a signal wakes it.
    Sleeping,
    /// Asleep in the kernel; signals do not wake it (it waits for a disk or a page).
    Uninterruptible,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Has ended, or is ending.
    Dead,
    /// Another state letter.
    Other(u8),
}

/// Reads whether one kernel thread of this process runs.
#[derive(Debug)]
pub struct StateReader(OwnedFd);

impl StateReader {
    /// Opens `/proc/self/task/TID/stat`.
    ///
    /// # Errors
    /// `ENOENT`: no such thread, or no `/proc`. `MFILE`: no more descriptors.
    pub fn open(thread: ThreadId) -> Result<Self, Errno> {
        open_task_file(thread, "stat").map(Self)
    }

    /// The thread's state now. [`State::Dead`] if it has ended.
    ///
    /// # Errors
    /// Injected errors.
    pub fn read(&self) -> Result<State, Errno> {
        let mut buffer = [0; 512];
        match read_from_start(&self.0, &mut buffer) {
            Ok(text) => Ok(parse_state(text)),
            Err(Errno::SRCH) => Ok(State::Dead),
            Err(errno) => Err(errno),
        }
    }
}

/// `TID (name) S ...`, where the name may itself have parentheses and spaces.
fn parse_state(text: &[u8]) -> State {
    let letter = text.iter().rposition(|&byte| byte == b')').and_then(|at| text.get(at + 2));
    match letter {
        Some(b'R') => State::Running,
        Some(b'S') => State::Sleeping,
        Some(b'D') => State::Uninterruptible,
        Some(b'T' | b't') => State::Stopped,
        Some(b'Z' | b'X') => State::Dead,
        other => State::Other(other.copied().unwrap_or(0)),
    }
}

/// Whether a thread sleeps in the kernel, from `/proc/.../syscall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InKernel {
    /// It runs, in user mode or in the kernel.
    Running,
    /// Asleep inside the system call with this number.
    SystemCall(u32),
    /// Asleep in the kernel outside a system call: a page fault.
    Elsewhere,
    /// Has ended.
    Dead,
}

/// Reads in which system call one kernel thread of this process sleeps.
#[derive(Debug)]
pub struct SystemCallReader(OwnedFd);

impl SystemCallReader {
    /// Opens `/proc/self/task/TID/syscall`.
    ///
    /// # Errors
    /// As for [`StateReader::open`]; `ENOENT` also where the kernel was built without it.
    pub fn open(thread: ThreadId) -> Result<Self, Errno> {
        open_task_file(thread, "syscall").map(Self)
    }

    /// The thread's state now.
    ///
    /// # Errors
    /// `PERM`: this process may not read the state of its own threads (in some containers).
    pub fn read(&self) -> Result<InKernel, Errno> {
        let mut buffer = [0; 256];
        match read_from_start(&self.0, &mut buffer) {
            Ok(text) => Ok(parse_system_call(text)),
            Err(Errno::SRCH) => Ok(InKernel::Dead),
            Err(errno) => Err(errno),
        }
    }
}

impl IntoRawFd for SystemCallReader {
    fn into_raw_fd(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

impl FromRawFd for SystemCallReader {
    /// # Safety
    /// The descriptor is open, was made by [`open`](Self::open), and is owned by nothing else.
    unsafe fn from_raw_fd(descriptor: RawFd) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// The position in its own code at which a thread entered the kernel and sleeps there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asleep {
    /// Its stack pointer in user mode.
    pub sp: usize,
    /// Its program counter in user mode.
    pub pc: usize,
}

impl SystemCallReader {
    /// The position at which the thread sleeps; `None` if it is running, runnable or has ended.
    ///
    /// The kernel reports a position only if the thread slept in one place during the whole read.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn asleep(&self) -> Result<Option<Asleep>, Errno> {
        let mut buffer = [0; 256];
        match read_from_start(&self.0, &mut buffer) {
            Ok(text) => Ok(parse_position(text)),
            Err(Errno::SRCH) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// The last two words of `-1 SP PC` or `NUMBER ARGUMENTS... SP PC`.
///
/// `None` for a thread in `rt_sigreturn`, which sleeps at a missing page: the kernel may have read
/// already where the thread continues, which is not `PC`.
fn parse_position(text: &[u8]) -> Option<Asleep> {
    const RETURN_FROM_SIGNAL: u32 = libc::SYS_rt_sigreturn as u32;
    if matches!(parse_system_call(text), InKernel::SystemCall(RETURN_FROM_SIGNAL)) {
        return None;
    }
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut words = text.rsplit(|&byte| byte == b' ');
    let (pc, sp) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
    Some(Asleep { sp, pc })
}

/// Parses `0x...`.
fn hexadecimal(word: &[u8]) -> Option<usize> {
    word.strip_prefix(b"0x")?.iter().try_fold(0_usize, |number, &digit| {
        Some(number.wrapping_mul(16) + (digit as char).to_digit(16)? as usize)
    })
}

/// `running`, `-1 SP PC`, or `NUMBER ARGUMENTS... SP PC`.
fn parse_system_call(text: &[u8]) -> InKernel {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    match text.first() {
        Some(b'0'..=b'9') => InKernel::SystemCall(
            digits.fold(0_u32, |number, &digit| number.wrapping_mul(10) + u32::from(digit - b'0')),
        ),
        Some(b'-') => InKernel::Elsewhere,
        Some(_) => InKernel::Running,
        None => InKernel::Dead,
    }
}

/// Opens a file of a thread of this process. Does not allocate: the first allocation of a thread is
/// expensive.
fn open_task_file(thread: ThreadId, file: &str) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    let mut path = [0; PATH_BYTES];
    // There is room for any number and any of the names used here.
    let written = write!(&mut path[..PATH_BYTES - 1], "/proc/self/task/{}/{file}", thread.number());
    debug_assert!(written.is_ok(), "the path fits");
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags];
    // SAFETY: the path ends in a zero byte and lives during the call.
    let descriptor = unsafe { call(libc::SYS_openat, arguments) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { owned(descriptor) })
}

/// Length of the longest path of a thread's file, with its zero byte.
const PATH_BYTES: usize = 48;

/// Reads a `/proc` file from the start.
fn read_from_start<'a>(file: &OwnedFd, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    fault::check(Call::Read)?;
    let arguments = [file.as_raw_fd() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0];
    // SAFETY: the kernel writes at most the buffer's length to it.
    let length = unsafe { call(libc::SYS_pread64, arguments) }?;
    Ok(&buffer[..length])
}

#[cfg(test)]
mod tests;
