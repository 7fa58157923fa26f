//! Microprocesses: threads by cooperation of user program and kernel (Paper 1).

mod balance;
pub mod channel;
mod deadline;
mod dispatch;
mod future;
mod guarded;
pub mod io;
mod kernel_stack;
mod kernel_thread;
mod maker;
mod microprocess;
mod monitor;
pub mod net;
mod overflow;
mod pool;
mod preempt;
mod priority;
mod record;
mod run_queue;
mod runtime;
mod schedule;
mod scope;
pub mod select;
mod sentinel;
mod shared;
mod slot;
mod spawn;
mod spin;
mod stackless;
mod statistics;
pub mod sync;
mod timers;
mod vp;

pub use deadline::Deadline;
pub use future::{FutureHandle, block_on, spawn_future};
pub use microprocess::{Microprocess, is_stackless, park, park_timeout, sleep, yield_now};
pub use priority::Priority;
pub use record::{Kind, Reason};
pub use runtime::{
    Deadlock, Detection, Report, Runtime, RuntimeBuilder, Waiting, concurrency, report, run,
    statistics,
};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use spawn::{Builder, JoinHandle, spawn};
pub use stackless::{Stackless, Step};
pub use statistics::Statistics;
pub use sync::{Barrier, Condvar, Mutex, MutexGuard, RwLock, Semaphore};
