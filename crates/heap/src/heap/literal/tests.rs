use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::value::Value;
use kyocho_syntax::datum::{Datum, DatumKind, NumberLiteral, Span};
use kyocho_syntax::symbol::Symbol;
use std::sync::Arc;

fn mutator() -> Mutator {
    Mutator::new(Heap::new(Limits::default()).unwrap(), ThreadContext::default())
}

fn datum(kind: DatumKind) -> Datum {
    Datum { kind: Arc::new(kind), span: Span::default() }
}

fn number(n: i64) -> Datum {
    datum(DatumKind::Number(NumberLiteral::Integer(n)))
}

fn pair(car: Datum, cdr: Datum) -> Datum {
    datum(DatumKind::Pair(car, cdr))
}

#[test]
fn lists_vectors_and_atoms_come_out_in_order() {
    let mut m = mutator();
    let a = Symbol::intern("a");
    let inner = datum(DatumKind::Vector(vec![number(2), datum(DatumKind::Symbol(a))]));
    let list = pair(number(1), pair(inner, datum(DatumKind::String("é".into()))));
    let value = m.literal(&list).unwrap();
    assert_eq!(value.car(), Some(Value::fixnum(1)));
    let (vector, tail) = value.cdr().unwrap().uncons().unwrap();
    assert_eq!(vector.vector_ref(0), Some(Value::fixnum(2)));
    assert_eq!(vector.vector_ref(1).unwrap().as_symbol(), Some(a));
    assert_eq!(tail.to_text().as_deref(), Some("é"));
}

#[test]
fn integers_beyond_fixnums_are_bignums() {
    let mut m = mutator();
    let value = m.literal(&number(i64::MIN)).unwrap();
    assert_eq!(value.size_words(), 1);
    assert_eq!(value.payload_word(0), 1 << 63);
}

#[test]
fn labels_make_cycles() {
    let mut m = mutator();
    let reference = || datum(DatumKind::Reference(0));
    let vector = datum(DatumKind::Vector(vec![reference()]));
    let value =
        m.literal(&datum(DatumKind::Label(0, pair(vector, pair(number(1), reference()))))).unwrap();
    assert_eq!(value.car().unwrap().vector_ref(0), Some(value));
    assert_eq!(value.cdr().unwrap().cdr(), Some(value));
    let nothing = datum(DatumKind::Label(0, datum(DatumKind::Reference(0))));
    assert_eq!(m.literal(&nothing).unwrap(), Value::UNSPECIFIED);
}

#[test]
fn data_nested_deeper_than_any_stack_are_built_without_recursion() {
    let mut m = mutator();
    let mut nested = number(7);
    for _ in 0..200_000 {
        nested = pair(nested, datum(DatumKind::Nil));
    }
    let mut value = m.literal(&nested).unwrap();
    // Dropping the datum could recurse; this test is about building only.
    core::mem::forget(nested);
    let mut depth = 0;
    while let Some(car) = value.car() {
        value = car;
        depth += 1;
    }
    assert_eq!((depth, value), (200_000, Value::fixnum(7)));
}
