//! The machine's loop. It has over 500 lines, because it is one function with two local variables.
//!
//! The compiler keeps these two variables, `pc` and `frame`, in registers of the CPU. All other
//! state is in the machine. An instruction that needs memory checks the cell cache before it has
//! any effect. So it can be repeated after a refill. Slow paths are separate functions, which take
//! `pc` and `frame`, and return their new values.

mod fast;
mod slow;

use crate::compiler::instruction::Opcode;
use crate::machine::access::{global, opcode, primitive};
use crate::machine::{Exit, Machine, Next};
use fast::{
    FIXNUM_SHIFT, both_fixnums, comparable, element, entry, fill_closure, is_closure_of, is_record,
    modulo, quotient, remainder, set_element, small,
};
use kyocho_heap::heap::{Kind, location};
use kyocho_heap::number::reals;
use kyocho_heap::value::Value;

impl Machine {
    /// Runs until something must be done outside.
    #[expect(
        clippy::too_many_lines,
        clippy::excessive_nesting,
        reason = "one arm for each instruction, which the compiler turns into a jump table"
    )]
    pub(super) fn run_instructions(&mut self) -> Exit {
        let mut pc = self.pc;
        let mut frame = self.frame;

        macro_rules! leave {
            ($exit:expr) => {{
                self.pc = pc;
                self.frame = frame;
                return $exit;
            }};
        }
        macro_rules! go {
            ($next:expr) => {{
                let next: Next = $next;
                pc = next.pc;
                frame = next.frame;
                continue;
            }};
        }
        // Runs the primitive whose address follows the instruction. Its value goes to slot `$to`.
        macro_rules! call_primitive {
            ($to:expr, $arguments:expr) => {{
                let function = primitive(pc.word(1)).function;
                // Collections may run while a primitive blocks in the kernel.
                self.frame = frame;
                match self.call_primitive(function, $arguments) {
                    Ok(value) => {
                        frame.set($to, value);
                        pc = pc.at(2);
                        if self.mutator.heap.collection_wanted() {
                            leave!(Exit::Collect);
                        }
                    }
                    // The instruction is repeated when the thread continues.
                    Err(raise) if raise.is_interruption() => leave!(Exit::Poll),
                    Err(raise) => go!(self.raise_at(pc, frame, raise)),
                }
            }};
        }
        macro_rules! slowly {
            ($to:expr, $arguments:expr) => {{
                match self.slow_primitive(pc, frame, $to, $arguments) {
                    Ok(next) => go!(next),
                    // The instruction is repeated when the thread continues.
                    Err(Exit::Poll) => leave!(Exit::Poll),
                    Err(exit) => {
                        pc = pc.at(2);
                        leave!(exit)
                    }
                }
            }};
        }
        // The operation on two real numbers, at least one of them a flonum; otherwise calls the
        // primitive.
        macro_rules! real {
            ($i:ident, $a:expr, $b:expr, $operator:tt) => {
                match reals($a, $b) {
                    Some((x, y)) => {
                        let Some(number) = self.mutator.cells.try_flonum(x $operator y) else {
                            leave!(Exit::Refill(1));
                        };
                        frame.set($i.a(), number);
                        pc = pc.at(2);
                    }
                    None => slowly!($i.a(), &[$a, $b]),
                }
            };
        }
        macro_rules! branch {
            ($i:ident, $jump:expr) => {{
                pc = if $jump { pc.at($i.bc()) } else { pc.at(1) };
            }};
        }
        macro_rules! compare {
            ($i:ident, $a:expr, $b:expr, $operator:tt, $sense:literal) => {{
                let (a, b): (Value, Value) = ($a, $b);
                let holds = if both_fixnums(a, b) {
                    (a.to_word() as i64) $operator (b.to_word() as i64)
                } else if let Some((x, y)) = comparable(a, b) {
                    x $operator y
                } else {
                    match self.slow_test(pc, frame, &[a, b]) {
                        Ok(holds) => holds,
                        Err(raise) => go!(self.raise_at(pc, frame, raise)),
                    }
                };
                pc = if holds == $sense { pc.at(i32::from($i.c_signed())) } else { pc.at(2) };
            }};
        }
        macro_rules! compare_small {
            ($i:ident, $operator:tt, $sense:literal) => {
                compare!($i, frame.get($i.a()), small($i.b_signed()), $operator, $sense)
            };
        }
        // A safepoint before a call with frame `$new`. Nothing has been changed yet.
        macro_rules! check_call {
            ($new:expr) => {
                if $new > self.limit || self.poll.is_set() {
                    match self.safepoint(pc, frame, $new) {
                        Ok(next) => go!(next),
                        Err(exit) => leave!(exit),
                    }
                }
            };
        }
        macro_rules! poll {
            () => {
                if self.poll.is_set() {
                    leave!(Exit::Poll);
                }
            };
        }
        macro_rules! enter {
            ($new:expr, $count:expr) => {
                match self.enter($new, $count) {
                    Ok(next) => go!(next),
                    Err(exit) => return exit,
                }
            };
        }
        macro_rules! call {
            ($i:ident, $callee:expr, $count:expr) => {{
                let new = frame.up(usize::from($i.a()) + 2);
                check_call!(new);
                let callee: Value = $callee;
                let count: u64 = $count;
                new.set_return_pc(pc.at(1));
                new.set_value(-1, callee);
                if is_closure_of(callee, count) {
                    frame = new;
                    pc = entry(callee);
                } else {
                    enter!(new, count as usize);
                }
            }};
        }
        macro_rules! tail_call {
            ($i:ident, $callee:expr, $count:expr) => {{
                poll!();
                let callee: Value = $callee;
                let count: u64 = $count;
                frame.set_value(-1, callee);
                let from = usize::from($i.a()) + 2;
                for slot in 0..count as usize {
                    frame.set_value(slot as isize, frame.value((from + slot) as isize));
                }
                if is_closure_of(callee, count) {
                    pc = entry(callee);
                } else {
                    enter!(frame, count as usize);
                }
            }};
        }
        macro_rules! global_value {
            ($i:ident) => {{
                let global = global(pc.word($i.bc()));
                let value = location::value(global);
                if value == Value::UNBOUND {
                    go!(self.raise_unbound(pc, frame, global));
                }
                value
            }};
        }

        loop {
            let i = pc.fetch();
            match opcode(i) {
                Opcode::Move => {
                    frame.set(i.a(), frame.get(i.b()));
                    pc = pc.at(1);
                }
                Opcode::LoadWord => {
                    frame.set(i.a(), Value::from_word(i64::from(i.bc()) as u64));
                    pc = pc.at(1);
                }
                Opcode::LoadLiteral => {
                    frame.set(i.a(), Value::from_word(pc.word(i.bc())));
                    pc = pc.at(1);
                }
                Opcode::LoadGlobal => {
                    frame.set(i.a(), global_value!(i));
                    pc = pc.at(1);
                }
                Opcode::SetGlobal => {
                    let _ = global_value!(i);
                    location::set(global(pc.word(i.bc())), frame.get(i.a()));
                    pc = pc.at(1);
                }
                Opcode::DefineGlobal => {
                    location::set(global(pc.word(i.bc())), frame.get(i.a()));
                    pc = pc.at(1);
                }
                Opcode::FreeRef => {
                    frame.set(i.a(), frame.callee().field_at(usize::from(i.b()) + 2));
                    pc = pc.at(1);
                }
                Opcode::SelfRef => {
                    frame.set(i.a(), frame.callee());
                    pc = pc.at(1);
                }
                Opcode::CellNew => {
                    let value = frame.get(i.b());
                    let Some(cell) = self.mutator.cells.try_object(Kind::Cell, 0, 1) else {
                        leave!(Exit::Refill(1));
                    };
                    cell.set_field_at(0, value);
                    frame.set(i.a(), cell);
                    pc = pc.at(1);
                }
                Opcode::CellRef => {
                    frame.set(i.a(), frame.get(i.b()).field_at(0));
                    pc = pc.at(1);
                }
                Opcode::CellRefChecked => {
                    let value = frame.get(i.b()).field_at(0);
                    if value == Value::UNINITIALISED {
                        go!(self.raise_uninitialised(pc, frame));
                    }
                    frame.set(i.a(), value);
                    pc = pc.at(2);
                }
                Opcode::CellSet => {
                    frame.get(i.a()).set_field_at(0, frame.get(i.b()));
                    pc = pc.at(1);
                }
                Opcode::MakeClosure => {
                    let free = usize::from(i.b());
                    let Some(closure) =
                        self.mutator.cells.try_object(Kind::Closure, i.c() as u8, free + 2)
                    else {
                        leave!(Exit::Refill(free / 2 + 2));
                    };
                    fill_closure(pc, frame, closure, free);
                    frame.set(i.a(), closure);
                    pc = pc.at(2 + free.div_ceil(4) as i32);
                }
                Opcode::PatchClosure => {
                    let free = usize::from(i.b()) + 2;
                    frame.get(i.a()).set_field_at(free, frame.get(i.c()));
                    pc = pc.at(1);
                }
                Opcode::Jump => pc = pc.at(i.bc()),
                Opcode::Loop => {
                    poll!();
                    pc = pc.at(i.bc());
                }
                Opcode::JumpIfFalse => branch!(i, !frame.get(i.a()).is_true()),
                Opcode::JumpIfTrue => branch!(i, frame.get(i.a()).is_true()),
                Opcode::JumpIfNull => branch!(i, frame.get(i.a()) == Value::NIL),
                Opcode::JumpUnlessNull => branch!(i, frame.get(i.a()) != Value::NIL),
                Opcode::JumpIfPair => branch!(i, frame.get(i.a()).is_pair()),
                Opcode::JumpUnlessPair => branch!(i, !frame.get(i.a()).is_pair()),
                Opcode::JumpIfSame => {
                    let same = frame.get(i.a()) == frame.get(i.b());
                    pc = pc.at(if same { i32::from(i.c_signed()) } else { 1 });
                }
                Opcode::JumpUnlessSame => {
                    let same = frame.get(i.a()) == frame.get(i.b());
                    pc = pc.at(if same { 1 } else { i32::from(i.c_signed()) });
                }
                Opcode::JumpIfLess => compare!(i, frame.get(i.a()), frame.get(i.b()), <, true),
                Opcode::JumpUnlessLess => compare!(i, frame.get(i.a()), frame.get(i.b()), <, false),
                Opcode::JumpIfLessEqual => {
                    compare!(i, frame.get(i.a()), frame.get(i.b()), <=, true);
                }
                Opcode::JumpUnlessLessEqual => {
                    compare!(i, frame.get(i.a()), frame.get(i.b()), <=, false);
                }
                Opcode::JumpIfEqual => compare!(i, frame.get(i.a()), frame.get(i.b()), ==, true),
                Opcode::JumpUnlessEqual => {
                    compare!(i, frame.get(i.a()), frame.get(i.b()), ==, false);
                }
                Opcode::JumpIfLessSmall => compare_small!(i, <, true),
                Opcode::JumpUnlessLessSmall => compare_small!(i, <, false),
                Opcode::JumpIfLessEqualSmall => compare_small!(i, <=, true),
                Opcode::JumpUnlessLessEqualSmall => compare_small!(i, <=, false),
                Opcode::JumpIfEqualSmall => compare_small!(i, ==, true),
                Opcode::JumpUnlessEqualSmall => compare_small!(i, ==, false),
                Opcode::JumpIfGreaterSmall => compare_small!(i, >, true),
                Opcode::JumpUnlessGreaterSmall => compare_small!(i, >, false),
                Opcode::JumpIfGreaterEqualSmall => compare_small!(i, >=, true),
                Opcode::JumpUnlessGreaterEqualSmall => compare_small!(i, >=, false),
                Opcode::Add => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    match (a.to_word() as i64).checked_add(b.to_word() as i64) {
                        Some(sum) if both_fixnums(a, b) => {
                            frame.set(i.a(), Value::from_word(sum as u64));
                            pc = pc.at(2);
                        }
                        _ => real!(i, a, b, +),
                    }
                }
                Opcode::Subtract => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    match (a.to_word() as i64).checked_sub(b.to_word() as i64) {
                        Some(difference) if both_fixnums(a, b) => {
                            frame.set(i.a(), Value::from_word(difference as u64));
                            pc = pc.at(2);
                        }
                        _ => real!(i, a, b, -),
                    }
                }
                Opcode::Multiply => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    let factor = b.to_word() as i64 >> FIXNUM_SHIFT;
                    match (a.to_word() as i64).checked_mul(factor) {
                        Some(product) if both_fixnums(a, b) => {
                            frame.set(i.a(), Value::from_word(product as u64));
                            pc = pc.at(2);
                        }
                        _ => real!(i, a, b, *),
                    }
                }
                Opcode::AddSmall => {
                    let (a, b) = (frame.get(i.b()), small(i.c_signed()));
                    match (a.to_word() as i64).checked_add(b.to_word() as i64) {
                        Some(sum) if a.is_fixnum() => {
                            frame.set(i.a(), Value::from_word(sum as u64));
                            pc = pc.at(2);
                        }
                        _ => real!(i, a, b, +),
                    }
                }
                Opcode::SubtractSmall => {
                    let (a, b) = (frame.get(i.b()), small(i.c_signed()));
                    match (a.to_word() as i64).checked_sub(b.to_word() as i64) {
                        Some(difference) if a.is_fixnum() => {
                            frame.set(i.a(), Value::from_word(difference as u64));
                            pc = pc.at(2);
                        }
                        _ => real!(i, a, b, -),
                    }
                }
                Opcode::Quotient => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    match quotient(a, b) {
                        Some(value) => {
                            frame.set(i.a(), value);
                            pc = pc.at(2);
                        }
                        None => slowly!(i.a(), &[a, b]),
                    }
                }
                Opcode::Remainder => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    match remainder(a, b) {
                        Some(value) => {
                            frame.set(i.a(), value);
                            pc = pc.at(2);
                        }
                        None => slowly!(i.a(), &[a, b]),
                    }
                }
                Opcode::Modulo => {
                    let (a, b) = (frame.get(i.b()), frame.get(i.c()));
                    match modulo(a, b) {
                        Some(value) => {
                            frame.set(i.a(), value);
                            pc = pc.at(2);
                        }
                        None => slowly!(i.a(), &[a, b]),
                    }
                }
                Opcode::Cons => {
                    let (car, cdr) = (frame.get(i.b()), frame.get(i.c()));
                    let Some(pair) = self.mutator.cells.try_cons(car, cdr) else {
                        leave!(Exit::Refill(1));
                    };
                    frame.set(i.a(), pair);
                    pc = pc.at(1);
                }
                Opcode::Car => {
                    let pair = frame.get(i.b());
                    if let Some(car) = pair.car() {
                        frame.set(i.a(), car);
                        pc = pc.at(2);
                    } else {
                        slowly!(i.a(), &[pair]);
                    }
                }
                Opcode::Cdr => {
                    let pair = frame.get(i.b());
                    if let Some(cdr) = pair.cdr() {
                        frame.set(i.a(), cdr);
                        pc = pc.at(2);
                    } else {
                        slowly!(i.a(), &[pair]);
                    }
                }
                Opcode::Cadr => {
                    let pair = frame.get(i.b());
                    if let Some(value) = pair.cdr().and_then(Value::car) {
                        frame.set(i.a(), value);
                        pc = pc.at(2);
                    } else {
                        slowly!(i.a(), &[pair]);
                    }
                }
                Opcode::Cddr => {
                    let pair = frame.get(i.b());
                    if let Some(value) = pair.cdr().and_then(Value::cdr) {
                        frame.set(i.a(), value);
                        pc = pc.at(2);
                    } else {
                        slowly!(i.a(), &[pair]);
                    }
                }
                Opcode::VectorRef => {
                    let (vector, index) = (frame.get(i.b()), frame.get(i.c()));
                    if let Some(value) = element(vector, index) {
                        frame.set(i.a(), value);
                        pc = pc.at(2);
                    } else {
                        slowly!(i.a(), &[vector, index]);
                    }
                }
                Opcode::VectorSet => {
                    let (vector, index) = (frame.get(i.a()), frame.get(i.b()));
                    let value = frame.get(i.c());
                    if set_element(vector, index, value) {
                        pc = pc.at(2);
                    } else {
                        match self.slow_test(pc, frame, &[vector, index, value]) {
                            Ok(_) => pc = pc.at(2),
                            Err(raise) => go!(self.raise_at(pc, frame, raise)),
                        }
                    }
                }
                Opcode::RecordNew => {
                    let count = usize::from(i.c());
                    let made = self.mutator.cells.try_object(Kind::Record, 0, count + 1);
                    let Some(record) = made else {
                        leave!(Exit::Refill(count / 2 + 2));
                    };
                    record.set_field_at(0, frame.callee().field_at(2));
                    for field in 0..i.c() {
                        record.set_field_at(usize::from(field) + 1, frame.get(i.b() + field));
                    }
                    frame.set(i.a(), record);
                    pc = pc.at(1);
                }
                Opcode::RecordIs => {
                    let is = is_record(frame.get(i.b()), frame.callee().field_at(2));
                    frame.set(i.a(), Value::boolean(is));
                    pc = pc.at(1);
                }
                Opcode::RecordRef => {
                    let record = frame.get(i.b());
                    if !is_record(record, frame.callee().field_at(2)) {
                        go!(self.raise_no_record(pc, frame, record));
                    }
                    frame.set(i.a(), record.field_at(usize::from(i.c()) + 1));
                    pc = pc.at(1);
                }
                Opcode::RecordSet => {
                    let record = frame.get(i.a());
                    if !is_record(record, frame.callee().field_at(2)) {
                        go!(self.raise_no_record(pc, frame, record));
                    }
                    record.set_field_at(usize::from(i.c()) + 1, frame.get(i.b()));
                    pc = pc.at(1);
                }
                Opcode::Primitive0 => call_primitive!(i.a(), &[]),
                Opcode::Primitive1 => {
                    call_primitive!(i.a(), frame.values(usize::from(i.b()), 1));
                }
                Opcode::Primitive2 => {
                    call_primitive!(i.a(), &[frame.get(i.b()), frame.get(i.c())]);
                }
                Opcode::PrimitiveN => {
                    let (first, count) = (usize::from(i.b()), usize::from(i.c()));
                    call_primitive!(i.a(), frame.values(first, count));
                }
                Opcode::Call => {
                    call!(i, frame.get(i.a() + 1), u64::from(i.b()));
                }
                Opcode::CallGlobal => call!(i, global_value!(i), u64::from(i.x())),
                Opcode::CallKnown => {
                    let new = frame.up(usize::from(i.a()) + 2);
                    check_call!(new);
                    new.set_return_pc(pc.at(1));
                    frame = new;
                    pc = entry(new.callee());
                }
                Opcode::CallSelf => {
                    let new = frame.up(usize::from(i.a()) + 2);
                    check_call!(new);
                    new.set_return_pc(pc.at(1));
                    new.set_value(-1, frame.callee());
                    frame = new;
                    pc = pc.at(i.bc());
                }
                Opcode::CallSelfGlobal => {
                    let location = global(pc.word(i.bc()));
                    let callee = frame.callee();
                    if location::value(location) == callee {
                        let new = frame.up(usize::from(i.a()) + 2);
                        check_call!(new);
                        new.set_return_pc(pc.at(1));
                        new.set_value(-1, callee);
                        frame = new;
                        pc = pc.at(i.bc() + 1);
                    } else {
                        call!(i, global_value!(i), u64::from(i.x()));
                    }
                }
                Opcode::TailCall => {
                    tail_call!(i, frame.get(i.a() + 1), u64::from(i.b()));
                }
                Opcode::TailCallGlobal => tail_call!(i, global_value!(i), u64::from(i.x())),
                Opcode::TailCallKnown => {
                    poll!();
                    frame.set_value(-1, frame.get(i.a() + 1));
                    let from = usize::from(i.a()) + 2;
                    for slot in 0..usize::from(i.x()) {
                        frame.set_value(slot as isize, frame.value((from + slot) as isize));
                    }
                    pc = entry(frame.callee());
                }
                Opcode::TailCallSelfGlobal => {
                    let value = location::value(global(pc.word(i.bc())));
                    if value == frame.callee() {
                        poll!();
                        let from = usize::from(i.a()) + 2;
                        for slot in 0..usize::from(i.x()) {
                            frame.set_value(slot as isize, frame.value((from + slot) as isize));
                        }
                        pc = pc.at(i.bc() + 1);
                    } else {
                        tail_call!(i, global_value!(i), u64::from(i.x()));
                    }
                }
                Opcode::Return => {
                    let value = frame.get(i.a());
                    pc = frame.return_pc();
                    frame.set_value(-2, value);
                    frame = frame.down(pc.returns_over() + 2);
                }
                Opcode::ReturnWord => {
                    let value = Value::from_word(i64::from(i.bc()) as u64);
                    pc = frame.return_pc();
                    frame.set_value(-2, value);
                    frame = frame.down(pc.returns_over() + 2);
                }
                Opcode::Reserve => match self.reserve(frame, i.bc() as usize) {
                    Ok(at) => {
                        frame = at;
                        pc = pc.at(1);
                    }
                    Err(next) => go!(next),
                },
                Opcode::Underflow => match self.underflow(frame) {
                    Ok(next) => go!(next),
                    Err(exit) => leave!(exit),
                },
                Opcode::Raised => match self.raised(pc, frame) {
                    Ok(next) => go!(next),
                    Err(exit) => leave!(exit),
                },
            }
        }
    }
}
