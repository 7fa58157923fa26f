//! Entry of procedures that the interpreter's fast path does not handle, and raising.
//!
//! In a frame being entered the return address is at -2, the callee at -1, and the arguments from 0
//! on. A control procedure may put another callee into the frame and continue: `apply`, a handler,
//! a hook.

use crate::compiler::code::{ARITY_GENERAL, Code, Entry, STUB_RETURN};
use crate::machine::access::{Frame, Pc};
use crate::machine::condition;
use crate::machine::control::{self, Control};
use crate::machine::procedure;
use crate::machine::{Exit, Machine, Next};
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::{Cause, Raise};
use kyocho_heap::value::Value;
use kyocho_syntax::location::Global;
use kyocho_syntax::symbol::Symbol;

/// How to continue after entering a callee.
enum Step {
    Go(Next),
    Again(Frame, usize),
    Stop(Exit),
}

impl Machine {
    /// Enters the callee of `frame` with `count` arguments.
    pub(super) fn enter(&mut self, mut frame: Frame, mut count: usize) -> Result<Next, Exit> {
        loop {
            let step = match self.step_into(frame, count) {
                Ok(step) => step,
                Err(raise) if self.may_try_again(&raise) => Step::Stop(Exit::Exhausted),
                Err(raise) => match self.prepare_raise(frame, raise) {
                    Ok(count) => Step::Again(frame, count),
                    Err(exit) => Step::Stop(exit),
                },
            };
            match step {
                Step::Go(next) => return Ok(next),
                Step::Again(at, arguments) => {
                    frame = at;
                    count = arguments;
                }
                Step::Stop(exit) => {
                    self.frame = frame;
                    self.pending = Some(count);
                    return Err(exit);
                }
            }
        }
    }

    fn step_into(&mut self, frame: Frame, count: usize) -> Result<Step, Raise> {
        let callee = frame.callee();
        match callee.kind() {
            Some(Kind::Closure) => {
                let flag = callee.flags();
                if flag != ARITY_GENERAL && usize::from(flag) == count {
                    let pc = Pc::from_word(callee.payload_word(1));
                    return Ok(Step::Go(Next { pc, frame }));
                }
                self.enter_general(frame, callee, count).map(Step::Go)
            }
            Some(Kind::Primitive) => self.enter_primitive(frame, callee, count),
            Some(Kind::Continuation) => self.enter_continuation(frame, callee, count),
            Some(Kind::Parameter) if count == 0 => {
                let value = self.mutator.context.parameter(callee);
                Ok(Step::Go(self.give(frame, value)))
            }
            Some(Kind::Parameter) => Err(procedure::wrong_arity(callee, count)),
            _ => {
                let message = "the object called is not a procedure";
                Err(Raise::error(message, vec![callee]))
            }
        }
    }

    fn enter_general(&mut self, frame: Frame, callee: Value, count: usize) -> Result<Next, Raise> {
        let Some(code) = callee.field_at(0).as_foreign::<Code>() else {
            return Err(Raise::error("a closure without code", vec![callee]));
        };
        let fits = |entry: &&Entry| count == entry.required || entry.rest && count > entry.required;
        let Some(entry) = code.entries.iter().find(fits) else {
            return Err(procedure::wrong_arity(callee, count));
        };
        let pc = Pc::from_word(code.address_of(entry.at));
        if entry.rest {
            let rest = frame.values(entry.required, count - entry.required);
            let list = self.mutator.list(rest).map_err(|_| Raise::out_of_memory())?;
            frame.set_value(entry.required as isize, list);
        }
        Ok(Next { pc, frame })
    }

    fn enter_primitive(
        &mut self,
        frame: Frame,
        callee: Value,
        count: usize,
    ) -> Result<Step, Raise> {
        let index = callee.payload_word(0) as usize;
        if let Some(primitive) = control::primitive_at(index) {
            if count < primitive.min.into() || primitive.max.is_some_and(|max| count > max.into()) {
                return Err(procedure::wrong_arity(callee, count));
            }
            self.frame = frame;
            self.pending = Some(count);
            let result = self.call_primitive(primitive.function, frame.values(0, count));
            self.pending = None;
            let value = match result {
                Err(raise) if raise.is_interruption() => return Ok(Step::Stop(Exit::Poll)),
                result => result?,
            };
            return Ok(Step::Go(self.give(frame, value)));
        }
        let Some(control) = control::procedure_at(index) else {
            return Err(Raise::error("an unknown primitive", vec![callee]));
        };
        if count < control.min.into() || control.max.is_some_and(|max| count > max.into()) {
            return Err(procedure::wrong_arity(callee, count));
        }
        if let Some(host) = &self.mutator.context.host {
            host.count_call(control::number_of(index));
        }
        let control = match (control.function)(self, frame, count) {
            Err(raise) if raise.is_interruption() => Control::Stop(Exit::Poll),
            control => control?,
        };
        Ok(match control {
            Control::Value(value) => Step::Go(self.give(frame, value)),
            Control::Call(frame, count) => Step::Again(frame, count),
            Control::Go(next) => Step::Go(next),
            Control::Stop(exit) => Step::Stop(exit),
        })
    }

