//! `let`, `letrec*`, and those of their procedures that become labels.

use super::closure::{Captures, arity_flag};
use super::{Context, Done, Generator, Outline, Place, generate_lambda};
use crate::compiler::CompileError;
use crate::compiler::analysis::{fixed_clause, lambda_run};
use crate::compiler::assembler::Label;
use crate::compiler::instruction::Opcode;
use kyocho_heap::value::Value;
use kyocho_syntax::core_form::{Core, Lambda, Variable};
use std::rc::Rc;

/// Maximum number of nodes searched for a mention of a slot. A larger expression counts as
/// mentioning every slot.
const MENTIONS_MAX: usize = 64;

type Binding = (Rc<Variable>, Core);

/// A label whose body is not generated yet.
struct Pending<'c> {
    label: Label,
    lambda: &'c Lambda,
    slots: Vec<u16>,
}

impl Generator<'_, '_> {
    pub(super) fn let_form(&mut self, bindings: &[Binding], body: &Core, context: Context) -> Done {
        let next = self.next;
        let mut pending = Vec::new();
        let mut settled = Vec::new();
        for (variable, init) in bindings {
            if self.shared.analysis.is_label(variable) {
                pending.extend(self.declare_label(variable, init)?);
            } else {
                settled.push((variable, self.bind(variable, init)?));
            }
        }
        for (variable, place) in settled {
            self.settle_at(variable, place);
        }
        self.body_and_labels(body, &pending, context)?;
        self.release(next);
        Ok(())
    }

    /// Evaluates the initial value of a `let` variable. Returns the variable's place.
    fn bind(&mut self, variable: &Rc<Variable>, init: &Core) -> Result<Place, CompileError> {
        let celled = self.is_celled(variable);
        if !celled && let Some(place) = self.alias(variable, init)? {
            return Ok(place);
        }
        let slot = self.take()?;
        match init {
            Core::Lambda(lambda) => {
                let outline = self.outline_of(variable, lambda, false);
                self.closure(lambda, &outline, Context::Slot(slot))?;
            }
            _ => self.generate(init, Context::Slot(slot))?,
        }
        self.next = usize::from(slot) + 1;
        if celled {
            self.asm.op(Opcode::CellNew, slot, slot, 0);
            return Ok(Place::CellSlot(slot));
        }
        Ok(Place::Slot(slot))
    }

    /// The place of the initial value, if the variable can share it.
    fn alias(
        &mut self,
        variable: &Rc<Variable>,
        init: &Core,
    ) -> Result<Option<Place>, CompileError> {
        match init {
            Core::Local(of, _) => {
                let place = self.places.get(&Rc::as_ptr(of));
                Ok(place.filter(|place| matches!(place, Place::Slot(_))).cloned())
            }
            Core::Constant(datum) => Ok(Some(Place::Constant(self.shared.constant(datum)?))),
            Core::Lambda(lambda) if self.shared.analysis.is_constant(variable) => {
                self.constant_lambda(variable, lambda)?;
                let value = self.shared.constants.get(&Rc::as_ptr(variable)).copied();
                Ok(value.map(Place::Constant))
            }
            _ => Ok(None),
        }
    }

    fn outline_of(&self, variable: &Rc<Variable>, lambda: &Lambda, recursive: bool) -> Outline {
        let itself = (recursive && !self.is_celled(variable)).then(|| Rc::clone(variable));
        Outline { name: lambda.name.or(Some(variable.name)), itself, global: None }
    }

    fn constant_lambda(&mut self, variable: &Rc<Variable>, lambda: &Rc<Lambda>) -> Done {
        let outline = self.outline_of(variable, lambda, true);
        let inner = self.captures(lambda)?.inner;
        let (code, entry) = generate_lambda(self.shared, lambda, &outline, &inner)?;
        let closure = self.constant_closure(lambda, code, entry)?;
        self.shared.constants.insert(Rc::as_ptr(variable), closure);
        Ok(())
    }

    pub(super) fn letrec_form(
        &mut self,
        bindings: &[Binding],
        body: &Core,
        context: Context,
    ) -> Done {
        let next = self.next;
        let mut pending = Vec::new();
        for (variable, init) in bindings {
            if self.shared.analysis.is_label(variable) {
                pending.extend(self.declare_label(variable, init)?);
            } else if !self.shared.analysis.is_constant(variable) {
                self.declare(variable)?;
            }
        }
        let mut rest = bindings;
        while !rest.is_empty() {
            let run = lambda_run(rest);
            if run == 0 {
                self.initialise(&rest[0].0, &rest[0].1)?;
            } else {
                self.closures(&rest[..run])?;
            }
            rest = &rest[run.max(1)..];
        }
        self.body_and_labels(body, &pending, context)?;
        self.release(next);
        Ok(())
    }

