//! The contract kept by restartable sequences: one virtual processor, no atomic instruction.
#![expect(unsafe_code, reason = "calls sequences on raw words")]

use core::ptr::NonNull;

use kyocho_arch::restartable::{self as sequence, Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};

use crate::contract::{Links, Refusal, TestAndSet};

/// Exclusion between the microprocesses of one virtual processor.
///
/// The words should lie in memory that cannot fault: a page fault inside a sequence may give the
/// virtual processor away without anybody restarting the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restartable {
    vp: NonNull<()>,
}

// SAFETY: the address serves as a name; nobody follows it.
unsafe impl Send for Restartable {}
// SAFETY: as above.
unsafe impl Sync for Restartable {}

impl Restartable {
    /// For words of the virtual processor that [`kyocho_arch::current_vp`] names so.
    #[must_use]
    pub const fn new(vp: NonNull<()>) -> Self {
        Self { vp }
    }

    /// For words of the virtual processor that the calling kernel thread holds; `None` if it holds none.
    #[must_use]
    pub fn current() -> Option<Self> {
        NonNull::new(kyocho_arch::current_vp()).map(Self::new)
    }
}

// SAFETY: a sequence commits by its last store while its thread holds `vp`, and `set_current_vp` asks
// that one thread at most holds it and is rewound before others run on it: so sequences look serial.
unsafe impl TestAndSet for Restartable {
    const NAME: &'static str = "restartable";

    #[inline(always)]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        // SAFETY: a valid word; that sequences alone touch it while clear is the trait's condition.
        Ok(unsafe { sequence::test_and_set(self.vp, word.as_ptr()) }?)
    }

    #[inline(always)]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::fetch_add(self.vp, word.as_ptr(), addend) }?)
    }
}

// SAFETY: as above: each operation is one sequence.
unsafe impl Links for Restartable {
    #[inline(always)]
    unsafe fn push(
        &self,
        _lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller's promise is the sequence's; so below.
        Ok(unsafe { sequence::push(self.vp, head, node) }?)
    }

    #[inline(always)]
    unsafe fn pop(&self, _lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::pop(self.vp, head) }?)
    }

    #[inline(always)]
    unsafe fn enqueue(
        &self,
        _lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::enqueue(self.vp, queue, node) }?)
    }

    #[inline(always)]
    unsafe fn dequeue(&self, _lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::dequeue(self.vp, queue) }?)
    }
}
