//! The generator: core forms to instructions, one generator for each procedure.
//!
//! Slots are allocated as a stack: parameters first, then variables of `let`, then intermediate
//! values. `next` is the first free slot. A value is generated *into* a context: a slot, nothing,
//! or the procedure's result. If the context is a slot that is in use, only the last instruction of
//! the value writes that slot. So a loop can compute a parameter in place.
//!
//! Every assigned variable is in a cell, even if no closure captures it. The reason: frames are
//! copied by continuations, and a continuation that is entered twice must see the assignment.

mod binding;
mod call;
mod closure;
mod inlined;
mod test_position;

use crate::compiler::analysis::{Analysis, fixed_clause};
use crate::compiler::assembler::{Assembler, Label, SOURCE_FREE};
use crate::compiler::code::{Code, Entry, HEADROOM_SLOTS, PROLOGUE_WORDS, RAISE_SLOTS};
use crate::compiler::inline::Builtins;
use crate::compiler::instruction::{Instruction, Opcode};
use crate::compiler::{CompileError, SLOTS_MAX, make_code};
use kyocho_heap::heap::Mutator;
use kyocho_heap::value::Value;
use kyocho_syntax::core_form::{Clause, Core, Lambda, Variable};
use kyocho_syntax::datum::{Datum, Span};
use kyocho_syntax::location::Location;
use kyocho_syntax::symbol::Symbol;
use std::collections::HashMap;
use std::rc::Rc;

/// Where a variable's value is.
#[derive(Clone, Debug)]
enum Place {
    /// In this slot.
    Slot(u16),
    /// In the cell in this slot.
    CellSlot(u16),
    /// In the running closure, at this index.
    Free(u16),
    /// In a cell that the running closure refers to, at this index.
    CellFree(u16),
    /// The variable is a constant with this value.
    Constant(Value),
    /// The variable is the running closure.
    Itself,
    /// The variable is a label with these parameters.
    Label(Label, Vec<u16>),
}

/// The destination of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// Into this slot.
    Slot(u16),
    /// The value is not needed.
    Effect,
    /// It is the procedure's result.
    Tail,
}

/// State shared by all generators of a top-level form.
pub(super) struct Shared<'a> {
    pub(super) mutator: &'a mut Mutator,
    pub(super) builtins: &'a Builtins,
    pub(super) analysis: &'a Analysis,
    /// Local procedures without free variables: one closure each, known in all code.
    pub(super) constants: HashMap<*const Variable, Value>,
}

/// Facts about a procedure other than its body.
#[derive(Default)]
pub(super) struct Outline {
    name: Option<Symbol>,
    /// The variable that always refers to this procedure.
    itself: Option<Rc<Variable>>,
    /// The global that this procedure is defined as.
    global: Option<Location>,
}

/// Changes for compiling a procedure again that did not fit.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// Branches of 16 bits jump over a jump of 32 bits.
    far: bool,
    /// The procedure begins with `Reserve`.
    reserve: bool,
}

impl Shared<'_> {
    fn constant(&mut self, datum: &Datum) -> Result<Value, CompileError> {
        let value = self.mutator.constant(datum)?;
        Ok(self.mutator.keep(value))
    }
}

struct Generator<'a, 'b> {
    shared: &'a mut Shared<'b>,
    asm: Assembler,
    outline: &'a Outline,
    shape: Shape,
    places: HashMap<*const Variable, Place>,
    next: usize,
    frame_slots: usize,
    /// The entry and the number of arguments of the lambda's clause, if it has one clause and this
    /// takes a fixed number.
    fixed: Option<(usize, usize)>,
}

type Done = Result<(), CompileError>;

/// Compiles a top-level form into a procedure without arguments.
pub(super) fn generate_top(shared: &mut Shared<'_>, core: &Core) -> Result<Value, CompileError> {
    let outline = Outline::default();
    let mut shape = Shape::default();
    loop {
        let mut generator = Generator::new(shared, &outline, shape);
        let done = generator.top(core).and_then(|entries| generator.finish(entries));
        match done {
            Err(CompileError::TooFar) if !shape.far => shape.far = true,
            Err(CompileError::NeedsReserve) if !shape.reserve => shape.reserve = true,
            done => return done.map(|(code, _)| code),
        }
    }
}