    /// Assigns a `letrec*` variable its place before anything is evaluated.
    fn declare(&mut self, variable: &Rc<Variable>) -> Done {
        let slot = self.take()?;
        if self.is_celled(variable) {
            self.constant(Value::UNINITIALISED, Context::Slot(slot))?;
        }
        self.settle(variable, slot);
        Ok(())
    }

    /// Evaluates the initial value of a `letrec*` variable that is not a fixed procedure.
    fn initialise(&mut self, variable: &Rc<Variable>, init: &Core) -> Done {
        let next = self.next;
        match self.place(variable)? {
            Place::Slot(slot) => self.generate(init, Context::Slot(slot))?,
            _ => {
                let slot = self.operand(init)?;
                self.cell_set(variable, slot)?;
            }
        }
        self.next = next;
        Ok(())
    }

    /// Makes the closures of procedures that may refer to each other. Those without free variables
    /// come first, because the code of the others refers to them.
    fn closures(&mut self, run: &[Binding]) -> Done {
        let next = self.next;
        for (variable, init) in run {
            if let (Core::Lambda(lambda), true) = (init, self.shared.analysis.is_constant(variable))
            {
                self.constant_lambda(variable, lambda)?;
            }
        }
        let mut patches = Vec::new();
        for (i, (variable, init)) in run.iter().enumerate() {
            let analysis = self.shared.analysis;
            let Core::Lambda(lambda) = init else { continue };
            if analysis.is_label(variable) || analysis.is_constant(variable) {
                continue;
            }
            let outline = self.outline_of(variable, lambda, true);
            let captures = self.captures(lambda)?;
            let place = self.place(variable)?;
            let to = match place {
                Place::Slot(slot) => slot,
                _ => self.take()?,
            };
            for (index, slot) in made_later(&run[i..], &captures) {
                self.constant(Value::UNINITIALISED, Context::Slot(slot))?;
                patches.push((to, index, slot));
            }
            self.recursive_closure(lambda, &outline, &captures, to)?;
            if !matches!(place, Place::Slot(_)) {
                self.cell_set(variable, to)?;
            }
        }
        for (closure, index, from) in patches {
            self.asm.op(Opcode::PatchClosure, closure, index, from);
        }
        self.next = next;
        Ok(())
    }

    fn recursive_closure(
        &mut self,
        lambda: &Rc<Lambda>,
        outline: &Outline,
        captures: &Captures,
        to: u16,
    ) -> Done {
        let (code, entry) = generate_lambda(self.shared, lambda, outline, &captures.inner)?;
        let sources = self.sources(captures)?;
        if sources.is_empty() {
            let closure = self.constant_closure(lambda, code, entry)?;
            return self.constant(closure, Context::Slot(to));
        }
        debug_assert!(arity_flag(lambda) > 0 || !lambda.clauses.is_empty(), "a lambda has clauses");
        self.make_closure(to, code, entry, lambda, &sources);
        Ok(())
    }

