//! `define-record-type` (R7RS §5.5, with SRFI 131's `#f` and bare constructor name).

use super::{Core, Result, World, build, malformed, parts};
use crate::datum::{Datum, DatumKind, Span};
use crate::error::SyntaxError;
use crate::symbol::Symbol;

const SHAPE: &str =
    "(define-record-type name (constructor field ...) predicate (field accessor [modifier]) ...)";

/// The parts of a record type's definition.
pub(super) struct RecordDefinition<'a> {
    /// The variable that holds the type.
    pub(super) name: &'a Datum,
    fields: Vec<Symbol>,
    /// The procedures to define.
    pub(super) parts: Vec<(&'a Datum, Part)>,
    span: Span,
}

/// A procedure of a record type.
pub(super) enum Part {
    Constructor(Vec<usize>),
    Predicate,
    Accessor(usize),
    Modifier(usize),
}

/// Parses the form. The type name may be `name` or `(name ...)`.
pub(super) fn parse(form: &Datum) -> Result<RecordDefinition<'_>> {
    let operands = parts(form, 2, None, SHAPE)?;
    let name = operands[0].as_pair().map_or(operands[0], |(name, _)| name);
    if !name.is_identifier() {
        return Err(malformed(form, SHAPE));
    }
    let specs: Vec<Vec<&Datum>> = operands
        .get(3..)
        .unwrap_or_default()
        .iter()
        .map(|spec| match spec.proper_list() {
            Some(spec) if (1..=3).contains(&spec.len()) => Ok(spec),
            None if spec.is_identifier() => Ok(vec![*spec]),
            _ => Err(SyntaxError::new(spec.span, format!("{spec} is no field"))
                .expected("(field accessor [modifier])")),
        })
        .collect::<Result<_>>()?;
    let names: Vec<&Datum> = specs.iter().map(|spec| spec[0]).collect();
    let mut fields = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        fields.push(name.as_symbol().ok_or_else(|| malformed(form, SHAPE))?);
        if names[..i].iter().any(|other| other.as_identifier() == name.as_identifier()) {
            return Err(twice("field", name));
        }
    }
    let mut record = RecordDefinition { name, fields, parts: Vec::new(), span: form.span };
    record.add_constructor(operands[1], &names)?;
    match operands.get(2) {
        Some(predicate) if predicate.is_identifier() => {
            record.parts.push((predicate, Part::Predicate));
        }
        Some(none) if !matches!(*none.kind, DatumKind::Boolean(false)) => {
            return Err(malformed(form, SHAPE));
        }
        _ => {}
    }
    for (index, spec) in specs.iter().enumerate() {
        if let Some(accessor) = spec.get(1) {
            record.parts.push((accessor, Part::Accessor(index)));
        }
        if let Some(modifier) = spec.get(2) {
            record.parts.push((modifier, Part::Modifier(index)));
        }
    }
    record.check_names()?;
    Ok(record)
}

fn twice(what: &str, name: &Datum) -> SyntaxError {
    SyntaxError::new(name.span, format!("`{name}` is the name of two {what}s")).expected(SHAPE)
}

impl<'a> RecordDefinition<'a> {
    fn add_constructor(&mut self, constructor: &'a Datum, names: &[&Datum]) -> Result<()> {
        if constructor.is_identifier() {
            let all = (0..names.len()).collect();
            self.parts.push((constructor, Part::Constructor(all)));
            return Ok(());
        }
        // `#f` means that there is no constructor.
        let Some((name, arguments)) = constructor.as_pair() else { return Ok(()) };
        let mut indices = Vec::new();
        for argument in arguments.elements() {
            let identifier = argument.as_identifier();
            let index = names.iter().position(|name| name.as_identifier() == identifier);
            let Some(index) = index.filter(|index| !indices.contains(index)) else {
                let message = format!("{argument} in the constructor is no field of its own");
                return Err(SyntaxError::new(argument.span, message).expected(SHAPE));
            };
            indices.push(index);
        }
        self.parts.push((name, Part::Constructor(indices)));
        Ok(())
    }

    /// Checks that the procedures have distinct names.
    fn check_names(&self) -> Result<()> {
        for (i, (name, _)) in self.parts.iter().enumerate() {
            let Some(identifier) = name.as_identifier() else {
                return Err(SyntaxError::new(name.span, format!("{name} cannot be bound"))
                    .expected("an identifier"));
            };
            let mut before = self.parts[..i].iter();
            if before.any(|(other, _)| other.as_identifier().as_ref() == Some(&identifier)) {
                return Err(twice("procedure", name));
            }
        }
        Ok(())
    }

    /// `(%make-record-type 'name '(field ...) #f)`.
    pub(super) fn make_type(&self, world: &World) -> Core {
        let span = self.span;
        let name = self.name.as_symbol().unwrap_or_else(|| Symbol::intern("record"));
        let fields = self.fields.iter().map(|&field| Datum::symbol(field, span)).collect();
        let arguments = vec![
            Core::Constant(Datum::symbol(name, span)),
            Core::Constant(Datum::list(fields, span)),
            Core::Constant(Datum::boolean(false, span)),
        ];
        build::runtime_call(world, "%make-record-type", arguments, span)
    }
}

impl Part {
    /// The call that creates the procedure.
    pub(super) fn make(&self, world: &World, record_type: Core, span: Span) -> Core {
        let integer = |index: usize| Datum::integer(index as i64, span);
        let (name, argument) = match self {
            Self::Constructor(indices) => {
                let indices = indices.iter().map(|&index| integer(index)).collect();
                ("%record-constructor", Some(Datum::list(indices, span)))
            }
            Self::Predicate => ("%record-predicate", None),
            Self::Accessor(index) => ("%record-accessor", Some(integer(*index))),
            Self::Modifier(index) => ("%record-modifier", Some(integer(*index))),
        };
        let mut arguments = vec![record_type];
        arguments.extend(argument.map(Core::Constant));
        build::runtime_call(world, name, arguments, span)
    }
}
