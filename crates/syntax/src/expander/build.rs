//! Construction of core forms with simplifications: constant tests are decided, `or` in a test
//! loses its variable, `begin` is flattened.

use super::World;
use crate::core_form::{Clause, Core, Lambda, Variable};
use crate::datum::{Datum, DatumKind, Span};
use crate::symbol::Symbol;
use core::cell::Cell;
use std::rc::Rc;

pub(super) fn variable(name: Symbol) -> Rc<Variable> {
    Rc::new(Variable { name, mutated: Cell::new(false), captured: Cell::new(false) })
}

/// A variable that no program can refer to.
pub(super) fn temporary(name: &str) -> Rc<Variable> {
    variable(Symbol::intern(name))
}

pub(super) fn local(variable: &Rc<Variable>, span: Span) -> Core {
    Core::Local(Rc::clone(variable), span)
}

/// The forms in order. The value is that of the last.
pub(super) fn sequence(mut forms: Vec<Core>) -> Core {
    match forms.len() {
        0 => Core::Unspecified,
        1 => forms.remove(0),
        _ => {
            let mut flat = Vec::with_capacity(forms.len());
            for form in forms {
                match form {
                    Core::Sequence(inner) => flat.extend(inner),
                    form => flat.push(form),
                }
            }
            Core::Sequence(flat)
        }
    }
}

/// `(if test then otherwise)`, simplified if the test allows it.
pub(super) fn branch(world: &World, test: Core, then: Core, otherwise: Core) -> Core {
    match simplify_test(world, test) {
        Core::Constant(datum) if matches!(*datum.kind, DatumKind::Boolean(false)) => otherwise,
        Core::Constant(_) => then,
        Core::Call(procedure, mut arguments, _)
            if arguments.len() == 1 && is_runtime(world, &procedure, "not") =>
        {
            branch(world, arguments.remove(0), otherwise, then)
        }
        test => Core::If(Box::new(test), Box::new(then), Box::new(otherwise)),
    }
}

/// In a test only the truth of a value matters. `or` becomes `(let ((t a)) (if t t b))`; in a test
/// this is `(if a #t b)`. Exactly three references to `t` exist, one in the binding and two in the
/// `if`, so `b` contains none.
fn simplify_test(world: &World, test: Core) -> Core {
    match test {
        Core::Let(mut bindings, body) if bindings.len() == 1 => match (*body, bindings.pop()) {
            (Core::If(first, second, third), Some((variable, value)))
                if is_local(&first, &variable)
                    && is_local(&second, &variable)
                    && Rc::strong_count(&variable) == 3 =>
            {
                let span = match *first {
                    Core::Local(_, span) => span,
                    _ => Span::default(),
                };
                let truth = Core::Constant(Datum::boolean(true, span));
                branch(world, value, truth, simplify_test(world, *third))
            }
            (body, Some(binding)) => Core::Let(vec![binding], Box::new(body)),
            (body, None) => body,
        },
        test => test,
    }
}

fn is_local(core: &Core, variable: &Rc<Variable>) -> bool {
    matches!(core, Core::Local(found, _) if Rc::ptr_eq(found, variable))
}

fn is_runtime(world: &World, procedure: &Core, name: &str) -> bool {
    matches!(procedure, Core::Global(global, _)
        if global.name.name() == name && *global == world.runtime(name))
}

/// A call of the system's procedure `name`.
pub(super) fn runtime_call(world: &World, name: &str, arguments: Vec<Core>, span: Span) -> Core {
    Core::Call(Box::new(Core::Global(world.runtime(name), span)), arguments, span)
}

/// A procedure with one clause.
pub(super) fn procedure(
    required: Vec<Rc<Variable>>,
    rest: Option<Rc<Variable>>,
    body: Core,
    span: Span,
) -> Core {
    let clauses = vec![Clause { required, rest, body }];
    Core::Lambda(Rc::new(Lambda { name: None, clauses, span }))
}