    fn declare_label<'c>(
        &mut self,
        variable: &Rc<Variable>,
        init: &'c Core,
    ) -> Result<Option<Pending<'c>>, CompileError> {
        let Core::Lambda(lambda) = init else { return Ok(None) };
        let Some(clause) = fixed_clause(lambda) else { return Ok(None) };
        let mut slots = Vec::new();
        for _ in &clause.required {
            slots.push(self.take()?);
        }
        let label = self.asm.label();
        self.places.insert(Rc::as_ptr(variable), Place::Label(label, slots.clone()));
        Ok(Some(Pending { label, lambda, slots }))
    }

    /// Generates the body, then the body of each label. All end in the same context.
    fn body_and_labels(&mut self, body: &Core, pending: &[Pending<'_>], context: Context) -> Done {
        // The parameters' slots of labels can be freed only after all labels are generated.
        self.generate(body, context)?;
        if pending.is_empty() {
            return Ok(());
        }
        let next = self.next;
        let end = self.asm.label();
        for Pending { label, lambda, slots } in pending {
            let Some(clause) = fixed_clause(lambda) else { continue };
            if self.asm.falls_into(*label) {
                self.asm.bind(*label);
            } else {
                self.asm.goto(end);
                self.asm.bind(*label);
            }
            for (variable, &slot) in clause.required.iter().zip(slots) {
                self.settle(variable, slot);
            }
            self.generate(&clause.body, context)?;
            self.release(slots.first().map_or(next, |&slot| slot.into()));
            self.next = next;
        }
        self.asm.bind(end);
        Ok(())
    }

    /// A call of a label: sets the parameters as if simultaneously, and jumps.
    pub(super) fn jump_to(&mut self, label: Label, slots: &[u16], arguments: &[Core]) -> Done {
        let next = self.next;
        let mut moves = Vec::new();
        for (i, (argument, &slot)) in arguments.iter().zip(slots).enumerate() {
            if self.is_in(argument, slot) {
                continue;
            }
            let needed = arguments[i + 1..].iter().any(|later| self.mentions(later, slot));
            let in_place = matches!(
                argument,
                Core::Call(..) | Core::Local(..) | Core::Constant(_) | Core::Global(..)
            ) || !self.mentions(argument, slot);
            if !needed && in_place {
                self.generate(argument, Context::Slot(slot))?;
            } else {
                let temporary = self.take()?;
                self.generate(argument, Context::Slot(temporary))?;
                self.next = usize::from(temporary) + 1;
                moves.push((slot, temporary));
            }
        }
        for (slot, temporary) in moves {
            self.asm.op(Opcode::Move, slot, temporary, 0);
        }
        self.next = next;
        self.asm.goto(label);
        Ok(())
    }

    /// Whether the expression is the variable in `slot`, which is not in a cell.
    fn is_in(&self, core: &Core, slot: u16) -> bool {
        let Core::Local(variable, _) = core else { return false };
        matches!(self.places.get(&Rc::as_ptr(variable)), Some(Place::Slot(at)) if *at == slot)
    }

    /// Whether evaluating the expression may read `slot`.
    fn mentions(&self, core: &Core, slot: u16) -> bool {
        let mut budget = MENTIONS_MAX;
        self.mentions_within(core, slot, &mut budget)
    }

    fn mentions_within(&self, core: &Core, slot: u16, budget: &mut usize) -> bool {
        if *budget == 0 {
            return true;
        }
        *budget -= 1;
        let of = |variable: &Rc<Variable>| match self.places.get(&Rc::as_ptr(variable)) {
            Some(Place::Slot(at) | Place::CellSlot(at)) => *at == slot,
            _ => false,
        };
        match core {
            Core::Constant(_) | Core::Unspecified | Core::Global(..) => false,
            Core::Local(variable, _) => of(variable),
            Core::SetLocal(variable, value, _) => {
                of(variable) || self.mentions_within(value, slot, budget)
            }
            Core::SetGlobal(_, value, _) | Core::DefineGlobal(_, value, _) => {
                self.mentions_within(value, slot, budget)
            }
            Core::If(test, consequent, alternative) => [test, consequent, alternative]
                .into_iter()
                .any(|part| self.mentions_within(part, slot, budget)),
            Core::Sequence(forms) => {
                forms.iter().any(|form| self.mentions_within(form, slot, budget))
            }
            Core::Lambda(lambda) => self.shared.analysis.free(lambda).iter().any(of),
            Core::Let(bindings, body) | Core::Letrec(bindings, body) => {
                bindings.iter().any(|(_, init)| self.mentions_within(init, slot, budget))
                    || self.mentions_within(body, slot, budget)
            }
            Core::Call(callee, arguments, _) => {
                self.mentions_within(callee, slot, budget)
                    || arguments.iter().any(|form| self.mentions_within(form, slot, budget))
            }
        }
    }
}

/// The free variables of a closure that are bound in `run` and have no value yet: their indices,
/// and the slots where they will be.
fn made_later(run: &[Binding], captures: &Captures) -> Vec<(u16, u16)> {
    let sources = captures.sources.iter().enumerate();
    sources
        .filter_map(|(index, (captured, from))| match from {
            Place::Slot(slot) if is_bound_in(run, captured) => Some((index as u16, *slot)),
            _ => None,
        })
        .collect()
}

fn is_bound_in(bindings: &[Binding], variable: &Rc<Variable>) -> bool {
    bindings.iter().any(|(bound, _)| Rc::ptr_eq(bound, variable))
}
