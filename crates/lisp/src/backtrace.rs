//! Callers as text, and reports of exceptions without a handler.

use crate::kernel::lock;
use crate::kernel::session::LispSession;
use crate::kernel::session::thread::LispThread;
use crate::report::Report;
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

/// Maximum number of callers in a report.
const ENTRIES_MAX: usize = 16;
/// Maximum number of frames searched for callers.
const FRAMES_MAX: usize = 64;

impl Report {
    /// The report of an object raised in a machine without a handler.
    pub(crate) fn new(session: &LispSession, machine: &Machine, object: Value) -> Self {
        let entries = entries_of_a_user(machine);
        // After a tail call no frame of the caller is left. The position is then that of the
        // top-level form.
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
}

fn entries_of_a_user(machine: &Machine) -> Vec<TraceEntry> {
    machine.backtrace(FRAMES_MAX).into_iter().filter(is_of_a_user).collect()
}

/// Whether an entry refers to a user's text, not to the prelude.
pub(crate) fn is_of_a_user(entry: &TraceEntry) -> bool {
    entry.span.is_some_and(|span| !source::name(span.source).starts_with(PRELUDE))
}

/// The common prefix of the names of the prelude's sources.
pub(crate) const PRELUDE: &str = "prelude/";

pub(crate) fn show_entry(entry: &TraceEntry) -> String {
    let name = entry.procedure.map_or("top level", Symbol::name);
    match entry.span {
        Some(span) => format!("in {name} at {span}"),
        None => format!("in {name}"),
    }
}

/// A hint for an unbound name: an import that defines it, or a similar name.
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

/// The callers in a machine that a user's text defines, the innermost first.
pub(crate) fn lines_of(machine: &Machine) -> Vec<String> {
    let entries = machine.backtrace(FRAMES_MAX);
    let of_a_user = |entry: &&TraceEntry| is_of_a_user(entry);
    entries.iter().filter(of_a_user).map(show_entry).collect()
}

impl LispThread {
    /// Answers the requests for a backtrace of this thread, whose machine is stopped.
    pub(crate) fn answer_backtrace_requests(&self, machine: &Machine) {
        let watchers = core::mem::take(&mut lock(&self.inner).watchers);
        for watcher in watchers {
            lock(&watcher.inner).callers = Some(lines_of(machine));
            watcher.wake();
        }
    }
}
