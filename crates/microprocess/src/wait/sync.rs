//! Objects with which microprocesses wait for one another: locks, condition variables, semaphores,
//! barriers.
//!
//! Each except [`SpinMutex`] is a few words of state inside a `Guarded`, and a queue of waiters
//! whose nodes lie on the waiters' stacks. Nothing is allocated. An operation that does not wait is
//! a few plain loads and stores; on one virtual processor there is not one atomic
//! read-modify-write.
//!
//! What is released goes **directly** to the first waiter: highest priority first, FIFO among
//! equals. A newcomer cannot overtake, so no waiter starves within its priority, and a woken waiter
//! owns what it waited for when it runs. Mutexes and reader-writer locks are the exception: equals
//! may overtake for up to a millisecond (`raw_mutex`). Otherwise a lock that is always in use would
//! cost a switch each time.
//!
//! The types keep std's names, shapes and poisoning. Every microprocess may use them; other kernel
//! threads must not wait for them. [`SpinMutex`] differs: it is an atomic word, it is neither fair
//! nor poisoned, and other kernel threads may spin for it.

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
