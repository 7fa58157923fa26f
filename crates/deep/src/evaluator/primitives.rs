//! Primitives of the deep-binding evaluator: integers of 61 bits, lists, output.

use super::Evaluator;
use crate::atoms;
use crate::error::{Cause, Stop, stop};
use kyocho_heap::heap::Kind;
use kyocho_heap::value::Value;
use std::io::{self, ErrorKind};

/// A primitive.
pub(super) struct Primitive {
    pub(super) name: &'static str,
    /// The fewest and the most arguments.
    pub(super) arity: (usize, usize),
    pub(super) function: fn(&mut Evaluator<'_>, Arguments) -> Result<Value, Stop>,
}

/// An argument list, and the name of the primitive that receives it.
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    list: Value,
    who: &'static str,
}

const ANY: usize = usize::MAX;

impl Arguments {
    pub(super) fn check(primitive: &Primitive, list: Value, got: usize) -> Result<Self, Stop> {
        let (least, most) = primitive.arity;
        if got < least || got > most {
            return stop(Cause::Arity { who: primitive.name.into(), got });
        }
        Ok(Self { list, who: primitive.name })
    }

    pub(super) fn count(mut list: Value) -> usize {
        let mut count = 0;
        while let Some(rest) = list.cdr() {
            count += 1;
            list = rest;
        }
        count
    }

    /// The next argument. The caller has checked the arity.
    fn next(&mut self) -> Value {
        let (first, rest) = self.list.uncons().unwrap_or((Value::UNSPECIFIED, Value::NIL));
        self.list = rest;
        first
    }

    fn is_empty(&self) -> bool {
        self.list.is_nil()
    }

    fn next_integer(&mut self) -> Result<i64, Stop> {
        let value = self.next();
        value
            .as_fixnum()
            .ok_or_else(|| Stop::from(Cause::wrong_type(self.who, "an integer", value)))
    }

    fn next_pair(&mut self) -> Result<Value, Stop> {
        let value = self.next();
        if value.is_pair() { Ok(value) } else { stop(Cause::wrong_type(self.who, "a pair", value)) }
    }

    fn fixnum(&self, n: Option<i64>) -> Result<Value, Stop> {
        n.and_then(Value::fixnum_checked).ok_or_else(|| Stop::from(Cause::Overflow(self.who)))
    }

    fn fold(mut self, unit: i64, step: impl Fn(i64, i64) -> Option<i64>) -> Result<Value, Stop> {
        let mut result = Some(unit);
        while !self.is_empty() {
            let n = self.next_integer()?;
            result = result.and_then(|result| step(result, n));
        }
        self.fixnum(result)
    }

    fn subtract(mut self) -> Result<Value, Stop> {
        let first = self.next_integer()?;
        if self.is_empty() {
            return self.fixnum(first.checked_neg());
        }
        self.fold(first, i64::checked_sub)
    }

    fn divide(mut self, divide: impl Fn(i64, i64) -> Option<i64>) -> Result<Value, Stop> {
        let (dividend, divisor) = (self.next_integer()?, self.next_integer()?);
        if divisor == 0 {
            return stop(Cause::DivideByZero(self.who));
        }
        self.fixnum(divide(dividend, divisor))
    }

    fn compare(mut self, holds: impl Fn(&i64, &i64) -> bool) -> Result<Value, Stop> {
        let mut last = self.next_integer()?;
        let mut all = true;
        while !self.is_empty() {
            let n = self.next_integer()?;
            all &= holds(&last, &n);
            last = n;
        }
        Ok(Value::boolean(all))
    }

    fn is(mut self, holds: impl Fn(Value) -> bool) -> Result<Value, Stop> {
        Ok(Value::boolean(holds(self.next())))
    }

    /// Applies `car` and `cdr` from the right of `path`: `"ad"` is `cadr`.
    fn select(mut self, path: &str) -> Result<Value, Stop> {
        let argument = self.next();
        let mut value = argument;
        for step in path.bytes().rev() {
            let part = if step == b'a' { value.car() } else { value.cdr() };
            value =
                part.ok_or_else(|| Stop::from(Cause::wrong_type(self.who, "a pair", argument)))?;
        }
        Ok(value)
    }
}

/// `equal?`, without recursion. Data that take more than `STEPS_MAX` comparisons, such as cyclic
/// ones, count as different.
fn equal(a: Value, b: Value) -> bool {
    const STEPS_MAX: usize = 10_000_000;
    let mut pending = vec![(a, b)];
    for _ in 0..STEPS_MAX {
        let Some((a, b)) = pending.pop() else { return true };
        let same = match (a.uncons(), b.uncons()) {
            (Some((a_car, a_cdr)), Some((b_car, b_cdr))) => {
                pending.extend([(a_cdr, b_cdr), (a_car, b_car)]);
                true
            }
            _ => a == b || a.to_text().is_some_and(|text| b.to_text() == Some(text)),
        };
        if !same {
            return false;
        }
    }
    false
}

fn append(e: &mut Evaluator<'_>, mut arguments: Arguments) -> Result<Value, Stop> {
    let mut lists = Vec::new();
    while !arguments.is_empty() {
        lists.push(arguments.next());
    }
    let Some(mut result) = lists.pop() else { return Ok(Value::NIL) };
    for list in lists.into_iter().rev() {
        let items = items(list, arguments.who)?;
        result = items.iter().rev().try_fold(result, |tail, &item| e.cons(item, tail))?;
    }
    Ok(result)
}

fn items(list: Value, who: &'static str) -> Result<Vec<Value>, Stop> {
    let (mut items, mut rest) = (Vec::new(), list);
    while let Some((item, after)) = rest.uncons() {
        items.push(item);
        rest = after;
    }
    if rest.is_nil() { Ok(items) } else { stop(Cause::wrong_type(who, "a list", list)) }
}