    fn enter_continuation(
        &mut self,
        frame: Frame,
        callee: Value,
        count: usize,
    ) -> Result<Step, Raise> {
        let value = match frame.values(0, count) {
            [value] => *value,
            values => self.values(values)?,
        };
        if self.is_wound_as(callee) {
            return Ok(Step::Go(self.reinstate(callee, value)));
        }
        let Some(rewind) = Self::hook(&self.hooks.rewind) else {
            return Ok(Step::Go(self.reinstate(callee, value)));
        };
        frame.set_value(-1, rewind);
        frame.set_value(0, callee);
        frame.set_value(1, value);
        Ok(Step::Again(frame, 2))
    }

    /// Several values as one object.
    pub(super) fn values(&mut self, values: &[Value]) -> Result<Value, Raise> {
        if let [value] = values {
            return Ok(*value);
        }
        self.mutator.object_of(Kind::Values, values).map_err(|_| Raise::out_of_memory())
    }

    /// Returns `value` from a frame.
    pub(super) fn give(&mut self, frame: Frame, value: Value) -> Next {
        let pc = frame.return_pc();
        frame.set_value(-2, value);
        Next { pc, frame: frame.down(pc.returns_over() + 2) }
    }

    /// Changes a frame into a call of the handlers.
    fn prepare_raise(&mut self, frame: Frame, raise: Raise) -> Result<usize, Exit> {
        let continuable = match raise.cause() {
            Cause::Exit(code) | Cause::EmergencyExit(code) => return Err(Exit::Quit(*code)),
            Cause::Object { continuable, .. } => *continuable,
            Cause::OutOfMemory => {
                // The handlers may use the memory kept for them.
                self.mutator.spends_reserve = true;
                self.has_raised_out_of_memory = true;
                false
            }
            _ => false,
        };
        let object = condition::object_of(&mut self.mutator, raise);
        let Some(handler) = Self::hook(&self.hooks.raise) else {
            self.outcome = object;
            return Err(Exit::Uncaught);
        };
        frame.set_value(-1, handler);
        frame.set_value(0, object);
        frame.set_value(1, Value::boolean(continuable));
        Ok(2)
    }

    /// Raises instead of running the callee of `frame`.
    pub(super) fn raise_in_callee(
        &mut self,
        frame: Frame,
        count: usize,
        raise: Raise,
    ) -> Result<Next, Exit> {
        match self.prepare_raise(frame, raise) {
            Ok(count) => self.enter(frame, count),
            Err(exit) => {
                self.frame = frame;
                self.pending = Some(count);
                Err(exit)
            }
        }
    }

    /// Raises at an instruction of the running procedure.
    ///
    /// ```text
    /// frame .. | slots of the procedure | pc of the fault | return to stub | %raise | object ..
    /// ```
    #[cold]
    #[inline(never)]
    pub(super) fn raise_at(&mut self, pc: Pc, frame: Frame, raise: Raise) -> Next {
        if self.may_try_again(&raise) {
            self.again = Some(pc);
            self.stopped = Some(Exit::Exhausted);
            return Next { pc: Pc::broken(), frame };
        }
        let slots = self.frame_slots(frame) + 3;
        // Like any other frame, the handlers' frame begins below the limit; at the end of the stack
        // it is in the reserve.
        let room = |machine: &mut Self| machine.grow(frame, slots);
        let Ok(frame) = room(self).or_else(|_| room(self)) else {
            // The handlers themselves have used up the reserve.
            self.outcome = condition::object_of(&mut self.mutator, raise);
            self.stopped = Some(Exit::Uncaught);
            return Next { pc: Pc::broken(), frame };
        };
        let stub = self
            .code_of(frame)
            .map_or(Pc::underflow(), |code| Pc::from_word(code.address_of(STUB_RETURN)));
        let new = frame.up(slots);
        new.set_value(-3, Value::from_word(pc.to_word()));
        new.set_return_pc(stub);
        match self.raise_in_callee(new, 0, raise) {
            Ok(next) => next,
            Err(exit) => {
                self.stopped = Some(exit);
                Next { pc: Pc::broken(), frame: new }
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn raise_unbound(&mut self, pc: Pc, frame: Frame, global: &Global) -> Next {
        self.raise_at(pc, frame, condition::unbound(global))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn raise_uninitialised(&mut self, pc: Pc, frame: Frame) -> Next {
        let name = Value::from_word(pc.word(1));
        let message = "variable used before its initialisation";
        self.raise_at(pc, frame, Raise::error(message, vec![name]))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn raise_no_record(&mut self, pc: Pc, frame: Frame, got: Value) -> Next {
        let name = procedure::name_of(frame.callee()).map_or("record", Symbol::name);
        let record_type = frame.callee().field_at(2).field(0).and_then(Value::as_symbol);
        let expected = record_type.map_or("record", Symbol::name);
        let message = format!("{name}: the argument must be a {expected}");
        self.raise_at(pc, frame, Raise::error(message, vec![got]))
    }

    /// The code of the procedure running in `frame`.
    pub(super) fn code_of<'a>(&self, frame: Frame) -> Option<&'a Code> {
        code_of(frame)
    }

    pub(super) fn frame_slots(&self, frame: Frame) -> usize {
        slots_of(frame)
    }
}

fn code_of<'a>(frame: Frame) -> Option<&'a Code> {
    let callee = frame.callee();
    if !callee.is_kind(Kind::Closure) {
        return None;
    }
    callee.field_at(0).as_foreign::<Code>()
}

/// Number of slots of the procedure running in `frame`.
pub(super) fn slots_of(frame: Frame) -> usize {
    code_of(frame).map_or(0, |code| code.frame_slots)
}
