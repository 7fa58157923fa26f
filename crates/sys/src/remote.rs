//! Another process: its memory, copied in and out, and the registers of a thread that stands in a system call.
#![expect(unsafe_code, reason = "system calls on structures")]

use core::mem;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// Reads from `address` of the process of `thread`: how many bytes, fewer where the memory behind them cannot be read.
///
/// # Errors
/// `FAULT`: not one byte can be read. `SRCH`: there is no such process. `PERM`: the host does not permit it. Injected ones.
pub fn read(thread: u32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    fault::check(Call::Read)?;
    let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    transfer(libc::SYS_process_vm_readv, thread, address, &here)
}

/// Writes to `address` of the process of `thread`: how many bytes.
///
/// # Errors
/// As for [`read`]; `FAULT` also where it may not write itself.
pub fn write(thread: u32, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    transfer(libc::SYS_process_vm_writev, thread, address, &here)
}

/// `here` is read or written as the call named `number` does; both callers own its bytes accordingly.
fn transfer(
    number: libc::c_long,
    thread: u32,
    address: u64,
    here: &libc::iovec,
) -> Result<usize, Errno> {
    let there = libc::iovec {
        iov_base: core::ptr::without_provenance_mut(address as usize),
        iov_len: here.iov_len,
    };
    let (here, there) = (core::ptr::from_ref(here).addr(), (&raw const there).addr());
    // SAFETY: the kernel checks the other side's addresses; this side's bytes are the callers' buffers.
    unsafe { call(number, [thread as usize, here, 1, there, 1, 0]) }
}

/// The registers of a thread.
pub type Registers = libc::user_regs_struct;

/// Changes the registers with which `thread`, which sleeps in a system call, returns to its program. `release` ends that call;
/// `change` gets the registers as the call would leave them. The calling kernel thread sleeps until the other stands still, which
/// it does on its way out of the call, whatever signals it has.
///
/// # Errors
/// `SRCH`: it died. `PERM`: the host does not permit it, or a debugger has it. What `release` says.
pub fn divert(
    thread: u32,
    release: impl FnOnce() -> Result<(), Errno>,
    change: impl FnOnce(&mut Registers),
) -> Result<(), Errno> {
    let attached = Attached::new(thread)?;
    // SAFETY: takes numbers.
    unsafe { trace(libc::PTRACE_INTERRUPT, thread, 0) }?;
    release()?;
    wait_for_stop(thread)?;
    // SAFETY: the structure is numbers.
    let mut registers: Registers = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one such structure.
    unsafe { trace(libc::PTRACE_GETREGS, thread, (&raw mut registers).addr()) }?;
    change(&mut registers);
    // The kernel shall not try to restart a call that is over.
    registers.orig_rax = u64::MAX;
    // SAFETY: the kernel reads one such structure.
    unsafe { trace(libc::PTRACE_SETREGS, thread, (&raw const registers).addr()) }?;
    drop(attached);
    Ok(())
}

/// A thread that we trace, let go when dropped.
///
/// **Invariant:** none is left behind. Only a thread that stands still can be let go; the status of one that dies as ours must be taken by us, for until then
/// the host tells its own parent nothing.
struct Attached {
    thread: u32,
}

impl Attached {
    fn new(thread: u32) -> Result<Self, Errno> {
        // SAFETY: takes numbers.
        unsafe { trace(libc::PTRACE_SEIZE, thread, 0) }?;
        Ok(Self { thread })
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        loop {
            // SAFETY: takes numbers.
            let gone = unsafe { trace(libc::PTRACE_DETACH, self.thread, 0) };
            // It runs, on its way to a stop or to its end; or its end is what is heard of.
            if gone.is_ok() || wait_for_stop(self.thread).is_err() {
                return;
            }
        }
    }
}

/// # Safety
/// `data` is what `request` asks: a number, or the address of a structure to be read or written.
unsafe fn trace(request: libc::c_uint, thread: u32, data: usize) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_ptrace, [request as usize, thread as usize, 0, data]) }
}

/// Sleeps until the traced `thread` stands still.
///
/// # Errors
/// `SRCH`: it died, and its status is taken.
fn wait_for_stop(thread: u32) -> Result<(), Errno> {
    let mut status = 0;
    let flags = (libc::__WALL | libc::__WNOTHREAD) as usize;
    loop {
        // SAFETY: the kernel writes one number.
        match unsafe {
            call(libc::SYS_wait4, [thread as usize, (&raw mut status).addr(), flags, 0])
        } {
            Ok(_) if libc::WIFSTOPPED(status) => return Ok(()),
            Ok(_) => return Err(Errno::SRCH),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests;
