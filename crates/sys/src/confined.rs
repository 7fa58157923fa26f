//! Starting a process under a system-call filter: fork, give up privileges, install the filter,
//! execute.
//!
//! The filter permits `execve` only for a path at one address, where the executed image contains
//! its own path. Before the image is there, the forked process maps a page at that address and
//! writes the path of the image's descriptor to it.
#![expect(unsafe_code, reason = "forks; the child makes system calls alone")]

use core::ffi::CStr;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::process;
use crate::raw::{call, owned};
use crate::seccomp::{self, Instruction, Listener};
use crate::signal::Signal;

/// The number of the channel to the parent in a new process. Every filter must let the process
/// receive (`recvfrom`) and send (`sendto`) on it.
pub const CHANNEL: i32 = 200;

/// Description of the new process.
#[derive(Debug)]
pub struct Confined<'a> {
    /// The filter of its system calls.
    pub filter: &'a [Instruction],
    /// The image that it executes.
    pub image: BorrowedFd<'a>,
    /// Address of the image's path, from which the filter permits `execve`.
    pub path_address: usize,
    /// Its arguments.
    pub arguments: &'a [CString],
    /// Its environment.
    pub environment: &'a [CString],
    /// Its working directory.
    pub directory: BorrowedFd<'a>,
    /// Soft and hard limits of each process, by resource (`RLIMIT_...`).
    pub limits: &'a [(u32, u64)],
}

/// A process that was started.
#[derive(Debug)]
pub struct Started {
    /// Process number. The process is a child of the calling kernel thread.
    pub process: u32,
    /// Receives the calls that the filter passes on.
    pub listener: Listener,
}

/// Starts `what`. Call it while the process has one kernel thread. The new process is killed when
/// that thread ends. Allocates, before the fork.
///
/// # Errors
/// `INVAL`: the kernel is older than 5.19. `PERM`, `NOSYS`: the host permits no filters. Errors of
/// `fork`. Injected errors.
pub fn start(what: &Confined<'_>) -> Result<Started, Errno> {
    fault::check(Call::Open)?;
    let path = CString::new(format!("/proc/self/fd/{}", what.image.as_raw_fd()))
        .map_err(|_| Errno::INVAL)?;
    let arguments = pointers(what.arguments);
    let environment = pointers(what.environment);
    let (ours, theirs) = pair()?;
    // SAFETY: takes nothing. Until it executes or exits, the child does only what a signal handler
    // may do.
    let process = unsafe { libc::fork() };
    if process < 0 {
        return Err(Errno::last());
    }
    if process == 0 {
        let child = Child { what, path: &path, arguments: &arguments, environment: &environment };
        let errno = child.become_client(theirs.as_fd());
        child.report(theirs.as_fd(), -i64::from(errno.number()));
        // SAFETY: ends the process.
        unsafe { libc::_exit(127) }
    }
    drop(theirs);
    listener_of(process as u32, ours.as_fd())
        .map(|listener| Started { process: process as u32, listener })
        .inspect_err(|_| {
            // SAFETY: waits for a child of this process, which ends.
            unsafe { libc::waitpid(process, core::ptr::null_mut(), 0) };
        })
}

/// A pair of connected message sockets.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [0_i32; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    let arguments = [libc::AF_UNIX as usize, kind as usize, 0, ends.as_mut_ptr().addr()];
    // SAFETY: the kernel writes two numbers.
    unsafe { call(libc::SYS_socketpair, arguments) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    let first = unsafe { owned(ends[0] as usize) };
    // SAFETY: as above.
    let second = unsafe { owned(ends[1] as usize) };
    Ok((first, second))
}

/// Duplicates the listener from the child, which reports its number there, and lets the child
/// continue.
fn listener_of(process: u32, channel: BorrowedFd<'_>) -> Result<Listener, Errno> {
    let mut word = [0; 8];
    if crate::descriptor::read(channel, &mut word)? != word.len() {
        return Err(Errno::SRCH);
    }
    let said = i64::from_ne_bytes(word);
    if said < 0 {
        return Err(Errno::new(-said as i32));
    }
    let handle = process::open(process)?;
    let arguments = [handle.as_raw_fd() as usize, said as usize, 0];
    // SAFETY: takes numbers.
    let number = unsafe { call(libc::SYS_pidfd_getfd, arguments) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    let listener = Listener::new(unsafe { owned(number) });
    crate::descriptor::write(channel, &word)?;
    Ok(listener)
}

fn pointers(strings: &[CString]) -> Vec<usize> {
    strings.iter().map(|string| string.as_ptr().addr()).chain([0]).collect()
}

/// The child, between fork and execution. It allocates nothing and takes no lock.
struct Child<'a> {
    what: &'a Confined<'a>,
    path: &'a CStr,
    arguments: &'a [usize],
    environment: &'a [usize],
}

