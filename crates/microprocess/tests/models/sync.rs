//! The real locks.

#[path = "../../src/sync/barrier.rs"]
mod barrier;
#[path = "../../src/sync/condvar.rs"]
mod condvar;
#[path = "../../src/sync/mutex.rs"]
mod mutex;
#[path = "../../src/sync/owned.rs"]
mod owned;
#[path = "../../src/sync/poison.rs"]
mod poison;
#[path = "../../src/sync/raw_mutex.rs"]
mod raw_mutex;
#[path = "../../src/sync/raw_rwlock.rs"]
mod raw_rwlock;
#[path = "../../src/sync/rwlock.rs"]
mod rwlock;
#[path = "../../src/sync/semaphore.rs"]
mod semaphore;
#[path = "../../src/sync/spin_mutex.rs"]
mod spin_mutex;
#[path = "../../src/sync/wait.rs"]
pub(crate) mod wait;
#[path = "../../src/sync/wait_queue.rs"]
pub(crate) mod wait_queue;

pub(crate) use barrier::Barrier;
pub(crate) use condvar::Condvar;
pub(crate) use mutex::Mutex;
pub(crate) use rwlock::RwLock;
pub(crate) use semaphore::Semaphore;
pub(crate) use spin_mutex::SpinMutex;
