//! Data with a piece for each CPU: threads on different CPUs share no cache line.
//!
//! ```text
//!   slots   ┌ CPU 0 ┬ CPU 1 ┬ ... ┬ threads without rseq ┐      each on cache lines of its own
//!           └───────┴───────┴─────┴──────────────────────┘
//! ```
//!
//! The mechanism is chosen at start. With rseq, restartable sequences for a CPU change its slot; a
//! thread that is migrated during one retries on its new CPU. A thread without rseq (another
//! library uses its registration) uses the last slot, with atomic instructions. Without rseq, all
//! slots are changed with atomic instructions, and the CPU number is only a hint.
//!
//! **Invariant:** a slot is changed by one mechanism only.

mod counter;
mod list;

use core::fmt;

use kyocho_sys::scheduling::{cpus_possible, current_cpu, yield_to_host};

pub use counter::PerCpuCounter;
pub use list::PerCpuList;

use crate::atomics::Atomics;
use crate::contract::Refusal;
use crate::method::Method;
#[cfg(target_arch = "x86_64")]
use crate::sequences::Rseq;

/// The mechanism that changes per-CPU data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// Rseq: without atomic instructions.
    Rseq,
    /// Atomic instructions.
    Atomics,
}

impl Mechanism {
    /// The best mechanism in this process, and what prevents a better one.
    #[must_use]
    pub fn best() -> (Self, Option<String>) {
        match Self::Rseq.possible() {
            Ok(()) => (Self::Rseq, None),
            Err(why) => (Self::Atomics, Some(why)),
        }
    }

    /// Checks that this process can use the mechanism.
    ///
    /// # Errors
    /// The obstacle, as text.
    pub fn possible(self) -> Result<(), String> {
        match self {
            Self::Atomics => Ok(()),
            #[cfg(target_arch = "x86_64")]
            Self::Rseq => kyocho_sys::rseq::registrar().map(|_| ()).map_err(|why| why.to_string()),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Rseq => Err("no rseq sequences for this instruction set yet".into()),
        }
    }
}

/// A slot on cache lines of its own: two, because processors fetch lines in pairs.
#[repr(align(128))]
struct Slot<T>(T);

/// A `T` for each CPU, and one for threads without rseq.
pub struct PerCpu<T> {
    mechanism: Mechanism,
    slots: Box<[Slot<T>]>,
}

impl<T> PerCpu<T> {
    /// Slots filled by `piece`, with the best mechanism.
    pub fn new(piece: impl FnMut() -> T) -> Self {
        Self::filled(Mechanism::best().0, piece)
    }

    /// Slots filled by `piece`, with the given mechanism.
    ///
    /// # Errors
    /// The obstacle in this process, as text.
    pub fn with_mechanism(mechanism: Mechanism, piece: impl FnMut() -> T) -> Result<Self, String> {
        mechanism.possible()?;
        Ok(Self::filled(mechanism, piece))
    }

    fn filled(mechanism: Mechanism, mut piece: impl FnMut() -> T) -> Self {
        let slots = (0..=cpus_possible()).map(|_| Slot(piece())).collect();
        Self { mechanism, slots }
    }

    /// The mechanism.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Runs `operation` on the slot of this CPU, and again after each refusal. A refused operation
    /// has changed nothing.
    ///
    /// A refusal means that the thread was migrated, or that another thread is using the slot's
    /// list.
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

    /// All slots. Other threads may change them meanwhile.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.0)
    }

    /// The slot of this CPU and its mechanism.
    #[inline]
    fn here(&self) -> (Method, &T) {
        let fallback = self.slots.len() - 1;
        match self.mechanism {
            #[cfg(target_arch = "x86_64")]
            Mechanism::Rseq => match Rseq::current() {
                Ok(rseq) if (rseq.cpu() as usize) < fallback => {
                    (Method::Rseq(rseq), &self.slots[rseq.cpu() as usize].0)
                }
                _ => (Method::Atomics(Atomics), &self.slots[fallback].0),
            },
            _ => (Method::Atomics(Atomics), &self.slots[current_cpu() % fallback].0),
        }
    }
}

impl<T> fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.len();
        f.debug_struct("PerCpu").field("mechanism", &self.mechanism).field("slots", &slots).finish()
    }
}