/// Compiles a procedure. Returns the code object and the address of its entry.
fn generate_lambda(
    shared: &mut Shared<'_>,
    lambda: &Lambda,
    outline: &Outline,
    captured: &[(Rc<Variable>, Place)],
) -> Result<(Value, u64), CompileError> {
    let mut shape = Shape::default();
    loop {
        let mut generator = Generator::new(shared, outline, shape);
        for (variable, place) in captured {
            generator.settle_at(variable, place.clone());
        }
        if let Some(itself) = &outline.itself {
            generator.places.insert(Rc::as_ptr(itself), Place::Itself);
        }
        let done = generator.clauses(lambda).and_then(|entries| generator.finish(entries));
        match done {
            Err(CompileError::TooFar) if !shape.far => shape.far = true,
            Err(CompileError::NeedsReserve) if !shape.reserve => shape.reserve = true,
            done => return done,
        }
    }
}

impl<'a, 'b> Generator<'a, 'b> {
    fn new(shared: &'a mut Shared<'b>, outline: &'a Outline, shape: Shape) -> Self {
        let mut asm = Assembler::default();
        asm.wide(Opcode::Raised, 0, 0, 0);
        asm.op(Opcode::Raised, 0, 0, 0);
        let global = outline.global.as_ref().map_or(0, |global| asm.keep(global));
        asm.operand(global);
        Self {
            shared,
            asm,
            outline,
            shape,
            places: HashMap::new(),
            next: 0,
            frame_slots: 0,
            fixed: None,
        }
    }

    fn top(&mut self, core: &Core) -> Result<Vec<Entry>, CompileError> {
        let at = self.asm.here();
        self.reserve();
        self.generate(core, Context::Tail)?;
        Ok(vec![Entry { required: 0, rest: false, at }])
    }

    fn reserve(&mut self) {
        if self.shape.reserve {
            self.asm.wide(Opcode::Reserve, 0, 0, 0);
        }
    }

    fn clauses(&mut self, lambda: &Lambda) -> Result<Vec<Entry>, CompileError> {
        let mut entries = Vec::new();
        let fixed = fixed_clause(lambda).is_some();
        for clause in &lambda.clauses {
            let at = self.asm.here();
            let required = clause.required.len();
            entries.push(Entry { required, rest: clause.rest.is_some(), at });
            self.fixed = fixed.then_some((at, required));
            self.clause(clause)?;
        }
        Ok(entries)
    }

    fn clause(&mut self, clause: &Clause) -> Done {
        self.release(0);
        self.reserve();
        for variable in clause.required.iter().chain(&clause.rest) {
            let slot = self.take()?;
            self.settle(variable, slot);
        }
        self.generate(&clause.body, Context::Tail)
    }

    /// Assigns a variable the slot that has its value. Adds a cell if it needs one.
    fn settle(&mut self, variable: &Rc<Variable>, slot: u16) {
        let place = if self.is_celled(variable) {
            self.asm.op(Opcode::CellNew, slot, slot, 0);
            Place::CellSlot(slot)
        } else {
            Place::Slot(slot)
        };
        self.settle_at(variable, place);
    }

    /// From here on a variable has its value in `place`.
    fn settle_at(&mut self, variable: &Rc<Variable>, place: Place) {
        match place {
            Place::Slot(slot) => self.asm.local(variable.name, slot, false),
            Place::CellSlot(slot) => self.asm.local(variable.name, slot, true),
            Place::Free(index) => self.asm.local(variable.name, SOURCE_FREE | index, false),
            Place::CellFree(index) => self.asm.local(variable.name, SOURCE_FREE | index, true),
            Place::Constant(_) | Place::Itself | Place::Label(..) => {}
        }
        self.places.insert(Rc::as_ptr(variable), place);
    }

    /// Frees the slots from `next` on.
    fn release(&mut self, next: usize) {
        self.next = next;
        self.asm.end_locals(next);
    }

    fn is_celled(&self, variable: &Rc<Variable>) -> bool {
        variable.mutated.get() || self.shared.analysis.is_early(variable)
    }

