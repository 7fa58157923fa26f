//! The evaluator. Environments and argument lists consist of heap cells, allocated one by one.
//!
//! ```text
//! eval(expression, environment) --+--> simple: its value
//!        ^                        +--> special form: push a frame, eval a part
//!        |                        +--> call: push a frame, eval operator and operands
//!        |                        v
//!        +---- frame <---- value (give)        no frame left: the form's value
//! ```
//!
//! An environment is an a-list `((variable . value) ...)`, innermost binding first. The value of a
//! variable is found by walking the a-list (deep binding). A variable that is not in it has its
//! value on the atom. A call takes one cell for each argument, and two cells for each parameter's
//! binding. A closure keeps the a-list of its definition, so this is a subset of Scheme. The paper
//! does not say which a-list its functions use.
//!
//! The frames are on a stack of the evaluator's own. They are roots, and recursion past a bound is
//! an error. **Invariant:** a collection happens only at the top of `eval`. Expression,
//! environment, frames, atoms and the program's forms are then all the roots.

mod primitives;
mod special;

use super::atoms::{self, Atoms, Role};
use super::error::{Cause, Stop, stop};
use super::supply::Supply;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Cells, Heap, Kind, Mutator, OutOfMemory};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Datum;
use kyocho_syntax::symbol::Symbol;
use primitives::Arguments;
use special::Special;
use std::io::Write;
use std::sync::Arc;

/// Calls with more operands than this are always evaluated with frames.
const SIMPLE_OPERANDS_MAX: usize = 4;

/// A list under construction.
#[derive(Clone, Copy, Debug)]
struct List {
    first: Value,
    last: Value,
}

impl List {
    const EMPTY: Self = Self { first: Value::NIL, last: Value::NIL };
}

/// A continuation: what remains to be done with a value.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// The value is the operator of a call.
    Operator { operands: Value, environment: Value },
    /// The value is the next operand of a call.
    Operand { rest: Value, environment: Value, operator: Value, made: List },
    /// The value belongs to a body, and is not the last.
    Sequence { rest: Value, environment: Value },
    /// The value is that of the test.
    If { branches: Value, environment: Value },
    /// The value is that of the test in the first of `clauses`.
    Cond { clauses: Value, environment: Value },
    /// The value belongs to an `and` or `or`, and is not the last.
    Connective { special: Special, rest: Value, environment: Value },
    /// The value is for the first of `bindings`; `inner` contains the bindings before it.
    Let { bindings: Value, environment: Value, inner: Value, body: Value },
    /// As `Let`, but each value is evaluated in the scope of the bindings before it.
    LetStar { bindings: Value, environment: Value, body: Value },
    /// The value is for the first of `bindings`. The a-list contains all of them already.
    Letrec { bindings: Value, environment: Value, body: Value },
    /// The value is for the definition at the beginning of `body`. The a-list contains it already.
    Definition { body: Value, environment: Value },
    /// The value is for the variable, in whichever binding it has.
    Set { atom: Value, environment: Value },
    /// The value is for the atom, at top level.
    Define { atom: Value },
}

/// The next action of the evaluator.
enum Next {
    Eval(Value, Value),
    Give(Value),
}

type Outcome = Result<Next, Stop>;

