//! User schedulers: a program decides which microprocess runs next on a virtual processor (Paper 1,
//! §3.2 and §3.6).
//!
//! Every virtual processor has one. The built-in one serves 64 fixed priorities, first come, first
//! served. It is part of the runtime, so calling it costs nothing. A program replaces it at start
//! with [`RuntimeBuilder::scheduler`](crate::RuntimeBuilder::scheduler), or at run time with
//! [`install`]. [`remove`] restores it.
//!
//! ```text
//!   runtime ── enqueue(entry, arrival) ──►  scheduler  ── pick() ──► runtime
//!           ── charge(entry, ran)      ──►
//!           ── event(Blocked, …)       ──►
//! ```
//!
//! A scheduler is pure: it gets the time as an argument, keeps its queues in the entries ([`List`],
//! [`Levels`], [`Heap`]) and knows nothing of Linux. So [`simulate`] can drive one with random
//! events.
//!
//! ```
//! use kyocho_microprocess::scheduler::EarliestDeadline;
//! use kyocho_microprocess::{Runtime, spawn};
//!
//! let runtime = Runtime::builder().scheduler(|_| Box::new(EarliestDeadline::new())).build();
//! assert_eq!(runtime.run(|| spawn(|| 6 * 7).join().unwrap()).unwrap(), 42);
//! ```
//!
//! # What a scheduler may do
//! Its methods run with events masked, some in a signal handler with 64 KiB of stack: they must not
//! allocate or free, take a lock that others hold for long, suspend, or call this crate except for
//! methods of entries. If a method wakes a microprocess, the wake takes effect after the method has
//! returned. Suspending panics.
//!
//! # What happens to one that is broken
//! What a scheduler picks is checked. A scheduler is removed if it picks an entry that is not
//! runnable there, picks none although some are queued, or panics. The built-in scheduler then
//! continues with everything that was runnable, and [`report`] returns the [`Fault`].
//!
//! A panic allocates, with events masked: std makes its payload, and prints, before it is caught.
//! The virtual processor then waits for the allocator as any program does. It waits for ever if a
//! microprocess of its own was preempted inside the allocator. Such preemptions are postponed, so
//! this is unlikely, but a scheduler should not panic.

mod earliest_deadline;
mod feedback;
mod fixed_priority;
mod installation;
mod queue;
mod round_robin;
pub(crate) mod simulation;
mod throughput;

pub use crate::processor::scheduler::{
    Arrival, Bound, Demand, Entry, Event, EventKind, Fault, Registers, Runs, Scheduler, Slice,
};
pub use earliest_deadline::EarliestDeadline;
pub use feedback::Feedback;
pub use fixed_priority::FixedPriority;
pub(crate) use installation::Factory;
pub use installation::{Report, install, remove, report};
pub use queue::{Heap, Levels, List};
pub use round_robin::RoundRobin;
pub use simulation::{Summary, Violation, simulate};
pub use throughput::Throughput;

#[cfg(test)]
mod tests;
