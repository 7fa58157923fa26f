//! What is known about a procedure: its name, its parameters, how many arguments it accepts.

use crate::compiler::code::{Code, Entry};
use crate::machine::control::{self, primitive_at};
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::Raise;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;

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