    fn finish(&mut self, entries: Vec<Entry>) -> Result<(Value, u64), CompileError> {
        let frame = self.frame_slots;
        if frame + RAISE_SLOTS > HEADROOM_SLOTS && !self.shape.reserve {
            return Err(CompileError::NeedsReserve);
        }
        let (mut words, end) = self.asm.finish().map_err(|_| CompileError::TooFar)?;
        words[0] = Instruction::wide(Opcode::Raised, 0, frame as u16 + 1, 0).0;
        for entry in &entries {
            let reserve = Instruction(words[entry.at]);
            if reserve.opcode() == Some(Opcode::Reserve) {
                words[entry.at] = Instruction::wide(Opcode::Reserve, 0, 0, frame as i32).0;
            }
        }
        let at = entries.first().map_or(PROLOGUE_WORDS, |entry| entry.at);
        let code = Code {
            words: words.into_boxed_slice(),
            instructions_end: end,
            name: self.outline.name,
            entries: entries.into_boxed_slice(),
            frame_slots: frame,
            constants: core::mem::take(&mut self.asm.constants).into_boxed_slice(),
            globals: core::mem::take(&mut self.asm.globals).into_values().collect(),
            spans: core::mem::take(&mut self.asm.spans).into_boxed_slice(),
            locals: core::mem::take(&mut self.asm.locals).into_boxed_slice(),
        };
        let entry = code.address_of(at);
        let code = make_code(self.shared.mutator, code)?;
        Ok((self.shared.mutator.keep(code), entry))
    }

    /// The next free slot.
    fn take(&mut self) -> Result<u16, CompileError> {
        let slot = self.next;
        self.claim(slot + 1)?;
        self.next += 1;
        Ok(slot as u16)
    }

    /// Records that the frame needs at least `slots` slots.
    fn claim(&mut self, slots: usize) -> Done {
        if slots > SLOTS_MAX {
            return Err(CompileError::TooManySlots);
        }
        self.frame_slots = self.frame_slots.max(slots);
        Ok(())
    }

    fn generate(&mut self, core: &Core, context: Context) -> Done {
        self.shared.mutator.pause(&[])?;
        match core {
            Core::Constant(datum) => {
                let value = self.shared.constant(datum)?;
                self.constant(value, context)
            }
            Core::Unspecified => self.constant(Value::UNSPECIFIED, context),
            Core::Local(variable, span) => self.local(variable, *span, context),
            Core::SetLocal(variable, value, _) => self.set_local(variable, value, context),
            Core::Global(global, span) => self.global(global, *span, context),
            Core::SetGlobal(global, value, span) => {
                let next = self.next;
                let slot = self.operand(value)?;
                self.asm.span(*span);
                let literal = self.asm.location(global);
                self.asm.with_literal(Opcode::SetGlobal, 0, slot, literal);
                self.next = next;
                self.constant(Value::UNSPECIFIED, context)
            }
            Core::DefineGlobal(global, value, _) => self.define_global(global, value, context),
            Core::If(test, consequent, alternative) => {
                self.conditional(test, consequent, alternative, context)
            }
            Core::Sequence(forms) => {
                let Some((last, others)) = forms.split_last() else { return Ok(()) };
                for form in others {
                    let next = self.next;
                    self.generate(form, Context::Effect)?;
                    self.next = next;
                }
                self.generate(last, context)
            }
            Core::Lambda(lambda) => {
                let outline = Outline { name: lambda.name, ..Outline::default() };
                self.closure(lambda, &outline, context)
            }
            Core::Let(bindings, body) => self.let_form(bindings, body, context),
            Core::Letrec(bindings, body) => self.letrec_form(bindings, body, context),
            Core::Call(callee, arguments, span) => self.call(callee, arguments, *span, context),
        }
    }

    /// Generates into a slot: the variable's own if the form is a variable in a slot, else a fresh
    /// one.
    fn operand(&mut self, core: &Core) -> Result<u16, CompileError> {
        if let Core::Local(variable, _) = core
            && let Some(Place::Slot(slot)) = self.places.get(&Rc::as_ptr(variable))
        {
            return Ok(*slot);
        }
        let slot = self.take()?;
        self.generate(core, Context::Slot(slot))?;
        self.next = usize::from(slot) + 1;
        Ok(slot)
    }

    /// Moves a value from a slot to its context.
    fn deliver(&mut self, slot: u16, context: Context) {
        match context {
            Context::Slot(to) if to != slot => self.asm.op(Opcode::Move, to, slot, 0),
            Context::Tail => self.asm.op(Opcode::Return, slot, 0, 0),
            Context::Slot(_) | Context::Effect => {}
        }
    }

    /// The slot in which to compute the value for a context.
    fn target(&mut self, context: Context) -> Result<u16, CompileError> {
        match context {
            Context::Slot(slot) => Ok(slot),
            Context::Effect | Context::Tail => {
                self.claim(self.next + 1)?;
                Ok(self.next as u16)
            }
        }
    }

