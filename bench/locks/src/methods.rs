//! The methods by name, and what stands between them and "serves every thread".

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicUsize};

use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::task::ThreadId;
use kyocho_tst::{Everywhere, Refusal, Restartable, Rseq, TestAndSet};

/// The names on the command line and in the report.
pub const NAMES: [&str; 6] =
    ["restartable", "rseq", "atomics", "signals-blocked", "lamport", "system-call"];

/// A mechanism for the threads of one place, where this program has all its threads.
pub struct AllInOnePlace<M>(pub M);

// SAFETY: the mechanism's own.
unsafe impl<M: TestAndSet> TestAndSet for AllInOnePlace<M> {
    const NAME: &'static str = M::NAME;

    #[inline(always)]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        self.0.test_and_set(word)
    }

    #[inline(always)]
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        self.0.compare_and_swap(word, expected, new)
    }

    #[inline(always)]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        self.0.fetch_add(word, addend)
    }
}

// SAFETY: who makes one confines all threads that use it: to one CPU for rseq, to one thread for a virtual processor, to one CPU in a
// real-time class for blocked signals.
unsafe impl<M: TestAndSet> Everywhere for AllInOnePlace<M> {}

/// Confines the calling thread, and those that it starts, to the last CPU that it may use: others crowd the first.
pub fn confine_to_one_cpu() {
    let me = ThreadId::current();
    let allowed = affinity(me).expect("a thread knows its CPUs");
    let last = allowed.iter().last().expect("it runs on one");
    set_affinity(me, &CpuSet::single(last)).expect("it is allowed there");
}

/// The sequences of the CPU that the calling thread is confined to.
pub fn rseq() -> AllInOnePlace<Rseq> {
    match Rseq::current() {
        Ok(rseq) => AllInOnePlace(rseq),
        Err(why) => unsupported(&why.to_string()),
    }
}

/// The sequences of a virtual processor that the calling thread, alone, pretends to hold.
pub fn restartable() -> AllInOnePlace<Restartable> {
    let vp = NonNull::dangling();
    // SAFETY: no other thread uses words of this virtual processor.
    unsafe { kyocho_arch::set_current_vp(vp.as_ptr()) };
    AllInOnePlace(Restartable::new(vp))
}

/// Ends the program with a line that says why.
pub fn unsupported(why: &str) -> ! {
    println!("{}", serde_json::json!({ "unsupported": why }));
    std::process::exit(0)
}
