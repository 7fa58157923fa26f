//! The contract kept by restartable sequences: no atomic instruction, for words that belong to one place.
#![expect(unsafe_code, reason = "calls sequences on raw words")]

use core::ptr::NonNull;

use kyocho_arch::restartable::{self as sequence, Fifo, Holder, Link};
#[cfg(target_arch = "x86_64")]
use kyocho_arch::rseq::Cpu;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};
#[cfg(target_arch = "x86_64")]
use kyocho_sys::rseq::{Unavailable, register_thread, registrar};

use crate::contract::{Links, Refusal, TestAndSet};

/// Exclusion between those who take turns at one holder: [`Restartable`] or `Rseq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences<H> {
    holder: H,
}

/// Exclusion between the microprocesses of one virtual processor; our preemption handler restarts.
///
/// The words should lie in memory that cannot fault: a page fault inside a sequence may give the
/// virtual processor away without anybody restarting the sequence.
pub type Restartable = Sequences<NonNull<()>>;

/// Exclusion between the kernel threads on one CPU; Linux restarts, page faults included.
#[cfg(target_arch = "x86_64")]
pub type Rseq = Sequences<Cpu>;

// SAFETY: a holder serves as a name; nobody follows it.
unsafe impl<H> Send for Sequences<H> {}
// SAFETY: as above.
unsafe impl<H> Sync for Sequences<H> {}

impl Restartable {
    /// For words of the virtual processor that [`kyocho_arch::current_vp`] names so.
    #[must_use]
    pub const fn new(vp: NonNull<()>) -> Self {
        Self { holder: vp }
    }

    /// For words of the virtual processor that the calling kernel thread holds; `None` if it holds none, or while somebody
    /// looks whether to take it, which refuses sequences too: who knows that he holds one tries again.
    #[must_use]
    pub fn current() -> Option<Self> {
        NonNull::new(kyocho_arch::current_vp()).map(Self::new)
    }
}

#[cfg(target_arch = "x86_64")]
impl Rseq {
    /// For words of the CPU with this number. Threads that run elsewhere, or never asked for [`Rseq::current`] where
    /// the C library does not register them, are refused.
    ///
    /// # Errors
    /// [`Unavailable`]: this process has no rseq.
    pub fn on(cpu: u32) -> Result<Self, Unavailable> {
        registrar()?;
        Ok(Self { holder: Cpu::new(cpu) })
    }

    /// For words of the CPU that the calling thread runs on now; it may be moved at any time, and is refused then. 1 ns.
    ///
    /// # Errors
    /// [`Unavailable`]: this process or this thread has no rseq.
    #[inline]
    pub fn current() -> Result<Self, Unavailable> {
        match Cpu::current() {
            Some(cpu) => Ok(Self { holder: cpu }),
            None => Self::after_registration(),
        }
    }

    #[cold]
    fn after_registration() -> Result<Self, Unavailable> {
        register_thread()?;
        Cpu::current().map(|cpu| Self { holder: cpu }).ok_or(Unavailable::NoCall)
    }

    /// The number of the CPU that the words belong to.
    #[must_use]
    pub const fn cpu(self) -> u32 {
        self.holder.number()
    }
}

// SAFETY: a sequence commits by its last store while its thread holds the holder. Of a virtual processor, `set_current_vp`
// asks that one thread at most holds it and is rewound before others run on it; of a CPU, the kernel sees to both.
unsafe impl<H: Holder> TestAndSet for Sequences<H> {
    const NAME: &'static str = H::NAME;

    #[inline(always)]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        // SAFETY: a valid word; that sequences alone touch it while clear is the trait's condition.
        Ok(unsafe { sequence::test_and_set(self.holder, word.as_ptr()) }?)
    }

    #[inline(always)]
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::compare_and_swap(self.holder, word.as_ptr(), expected, new) }?)
    }

    #[inline(always)]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::fetch_add(self.holder, word.as_ptr(), addend) }?)
    }
}

// SAFETY: as above: each operation is one sequence.
unsafe impl<H: Holder> Links for Sequences<H> {
    #[inline(always)]
    unsafe fn push(
        &self,
        _lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller's promise is the sequence's; so below.
        Ok(unsafe { sequence::push(self.holder, head, node) }?)
    }

    #[inline(always)]
    unsafe fn pop(&self, _lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::pop(self.holder, head) }?)
    }

    #[inline(always)]
    unsafe fn enqueue(
        &self,
        _lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::enqueue(self.holder, queue, node) }?)
    }

    #[inline(always)]
    unsafe fn dequeue(&self, _lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        Ok(unsafe { sequence::dequeue(self.holder, queue) }?)
    }
}
