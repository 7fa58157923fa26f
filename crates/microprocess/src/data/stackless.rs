//! Microprocesses without a stack: step functions in the same queues as stackful ones.
//!
//! A machine that keeps its state in its own memory needs no stack while it waits. Its `step` runs
//! on the stack of the kernel thread that holds the virtual processor. The result of `step` says
//! how the microprocess continues.

use crate::data::deadline::Deadline;

/// How a stackless microprocess continues after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It stays runnable, and is queued behind the others of its priority.
    Yield,
    /// It waits for an [`unpark`](crate::Microprocess::unpark). An `unpark` that came earlier ends
    /// the wait at once.
    Park,
    /// As `Park`, but at most until the deadline.
    ParkUntil(Deadline),
    /// It has ended: the machine is dropped.
    Done,
}

/// A microprocess that runs in steps.
///
/// A step may make any call that does not suspend. A call that suspends (a contended lock, a
/// `sleep`) works too, but occupies a kernel thread for that time. A long step should read
/// [`Microprocess::poll_word`](crate::Microprocess::poll_word) now and then, and return
/// [`Step::Yield`] when the word is not zero. A step that does not is preempted like any other
/// code.
pub trait Stackless: Send {
    /// Runs until the machine must wait, has ended, or has run long enough.
    fn step(&mut self) -> Step;

    /// Called once, in place of a step, after the microprocess was
    /// [killed](crate::Microprocess::kill).
    ///
    /// [`Step::Done`] ends it: the machine is dropped. A machine with work to finish may return
    /// another step. It must then end by itself, since `killed` is not called again.
    fn killed(&mut self) -> Step {
        Step::Done
    }
}
