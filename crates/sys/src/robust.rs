//! A word of shared memory that tells when a kernel thread has ended, however it ended.
//!
//! The kernel walks a list of futexes of every thread that exits, and marks and wakes those that carry the thread's number: first of all it does,
//! before it takes the memory apart and closes the files. So a process that waits for such a word knows of a killed one
//! before a socket tells, whose end comes last.
//!
//! ```text
//!   head (our memory)                       node (our memory)         word (shared)
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
/// Somebody waits (`FUTEX_WAITERS`): without it the kernel marks, but does not wake.
const WAITERS: u32 = 1 << 31;

/// `struct robust_list_head` of the kernel, and the only futex in it.
#[repr(C)]
struct List {
    first: *const Node,
    /// From a node to its word.
    offset: isize,
    pending: *const Node,
    node: Node,
}

/// The bytes of `List` that are the kernel's head.
const HEAD_BYTES: usize = core::mem::offset_of!(List, node);

#[repr(C)]
struct Node {
    next: *const Self,
}

/// As long as it lives, `word` names the calling thread; afterwards, and when the thread ends before, it says so.
#[derive(Debug)]
pub struct Living<'a> {
    word: &'a AtomicU32,
    list: *mut List,
    /// The list that the thread had before: the C library's.
    before: [usize; 2],
    // Belongs to a kernel thread: neither `Send` nor `Sync`.
    _thread: PhantomData<*mut ()>,
}

impl<'a> Living<'a> {
    /// Writes the calling thread's number into `word`. The thread must not take robust locks of the C library meanwhile.
    ///
    /// # Errors
    /// Injected ones, and those of a kernel without robust futexes.
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
        // SAFETY: made above; nobody else has it, so for the next one.
        let node = unsafe { &raw mut (*list).node };
        let offset = word.as_ptr().addr().wrapping_sub(node.addr()) as isize;
        // SAFETY: as above.
        unsafe {
            *list =
                List { first: node, offset, pending: ptr::null(), node: Node { next: list.cast() } }
        };
        // SAFETY: lists have this shape, and this one is freed after the thread has another one again. The word is mapped as long as it is borrowed.
        let set = unsafe { call(libc::SYS_set_robust_list, [list.addr(), HEAD_BYTES]) };
        let living = Self { word, list, before, _thread: PhantomData };
        set?;
        word.store(ThreadId::current().number() | WAITERS, Ordering::SeqCst);
        Ok(living)
    }
}

impl Drop for Living<'_> {
    fn drop(&mut self) {
        let [address, bytes] = self.before;
        // SAFETY: what the kernel told us of this thread's list.
        let restored = unsafe { call(libc::SYS_set_robust_list, [address, bytes]) };
        assert!(restored.is_ok(), "a list that was the thread's before");
        // SAFETY: from a box, and the kernel has let go of it.
        drop(unsafe { Box::from_raw(self.list) });
        mark(self.word);
    }
}

/// Says of `word` what the end of its thread would say, and wakes who waits for it.
pub fn mark(word: &AtomicU32) {
    word.fetch_or(ENDED, Ordering::SeqCst);
    wake_shared(word, u32::MAX);
}

/// Blocks the kernel thread until the thread that `word` names has ended, or the word was [marked](mark); `false`, at once, if it names none.
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
