//! What the BPF program in the host's scheduler wrote about one kernel thread.
//!
//! ```text
//!   word 0   number of changes << 2 | RUNNING, WAITING or ASLEEP
//!        1   address of the thread's record, written by the runtime: there the program reads whether events are masked
//!        2   program counter in user mode when the thread fell asleep as a holder with events unmasked; else 0
//!        3   1 + number of the map entry of the virtual processor that the thread held when the host took its CPU; else 0
//!        4   of a sentinel, written by the runtime: 1 + number of the map entry of its virtual processor; else 0
//!        5   stack pointer in user mode when the thread fell asleep, if word 2 is not 0
//! ```
//!
//! **Invariant:** word 0 changes last, by an atomic exchange. To other threads, the exchange orders
//! what the thread did before the change and what it does afterwards. So a reader that finds
//! [`ASLEEP`] twice with the same count knows that the thread did nothing in between.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::atomic::unmodelled::AtomicU64;
use kyocho_sys::task::Asleep;

/// On a CPU.
pub(crate) const RUNNING: i32 = 0;
/// Runnable, but not on a CPU.
pub(crate) const WAITING: i32 = 1;
/// Asleep in the kernel.
pub(crate) const ASLEEP: i32 = 2;
/// The bits of word 0 that hold the state.
pub(crate) const STATE_MASK: u64 = 3;
/// What each change adds to word 0.
pub(crate) const CHANGE: i32 = 4;

/// Number of words in a view: one cache line.
pub(crate) const WORDS: usize = 8;
/// Byte offsets of the words.
pub(crate) const MOMENT: i16 = 0;
pub(crate) const RECORD: i16 = 8;
pub(crate) const PC: i16 = 16;
pub(crate) const TAKEN_FROM: i16 = 24;
pub(crate) const GUARDS: i16 = 32;
pub(crate) const SP: i16 = 40;

/// What the BPF program wrote about one kernel thread.
#[derive(Debug)]
pub(crate) struct View(pub(crate) &'static ViewWords);

/// A view as the BPF program sees it.
pub(crate) type ViewWords = [AtomicU64; WORDS];

impl View {
    pub(crate) fn new(words: &'static ViewWords) -> Self {
        Self(words)
    }

    /// Sets the thread that the view describes, by the address of its record. 0 means no thread:
    /// the contents are then out of date.
    pub(crate) fn belong_to(&self, record: u64) {
        self.0[RECORD as usize / size_of::<u64>()].store(record, Ordering::SeqCst);
    }

    /// Marks the view as that of the sentinel of the virtual processor with that map entry.
    pub(crate) fn guard(&self, map_entry: u32) {
        self.0[GUARDS as usize / size_of::<u64>()]
            .store(u64::from(map_entry) + 1, Ordering::SeqCst);
    }

    /// Whether the view describes a thread, so that the BPF program writes to it.
    pub(crate) fn is_known(&self) -> bool {
        self.0[RECORD as usize / size_of::<u64>()].load(Ordering::Acquire) != 0
    }

    fn state(&self) -> u64 {
        self.0[0].load(Ordering::SeqCst) & STATE_MASK
    }

    /// Whether the thread is on a CPU.
    pub(crate) fn is_on_cpu(&self) -> bool {
        self.state() == RUNNING as u64
    }

    /// Whether the thread sleeps in the kernel, anywhere.
    pub(crate) fn is_asleep(&self) -> bool {
        self.state() == ASLEEP as u64
    }

    /// Where the thread sleeps. `None` if it is running or runnable, or if it fell asleep with
    /// events masked or without a virtual processor.
    pub(crate) fn asleep(&self) -> Option<Asleep> {
        let [moment, _, pc, _, _, sp, ..] = self.0;
        let before = moment.load(Ordering::SeqCst);
        let [pc, sp] = [pc, sp].map(|word| word.load(Ordering::SeqCst) as usize);
        let unchanged = moment.load(Ordering::SeqCst) == before;
        let asleep = before & STATE_MASK == ASLEEP as u64 && unchanged && pc != 0;
        asleep.then_some(Asleep { sp, pc })
    }
}

#[cfg(test)]
mod tests;
