//! `fork` while a runtime runs.
//!
//! The child has one kernel thread, the caller's, and a copy of a scheduler whose other kernel threads are gone; the same microprocesses
//! would run twice. As POSIX has it for any program with threads, the child may do what is safe in a signal handler, until
//! it calls `exec` or `_exit`. What it may not do is use this crate: a call ends it with a sentence that says so.
//!
//! ```text
//!   fork ──► child: the caller's kernel thread holds no virtual processor ──► its next call finds none ──► refuse
//! ```
//! So no call pays for the question. `vfork` and `posix_spawn` run no handler, and what they run needs none.
#![expect(unsafe_code, reason = "a handler of the C library's, a message without allocation")]

use core::ptr;
use std::sync::Once;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::processor::kernel_thread::KernelThread;
use crate::processor::reflection;

/// Runtimes that run in this process.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// This process was forked from one in which a runtime ran.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// A runtime starts.
pub(crate) fn enter() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler touches atomics and words of its own kernel thread. Refused for want of memory: then a child that
        // misbehaves is not told.
        let _untold = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    RUNNING.fetch_add(1, Ordering::SeqCst);
}

/// It has stopped.
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

/// Ends the process if it was forked while a runtime ran: the caller holds no virtual processor, and nobody will give it one.
pub(crate) fn refuse() {
    if is_orphaned() {
        const TEXT: &[u8] = b"kyocho: a process forked while a runtime ran used microprocesses; \
            until exec or _exit it may only do what a signal handler may\n";
        // SAFETY: writes bytes of ours. Nobody is left to tell if it fails.
        unsafe { libc::write(2, ptr::from_ref(TEXT).cast(), TEXT.len()) };
        std::process::abort();
    }
}
