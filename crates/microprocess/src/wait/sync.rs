//! What microprocesses wait for one another with: locks, condition variables, semaphores, barriers.
//!
//! All of them are a few words of state inside a `Guarded` and a queue of waiters whose nodes lie
//! on the waiters' stacks: nothing is allocated, and where nobody has to wait an operation is a few
//! plain loads and stores (on one virtual processor, not one atomic read-modify-write).
//!
//! What is released goes **directly** to the first waiter, highest priority first, FIFO among
//! equals: a newcomer cannot overtake, so nobody starves within a priority, and a woken waiter owns
//! what it waited for when it runs. A mutex alone lets equals overtake, once (`raw_mutex`): what is locked
//! all the time would cost a switch each time otherwise.
//!
//! The types keep std's names, shapes and poisoning. They may be used from every microprocess; a
//! kernel thread that is none may not wait for them.

mod barrier;
mod condvar;
mod mutex;
mod owned;
mod poison;
mod raw_mutex;
mod raw_rwlock;
mod rwlock;
mod semaphore;
mod spin_mutex;
#[expect(unnameable_types, reason = "an episode seals the trait whose methods take one")]
pub(crate) mod wait;
pub(crate) mod wait_queue;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub(crate) use raw_mutex::holder_of;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::Semaphore;
pub use spin_mutex::{SpinMutex, SpinMutexGuard};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

#[cfg(test)]
pub(crate) mod tests;
