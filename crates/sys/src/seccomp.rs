//! System-call filters that pass calls to another process for an answer (`SECCOMP_RET_USER_NOTIF`).
//!
//! A *listener* receives one notification for each such call: the caller, the number, six argument
//! words. The caller is blocked until the listener answers. Once the listener has received the
//! call, only death ends that wait, so no call is served twice. [`listen`] asks the kernel for this
//! (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`, Linux 5.19).
#![expect(unsafe_code, reason = "system calls on structures")]

use core::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// One instruction of a filter: classic BPF.
pub type Instruction = libc::sock_filter;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// Identifies the call in the answer.
    pub id: u64,
    /// The kernel thread that called.
    pub thread: u32,
    /// The call's number.
    pub number: u32,
    /// Its arguments, as they were in the registers.
    pub arguments: [u64; 6],
    /// The address at which the thread will continue.
    pub program_counter: u64,
}

/// Installs `filter` permanently for the calling thread and all that it starts from now on. Returns
/// the listener's descriptor, which executed programs do not inherit. The thread can no longer gain
/// privileges by executing files (`no_new_privs`).
///
/// # Errors
/// `INVAL`: the filter is invalid, or the kernel older than 5.19. `BUSY`: a filter with a listener
/// is installed already.
pub fn listen(filter: &[Instruction]) -> Result<i32, Errno> {
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0]) }?;
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
    // SAFETY: the kernel reads the program and the instructions it points to.
    let number =
        unsafe { call(libc::SYS_seccomp, [mode, flags as usize, (&raw const program).addr()]) }?;
    Ok(number as i32)
}

/// The receiving end of a filter.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
}

impl Listener {
    /// A listener from a received descriptor. From now on the host prefers one core for caller and
    /// listener (Linux 6.6).
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> Self {
        /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`: an older kernel refuses it; only speed depends on
        /// it.
        const SAME_CORE: usize = 1;
        let number = descriptor.as_raw_fd() as usize;
        let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as usize;
        // SAFETY: takes numbers.
        let _ = unsafe { call(libc::SYS_ioctl, [number, request, SAME_CORE]) };
        Self { descriptor }
    }

    /// Returns the next call. Blocks until there is one.
    ///
    /// # Errors
    /// `NOENT` (number 2): the caller died, or no process is left. `INTR`: a signal came first.
    /// Injected errors.
    pub fn receive(&self) -> Result<Notification, Errno> {
        fault::check(Call::Read)?;
        // SAFETY: the structure consists of numbers; the kernel requires it zeroed.
        let mut asked: libc::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes one such structure.
        unsafe { self.control(libc::SECCOMP_IOCTL_NOTIF_RECV as usize, (&raw mut asked).addr()) }?;
        Ok(Notification {
            id: asked.id,
            thread: asked.pid,
            number: asked.data.nr as u32,
            arguments: asked.data.args,
            program_counter: asked.data.instruction_pointer,
        })
    }

    /// Whether call `id` still waits. If so, everything learned of its process before concerns the
    /// caller, and not a later process with the same number.
    #[must_use]
    pub fn waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one number.
        let valid = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID as usize;
            self.control_surely(request, (&raw const id).addr())
        };
        valid.is_ok()
    }

    /// Whether the last process under the filter has ended.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: 0, revents: 0 };
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let arguments = [(&raw mut poll).addr(), 1, (&raw const at_once).addr(), 0, 0];
        // SAFETY: the kernel reads and writes one `pollfd` and reads one `timespec`.
        let asked = unsafe { call(libc::SYS_ppoll, arguments) };
        asked.is_ok() && poll.revents & libc::POLLHUP != 0
    }

    /// Answers call `id` with a value or an error.
    ///
    /// # Errors
    /// `NOENT`: the caller is gone.
    pub fn answer(&self, id: u64, answer: Result<i64, Errno>) -> Result<(), Errno> {
        let (val, error) = match answer {
            Ok(value) => (value, 0),
            Err(errno) => (0, -errno.number()),
        };
        self.send(libc::seccomp_notif_resp { id, val, error, flags: 0 })
    }

    /// Lets the host execute call `id`. Only for calls that are harmless whatever the memory of
    /// their arguments contains by then.
    ///
    /// # Errors
    /// `NOENT`: the caller is gone.
    pub fn let_through(&self, id: u64) -> Result<(), Errno> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.send(libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
    }

    fn send(&self, mut response: libc::seccomp_notif_resp) -> Result<(), Errno> {
        let address = (&raw mut response).addr();
        // SAFETY: the kernel reads one such structure.
        unsafe { self.control_surely(libc::SECCOMP_IOCTL_NOTIF_SEND as usize, address) }.map(drop)
    }

    /// Adds a copy of `descriptor` to the caller of call `id`, which stays blocked. Returns the
    /// number of the copy there.
    ///
    /// To return this number to the caller, answer the call with it afterwards. The host can also
    /// do both at once (`SECCOMP_ADDFD_FLAG_SEND`). But if work of an I/O ring for this thread, or
    /// a suspend of the host, interrupts that, the caller's call ends with 0.
    ///
    /// # Errors
    /// `MFILE`: it has no more descriptors. `NOENT`: it is gone.
    pub fn give(
        &self,
        id: u64,
        descriptor: BorrowedFd<'_>,
        inherited: Inherited,
    ) -> Result<i64, Errno> {
        let added = libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: descriptor.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: match inherited {
                Inherited::Yes => 0,
                Inherited::No => libc::O_CLOEXEC as u32,
            },
        };
        let address = (&raw const added).addr();
        // SAFETY: the kernel reads one such structure.
        unsafe { self.control_surely(libc::SECCOMP_IOCTL_NOTIF_ADDFD as usize, address) }
            .map(|number| number as i64)
    }

    /// As [`control`](Self::control), but retried if it was interrupted by a signal, or by work
    /// that an I/O ring has for this thread; nothing was done then. The host returns early in this
    /// way when another thread has its lock. Without the retry, the caller would never be answered,
    /// or be considered gone.
    ///
    /// # Safety
    /// As for [`control`](Self::control).
    unsafe fn control_surely(&self, request: usize, address: usize) -> Result<usize, Errno> {
        loop {
            // SAFETY: guaranteed by the caller.
            match unsafe { self.control(request, address) } {
                Err(Errno::INTR) => {}
                done => return done,
            }
        }
    }

    /// # Safety
    /// `address` is that of the structure that `request` reads or writes.
    unsafe fn control(&self, request: usize, address: usize) -> Result<usize, Errno> {
        let number = self.descriptor.as_raw_fd() as usize;
        // SAFETY: guaranteed by the caller.
        unsafe { call(libc::SYS_ioctl, [number, request, address]) }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Whether executed programs inherit a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherited {
    /// They inherit it.
    Yes,
    /// It is closed on execution.
    No,
}
