//! Syntax errors: position, problem, and what was expected.

use super::datum::{Datum, Span};
use core::fmt;

/// A syntax error. Displays as `file:line:column: message; expected ...`, followed by its notes,
/// one a line.
#[derive(Clone, Debug)]
pub struct SyntaxError(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    span: Span,
    message: String,
    expected: Option<String>,
    notes: Vec<(Span, String)>,
}

/// Maximum number of notes that an error keeps: those of the innermost expansions.
const NOTES_MAX: usize = 3;

impl SyntaxError {
    /// An error at a position.
    #[must_use]
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Details { span, message, expected: None, notes: Vec::new() }))
    }

    /// An error about a form. The message shows the form.
    #[must_use]
    pub fn in_form(form: &Datum, message: impl fmt::Display) -> Self {
        Self::new(form.span, format!("{message} in {form}"))
    }

    /// Adds what would have been correct.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Adds a note about a second position. Notes after the third are dropped.
    #[must_use]
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        if self.0.notes.len() < NOTES_MAX {
            self.0.notes.push((span, text.into()));
        }
        self
    }

    /// The position.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// The problem.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What would have been correct, if known.
    #[must_use]
    pub fn expectation(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }
}

impl SyntaxError {
    /// Everything except the position: the problem, what was expected, and the notes, one a line.
    #[must_use]
    pub fn explanation(&self) -> String {
        let mut text = self.0.message.clone();
        if let Some(expected) = &self.0.expected {
            text.push_str(&format!("; expected {expected}"));
        }
        for (span, note) in &self.0.notes {
            text.push_str(&format!("\n  {span}: {note}"));
        }
        text
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Line 0 means that the form came from a command and has no position in a text.
        if self.0.span.line > 0 {
            write!(f, "{}: ", self.0.span)?;
        }
        f.write_str(&self.explanation())
    }
}

impl core::error::Error for SyntaxError {}
