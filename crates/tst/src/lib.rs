//! Test-and-set without an atomic instruction, and locks, lists and counters built on it (Paper 0).
//!
//! The paper's method is *nullify and restart*: noticing a preemption is not enough; the store of
//! an interrupted operation must not take effect. The paper's kernel invalidates the address of the
//! store on every return to user mode. Here an operation is a restartable sequence. Kyocho's
//! preemption handler restarts sequences of microprocesses on one virtual processor; Linux (rseq)
//! restarts sequences of kernel threads on one CPU. For all threads there are atomic instructions.
//! All three implement one contract ([`TestAndSet`], [`Links`]):
//!
//! | | [`Restartable`] | `Rseq` | [`Atomics`] |
//! |---|---|---|---|
//! | excludes | microprocesses of one virtual processor | kernel threads on one CPU | all threads |
//! | words of another virtual processor or CPU | refuses ([`Refusal::NotHeld`]) | refuses | - |
//! | when preempted | starts again | starts again | continues |
//! | lists and queues | one sequence for each operation | the same | under a lock word, or [`Refusal::Busy`] |
//!
//! The methods that the paper compares with its own implement the contract, too. Each is a
//! [`Section`] around the plain operation: [`SystemCall`], [`Lamport`] (the paper's figure 7) and
//! [`SignalsBlocked`] (for `di` and `ei`).
//!
//! [`TryLock`], [`FreeList`], [`Queue`] and [`Counter`] work on every mechanism. They neither spin
//! nor block, unless the mechanism is a [`Section`]: a caller that finds a lock taken decides what
//! to do meanwhile. [`blocking`] has locks that block kernel threads. [`biased`] has a lock whose
//! owner needs no atomic instruction. [`PerCpuCounter`] and [`PerCpuList`] keep a piece of their
//! data on each CPU.
//!
//! **Invariant:** no operation on words of `Restartable`, `Rseq` or `Atomics` allocates or calls
//! the kernel. One exception: the first operation of a thread on rseq may register the thread.

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
pub use per_cpu::{Mechanism, PerCpu, PerCpuCounter, PerCpuList};
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
