//! Data of which every CPU has a piece: threads on different CPUs never meet.
//!
//! ```text
//!   slots   ┌ CPU 0 ┬ CPU 1 ┬ ... ┬ strangers ┐      each on cache lines of its own
//!           └───────┴───────┴─────┴───────────┘
//! ```
//!
//! Chosen at start: where there is rseq, a CPU's slot is changed by sequences for that CPU, and a thread that is moved in the middle
//! tries again where it is; a thread that has no rseq (another library took its place) uses the last slot, by atomic instructions.
//! Elsewhere all slots are changed by atomic instructions, and the CPU is no more than a hint.
//!
//! **Invariant:** a slot is changed by one mechanism only.

mod counter;
mod list;

use core::fmt;

use kyocho_sys::scheduling::{cpus_possible, current_cpu, yield_to_host};

pub use counter::PerCpuCounter;
pub use list::PerCpuList;

#[cfg(target_arch = "x86_64")]
use crate::Rseq;
use crate::contract::Refusal;
use crate::{Atomics, Method};

/// How per-CPU data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// By rseq: no atomic instruction.
    ByRseq,
    /// By atomic instructions.
    ByAtomics,
}

impl Kept {
    /// The best way in this process, and what stands in the way of a better one.
    #[must_use]
    pub fn best() -> (Self, Option<String>) {
        match Self::ByRseq.possible() {
            Ok(()) => (Self::ByRseq, None),
            Err(why) => (Self::ByAtomics, Some(why)),
        }
    }

    /// Whether this process can keep data so, or why not.
    ///
    /// # Errors
    /// What stands in the way, in words.
    pub fn possible(self) -> Result<(), String> {
        match self {
            Self::ByAtomics => Ok(()),
            #[cfg(target_arch = "x86_64")]
            Self::ByRseq => {
                kyocho_sys::rseq::registrar().map(|_| ()).map_err(|why| why.to_string())
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::ByRseq => Err("no rseq sequences for this instruction set yet".into()),
        }
    }
}

/// On cache lines of its own; two, because processors fetch them in pairs.
#[repr(align(128))]
struct Slot<T>(T);

/// A `T` for every CPU, and one for strangers.
pub struct PerCpu<T> {
    kept: Kept,
    slots: Box<[Slot<T>]>,
}

impl<T> PerCpu<T> {
    /// Slots filled by `piece`, kept in the best way.
    pub fn new(piece: impl FnMut() -> T) -> Self {
        Self::filled(Kept::best().0, piece)
    }

    /// Slots filled by `piece`, kept as asked.
    ///
    /// # Errors
    /// Why this process cannot, in words.
    pub fn kept(kept: Kept, piece: impl FnMut() -> T) -> Result<Self, String> {
        kept.possible()?;
        Ok(Self::filled(kept, piece))
    }

    fn filled(kept: Kept, mut piece: impl FnMut() -> T) -> Self {
        let slots = (0..=cpus_possible()).map(|_| Slot(piece())).collect();
        Self { kept, slots }
    }

    /// How it is kept.
    #[must_use]
    pub fn way(&self) -> Kept {
        self.kept
    }

    /// Does `operation` on the slot of this CPU, once: it is tried again only after a refusal, which changes nothing.
    ///
    /// A refusal means that the thread was moved meanwhile, or that another thread is at the slot's list.
    pub fn with<R>(&self, operation: impl Fn(Method, &T) -> Result<R, Refusal>) -> R {
        loop {
            let (method, slot) = self.here();
            match operation(method, slot) {
                Ok(value) => return value,
                Err(Refusal::NotHeld) => {}
                Err(_) => yield_to_host(),
            }
        }
    }

    /// All slots, whoever changes them meanwhile.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.0)
    }

    /// The slot of this CPU and what keeps it.
    #[inline]
    fn here(&self) -> (Method, &T) {
        let strangers = self.slots.len() - 1;
        match self.kept {
            #[cfg(target_arch = "x86_64")]
            Kept::ByRseq => match Rseq::current() {
                Ok(rseq) if (rseq.cpu() as usize) < strangers => {
                    (Method::Rseq(rseq), &self.slots[rseq.cpu() as usize].0)
                }
                _ => (Method::Atomics(Atomics), &self.slots[strangers].0),
            },
            _ => (Method::Atomics(Atomics), &self.slots[current_cpu() % strangers].0),
        }
    }
}

impl<T> fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.len();
        f.debug_struct("PerCpu").field("kept", &self.kept).field("slots", &slots).finish()
    }
}
