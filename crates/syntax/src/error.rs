//! What is wrong with a text: where, what, and what was expected.

use super::datum::{Datum, Span};
use core::fmt;

/// A syntax error. Displays as `file:line:column: message; expected ...`, one line a note after it.
#[derive(Clone, Debug)]
pub struct SyntaxError(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    span: Span,
    message: String,
    expected: Option<String>,
    notes: Vec<(Span, String)>,
}

/// Notes that an error keeps: the innermost expansions.
const NOTES_MAX: usize = 3;

impl SyntaxError {
    /// An error at a place.
    #[must_use]
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Details { span, message, expected: None, notes: Vec::new() }))
    }

    /// An error about a form: the form is shown.
    #[must_use]
    pub fn in_form(form: &Datum, message: impl fmt::Display) -> Self {
        Self::new(form.span, format!("{message} in {form}"))
    }

    /// The same, saying what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// The same, pointing to a second place; notes past a bound are dropped.
    #[must_use]
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        if self.0.notes.len() < NOTES_MAX {
            self.0.notes.push((span, text.into()));
        }
        self
    }

    /// Where.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// What.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What would have been right, where that can be said.
    #[must_use]
    pub fn expectation(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }
}

impl SyntaxError {
    /// All but the place: what is wrong, what was expected, and the notes, a line each.
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
        // Lines count from 1: what a command asked for has no place in any text.
        if self.0.span.line > 0 {
            write!(f, "{}: ", self.0.span)?;
        }
        f.write_str(&self.explanation())
    }
}

impl core::error::Error for SyntaxError {}
