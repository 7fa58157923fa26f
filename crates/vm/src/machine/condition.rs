//! Condition objects, which handlers get for exceptions of primitives and of the machine.
//!
//! Fields of a [`Kind::Condition`]: kind (a symbol), message (a string, or any argument of
//! `error`), list of irritants, list of further data.

use kyocho_heap::heap::{Kind, Mutator};
use kyocho_heap::raise::{Cause, Raise};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::location::Global;
use kyocho_syntax::symbol::Symbol;

/// The kind: a symbol.
pub const FIELD_KIND: usize = 0;
/// The message, as it was given.
pub const FIELD_MESSAGE: usize = 1;
/// The irritants: a list.
pub const FIELD_IRRITANTS: usize = 2;
pub(crate) const FIELD_DATA: usize = 3;

/// The symbols of the kinds.
pub(crate) const ERROR: &str = "error";
pub(crate) const FILE_ERROR: &str = "file-error";
pub(crate) const READ_ERROR: &str = "read-error";
pub(crate) const SYNTAX_ERROR: &str = "syntax-error";
/// A variable without a value.
pub const UNBOUND: &str = "unbound-variable";
/// A mutex whose holder has ended.
pub const ABANDONED_MUTEX: &str = "abandoned-mutex";
/// `thread-join!` has waited long enough.
pub const JOIN_TIMEOUT: &str = "join-timeout";
/// The joined thread was terminated.
pub const TERMINATED_THREAD: &str = "terminated-thread";
/// The joined thread has ended by an exception.
pub const UNCAUGHT: &str = "uncaught-exception";
/// There is no memory.
pub const OUT_OF_MEMORY: &str = "out-of-memory";

/// First element of a condition's data if the reader of standard output has closed it.
const CLOSED_OUTPUT: &str = "closed-output";

/// The object to raise: the payload of the `Raise`, or a new condition.
pub fn object_of(mutator: &mut Mutator, raise: Raise) -> Value {
    let (kind, message, irritants) = match raise.into_cause() {
        Cause::Object { payload, .. } => return payload,
        Cause::WrongType { who, position, expected, got } => {
            let place = ordinal(position);
            (ERROR, format!("{who}: {place} argument must be {}", article(expected)), vec![got])
        }
        Cause::OutOfRange { who, position, got, bound } => {
            let place = ordinal(position);
            (ERROR, format!("{who}: {place} argument is out of range ({bound})"), vec![got])
        }
        Cause::DivideByZero { who } => (ERROR, format!("{who}: division by zero"), Vec::new()),
        Cause::Error { message, irritants } => match message.strip_prefix(UNBOUND_PREFIX) {
            Some(_) => (UNBOUND, message, irritants),
            None => (ERROR, message, irritants),
        },
        Cause::File { who, path, reason, errno, closed_output } => {
            let message = format!("{who}: {path}: {reason}");
            let mark = closed_output.then(|| Value::symbol(Symbol::intern(CLOSED_OUTPUT)));
            let errno = errno.map(|number| Value::fixnum(number.into()));
            let data: Vec<Value> = mark.into_iter().chain(errno).collect();
            return with_data(mutator, FILE_ERROR, &message, &data);
        }
        Cause::Read { message, span } => return placed(mutator, READ_ERROR, &message, span),
        Cause::Syntax { message, span } => return placed(mutator, SYNTAX_ERROR, &message, span),
        Cause::Interrupted => (ERROR, "interrupted".to_owned(), Vec::new()),
        Cause::OutOfMemory => {
            match mutator.context.host.as_ref().and_then(|host| host.out_of_memory()) {
                Some(condition) => return condition,
                None => (OUT_OF_MEMORY, "out of memory".to_owned(), Vec::new()),
            }
        }
        Cause::Exit(code) | Cause::EmergencyExit(code) => {
            return Value::fixnum(code.into());
        }
    };
    make(mutator, kind, &message, &irritants).unwrap_or_else(|| Value::symbol(Symbol::intern(kind)))
}

/// A condition with a position in a text.
fn placed(mutator: &mut Mutator, kind: &str, message: &str, span: Span) -> Value {
    let numbers = [span.source, span.line, span.column].map(|n| Value::fixnum(n.into()));
    with_data(mutator, kind, message, &numbers)
}

/// A condition with further data.
fn with_data(mutator: &mut Mutator, kind: &str, message: &str, data: &[Value]) -> Value {
    let condition = make(mutator, kind, message, &[]);
    let data = mutator.list(data);
    match (condition, data) {
        (Some(condition), Ok(data)) => {
            let _ = condition.set_field(FIELD_DATA, data);
            condition
        }
        _ => Value::symbol(Symbol::intern(kind)),
    }
}

/// Whether the cause of a condition is that the reader of standard output has closed it.
pub fn is_closed_output(condition: Value) -> bool {
    condition.is_kind(Kind::Condition)
        && condition.field(FIELD_DATA).and_then(Value::car)
            == Some(Value::symbol(Symbol::intern(CLOSED_OUTPUT)))
}

/// The host's error number in a file error, if it has one.
pub fn errno_of(condition: Value) -> Option<i32> {
    let kind = Some(Value::symbol(Symbol::intern(FILE_ERROR)));
    if !condition.is_kind(Kind::Condition) || condition.field(FIELD_KIND) != kind {
        return None;
    }
    let mut data = condition.field(FIELD_DATA)?;
    while let Some((datum, rest)) = data.uncons() {
        if let Some(number) = datum.as_fixnum() {
            return i32::try_from(number).ok();
        }
        data = rest;
    }
    None
}

/// The source position in a condition, if it has one.
pub fn place_of(condition: Value) -> Option<Span> {
    let mut numbers = condition.field(FIELD_DATA)?;
    let mut next = || {
        let (number, rest) = numbers.uncons()?;
        numbers = rest;
        u32::try_from(number.as_fixnum()?).ok()
    };
    let span = Span { source: next()?, line: next()?, column: next()? };
    // Arguments of `eval` have no position in a text.
    (span.line > 0).then_some(span)
}

/// A new condition. `None` if there is no memory.
pub fn make(
    mutator: &mut Mutator,
    kind: &str,
    message: &str,
    irritants: &[Value],
) -> Option<Value> {
    let message = mutator.string(message).ok()?;
    let irritants = mutator.list(irritants).ok()?;
    let kind = Value::symbol(Symbol::intern(kind));
    mutator.object_of(Kind::Condition, &[kind, message, irritants, Value::NIL]).ok()
}

const UNBOUND_PREFIX: &str = "unbound variable";

/// The error for a variable without a value.
pub(super) fn unbound(global: &Global) -> Raise {
    Raise::error(UNBOUND_PREFIX, vec![Value::symbol(global.name)])
}

fn ordinal(position: usize) -> String {
    match position {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

fn article(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    if noun.starts_with("a ") || noun.starts_with("an ") || noun.starts_with("the ") {
        noun.to_owned()
    } else if vowel {
        format!("an {noun}")
    } else {
        format!("a {noun}")
    }
}
