//! `fork` while a runtime runs.
//!
//! The child has one kernel thread, the caller's, and a copy of a scheduler whose other kernel
//! threads are gone. The same microprocesses would run twice. As POSIX says of any program with
//! threads, until it calls `exec` or `_exit` the child may only do what is safe in a signal
//! handler. It must not use this crate: a call ends the process with a message that says so.
//!
//! ```text
//!   fork ──► child: the caller's kernel thread holds no virtual processor ──► its next call finds none ──► refuse
//! ```
//! So ordinary calls make no check for this. `vfork` and `posix_spawn` run no handler; their
//! children need none.
#![expect(unsafe_code, reason = "a handler of the C library's, a message without allocation")]

use core::ptr;
use std::sync::Once;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::processor::kernel_thread::KernelThread;
use crate::processor::reflection;

/// The number of runtimes that run in this process.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Whether this process was forked from one in which a runtime ran.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// Called when a runtime starts.
pub(crate) fn enter() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler uses only atomics, and words of its own kernel thread. If there is no
        // memory for it, a child that misbehaves gets no message.
        let _untold = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    RUNNING.fetch_add(1, Ordering::SeqCst);
}

/// Called when a runtime has stopped.
pub(crate) fn leave() {
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    if RUNNING.load(Ordering::SeqCst) != 0 {
        ORPHANED.store(true, Ordering::SeqCst);
        KernelThread::orphan_current();
        if KernelThread::is_ours() {
            reflection::end_in_child(KernelThread::current());
        }
    }
}

/// Whether this process was forked while a runtime ran.
pub(crate) fn is_orphaned() -> bool {
    ORPHANED.load(Ordering::Relaxed)
}

/// Ends the process if it was forked while a runtime ran: the caller holds no virtual processor,
/// and will never get one.
pub(crate) fn refuse() {
    if is_orphaned() {
        const TEXT: &[u8] = b"kyocho: a process forked while a runtime ran used microprocesses; \
            until exec or _exit it may only do what a signal handler may\n";
        // SAFETY: writes a constant. If this fails, there is no other place to report it.
        unsafe { libc::write(2, ptr::from_ref(TEXT).cast(), TEXT.len()) };
        std::process::abort();
    }
}
