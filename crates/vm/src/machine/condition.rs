//! Condition objects, which handlers get for exceptions of primitives and of the machine.
//!
//! Fields of a [`Kind::Condition`]: kind (a symbol), message (a string, or any argument of
//! `error`), list of irritants, list of further data.

use crate::compiler::code::{Code, Entry};
use crate::machine::control;
use crate::machine::enter::primitive_at;
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

/// The name of a procedure, for messages.
pub fn name_of(procedure: Value) -> Option<Symbol> {
    match procedure.kind()? {
        Kind::Closure => procedure.field_at(0).as_foreign::<Code>()?.name,
        Kind::Primitive => {
            let index = procedure.payload_word(0) as usize;
            let name = primitive_at(index)
                .map(|primitive| primitive.name)
                .or_else(|| control::procedure_at(index).map(|control| control.name))?;
            Some(Symbol::intern(name))
        }
        _ => None,
    }
}

/// The minimum and maximum number of arguments of each clause of a procedure.
pub fn arities_of(procedure: Value) -> Option<Vec<(usize, Option<usize>)>> {
    match procedure.kind()? {
        Kind::Closure => {
            let code = procedure.field_at(0).as_foreign::<Code>()?;
            let of = |entry: &Entry| (entry.required, (!entry.rest).then_some(entry.required));
            Some(code.entries.iter().map(of).collect())
        }
        Kind::Primitive => {
            let index = procedure.payload_word(0) as usize;
            let (min, max) =
                primitive_at(index).map(|primitive| (primitive.min, primitive.max)).or_else(
                    || control::procedure_at(index).map(|control| (control.min, control.max)),
                )?;
            Some(vec![(min.into(), max.map(usize::from))])
        }
        _ => None,
    }
}

/// The parameters of each clause of a procedure in Lisp, as they are written: `(a b . rest)`.
pub fn parameters_of(procedure: Value) -> Option<Vec<String>> {
    if !procedure.is_kind(Kind::Closure) {
        return None;
    }
    let code = procedure.field_at(0).as_foreign::<Code>()?;
    let of = |entry: &Entry| {
        let names: Vec<_> = code.parameters(entry).into_iter().map(Symbol::name).collect();
        match (names.split_last(), entry.rest) {
            (Some((rest, [])), true) => (*rest).to_owned(),
            (Some((rest, first)), true) => format!("({} . {rest})", first.join(" ")),
            _ => format!("({})", names.join(" ")),
        }
    };
    Some(code.entries.iter().map(of).collect())
}

/// The numbers of arguments that a procedure accepts, as text.
fn arity_of(procedure: Value) -> Option<String> {
    let plural = |count| if count == 1 { "" } else { "s" };
    let in_words = |(min, max): (usize, Option<usize>)| match max {
        Some(max) if max == min => format!("{min} argument{}", plural(min)),
        Some(max) => format!("{min} to {max} arguments"),
        None => format!("at least {min} argument{}", plural(min)),
    };
    let clauses: Vec<_> = arities_of(procedure)?.into_iter().map(in_words).collect();
    // A `case-lambda` may have no clauses.
    if clauses.is_empty() {
        Some("no number of them".to_owned())
    } else {
        Some(clauses.join(" or "))
    }
}

/// The error for a call with a number of arguments that the procedure does not accept.
pub(super) fn wrong_arity(procedure: Value, count: usize) -> Raise {
    let (name, takes) = if procedure.is_kind(Kind::Parameter) {
        ("a parameter".to_owned(), Some("0 arguments".to_owned()))
    } else {
        let name = name_of(procedure).map(|name| name.name().to_owned());
        (name.unwrap_or_else(|| "a procedure without name".to_owned()), arity_of(procedure))
    };
    let takes = takes.unwrap_or_else(|| "another number of arguments".to_owned());
    Raise::error(
        format!("wrong number of arguments: {name} takes {takes}, got {count}"),
        Vec::new(),
    )
}
