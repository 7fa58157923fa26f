//! Test-and-set without an atomic instruction, and what is built on it (Paper 0).
//!
//! The paper's point is *nullify and restart*: it is not enough to notice a preemption, the store must not
//! happen. It has the kernel poison the address of the store on every return to user mode. Here a sequence
//! is restarted by the preemption handler (`kyocho_arch::restartable`), which serves the
//! microprocesses of one virtual processor; between virtual processors there are atomic instructions. Both keep one
//! contract ([`TestAndSet`], [`Links`]):
//!
//! | | [`Restartable`] | [`Atomics`] |
//! |---|---|---|
//! | excludes | microprocesses of one virtual processor | all threads |
//! | elsewhere | refuses ([`Refusal::NotHeld`]) | - |
//! | when preempted | starts again | goes on |
//! | lists and queues | one sequence an operation | under a lock word, or [`Refusal::Busy`] |
//!
//! On top: [`TryLock`], [`FreeList`], [`Queue`], [`Counter`]. None of them ever spins or blocks: whoever meets
//! a taken lock decides for himself what to do meanwhile.
//!
//! **Invariant:** no operation allocates or calls the kernel.

mod atomics;
mod contract;
mod counter;
mod list;
mod lock;
mod queue;
#[cfg(not(loom))]
mod restartable;

pub use atomics::Atomics;
pub use contract::{Links, Refusal, TestAndSet};
pub use counter::Counter;
pub use kyocho_arch::restartable::{Fifo, Link};
pub use list::FreeList;
pub use lock::{TryLock, TryLockGuard};
pub use queue::Queue;
#[cfg(not(loom))]
pub use restartable::Restartable;

#[cfg(all(test, loom))]
mod models;
