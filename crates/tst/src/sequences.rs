//! The contract implemented by restartable sequences: without atomic instructions, for words of one
//! virtual processor or CPU.
#![expect(unsafe_code, reason = "calls sequences on raw words")]

use core::ptr::NonNull;

use kyocho_arch::restartable::{self as sequence, Fifo, Holder, Link};
#[cfg(target_arch = "x86_64")]
use kyocho_arch::rseq::Cpu;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};
#[cfg(target_arch = "x86_64")]
use kyocho_sys::rseq::{Unavailable, register_thread, registrar};

use crate::contract::{Links, Refusal, TestAndSet};

/// Exclusion between the users of one holder: [`Restartable`] or `Rseq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences<H> {
    holder: H,
}

/// Exclusion between the microprocesses of one virtual processor. Kyocho's preemption handler
/// restarts sequences.
///
/// The words should lie in memory that cannot fault. A page fault inside a sequence may pass the
/// virtual processor to another kernel thread without a restart of the sequence.
pub type Restartable = Sequences<NonNull<()>>;

/// Exclusion between the kernel threads on one CPU. Linux restarts sequences, also after page
/// faults.
#[cfg(target_arch = "x86_64")]
pub type Rseq = Sequences<Cpu>;

// SAFETY: the holder is only a name and never dereferenced.
unsafe impl<H> Send for Sequences<H> {}
// SAFETY: as above.
unsafe impl<H> Sync for Sequences<H> {}

impl Restartable {
    /// Exclusion for words of the virtual processor that [`kyocho_arch::current_vp`] names `vp`.
    #[must_use]
    pub const fn new(vp: NonNull<()>) -> Self {
        Self { holder: vp }
    }

    /// Exclusion for words of the virtual processor that the calling kernel thread holds. `None` if
    /// it holds none, or while another thread examines whether to claim it. Sequences are refused
    /// in that time, too; a caller that knows that it holds one retries.
    #[must_use]
    pub fn current() -> Option<Self> {
        NonNull::new(kyocho_arch::current_vp()).map(Self::new)
    }
}

#[cfg(target_arch = "x86_64")]
impl Rseq {
    /// Exclusion for words of the CPU with this number. Threads that run elsewhere are refused. So
    /// are threads that never called [`Rseq::current`], if the C library does not register them.
    ///
    /// # Errors
    /// [`Unavailable`]: this process has no rseq.
    pub fn on(cpu: u32) -> Result<Self, Unavailable> {
        registrar()?;
        Ok(Self { holder: Cpu::new(cpu) })
    }

    /// Exclusion for words of the CPU that the calling thread runs on now. After a migration the
    /// thread is refused. Takes 1 ns.
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

    /// Number of the CPU that the words belong to.
    #[must_use]
    pub const fn cpu(self) -> u32 {
        self.holder.number()
    }
}

// SAFETY: a sequence commits with its last store while its thread holds the holder. For a virtual
// processor, `set_current_vp` requires that at most one thread holds it, and that the thread is
// rewound before others run on it. For a CPU, the kernel ensures both.
unsafe impl<H: Holder> TestAndSet for Sequences<H> {
    const NAME: &'static str = H::NAME;

    #[inline(always)]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        // SAFETY: a valid word. The trait requires that only sequences change it while it is clear.
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

// SAFETY: as above; each operation is one sequence.
unsafe impl<H: Holder> Links for Sequences<H> {
    #[inline(always)]
    unsafe fn push(
        &self,
        _lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees what the sequence requires; also below.
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
