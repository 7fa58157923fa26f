//! The real locks.

#[path = "../../src/wait/sync/barrier.rs"]
mod barrier;
#[path = "../../src/wait/sync/condvar.rs"]
mod condvar;
#[path = "../../src/wait/sync/mutex.rs"]
mod mutex;
#[path = "../../src/wait/sync/owned.rs"]
mod owned;
#[path = "../../src/wait/sync/poison.rs"]
mod poison;
#[path = "../../src/wait/sync/raw_mutex.rs"]
mod raw_mutex;
#[path = "../../src/wait/sync/raw_rwlock.rs"]
mod raw_rwlock;
#[path = "../../src/wait/sync/rwlock.rs"]
mod rwlock;
#[path = "../../src/wait/sync/semaphore.rs"]
mod semaphore;
#[path = "../../src/wait/sync/spin_mutex.rs"]
mod spin_mutex;
#[path = "../../src/wait/sync/wait.rs"]
pub(crate) mod wait;
#[path = "../../src/wait/sync/wait_queue.rs"]
pub(crate) mod wait_queue;

pub(crate) use barrier::Barrier;
pub(crate) use condvar::Condvar;
pub(crate) use mutex::Mutex;
pub(crate) use rwlock::RwLock;
pub(crate) use semaphore::Semaphore;
pub(crate) use spin_mutex::SpinMutex;
