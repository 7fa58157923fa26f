//! The plain operations, for one thread at a time: the caller excludes others.
//!
//! **Invariant:** each takes effect with its last store, as a restartable sequence does. A thread
//! that dies earlier leaves the word, list or queue as it was.
#![expect(unsafe_code, reason = "follows raw links")]

use core::ptr;

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

pub(crate) fn test_and_set(word: &AtomicU32) -> bool {
    // Acquire: the word is cleared outside of the exclusion under which this runs.
    let old = word.load(Ordering::Acquire);
    if old == 0 {
        word.store(1, Ordering::Relaxed);
    }
    old != 0
}

pub(crate) fn compare_and_swap(word: &AtomicUsize, expected: usize, new: usize) -> usize {
    let old = word.load(Ordering::Acquire);
    if old == expected {
        word.store(new, Ordering::Release);
    }
    old
}

pub(crate) fn fetch_add(word: &AtomicUsize, addend: usize) -> usize {
    let old = word.load(Ordering::Acquire);
    word.store(old.wrapping_add(addend), Ordering::Release);
    old
}

/// # Safety
/// As for [`Links::push`](crate::Links::push), and no other thread accesses the list now.
pub(crate) unsafe fn push(head: *mut *mut Link, node: *mut Link) {
    // SAFETY: valid, and accessed by this thread alone; also below.
    let first = unsafe { head.read() };
    // SAFETY: as above.
    unsafe { node.write(Link { next: first }) };
    // SAFETY: as above.
    unsafe { head.write(node) };
}

/// # Safety
/// As for [`push`].
pub(crate) unsafe fn pop(head: *mut *mut Link) -> *mut Link {
    // SAFETY: valid, and accessed by this thread alone; also below.
    let first = unsafe { head.read() };
    if !first.is_null() {
        // SAFETY: a link of the list is valid.
        let next = unsafe { (*first).next };
        // SAFETY: as above.
        unsafe { head.write(next) };
    }
    first
}

/// # Safety
/// As for [`push`].
pub(crate) unsafe fn enqueue(queue: *mut Fifo, node: *mut Link) {
    // SAFETY: valid, and accessed by this thread alone.
    let queue = unsafe { &mut *queue };
    match ptr::NonNull::new(queue.tail) {
        None => queue.head = node,
        // SAFETY: the last link of the queue is valid.
        Some(last) => unsafe { last.write(Link { next: node }) },
    }
    queue.tail = node;
}

/// # Safety
/// As for [`push`].
pub(crate) unsafe fn dequeue(queue: *mut Fifo) -> *mut Link {
    // SAFETY: valid, and accessed by this thread alone.
    let queue = unsafe { &mut *queue };
    if queue.tail.is_null() {
        return ptr::null_mut();
    }
    let first = queue.head;
    if first == queue.tail {
        queue.tail = ptr::null_mut();
    } else {
        // SAFETY: the link is valid, and not the last one, so its `next` is valid, too.
        queue.head = unsafe { (*first).next };
    }
    first
}
