//! Other processes: their memory, copied in and out, and the registers of a thread that is in a
//! system call.
#![expect(unsafe_code, reason = "system calls on structures")]

use core::mem;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// Reads memory at `address` of the process of `thread`. Returns the number of bytes, which is
/// smaller if the memory after them is not readable.
///
/// # Errors
/// `FAULT`: no byte is readable. `SRCH`: there is no such process. `PERM`: the host does not permit
/// it. Injected errors.
pub fn read(thread: u32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    fault::check(Call::Read)?;
    let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    transfer(libc::SYS_process_vm_readv, thread, address, &here)
}

/// Writes memory at `address` of the process of `thread`. Returns the number of bytes.
///
/// # Errors
/// As for [`read`]; `FAULT` also if that process itself may not write there.
pub fn write(thread: u32, address: u64, bytes: &[u8]) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    transfer(libc::SYS_process_vm_writev, thread, address, &here)
}

/// Reads or writes `here`, depending on the call `number`. Both callers own the bytes accordingly.
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
    // SAFETY: the kernel checks the remote addresses; the local bytes are the callers' buffers.
    unsafe { call(number, [thread as usize, here, 1, there, 1, 0]) }
}

/// The registers of a thread.
pub type Registers = libc::user_regs_struct;

/// Changes the registers with which `thread`, which is blocked in a system call, returns to its
/// program. `release` ends that call; `change` gets the registers as the call would leave them.
/// Blocks the calling kernel thread until the other one has stopped, which it does on its way out
/// of the call whatever signals are pending.
///
/// # Errors
/// `SRCH`: it died. `PERM`: the host does not permit it, or a debugger is attached. Errors of
/// `release`.
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
    // SAFETY: the structure consists of numbers.
    let mut registers: Registers = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one such structure.
    unsafe { trace(libc::PTRACE_GETREGS, thread, (&raw mut registers).addr()) }?;
    change(&mut registers);
    // Keeps the kernel from restarting the call, which is complete.
    registers.orig_rax = u64::MAX;
    // SAFETY: the kernel reads one such structure.
    unsafe { trace(libc::PTRACE_SETREGS, thread, (&raw const registers).addr()) }?;
    drop(attached);
    Ok(())
}

/// A thread traced by this one, detached on drop.
///
/// **Invariant:** no traced thread is left behind. Only a stopped thread can be detached. If a
/// traced thread dies, this process must collect its status: until then the host does not notify
/// the thread's own parent.
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
            // Detaching fails while the thread runs. Then it is on its way to a stop, after which
            // it can be detached, or to its end, which waiting reports.
            if gone.is_ok() || wait_for_stop(self.thread).is_err() {
                return;
            }
        }
    }
}

/// # Safety
/// `data` is what `request` requires: a number, or the address of a structure to be read or
/// written.
unsafe fn trace(request: libc::c_uint, thread: u32, data: usize) -> Result<usize, Errno> {
    // SAFETY: guaranteed by the caller.
    unsafe { call(libc::SYS_ptrace, [request as usize, thread as usize, 0, data]) }
}

/// Blocks until the traced `thread` has stopped.
///
/// # Errors
/// `SRCH`: it died, and its status was collected.
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