/// An evaluator with its heap, its cell cache and its output.
pub(super) struct Evaluator<'a> {
    heap: Arc<Heap>,
    cells: Cells,
    pub(super) supply: Supply,
    output: &'a mut (dyn Write + Send),
    text: Mutator,
    atoms: Atoms,
    frames: Vec<Frame>,
    frames_max: usize,
    /// The forms of the program; roots.
    forms: Vec<Value>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        heap: Arc<Heap>,
        cells: Cells,
        supply: Supply,
        frames_max: usize,
        output: &'a mut (dyn Write + Send),
    ) -> Result<Self, OutOfMemory> {
        let text = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let mut evaluator = Self {
            heap,
            cells,
            supply,
            output,
            text,
            atoms: Atoms::default(),
            frames: Vec::new(),
            frames_max,
            forms: Vec::new(),
        };
        for (number, name) in special::NAMES.iter().enumerate() {
            let atom = evaluator.atoms.intern(&mut evaluator.text, Symbol::intern(name))?;
            atoms::set_special(atom, number);
        }
        for (number, primitive) in primitives::TABLE.iter().enumerate() {
            let atom =
                evaluator.atoms.intern(&mut evaluator.text, Symbol::intern(primitive.name))?;
            let procedure = evaluator.text.object(Kind::Primitive, 0, 1)?;
            procedure.set_payload_word(0, number as u64);
            atoms::set_global(atom, procedure);
        }
        Ok(evaluator)
    }

    /// Loads a program's text. Its forms live as long as the evaluator.
    pub(super) fn load(&mut self, data: &[Datum]) -> Result<(), OutOfMemory> {
        for datum in data {
            let form = self.atoms.load(&mut self.text, datum)?;
            self.forms.push(form);
        }
        Ok(())
    }

    /// Evaluates form number `index`.
    pub(super) fn run(&mut self, index: usize) -> Result<Value, Stop> {
        self.frames.clear();
        let mut next = Next::Eval(self.forms[index], Value::NIL);
        loop {
            next = match next {
                Next::Eval(expression, environment) => self.eval(expression, environment)?,
                Next::Give(value) => match self.frames.pop() {
                    Some(frame) => self.give(frame, value)?,
                    None => return Ok(value),
                },
            };
        }
    }

    /// A cell from the cache. If the cache is empty, requests cells from the system-call thread.
    #[inline]
    fn cons(&mut self, car: Value, cdr: Value) -> Result<Value, Stop> {
        if let Some(pair) = self.cells.try_cons(car, cdr) {
            return Ok(pair);
        }
        self.supply.request(&self.cells)?;
        self.cells.try_cons(car, cdr).ok_or_else(|| Stop::from(Cause::OutOfMemory))
    }

    fn push(&mut self, frame: Frame) -> Result<(), Stop> {
        if self.frames.len() >= self.frames_max {
            return stop(Cause::TooDeep { frames_max: self.frames_max });
        }
        self.frames.push(frame);
        Ok(())
    }

    fn eval(&mut self, expression: Value, environment: Value) -> Outcome {
        if self.heap.collection_wanted() {
            self.collect(&[expression, environment]);
        }
        let Some((operator, operands)) = expression.uncons() else {
            return simple_value(expression, environment).map(Next::Give);
        };
        match atoms::role(operator) {
            Role::Special(number) => self.eval_special(number, operands, environment),
            Role::Variable | Role::Other => self.eval_call(operator, operands, environment),
        }
    }

    /// The value of an expression that needs no frame: a constant, a variable, a quotation, or a
    /// call of a primitive. The operands of the call must be constants, variables or quotations, at
    /// most [`SIMPLE_OPERANDS_MAX`]. For other expressions, returns `None` and has no effect.
    #[inline]
    fn value_now(&mut self, expression: Value, environment: Value) -> Result<Option<Value>, Stop> {
        let Some((operator, operands)) = expression.uncons() else {
            return simple_value(expression, environment).map(Some);
        };
        match atoms::role(operator) {
            Role::Special(_) if special::is_quote(operator) => return Ok(operands.car()),
            Role::Variable => {}
            Role::Special(_) | Role::Other => return Ok(None),
        }
        let procedure = lookup(operator, environment)?;
        if !procedure.is_kind(Kind::Primitive) {
            return Ok(None);
        }
        let mut values = [Value::NIL; SIMPLE_OPERANDS_MAX];
        let (mut rest, mut count) = (operands, 0);
        while let Some((operand, after)) = rest.uncons() {
            let value = match operand.is_pair() {
                true => quoted(operand),
                false => Some(simple_value(operand, environment)?),
            };
            let (Some(value), Some(place)) = (value, values.get_mut(count)) else {
                return Ok(None);
            };
            *place = value;
            (rest, count) = (after, count + 1);
        }
        let mut arguments = Value::NIL;
        for &value in values[..count].iter().rev() {
            arguments = self.cons(value, arguments)?;
        }
        self.call_primitive(procedure, arguments, count).map(Some)
    }

    fn append_one(&mut self, list: List, value: Value) -> Result<List, Stop> {
        let cell = self.cons(value, Value::NIL)?;
        let first = if list.last.set_cdr(cell) { list.first } else { cell };
        Ok(List { first, last: cell })
    }

    fn eval_call(&mut self, operator: Value, operands: Value, environment: Value) -> Outcome {
        if atoms::is_atom(operator) {
            let procedure = lookup(operator, environment)?;
            return self.eval_operands(procedure, operands, environment, List::EMPTY);
        }
        self.push(Frame::Operator { operands, environment })?;
        Ok(Next::Eval(operator, environment))
    }

    /// Continues with the operands of a call, then calls.
    fn eval_operands(
        &mut self,
        operator: Value,
        mut rest: Value,
        environment: Value,
        mut made: List,
    ) -> Outcome {
        while let Some((operand, after)) = rest.uncons() {
            rest = after;
            match self.value_now(operand, environment)? {
                Some(value) => made = self.append_one(made, value)?,
                None => {
                    self.push(Frame::Operand { rest, environment, operator, made })?;
                    return Ok(Next::Eval(operand, environment));
                }
            }
        }
        self.apply(operator, made.first)
    }

    /// Adds the value of an operand.
    fn give_operand(
        &mut self,
        operator: Value,
        (rest, environment): (Value, Value),
        made: List,
        value: Value,
    ) -> Outcome {
        let made = self.append_one(made, value)?;
        self.eval_operands(operator, rest, environment, made)
    }

    fn call_primitive(
        &mut self,
        procedure: Value,
        arguments: Value,
        count: usize,
    ) -> Result<Value, Stop> {
        let primitive = &primitives::TABLE[procedure.payload_word(0) as usize];
        let arguments = Arguments::check(primitive, arguments, count)?;
        (primitive.function)(self, arguments)
    }

    fn apply(&mut self, operator: Value, arguments: Value) -> Outcome {
        if operator.is_kind(Kind::Primitive) {
            let count = Arguments::count(arguments);
            return self.call_primitive(operator, arguments, count).map(Next::Give);
        }
        if !operator.is_kind(Kind::Closure) {
            return stop(Cause::NotProcedure(atoms::show(operator, true)));
        }
        let [parameters, body, environment] = [0, 1, 2].map(|i| operator.field_at(i));
        let environment = self.bind(parameters, arguments, environment, operator)?;
        self.eval_body(body, environment)
    }

    /// The a-list with each parameter bound to its argument.
    fn bind(
        &mut self,
        parameters: Value,
        arguments: Value,
        environment: Value,
        operator: Value,
    ) -> Result<Value, Stop> {
        let (mut parameter, mut argument, mut inner) = (parameters, arguments, environment);
        loop {
            match (parameter.uncons(), argument.uncons()) {
                (Some((atom, parameters)), Some((value, arguments))) => {
                    inner = self.bind_one(atom, value, inner)?;
                    (parameter, argument) = (parameters, arguments);
                }
                (None, None) if parameter.is_nil() => return Ok(inner),
                (None, _) if atoms::is_atom(parameter) => {
                    return self.bind_one(parameter, argument, inner);
                }
                _ => {
                    let who = atoms::show(operator, true);
                    return stop(Cause::Arity { who, got: Arguments::count(arguments) });
                }
            }
        }
    }

    fn bind_one(&mut self, atom: Value, value: Value, environment: Value) -> Result<Value, Stop> {
        let binding = self.cons(atom, value)?;
        self.cons(binding, environment)
    }

    /// A closure: `[parameters][body][a-list]`.
    fn closure(
        &mut self,
        parameters: Value,
        body: Value,
        environment: Value,
    ) -> Result<Value, Stop> {
        let closure = match self.cells.try_object(Kind::Closure, 0, 3) {
            Some(closure) => closure,
            None => self.supply.object(&mut self.cells, Kind::Closure, 3)?,
        };
        closure.set_field_at(0, parameters);
        closure.set_field_at(1, body);
        closure.set_field_at(2, environment);
        Ok(closure)
    }

    fn collect(&mut self, registers: &[Value]) {
        let Self { heap, frames, atoms, forms, .. } = self;
        let done = heap.collect(|marker| {
            forms.iter().for_each(|&form| marker.mark(form));
            registers.iter().for_each(|&value| marker.mark(value));
            atoms.values().for_each(|value| marker.mark(value));
            for frame in frames.iter() {
                frame.values().into_iter().for_each(|value| marker.mark(value));
            }
        });
        self.supply.note_collection(done);
    }
}

