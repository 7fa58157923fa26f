//! Lisp threads: stackless microprocesses that step a machine.
//!
//! ```text
//! spawn --> Runner::step --> Machine::run --> Exit --> Step --> .. (park, wake) .. --> Done
//! ```
//!
//! **Invariant:** only two kernel threads access a thread's machine. One runs the thread's step,
//! between `Threads::enter` and `leave`. The other is the collector's, while the world is stopped.
//! If the step is outside Lisp, the collector accesses only what the step has published
//! (`vm/src/machine/outside.rs`).
//! **Lock order:** a channel (several by their addresses), mutex or condition variable; then a
//! thread's `inner`; then the registry. None is held across a safepoint.

pub(crate) mod channel;
pub(crate) mod condvar;
pub(crate) mod control;
pub(crate) mod join;
pub(crate) mod mutex;
pub(crate) mod outside;
pub(crate) mod policy;
pub(crate) mod runner;
pub(crate) mod select;
mod withdraw;

pub use kyocho_heap::heap::context::ThreadContext;

use kyocho_vm::machine::control::Procedure;

/// Control procedures of threads, mutexes, condition variables and channels.
pub(crate) const TABLES: [&[Procedure]; 7] = [
    control::TABLE,
    mutex::TABLE,
    condvar::TABLE,
    channel::TABLE,
    select::TABLE,
    join::TABLE,
    policy::TABLE,
];
