//! Each line is a call as in a program, and its result or error.

use super::all;
use crate::printer::{Style, to_text};
use core::cell::RefCell;
use core::ops::RangeInclusive;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_heap::raise::{Cause, Raise};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::{Datum, DatumKind};
use kyocho_syntax::reader::read_all;
use std::collections::HashMap;

mod lists;
mod memory;
mod numbers;
mod pauses;
mod ports;
mod strings;

thread_local! {
    /// Arguments of the pending calls, which are elsewhere in a frame.
    static ARGUMENTS: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Evaluates calls of primitives on literals: `(car '(1 2))`, nested.
struct Calculator {
    m: Mutator,
    primitives: HashMap<&'static str, &'static super::Primitive>,
}

impl Calculator {
    fn new() -> Self {
        Self::with_bytes(64 << 20)
    }

    fn with_bytes(bytes_max: usize) -> Self {
        let limits = Limits { bytes_max, ..Limits::default() };
        let m = Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default());
        Self { m, primitives: all().map(|primitive| (primitive.name, primitive)).collect() }
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, Raise> {
        let primitive = self.primitives[name];
        let count = arguments.len() as u16;
        assert!(
            count >= primitive.min && primitive.max.is_none_or(|max| count <= max),
            "{name} does not take {count} arguments"
        );
        (primitive.function)(&mut self.m, arguments)
    }

    fn datum(&mut self, datum: &Datum) -> Result<Value, Raise> {
        let DatumKind::Pair(head, rest) = &*datum.kind else {
            return self.m.literal(datum);
        };
        let DatumKind::Symbol(name) = &*head.kind else { panic!("not a call: {datum:?}") };
        let mut arguments = Vec::new();
        let mut rest = rest.clone();
        while let DatumKind::Pair(argument, more) = &*rest.clone().kind {
            if name.name() == "quote" {
                return self.m.literal(argument);
            }
            arguments.push(self.datum(argument)?);
            ARGUMENTS.with_borrow_mut(|all| all.extend(arguments.last()));
            rest = more.clone();
        }
        let result = self.call(name.name(), &arguments);
        ARGUMENTS.with_borrow_mut(|all| all.truncate(all.len() - arguments.len()));
        result
    }

    fn run(&mut self, source: &str) -> Result<Value, Raise> {
        let data = read_all(source, "test").unwrap();
        self.datum(&data[0])
    }
}

/// Checks `(call => expected)` lines; `expected` is the written value.
fn check(lines: &[(&str, &str)]) {
    let mut calculator = Calculator::new();
    for (source, expected) in lines {
        let printed = match calculator.run(source) {
            Ok(value) => to_text(value, Style::Write).unwrap(),
            Err(raise) => complaint(&raise),
        };
        assert_eq!(&printed, expected, "{source}");
    }
}

fn complaint(raise: &Raise) -> String {
    match raise.cause() {
        Cause::WrongType { who, position, expected, .. } => {
            format!("{who} {position} expects {expected}")
        }
        Cause::OutOfRange { who, position, bound, .. } => format!("{who} {position}: {bound}"),
        Cause::DivideByZero { who } => format!("{who} by zero"),
        Cause::Error { message, .. } => message.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn names_are_unique_and_arities_are_consistent() {
    let mut seen = HashMap::new();
    for primitive in all() {
        assert!(seen.insert(primitive.name, ()).is_none(), "{} twice", primitive.name);
        assert!(primitive.max.is_none_or(|max| max >= primitive.min), "{}", primitive.name);
    }
}

const ODD_VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "1000",
    "1152921504606846975",
    "-1152921504606846976",
    "100000000000000000000",
    "1/2",
    "1.5",
    "-0.0",
    "+inf.0",
    "+nan.0",
    "#t",
    "#f",
    "'()",
    "'a",
    "#\\a",
    "#\\x10ffff",
    "\"\"",
    "\"abc\"",
    "\"日本\"",
    "'(1 2 3)",
    "'(1 . 2)",
    "'#(1 2)",
    "'#()",
    "#u8(1 2 255)",
    "#u8()",
    "'((a . 1) (b . 2))",
    "'#0=(1 . #0#)",
];

/// Every primitive, given every combination of odd values, answers or raises: it never panics.
#[test]
fn no_argument_makes_a_primitive_panic() {
    // Looking up host names may take long.
    let has_effects = [
        "delete-file",
        "open-output-file",
        "open-binary-output-file",
        "unix-listen",
        "tcp-connect",
        "tcp-listen",
        "tls-connect",
        "tls-listen",
        "set-umask!",
        "nice",
    ];
    let is_about_files = |primitive: &super::Primitive| {
        let tables = [super::files::TABLE, super::descriptors::TABLE];
        tables.iter().copied().flatten().any(|other| other.name == primitive.name)
    };
    let on_current_port = |primitive: &super::Primitive| {
        let tables = [super::reading::TABLE, super::writing::TABLE];
        tables.iter().copied().flatten().any(|other| other.name == primitive.name)
    };
    for primitive in all().filter(|p| !has_effects.contains(&p.name) && !is_about_files(p)) {
        let most = primitive.max.unwrap_or(primitive.min + 2).min(3);
        let least = if on_current_port(primitive) { most } else { primitive.min.min(3) };
        try_combinations(primitive, least..=most);
    }
}

fn try_combinations(primitive: &super::Primitive, counts: RangeInclusive<u16>) {
    // A small new heap for each primitive: primitives that fill memory soon fail, and do not affect
    // the others.
    let mut calculator = Calculator::with_bytes(4 << 20);
    let values: Vec<Value> = ODD_VALUES.iter().map(|s| calculator.run(s).unwrap()).collect();
    for count in counts {
        let mut combination = vec![0; usize::from(count)];
        loop {
            let mut arguments: Vec<Value> = combination.iter().map(|&i| values[i]).collect();
            // Primitives with more arguments get fixed values for the rest.
            let count = arguments.len().max(usize::from(primitive.min));
            arguments.resize(count, Value::fixnum(1));
            let _ = (primitive.function)(&mut calculator.m, &arguments);
            let next = combination.iter().rposition(|&i| i + 1 < values.len());
            let Some(place) = next else { break };
            combination[place] += 1;
            combination[place + 1..].fill(0);
        }
    }
}
