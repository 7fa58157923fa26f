//! Primitives on the machine's own objects: conditions, records, promises, parameters, procedures.

use crate::compiler::record;
use crate::machine::condition::{
    self, ABANDONED_MUTEX, ERROR, FIELD_IRRITANTS, FIELD_KIND, FIELD_MESSAGE, FILE_ERROR,
    JOIN_TIMEOUT, READ_ERROR, TERMINATED_THREAD, UNCAUGHT,
};
use crate::machine::procedure;
use crate::primitive::Primitive;
use kyocho_heap::heap::{Kind, Mutator};
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;

pub(super) const TABLE: &[Primitive] = &[
    Primitive { name: "error", min: 1, max: None, function: error },
    Primitive::exactly("error-object?", 1, |_, a| {
        Ok(Value::boolean(a[0].is_kind(Kind::Condition)))
    }),
    Primitive::exactly("error-object-message", 1, |m, a| message(m, a[0])),
    Primitive::exactly("error-object-irritants", 1, |m, a| irritants(m, a[0])),
    Primitive::exactly("file-error?", 1, |_, a| Ok(is_of_kind(a[0], FILE_ERROR))),
    Primitive::exactly("read-error?", 1, |_, a| Ok(is_of_kind(a[0], READ_ERROR))),
    Primitive::exactly("abandoned-mutex-exception?", 1, |_, a| {
        Ok(is_of_kind(a[0], ABANDONED_MUTEX))
    }),
    Primitive::exactly("join-timeout-exception?", 1, |_, a| Ok(is_of_kind(a[0], JOIN_TIMEOUT))),
    Primitive::exactly("terminated-thread-exception?", 1, |_, a| {
        Ok(is_of_kind(a[0], TERMINATED_THREAD))
    }),
    Primitive::exactly("uncaught-exception?", 1, |_, a| Ok(is_of_kind(a[0], UNCAUGHT))),
    Primitive::exactly("uncaught-exception-reason", 1, |m, a| {
        Ok(irritants(m, a[0])?.car().unwrap_or(Value::FALSE))
    }),
    Primitive::exactly("%condition-kind", 1, |_, a| {
        condition_field("%condition-kind", a[0], FIELD_KIND)
    }),
    Primitive::exactly("%raise-secondary", 1, secondary),
    Primitive::exactly("procedure?", 1, |_, a| Ok(Value::boolean(is_procedure(a[0])))),
    Primitive::exactly("%procedure-name", 1, |_, a| {
        Ok(procedure::name_of(a[0]).map_or(Value::FALSE, Value::symbol))
    }),
    Primitive::exactly("%make-record-type", 3, |m, a| Ok(m.object_of(Kind::RecordType, a)?)),
    Primitive::exactly("%record-constructor", 2, |m, a| {
        record::constructor(m, record_type(a[0])?, a[1])
    }),
    Primitive::exactly("%record-predicate", 1, |m, a| record::predicate(m, record_type(a[0])?)),
    Primitive::exactly("%record-accessor", 2, |m, a| {
        record::accessor(m, record_type(a[0])?, index(a[1])?)
    }),
    Primitive::exactly("%record-modifier", 2, |m, a| {
        record::modifier(m, record_type(a[0])?, index(a[1])?)
    }),
    Primitive::exactly("promise?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::Promise)))),
    Primitive::exactly("%make-promise", 2, |m, a| {
        let state = m.cons(a[0], a[1])?;
        Ok(m.object_of(Kind::Promise, &[state])?)
    }),
    Primitive::exactly("%promise-state", 1, |_, a| Ok(a[0].field(0).unwrap_or(Value::FALSE))),
    Primitive::exactly("%set-promise-state!", 2, |_, a| {
        let _ = a[0].set_field(0, a[1]);
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::exactly("%make-parameter", 2, |m, a| Ok(m.object_of(Kind::Parameter, a)?)),
    Primitive::exactly("%parameter?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::Parameter)))),
    Primitive::exactly("%parameter-converter", 1, |_, a| Ok(a[0].field(1).unwrap_or(Value::FALSE))),
    Primitive::exactly("%out-of-memory", 0, |_, _| Err(Raise::out_of_memory())),
];

/// Whether a value can be called.
fn is_procedure(value: Value) -> bool {
    matches!(
        value.kind(),
        Some(Kind::Closure | Kind::Primitive | Kind::Continuation | Kind::Parameter)
    )
}

/// `(error message irritant ...)`. The message is stored as given, whatever its type.
fn error(mutator: &mut Mutator, arguments: &[Value]) -> Result {
    let kind = Value::symbol(Symbol::intern(ERROR));
    let irritants = mutator.list(&arguments[1..])?;
    let fields = [kind, arguments[0], irritants, Value::NIL];
    let payload = mutator.object_of(Kind::Condition, &fields)?;
    Err(Raise::new(Cause::Object { payload, continuable: false }))
}

/// The error for a handler that returned from an exception that cannot be continued.
fn secondary(mutator: &mut Mutator, arguments: &[Value]) -> Result {
    let text = "the handler returned from an exception that cannot be continued";
    let made = condition::make(mutator, ERROR, text, &[arguments[0]]);
    made.ok_or_else(Raise::out_of_memory)
}

fn condition_field(who: &'static str, object: Value, field: usize) -> Result {
    if !object.is_kind(Kind::Condition) {
        return Err(Raise::wrong_type(who, 1, "error object", object));
    }
    Ok(object.field(field).unwrap_or(Value::FALSE))
}

/// The message as a string; empty if the argument of `error` was not a string.
fn message(mutator: &mut Mutator, object: Value) -> Result {
    let message = condition_field("error-object-message", object, FIELD_MESSAGE)?;
    if message.is_kind(Kind::String) { Ok(message) } else { Ok(mutator.string("")?) }
}

/// The irritants. If the first argument of `error` was not a string, it is the first irritant.
fn irritants(mutator: &mut Mutator, object: Value) -> Result {
    let irritants = condition_field("error-object-irritants", object, FIELD_IRRITANTS)?;
    let message = object.field(FIELD_MESSAGE).filter(|message| !message.is_kind(Kind::String));
    Ok(match message {
        Some(message) => mutator.cons(message, irritants)?,
        None => irritants,
    })
}

fn is_of_kind(object: Value, kind: &str) -> Value {
    let is = object.is_kind(Kind::Condition)
        && object.field(FIELD_KIND) == Some(Value::symbol(Symbol::intern(kind)));
    Value::boolean(is)
}

fn record_type(value: Value) -> Result {
    if value.is_kind(Kind::RecordType) {
        return Ok(value);
    }
    Err(Raise::wrong_type("define-record-type", 1, "record type", value))
}

fn index(value: Value) -> Result<u16> {
    value
        .as_fixnum()
        .and_then(|n| u16::try_from(n).ok())
        .ok_or_else(|| Raise::wrong_type("define-record-type", 2, "field index", value))
}
