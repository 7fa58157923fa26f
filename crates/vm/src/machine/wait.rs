//! The wait that a control procedure is in the middle of: it stops the machine, and is called again when the thread goes on.

use kyocho_heap::value::Value;
use kyocho_microprocess::Deadline;

/// The wait that a control procedure is in the middle of.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// When it is over in any case.
    pub deadline: Option<Deadline>,
    /// How far the procedure is.
    pub stage: Stage,
    /// The object in whose queue the thread may be.
    pub object: Value,
}

/// How far a procedure that waits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has done nothing but wait.
    Begun,
    /// It has sent what has this number: a message into a channel, a call to a gate; or waits for the collection with it.
    Sent(u64),
}

impl Wait {
    /// A wait without limit.
    #[must_use]
    pub const fn on(object: Value) -> Self {
        Self { deadline: None, stage: Stage::Begun, object }
    }

    /// Whether the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Deadline::now() >= deadline)
    }
}
