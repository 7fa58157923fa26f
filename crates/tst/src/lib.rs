//! Test-and-set without an atomic instruction, and what is built on it (Paper 0).
//!
//! The paper's point is *nullify and restart*: it is not enough to notice a preemption, the store must not
//! happen. It has the kernel poison the address of the store on every return to user mode. Here our own preemption
//! handler restarts a sequence, which serves the microprocesses of one virtual processor, or Linux does (rseq), which serves the kernel
//! threads on one CPU; for everybody there are atomic instructions. All keep one contract ([`TestAndSet`], [`Links`]):
//!
//! | | [`Restartable`] | `Rseq` | [`Atomics`] |
//! |---|---|---|---|
//! | excludes | microprocesses of one virtual processor | kernel threads on one CPU | all threads |
//! | elsewhere | refuses ([`Refusal::NotHeld`]) | refuses | - |
//! | when preempted | starts again | starts again | goes on |
//! | lists and queues | one sequence an operation | the same | under a lock word, or [`Refusal::Busy`] |
//!
//! and so do the methods that the paper compares its own with, each a [`Section`] around the plain operation:
//! [`SystemCall`], [`Lamport`] (its figure 7) and [`SignalsBlocked`] (for `di` and `ei`).
//!
//! On top, for whatever mechanism: [`TryLock`], [`FreeList`], [`Queue`], [`Counter`]; none of them ever spins or blocks: whoever meets
//! a taken lock decides for himself what to do meanwhile. For kernel threads that shall block: [`blocking`], and
//! [`biased`], whose owner needs no atomic instruction. Of data that every CPU has a piece of: [`PerCpuCounter`], [`PerCpuList`].
//!
//! **Invariant:** no operation on words of `Restartable`, `Rseq` or `Atomics` allocates or calls the kernel, except that a thread's first on rseq may
//! register it.

mod atomics;
mod bias;
#[cfg(not(loom))]
pub mod biased;
#[cfg(not(loom))]
pub mod blocking;
mod contract;
mod counter;
#[cfg(not(loom))]
mod lamport;
mod list;
mod lock;
#[cfg(not(loom))]
mod method;
#[cfg(not(loom))]
mod per_cpu;
mod plain;
mod queue;
mod section;
#[cfg(not(loom))]
mod sequences;
#[cfg(not(loom))]
mod signals_blocked;
#[cfg(not(loom))]
mod system_call;

pub use atomics::Atomics;
pub use contract::{Everywhere, Links, Refusal, TestAndSet};
pub use counter::Counter;
pub use kyocho_arch::restartable::{Fifo, Link};
#[cfg(not(loom))]
pub use lamport::Lamport;
pub use list::FreeList;
pub use lock::{TryLock, TryLockGuard};
#[cfg(not(loom))]
pub use method::Method;
#[cfg(not(loom))]
pub use per_cpu::{Kept, PerCpu, PerCpuCounter, PerCpuList};
pub use queue::Queue;
pub use section::Section;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub use sequences::Rseq;
#[cfg(not(loom))]
pub use sequences::{Restartable, Sequences};
#[cfg(not(loom))]
pub use signals_blocked::SignalsBlocked;
#[cfg(not(loom))]
pub use system_call::SystemCall;

#[cfg(all(test, loom))]
mod models;