impl Child<'_> {
    /// Becomes the new program. Returns only on failure.
    fn become_client(&self, channel: BorrowedFd<'_>) -> Errno {
        match self.try_become_client(channel) {
            Ok(never) => match never {},
            Err(errno) => errno,
        }
    }

    fn try_become_client(
        &self,
        channel: BorrowedFd<'_>,
    ) -> Result<core::convert::Infallible, Errno> {
        let (from, to) = (channel.as_raw_fd() as usize, CHANNEL as usize);
        // SAFETY: takes numbers. A descriptor that had this number is closed in the child alone,
        // which uses no other one of its parent's.
        unsafe { call(libc::SYS_dup3, [from, to, libc::O_CLOEXEC as usize]) }?;
        // SAFETY: just created, and open until the child executes.
        let channel = unsafe { BorrowedFd::borrow_raw(CHANNEL) };
        self.place_path()?;
        let directory = self.what.directory.as_raw_fd() as usize;
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_fchdir, [directory]) }?;
        for &(resource, most) in self.what.limits {
            limit(resource, most)?;
        }
        reset_signals();
        // For any end of the parent. A parent that has ended already closed the channel, so this
        // process does not get past the next call.
        process::signal_at_end_of_parent(Signal::KILL)?;
        drop_capabilities();
        let listener = seccomp::listen(self.what.filter)?;
        self.report(channel, i64::from(listener));
        let mut word = [0; 8];
        let from = [channel.as_raw_fd() as usize, word.as_mut_ptr().addr(), word.len(), 0, 0, 0];
        // SAFETY: the kernel writes at most that many bytes.
        unsafe { call(libc::SYS_recvfrom, from) }?;
        // The listener's number in this process is closed by the execution, like all its
        // descriptors.
        let [arguments, environment] =
            [self.arguments, self.environment].map(|list| list.as_ptr().addr());
        // SAFETY: the kernel reads the path written there, and two lists of strings that end with
        // 0.
        unsafe { call(libc::SYS_execve, [self.what.path_address, arguments, environment]) }?;
        Err(Errno::FAULT)
    }

    /// Maps the page that the filter permits `execve` from, and writes the path to it.
    fn place_path(&self) -> Result<(), Errno> {
        const PAGE: usize = 4096;
        let at = self.what.path_address;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as usize;
        let none = usize::MAX;
        let arguments = [at & !(PAGE - 1), PAGE, protection, flags, none, 0];
        // SAFETY: `NOREPLACE`: the call fails if something is mapped there.
        unsafe { call(libc::SYS_mmap, arguments) }?;
        let bytes = self.path.to_bytes_with_nul();
        let target = core::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: the path has about twenty bytes and lies in the first half of the page just
        // mapped.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    /// Reports the result to the parent. Fails only if the parent is gone.
    fn report(&self, channel: BorrowedFd<'_>, word: i64) {
        let _ = self;
        let bytes = word.to_ne_bytes();
        let to = [channel.as_raw_fd() as usize, bytes.as_ptr().addr(), bytes.len(), 0, 0, 0];
        // SAFETY: the kernel reads that many bytes.
        let _ = unsafe { call(libc::SYS_sendto, to) };
    }
}

/// Sets soft and hard limit of `resource`.
fn limit(resource: u32, most: u64) -> Result<(), Errno> {
    let limits = libc::rlimit64 { rlim_cur: most, rlim_max: most };
    let address = (&raw const limits).addr();
    // SAFETY: the kernel reads one such structure.
    unsafe { call(libc::SYS_prlimit64, [0, resource as usize, address, 0]) }.map(drop)
}

/// Rust's runtime ignores broken pipes; a new program expects the default action.
fn reset_signals() {
    // SAFETY: sets a default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Gives up root's capabilities, for calls that the filter permits. An error means that there are
/// none.
fn drop_capabilities() {
    const CAPABILITIES_MAX: usize = 64;
    for capability in 0..CAPABILITIES_MAX {
        // SAFETY: takes numbers.
        let dropped =
            unsafe { call(libc::SYS_prctl, [libc::PR_CAPBSET_DROP as usize, capability, 0, 0, 0]) };
        if dropped.is_err() {
            break;
        }
    }
    const VERSION_3: u32 = 0x2008_0522;
    let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
    // SAFETY: the kernel reads a header of two words and six words of capabilities.
    let _ = unsafe { call(libc::SYS_capset, [header.as_ptr().addr(), none.as_ptr().addr()]) };
}
