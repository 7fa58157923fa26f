//! Reports of errors, for people: position, message, callers.

use core::fmt;
use kyocho_syntax::datum::Span;

/// An error that ended an evaluation.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) place: Option<Span>,
    /// The thread that it ended; `None` if that thread evaluated a user's text.
    pub(crate) thread: Option<String>,
    pub(crate) message: String,
    pub(crate) trace: Vec<String>,
    pub(crate) is_closed_output: bool,
}

impl Report {
    /// The report of an internal error of the machine.
    pub(crate) fn internal(what: &str) -> Self {
        Self::outside(format!("internal error: {what}"))
    }

    /// The report of an error outside any evaluation, such as a file that cannot be read.
    pub(crate) fn outside(message: String) -> Self {
        Self { place: None, thread: None, message, trace: Vec::new(), is_closed_output: false }
    }

    /// Whether the only cause is that the reader of standard output has closed it.
    #[must_use]
    pub const fn is_closed_output(&self) -> bool {
        self.is_closed_output
    }

    /// The callers, the innermost first: `in NAME at PLACE`.
    #[must_use]
    pub fn callers(&self) -> &[String] {
        &self.trace
    }

    /// The message, without position and callers.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(thread) = &self.thread {
            write!(f, "in thread {thread}: ")?;
        }
        f.write_str(&self.message)?;
        for entry in &self.trace {
            write!(f, "\n  {entry}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Report {}