/// The value of a variable, or of a constant other than a pair.
#[inline]
fn simple_value(expression: Value, environment: Value) -> Result<Value, Stop> {
    if atoms::is_atom(expression) { lookup(expression, environment) } else { Ok(expression) }
}

/// The quoted datum of a quotation.
#[inline]
fn quoted(expression: Value) -> Option<Value> {
    let (operator, operands) = expression.uncons()?;
    if special::is_quote(operator) { operands.car() } else { None }
}

/// The binding `(variable . value)` of an atom in an a-list.
fn binding(atom: Value, mut environment: Value) -> Option<Value> {
    while let Some((binding, rest)) = environment.uncons() {
        if binding.car() == Some(atom) {
            return Some(binding);
        }
        environment = rest;
    }
    None
}

fn lookup(atom: Value, environment: Value) -> Result<Value, Stop> {
    let value = match binding(atom, environment) {
        Some(binding) => binding.cdr().unwrap_or(Value::UNBOUND),
        None => atoms::global(atom),
    };
    if value == Value::UNBOUND { stop(Cause::Unbound(atoms::name(atom))) } else { Ok(value) }
}

/// Assigns a value to a bound variable, or to a global one that has a value.
fn assign(atom: Value, value: Value, environment: Value) -> Result<(), Stop> {
    if let Some(binding) = binding(atom, environment) {
        let _ = binding.set_cdr(value);
    } else if atoms::global(atom) == Value::UNBOUND {
        return stop(Cause::Unbound(atoms::name(atom)));
    } else {
        atoms::set_global(atom, value);
    }
    Ok(())
}

impl Frame {
    /// All values in a frame.
    fn values(&self) -> [Value; 5] {
        const NONE: Value = Value::NIL;
        match *self {
            Self::Operator { operands, environment } => [operands, environment, NONE, NONE, NONE],
            Self::Operand { rest, environment, operator, made } => {
                [rest, environment, operator, made.first, made.last]
            }
            Self::Sequence { rest, environment } | Self::Connective { rest, environment, .. } => {
                [rest, environment, NONE, NONE, NONE]
            }
            Self::If { branches, environment } => [branches, environment, NONE, NONE, NONE],
            Self::Cond { clauses, environment } => [clauses, environment, NONE, NONE, NONE],
            Self::Let { bindings, environment, inner, body } => {
                [bindings, environment, inner, body, NONE]
            }
            Self::LetStar { bindings, environment, body }
            | Self::Letrec { bindings, environment, body } => {
                [bindings, environment, body, NONE, NONE]
            }
            Self::Definition { body, environment } => [body, environment, NONE, NONE, NONE],
            Self::Set { atom, environment } => [atom, environment, NONE, NONE, NONE],
            Self::Define { atom } => [atom, NONE, NONE, NONE, NONE],
        }
    }
}
