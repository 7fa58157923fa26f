//! The current wait of a control procedure. The procedure stops the machine, and is called again
//! when the thread is woken.

use kyocho_heap::value::Value;
use kyocho_microprocess::Deadline;

/// The current wait of a control procedure.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The time limit, if there is one.
    pub deadline: Option<Deadline>,
    /// The progress of the procedure.
    pub stage: Stage,
    /// The object in whose queue the thread may be.
    pub object: Value,
}

/// The progress of a procedure that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The procedure has done nothing except wait.
    Begun,
    /// The procedure has sent the message or gate call with this number, or waits for the
    /// collection with this number.
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
