//! Microprocesses: threads by cooperation of user program and kernel (Paper 1).

mod deadline;
mod dispatch;
#[expect(dead_code, unused_imports, reason = "the synchronisation objects build on it")]
mod guarded;
mod kernel_thread;
mod microprocess;
mod monitor;
mod overflow;
mod pool;
mod port;
mod preempt;
mod priority;
mod record;
mod run_queue;
mod runtime;
mod schedule;
mod sentinel;
mod shared;
mod slot;
mod spawn;
mod spin;
mod stackless;
mod statistics;
mod timers;
mod vp;

pub use deadline::Deadline;
pub use microprocess::{Microprocess, is_stackless, park, park_timeout, sleep, yield_now};
pub use priority::Priority;
pub use record::{Kind, Reason};
pub use runtime::{
    Deadlock, Detection, Report, Runtime, RuntimeBuilder, Waiting, concurrency, report, run,
    statistics,
};
pub use spawn::{Builder, JoinHandle, spawn};
pub use stackless::{Stackless, Step};
pub use statistics::Statistics;