    fn constant(&mut self, value: Value, context: Context) -> Done {
        let word = value.to_word() as i64;
        match (context, i32::try_from(word)) {
            (Context::Effect, _) => {}
            (Context::Tail, Ok(word)) => self.asm.wide(Opcode::ReturnWord, 0, 0, word),
            (_, Ok(word)) => {
                let to = self.target(context)?;
                self.asm.wide(Opcode::LoadWord, 0, to, word);
            }
            (_, Err(_)) => {
                let to = self.target(context)?;
                let literal = self.asm.constant(value);
                self.asm.with_literal(Opcode::LoadLiteral, 0, to, literal);
                self.deliver(to, context);
            }
        }
        Ok(())
    }

    fn local(&mut self, variable: &Rc<Variable>, span: Span, context: Context) -> Done {
        let slot = match self.place(variable)? {
            Place::Slot(slot) => slot,
            Place::Constant(value) => return self.constant(value, context),
            Place::Label(..) => return Err(CompileError::Unplaced(variable.name)),
            Place::Free(index) => {
                let to = self.target(context)?;
                self.asm.op(Opcode::FreeRef, to, index, 0);
                to
            }
            Place::Itself => {
                let to = self.target(context)?;
                self.asm.op(Opcode::SelfRef, to, 0, 0);
                to
            }
            Place::CellSlot(cell) => self.cell_ref(variable, cell, span, context)?,
            Place::CellFree(index) => {
                let to = self.target(context)?;
                self.asm.op(Opcode::FreeRef, to, index, 0);
                self.cell_ref(variable, to, span, context)?
            }
        };
        self.deliver(slot, context);
        Ok(())
    }

    fn place(&self, variable: &Rc<Variable>) -> Result<Place, CompileError> {
        let key = Rc::as_ptr(variable);
        if let Some(place) = self.places.get(&key) {
            return Ok(place.clone());
        }
        let constant = self.shared.constants.get(&key);
        constant.map(|&value| Place::Constant(value)).ok_or(CompileError::Unplaced(variable.name))
    }

    fn cell_ref(
        &mut self,
        variable: &Rc<Variable>,
        cell: u16,
        span: Span,
        context: Context,
    ) -> Result<u16, CompileError> {
        let to = self.target(context)?;
        if self.shared.analysis.is_early(variable) {
            self.asm.span(span);
            self.asm.op(Opcode::CellRefChecked, to, cell, 0);
            self.asm.operand(Value::symbol(variable.name).to_word());
        } else {
            self.asm.op(Opcode::CellRef, to, cell, 0);
        }
        Ok(to)
    }

    /// Writes a slot's value into a variable's cell.
    fn cell_set(&mut self, variable: &Rc<Variable>, value: u16) -> Done {
        match self.places.get(&Rc::as_ptr(variable)) {
            Some(Place::CellSlot(cell)) => {
                let cell = *cell;
                self.asm.op(Opcode::CellSet, cell, value, 0);
            }
            Some(Place::CellFree(index)) => {
                let index = *index;
                let cell = self.take()?;
                self.asm.op(Opcode::FreeRef, cell, index, 0);
                self.asm.op(Opcode::CellSet, cell, value, 0);
            }
            _ => return Err(CompileError::Unplaced(variable.name)),
        }
        Ok(())
    }

    fn set_local(&mut self, variable: &Rc<Variable>, value: &Core, context: Context) -> Done {
        let next = self.next;
        let slot = self.operand(value)?;
        self.cell_set(variable, slot)?;
        self.next = next;
        self.constant(Value::UNSPECIFIED, context)
    }

    fn global(&mut self, global: &Location, span: Span, context: Context) -> Done {
        let to = self.target(context)?;
        self.asm.span(span);
        let literal = self.asm.location(global);
        self.asm.with_literal(Opcode::LoadGlobal, 0, to, literal);
        self.deliver(to, context);
        Ok(())
    }

    fn define_global(&mut self, global: &Location, value: &Core, context: Context) -> Done {
        let next = self.next;
        let slot = match value {
            Core::Lambda(lambda) => {
                let slot = self.take()?;
                let name = lambda.name.or(Some(global.name));
                let outline = Outline { name, itself: None, global: Some(global.clone()) };
                self.closure(lambda, &outline, Context::Slot(slot))?;
                slot
            }
            _ => self.operand(value)?,
        };
        let literal = self.asm.location(global);
        self.asm.with_literal(Opcode::DefineGlobal, 0, slot, literal);
        self.next = next;
        self.constant(Value::UNSPECIFIED, context)
    }
}
