//! What nobody handled, for people: place, message, irritants, who called whom.

use crate::system::kernel::lock;
use crate::system::lisp_session::LispSession;
use crate::thread::lisp_thread::LispThread;
use core::fmt;
use kyocho_heap::heap::Kind;
use kyocho_heap::value::Value;
use kyocho_library::printer::{self, Style};
use kyocho_syntax::datum::Span;
use kyocho_syntax::source;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::condition::{
    FIELD_IRRITANTS, FIELD_KIND, FIELD_MESSAGE, UNBOUND, is_closed_output, place_of,
};
use kyocho_vm::machine::trace::TraceEntry;

/// Callers that a report lists.
const ENTRIES_MAX: usize = 16;
/// Frames looked at to find them.
const FRAMES_MAX: usize = 64;

/// An error that ended an evaluation.
#[derive(Clone, Debug)]
pub struct Report {
    place: Option<Span>,
    /// The thread that ended by it, where it was none that somebody evaluates a text in.
    thread: Option<String>,
    message: String,
    trace: Vec<String>,
    is_closed_output: bool,
}

impl Report {
    /// The report of an object that a machine raised and nobody handled.
    pub(crate) fn new(session: &LispSession, machine: &Machine, object: Value) -> Self {
        let entries = entries_of_a_user(machine);
        // A tail call leaves nobody on the stack: then the form that began it is the place.
        let place = place_of(object)
            .or_else(|| entries.iter().find_map(|entry| entry.span))
            .or_else(|| session.form());
        Self::of_entries(session, &entries, place, object)
    }

    /// The report of an object that ended a thread of the program.
    pub(crate) fn of_thread(thread: &LispThread, machine: &Machine, object: Value) -> Self {
        let entries = entries_of_a_user(machine);
        let place = place_of(object).or_else(|| entries.iter().find_map(|entry| entry.span));
        let report = Self::of_entries(&thread.session, &entries, place, object);
        Self { thread: Some(thread.name()), ..report }
    }

    fn of_entries(
        session: &LispSession,
        entries: &[TraceEntry],
        place: Option<Span>,
        object: Value,
    ) -> Self {
        let trace = entries.iter().take(ENTRIES_MAX).map(show_entry).collect();
        let is_closed_output = is_closed_output(object);
        Self { place, thread: None, message: message(session, object), trace, is_closed_output }
    }

    /// The report of something that is the machine's own fault.
    pub(crate) fn internal(what: &str) -> Self {
        Self::outside(format!("internal error: {what}"))
    }

    /// The report of something outside any evaluation, such as a file that cannot be read.
    pub(crate) fn outside(message: String) -> Self {
        Self { place: None, thread: None, message, trace: Vec::new(), is_closed_output: false }
    }

    /// Whether nothing went wrong but that whoever read standard output wants no more of it.
    #[must_use]
    pub const fn is_closed_output(&self) -> bool {
        self.is_closed_output
    }

    /// Who called whom, the innermost first: `in NAME at PLACE`.
    #[must_use]
    pub fn callers(&self) -> &[String] {
        &self.trace
    }

    /// What happened, without place and callers.
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

fn entries_of_a_user(machine: &Machine) -> Vec<TraceEntry> {
    machine.backtrace(FRAMES_MAX).into_iter().filter(is_of_a_user).collect()
}

/// Whether an entry stands in a user's text, not in the prelude.
pub(crate) fn is_of_a_user(entry: &TraceEntry) -> bool {
    entry.span.is_some_and(|span| !source::name(span.source).starts_with(PRELUDE))
}

/// What the names of the prelude's sources begin with.
pub(crate) const PRELUDE: &str = "prelude/";

pub(crate) fn show_entry(entry: &TraceEntry) -> String {
    let name = entry.procedure.map_or("top level", Symbol::name);
    match entry.span {
        Some(span) => format!("in {name} at {span}"),
        None => format!("in {name}"),
    }
}

/// What the user of an unbound name may have wanted: an import, or a name spelt nearly so.
fn hint(session: &LispSession, name: &str) -> String {
    if let Some(library) = lock(&session.world).exported_by(name) {
        return format!(" (exported by {library})");
    }
    session.nearest(name).map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

fn message(session: &LispSession, object: Value) -> String {
    if !object.is_kind(Kind::Condition) {
        return format!("uncaught exception: {}", printer::to_message(object));
    }
    let field = |field| object.field(field).unwrap_or(Value::FALSE);
    let mut text = match printer::to_text(field(FIELD_MESSAGE), Style::Display) {
        Ok(text) => text,
        Err(printer::TooLong) => "(a message too long to print)".to_owned(),
    };
    let mut irritants = field(FIELD_IRRITANTS);
    let mut separator = ": ";
    while let Some((irritant, rest)) = irritants.uncons() {
        text.push_str(separator);
        text.push_str(&printer::to_message(irritant));
        separator = " ";
        irritants = rest;
    }
    let kind = field(FIELD_KIND).as_symbol().map_or("", Symbol::name);
    if kind == UNBOUND
        && let Some(name) = field(FIELD_IRRITANTS).car().and_then(Value::as_symbol)
    {
        text.push_str(&hint(session, name.name()));
    }
    text
}
