//! What the host's scheduler wrote about one kernel thread.
//!
//! ```text
//!   word 0   changes so far << 2 | RUNNING, WAITING or ASLEEP
//!        1   address of the thread's record, written by us: the program looks whether events are masked there
//!        2   its program counter in user mode when it fell asleep as a holder, events unmasked; else 0
//!        3   1 + the seat of the virtual processor it held when the host took its CPU; else 0
//!        4   of a sentinel, written by us: 1 + the seat of its virtual processor; else 0
//!        5   its stack pointer in user mode when it fell asleep, where word 2 is not 0
//! ```
//!
//! **Invariant:** word 0 changes last, by an exchange, which orders what the thread did before against what it does afterwards, as
//! seen by others: who reads [`ASLEEP`] twice with the same count knows that the thread did nothing in between.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::atomic::unmodelled::AtomicU64;
use kyocho_sys::task::Asleep;

/// On a CPU.
pub(crate) const RUNNING: i32 = 0;
/// Runnable, but the host runs somebody else.
pub(crate) const WAITING: i32 = 1;
/// Asleep in the kernel.
pub(crate) const ASLEEP: i32 = 2;
/// The bits of word 0 that tell which.
pub(crate) const STATE_MASK: u64 = 3;
/// What a change adds to word 0.
pub(crate) const CHANGE: i32 = 4;

/// Words of a view: a cache line.
pub(crate) const WORDS: usize = 8;
/// Where the words are, in bytes.
pub(crate) const MOMENT: i16 = 0;
pub(crate) const RECORD: i16 = 8;
pub(crate) const PC: i16 = 16;
pub(crate) const TAKEN_FROM: i16 = 24;
pub(crate) const GUARDS: i16 = 32;
pub(crate) const SP: i16 = 40;

/// What the host's scheduler wrote about one kernel thread.
#[derive(Debug)]
pub(crate) struct View(pub(crate) &'static ViewWords);

/// A view as the program sees it.
pub(crate) type ViewWords = [AtomicU64; WORDS];

impl View {
    pub(crate) fn new(words: &'static ViewWords) -> Self {
        Self(words)
    }

    /// Sets whose view it is, by the address of the thread's record; 0: nobody's, so that what it says is old.
    pub(crate) fn belong_to(&self, record: u64) {
        self.0[RECORD as usize / size_of::<u64>()].store(record, Ordering::SeqCst);
    }

    /// It is that of the sentinel of the virtual processor in `seat`.
    pub(crate) fn guard(&self, seat: u32) {
        self.0[GUARDS as usize / size_of::<u64>()].store(u64::from(seat) + 1, Ordering::SeqCst);
    }

    /// Whether the host's scheduler writes to it.
    pub(crate) fn is_known(&self) -> bool {
        self.0[RECORD as usize / size_of::<u64>()].load(Ordering::Acquire) != 0
    }

    fn state(&self) -> u64 {
        self.0[0].load(Ordering::SeqCst) & STATE_MASK
    }

    /// Whether the host lets the thread run.
    pub(crate) fn is_on_cpu(&self) -> bool {
        self.state() == RUNNING as u64
    }

    /// Whether the thread sleeps, somewhere.
    pub(crate) fn is_asleep(&self) -> bool {
        self.state() == ASLEEP as u64
    }

    /// Where the thread sleeps; `None` while it runs or wants to, and where it fell asleep so that nobody was to know.
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
