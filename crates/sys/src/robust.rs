//! A word of shared memory by which other processes learn that a kernel thread has ended, for
//! whatever reason.
//!
//! The kernel walks the list of robust futexes of every thread that exits; it marks and wakes those
//! that contain the thread's number. It does so first, before it frees the memory and closes the
//! files. So a process that waits on such a word learns of a killed process earlier than by a
//! socket, which is closed last.
//!
//! ```text
//!   head (private memory)                   node (private memory)     word (shared)
//!   next ─────────────────────────────────► next ──► head
//!   offset = word - node                                              0 │ thread's number │ ENDED
//! ```
//!
//! Source: `Documentation/locking/robust-futex-ABI.rst` of Linux.
#![expect(unsafe_code, reason = "the kernel reads what we leave for it")]

use core::marker::PhantomData;
use core::ptr;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::futex::{wait_shared, wake_shared};
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::raw::call;
use crate::thread_id::ThreadId;

/// The thread has ended (`FUTEX_OWNER_DIED`).
const ENDED: u32 = 1 << 30;
/// A thread waits (`FUTEX_WAITERS`). Without this bit the kernel marks the word, but does not wake.
const WAITERS: u32 = 1 << 31;

/// `struct robust_list_head` of the kernel, followed by its only entry.
#[repr(C)]
struct List {
    first: *const Node,
    /// Distance from a node to its word.
    offset: isize,
    pending: *const Node,
    node: Node,
}

/// Size of the kernel's part of `List`.
const HEAD_BYTES: usize = core::mem::offset_of!(List, node);

#[repr(C)]
struct Node {
    next: *const Self,
}

/// While it lives, `word` names the calling thread. After that, or once the thread has ended, the
/// word is marked as ended.
#[derive(Debug)]
pub struct LivenessGuard<'a> {
    word: &'a AtomicU32,
    list: *mut List,
    /// The thread's previous list: the C library's.
    before: [usize; 2],
    // Bound to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl<'a> LivenessGuard<'a> {
    /// Writes the calling thread's number into `word`. While the guard lives, the thread must not
    /// take robust locks of the C library. Allocates.
    ///
    /// # Errors
    /// Injected errors, and those of a kernel without robust futexes.
    pub fn new(word: &'a AtomicU32) -> Result<Self, Errno> {
        fault::check(Call::FutexWait)?;
        let mut before = [0_usize; 2];
        let places = [0, (&raw mut before[0]) as usize, (&raw mut before[1]) as usize];
        // SAFETY: the kernel writes an address and a length.
        unsafe { call(libc::SYS_get_robust_list, places) }?;
        let list = Box::into_raw(Box::new(List {
            first: ptr::null(),
            offset: 0,
            pending: ptr::null(),
            node: Node { next: ptr::null() },
        }));
        // SAFETY: allocated above and not shared yet; the same for the next one.
        let node = unsafe { &raw mut (*list).node };
        let offset = word.as_ptr().addr().wrapping_sub(node.addr()) as isize;
        // SAFETY: as above.
        unsafe {
            *list =
                List { first: node, offset, pending: ptr::null(), node: Node { next: list.cast() } }
        };
        // SAFETY: the list has the kernel's layout, and is freed after the thread has its previous
        // list again. The word stays mapped while it is borrowed.
        let set = unsafe { call(libc::SYS_set_robust_list, [list.addr(), HEAD_BYTES]) };
        let living = Self { word, list, before, _thread: PhantomData };
        set?;
        word.store(ThreadId::current().number() | WAITERS, Ordering::SeqCst);
        Ok(living)
    }
}

impl Drop for LivenessGuard<'_> {
    fn drop(&mut self) {
        let [address, bytes] = self.before;
        // SAFETY: the list that the kernel returned for this thread.
        let restored = unsafe { call(libc::SYS_set_robust_list, [address, bytes]) };
        assert!(restored.is_ok(), "the thread's previous list must be accepted");
        // SAFETY: from a box; the kernel does not refer to it any more.
        drop(unsafe { Box::from_raw(self.list) });
        mark(self.word);
    }
}

/// Marks `word` as the end of its thread would, and wakes waiters.
pub fn mark(word: &AtomicU32) {
    word.fetch_or(ENDED, Ordering::SeqCst);
    wake_shared(word, u32::MAX);
}

/// Blocks the kernel thread until the thread named by `word` has ended, or the word was
/// [marked](mark). Returns `false` at once if it names none.
pub fn await_end(word: &AtomicU32) -> bool {
    let names_one = |seen: u32| seen & !WAITERS != 0;
    let mut seen = word.load(Ordering::SeqCst);
    if !names_one(seen) {
        return false;
    }
    while seen & ENDED == 0 && names_one(seen) {
        wait_shared(word, seen, None);
        seen = word.load(Ordering::SeqCst);
    }
    true
}

#[cfg(test)]
mod tests;
