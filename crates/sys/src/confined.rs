//! Starting a process under a system-call filter: fork, give up what it must not have, install the filter, execute.
//!
//! The filter permits `execve` for one address alone, where the image that is executed has its own path. Before there is that
//! image, the forked process maps a page there, with the path of the image's descriptor in it.
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

/// The number that the channel to the parent has in a new process, from which no filter may stop it receiving (`recvfrom`) and sending (`sendto`).
pub const CHANNEL: i32 = 200;

/// What the new process is.
#[derive(Debug)]
pub struct Confined<'a> {
    /// Its system calls.
    pub filter: &'a [Instruction],
    /// The file it executes.
    pub image: BorrowedFd<'a>,
    /// Where the image has its path, and the filter permits `execve`.
    pub path_address: usize,
    /// Its arguments.
    pub arguments: &'a [CString],
    /// Its environment.
    pub environment: &'a [CString],
    /// Its directory.
    pub directory: BorrowedFd<'a>,
    /// Soft and hard limits of each process, by resource (`RLIMIT_...`).
    pub limits: &'a [(u32, u64)],
}

/// A process that was started.
#[derive(Debug)]
pub struct Started {
    /// Its number. It is a child of the calling kernel thread.
    pub process: u32,
    /// Where its calls arrive.
    pub listener: Listener,
}

/// Starts `what`. Call it while there is one kernel thread; the process is killed when that ends.
///
/// # Errors
/// `INVAL`: the kernel is older than 5.19. `PERM`, `NOSYS`: the host permits no filters. What `fork` says. Injected ones.
pub fn start(what: &Confined<'_>) -> Result<Started, Errno> {
    fault::check(Call::Open)?;
    let path = CString::new(format!("/proc/self/fd/{}", what.image.as_raw_fd()))
        .map_err(|_| Errno::INVAL)?;
    let arguments = pointers(what.arguments);
    let environment = pointers(what.environment);
    let (ours, theirs) = pair()?;
    // SAFETY: takes nothing; the child does what a signal handler may until it executes or exits.
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
            // SAFETY: waits for our child, which ends.
            unsafe { libc::waitpid(process, core::ptr::null_mut(), 0) };
        })
}

/// Two ends of a channel of messages.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [0_i32; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    let arguments = [libc::AF_UNIX as usize, kind as usize, 0, ends.as_mut_ptr().addr()];
    // SAFETY: the kernel writes two numbers.
    unsafe { call(libc::SYS_socketpair, arguments) }?;
    // SAFETY: the kernel has just made it, for us.
    let first = unsafe { owned(ends[0] as usize) };
    // SAFETY: and this one.
    let second = unsafe { owned(ends[1] as usize) };
    Ok((first, second))
}

/// Takes the listener from the child that says which number it has there, and lets the child go on.
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
    // SAFETY: the kernel has just made it, for us.
    let listener = Listener::new(unsafe { owned(number) });
    crate::descriptor::write(channel, &word)?;
    Ok(listener)
}

fn pointers(strings: &[CString]) -> Vec<usize> {
    strings.iter().map(|string| string.as_ptr().addr()).chain([0]).collect()
}

/// The child, between fork and execution: it allocates nothing and takes no locks.
struct Child<'a> {
    what: &'a Confined<'a>,
    path: &'a CStr,
    arguments: &'a [usize],
    environment: &'a [usize],
}

impl Child<'_> {
    /// Returns only if it failed.
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
        // SAFETY: takes numbers; whatever had this number is closed, in the child alone, which uses nothing else of its parent's.
        unsafe { call(libc::SYS_dup3, [from, to, libc::O_CLOEXEC as usize]) }?;
        // SAFETY: just made, and open until the child executes.
        let channel = unsafe { BorrowedFd::borrow_raw(CHANNEL) };
        self.place_path()?;
        let directory = self.what.directory.as_raw_fd() as usize;
        // SAFETY: takes numbers.
        unsafe { call(libc::SYS_fchdir, [directory]) }?;
        for &(resource, most) in self.what.limits {
            limit(resource, most)?;
        }
        reset_signals();
        // However the parent ends. One that has ended already closed the channel, and nobody lets this
        // process go on.
        process::signal_at_end_of_parent(Signal::KILL)?;
        drop_capabilities();
        let listener = seccomp::listen(self.what.filter)?;
        self.report(channel, i64::from(listener));
        let mut word = [0; 8];
        let from = [channel.as_raw_fd() as usize, word.as_mut_ptr().addr(), word.len(), 0, 0, 0];
        // SAFETY: the kernel writes as many bytes at most.
        unsafe { call(libc::SYS_recvfrom, from) }?;
        // The listener's number here, as all of ours, is closed by what follows.
        let [arguments, environment] =
            [self.arguments, self.environment].map(|list| list.as_ptr().addr());
        // SAFETY: the kernel reads the path placed there, and two lists of strings that end with 0.
        unsafe { call(libc::SYS_execve, [self.what.path_address, arguments, environment]) }?;
        Err(Errno::FAULT)
    }

    /// Maps the page that the filter permits `execve` from, and writes the path there.
    fn place_path(&self) -> Result<(), Errno> {
        const PAGE: usize = 4096;
        let at = self.what.path_address;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as usize;
        let none = usize::MAX;
        let arguments = [at & !(PAGE - 1), PAGE, protection, flags, none, 0];
        // SAFETY: `NOREPLACE`: nothing of the process was there.
        unsafe { call(libc::SYS_mmap, arguments) }?;
        let bytes = self.path.to_bytes_with_nul();
        let target = core::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: the path has some twenty bytes and stands in the first half of the page just mapped.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }

    /// Says what became of it. A parent that is gone needs to know nothing.
    fn report(&self, channel: BorrowedFd<'_>, word: i64) {
        let _ = self;
        let bytes = word.to_ne_bytes();
        let to = [channel.as_raw_fd() as usize, bytes.as_ptr().addr(), bytes.len(), 0, 0, 0];
        // SAFETY: the kernel reads as many bytes.
        let _ = unsafe { call(libc::SYS_sendto, to) };
    }
}

/// Soft and hard limit of `resource`.
fn limit(resource: u32, most: u64) -> Result<(), Errno> {
    let limits = libc::rlimit64 { rlim_cur: most, rlim_max: most };
    let address = (&raw const limits).addr();
    // SAFETY: the kernel reads one such structure.
    unsafe { call(libc::SYS_prlimit64, [0, resource as usize, address, 0]) }.map(drop)
}

/// The library that Rust programs start with ignores broken pipes; a new program expects the default.
fn reset_signals() {
    // SAFETY: sets a default action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// What root could do through calls that the filter lets pass. Errors mean that there is nothing to give up.
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
