//! Microprocesses without a stack: step functions in the same queues.
//!
//! A machine that keeps its state in its own memory needs no stack while it waits. Its `step` runs on the
//! stack of whichever kernel thread holds the virtual processor, and says at the end how to go on.

use crate::data::deadline::Deadline;

/// How a stackless microprocess goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Runnable: behind its equals.
    Yield,
    /// Waits for an [`unpark`](crate::Microprocess::unpark); returns at once if that came already.
    Park,
    /// As `Park`, but not longer than until the deadline.
    ParkUntil(Deadline),
    /// Over: the machine is dropped.
    Done,
}

/// A microprocess that runs in steps.
///
/// A step may call everything that does not suspend. What suspends (a contended lock, a `sleep`) works too, but then holds a
/// kernel thread for as long. A step that runs long should look at
/// [`Microprocess::poll_word`](crate::Microprocess::poll_word) now and then, and return [`Step::Yield`] when it is not
/// zero; one that does not is preempted like any code.
pub trait Stackless: Send {
    /// Runs until the machine has to wait, is done, or has run long enough.
    fn step(&mut self) -> Step;

    /// Called once in place of a step after somebody [killed](crate::Microprocess::kill) the microprocess.
    ///
    /// [`Step::Done`] ends it: the machine is dropped. A machine that has something to do first answers as a step
    /// does, and sees to its end itself.
    fn killed(&mut self) -> Step {
        Step::Done
    }
}