fn reverse(e: &mut Evaluator<'_>, mut arguments: Arguments) -> Result<Value, Stop> {
    let items = items(arguments.next(), arguments.who)?;
    items.iter().try_fold(Value::NIL, |tail, &item| e.cons(item, tail))
}

fn raise(_: &mut Evaluator<'_>, mut arguments: Arguments) -> Result<Value, Stop> {
    let mut message = atoms::show(arguments.next(), false);
    while !arguments.is_empty() {
        message.push(' ');
        message.push_str(&atoms::show(arguments.next(), true));
    }
    stop(Cause::Raised(message))
}

fn output(e: &mut Evaluator<'_>, text: &str) -> Result<Value, Stop> {
    let written: io::Result<()> = e.output.write_all(text.as_bytes());
    written.map(|()| Value::UNSPECIFIED).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Stop::from(Cause::ClosedOutput),
        _ => Stop::from(Cause::Output(error.to_string())),
    })
}

fn statistics(e: &mut Evaluator<'_>, _: Arguments) -> Result<Value, Stop> {
    let text = format!("{}\n", e.supply.statistics());
    output(e, &text)
}

const fn primitive(
    name: &'static str,
    arity: (usize, usize),
    function: fn(&mut Evaluator<'_>, Arguments) -> Result<Value, Stop>,
) -> Primitive {
    Primitive { name, arity, function }
}

/// All primitives. A primitive's number is its index.
pub(super) const TABLE: &[Primitive] = &[
    primitive("+", (0, ANY), |_, a| a.fold(0, i64::checked_add)),
    primitive("*", (0, ANY), |_, a| a.fold(1, i64::checked_mul)),
    primitive("-", (1, ANY), |_, a| a.subtract()),
    primitive("quotient", (2, 2), |_, a| a.divide(i64::checked_div)),
    primitive("remainder", (2, 2), |_, a| a.divide(i64::checked_rem)),
    primitive("modulo", (2, 2), |_, a| {
        a.divide(|n, m| {
            n.checked_rem(m).map(|r| if r != 0 && (r < 0) != (m < 0) { r + m } else { r })
        })
    }),
    primitive("=", (1, ANY), |_, a| a.compare(i64::eq)),
    primitive("<", (1, ANY), |_, a| a.compare(i64::lt)),
    primitive(">", (1, ANY), |_, a| a.compare(i64::gt)),
    primitive("<=", (1, ANY), |_, a| a.compare(i64::le)),
    primitive(">=", (1, ANY), |_, a| a.compare(i64::ge)),
    primitive("zero?", (1, 1), |_, mut a| a.next_integer().map(|n| Value::boolean(n == 0))),
    primitive("cons", (2, 2), |e, mut a| {
        let (car, cdr) = (a.next(), a.next());
        e.cons(car, cdr)
    }),
    primitive("car", (1, 1), |_, mut a| {
        let pair = a.next();
        pair.car().ok_or_else(|| Stop::from(Cause::wrong_type("car", "a pair", pair)))
    }),
    primitive("cdr", (1, 1), |_, mut a| {
        let pair = a.next();
        pair.cdr().ok_or_else(|| Stop::from(Cause::wrong_type("cdr", "a pair", pair)))
    }),
    primitive("caar", (1, 1), |_, a| a.select("aa")),
    primitive("cadr", (1, 1), |_, a| a.select("ad")),
    primitive("cdar", (1, 1), |_, a| a.select("da")),
    primitive("cddr", (1, 1), |_, a| a.select("dd")),
    primitive("caddr", (1, 1), |_, a| a.select("add")),
    primitive("set-car!", (2, 2), |_, mut a| {
        let _ = a.next_pair()?.set_car(a.next());
        Ok(Value::UNSPECIFIED)
    }),
    primitive("set-cdr!", (2, 2), |_, mut a| {
        let _ = a.next_pair()?.set_cdr(a.next());
        Ok(Value::UNSPECIFIED)
    }),
    primitive("list", (0, ANY), |_, a| Ok(a.list)),
    primitive("append", (0, ANY), append),
    primitive("reverse", (1, 1), reverse),
    primitive("length", (1, 1), |_, mut a| {
        items(a.next(), a.who).map(|items| Value::fixnum(items.len() as i64))
    }),
    primitive("null?", (1, 1), |_, a| a.is(Value::is_nil)),
    primitive("pair?", (1, 1), |_, a| a.is(Value::is_pair)),
    primitive("symbol?", (1, 1), |_, a| a.is(atoms::is_atom)),
    primitive("integer?", (1, 1), |_, a| a.is(|value| value.is_fixnum())),
    primitive("procedure?", (1, 1), |_, a| {
        a.is(|value| value.is_kind(Kind::Closure) || value.is_kind(Kind::Primitive))
    }),
    primitive("not", (1, 1), |_, a| a.is(|value| !value.is_true())),
    primitive("eq?", (2, 2), |_, mut a| Ok(Value::boolean(a.next() == a.next()))),
    primitive("eqv?", (2, 2), |_, mut a| Ok(Value::boolean(a.next() == a.next()))),
    primitive("equal?", (2, 2), |_, mut a| Ok(Value::boolean(equal(a.next(), a.next())))),
    primitive("display", (1, 1), |e, mut a| output(e, &atoms::show(a.next(), false))),
    primitive("write", (1, 1), |e, mut a| output(e, &atoms::show(a.next(), true))),
    primitive("newline", (0, 0), |e, _| output(e, "\n")),
    primitive("error", (1, ANY), raise),
    primitive("system-call-statistics", (0, 0), statistics),
];
