use super::{Style, to_text};
use kyocho_heap::equality::equal;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_heap::number::{self, Number};
use kyocho_heap::value::Value;
use kyocho_syntax::reader::read_all;
use kyocho_syntax::symbol::Symbol;
use num_bigint::BigInt;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 256 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

fn symbol(name: &str) -> Value {
    Value::symbol(Symbol::intern(name))
}

fn written(value: Value) -> String {
    to_text(value, Style::Write).unwrap()
}

#[test]
fn atoms_read_back() {
    let m = mutator();
    let string = m.string("a\"b\\c\n\t\u{1}é日").unwrap();
    assert_eq!(written(string), "\"a\\\"b\\\\c\\n\\t\\x1;é日\"");
    assert_eq!(to_text(string, Style::Display).unwrap(), "a\"b\\c\n\t\u{1}é日");
    for (c, text) in [
        ('a', "#\\a"),
        (' ', "#\\space"),
        ('\n', "#\\newline"),
        ('\0', "#\\null"),
        ('λ', "#\\λ"),
        ('(', "#\\("),
        ('\u{7f}', "#\\delete"),
        ('\u{301}', "#\\x301"),
        ('\u{a0}', "#\\xa0"),
    ] {
        assert_eq!(written(Value::character(c)), text);
    }
    for (name, text) in [
        ("plain", "plain"),
        ("+", "+"),
        ("...", "..."),
        ("1+", "1+"),
        ("->x", "->x"),
        ("λ", "λ"),
        ("", "||"),
        (".", "|.|"),
        ("a b", "|a b|"),
        ("12", "|12|"),
        ("-1/2", "|-1/2|"),
        ("+inf.0", "|+inf.0|"),
        ("#foo", "|#foo|"),
        ("a|b", "|a\\|b|"),
        ("é\u{1}", "|é\\x1;|"),
        ("1e3", "|1e3|"),
    ] {
        assert_eq!(written(symbol(name)), text);
    }
    let bytes = m.bytevector(&[0, 255]).unwrap();
    assert_eq!(written(bytes), "#u8(0 255)");
}

#[test]
fn lists_and_vectors() {
    let m = mutator();
    let one = Value::fixnum(1);
    let dotted = m.list_onto(&[one, Value::TRUE], symbol("x")).unwrap();
    assert_eq!(written(dotted), "(1 #t . x)");
    let quoted = m.list(&[symbol("quote"), symbol("x")]).unwrap();
    let vector = m.vector_of(&[quoted, Value::NIL]).unwrap();
    assert_eq!(written(vector), "#('x ())");
    let three = m.list(&[symbol("quote"), one, one]).unwrap();
    assert_eq!(written(three), "(quote 1 1)");
    let unquote = m.list(&[symbol("unquote"), symbol("@x")]).unwrap();
    assert_eq!(written(unquote), ", @x");
    let empty = m.vector_of(&[]).unwrap();
    assert_eq!(written(empty), "#()");
}

#[test]
fn cycles_get_labels_and_sharing_only_on_request() {
    let m = mutator();
    let one = Value::fixnum(1);
    let shared = m.list(&[one]).unwrap();
    let twice = m.list(&[shared, shared]).unwrap();
    assert_eq!(written(twice), "((1) (1))");
    assert_eq!(to_text(twice, Style::Shared).unwrap(), "(#0=(1) #0#)");
    let ring = m.list(&[one, Value::fixnum(2)]).unwrap();
    assert!(ring.cdr().unwrap().set_cdr(ring));
    assert_eq!(written(ring), "#0=(1 2 . #0#)");
    assert_eq!(to_text(ring, Style::Display).unwrap(), "#0=(1 2 . #0#)");
    let vector = m.vector(2, ring).unwrap();
    assert!(vector.vector_set(1, vector));
    assert_eq!(written(vector), "#0=#(#1=(1 2 . #1#) #0#)");
    let tail = m.list_onto(&[Value::TRUE], ring).unwrap();
    assert_eq!(written(tail), "(#t . #0=(1 2 . #0#))");
    // A cycle whose label is in the middle of a shared part.
    let both = m.list(&[tail, tail]).unwrap();
    assert_eq!(written(both), "((#t . #0=(1 2 . #0#)) (#t . #0#))");
}

#[test]
fn deep_and_long_data_need_no_deep_stack() {
    let m = mutator();
    let mut nested = Value::NIL;
    for _ in 0..200_000 {
        nested = m.cons(nested, Value::NIL).unwrap();
    }
    let text = written(nested);
    assert_eq!(text.len(), 400_002);
    assert!(text.starts_with("((((") && text.ends_with("))))"));
    assert_eq!(to_text(nested, Style::Shared).unwrap(), text);
    let long: Vec<Value> = (0..100_000).map(|_| Value::fixnum(7)).collect();
    let list = m.list(&long).unwrap();
    assert_eq!(written(list).len(), 200_001);
}

#[test]
fn endless_output_is_refused() {
    let m = mutator();
    let ring = m.list(&[Value::fixnum(1)]).unwrap();
    assert!(ring.set_cdr(ring));
    let mut text = String::new();
    assert_eq!(super::print_within(&mut text, ring, Style::Simple, 1000), Err(super::TooLong));
    assert!(text.starts_with("(1 1 1 1"));
}

/// Instructions for making a value.
#[derive(Clone, Debug)]
enum Recipe {
    Fixnum(i64),
    Big(i128),
    Ratio(i64, i64),
    Real(f64),
    Character(char),
    String(String),
    Symbol(String),
    Boolean(bool),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Dotted(Vec<Self>, Box<Self>),
    Vector(Vec<Self>),
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let leaf = prop_oneof![
        (-1000..1000i64).prop_map(Recipe::Fixnum),
        any::<i128>().prop_map(Recipe::Big),
        (any::<i64>(), 1..1000i64).prop_map(|(n, d)| Recipe::Ratio(n, d)),
        any::<f64>().prop_map(Recipe::Real),
        any::<char>().prop_map(Recipe::Character),
        any::<String>().prop_map(Recipe::String),
        "[-+.|#a-eA-E0-9 λ\\\\;'`,@\n]{0,6}".prop_map(Recipe::Symbol),
        any::<bool>().prop_map(Recipe::Boolean),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(Recipe::Bytes),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let some = proptest::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            some.clone().prop_map(Recipe::List),
            (proptest::collection::vec(inner.clone(), 1..4), inner)
                .prop_map(|(items, tail)| Recipe::Dotted(items, Box::new(tail))),
            some.prop_map(Recipe::Vector),
        ]
    })
}

fn make(m: &mut Mutator, recipe: &Recipe) -> Value {
    let mut all = |recipes: &[Recipe]| recipes.iter().map(|r| make(m, r)).collect::<Vec<_>>();
    match recipe {
        Recipe::Fixnum(n) => Value::fixnum(*n),
        Recipe::Big(n) => Number::Big(BigInt::from(*n)).store(m).unwrap(),
        Recipe::Ratio(n, d) => number::ratio((*n).into(), (*d).into()).store(m).unwrap(),
        Recipe::Real(x) => m.flonum(*x).unwrap(),
        Recipe::Character(c) => Value::character(*c),
        Recipe::String(text) => m.string(text).unwrap(),
        Recipe::Symbol(name) => symbol(name),
        Recipe::Boolean(truth) => Value::boolean(*truth),
        Recipe::Bytes(bytes) => m.bytevector(bytes).unwrap(),
        Recipe::List(items) => {
            let items = all(items);
            m.list(&items).unwrap()
        }
        Recipe::Dotted(items, tail) => {
            let items = all(items);
            let tail = make(m, tail);
            m.list_onto(&items, tail).unwrap()
        }
        Recipe::Vector(items) => {
            let items = all(items);
            m.vector_of(&items).unwrap()
        }
    }
}

proptest! {
    #[test]
    fn written_values_read_back(recipe in recipes()) {
        let mut m = mutator();
        let value = make(&mut m, &recipe);
        for style in [Style::Write, Style::Shared, Style::Simple] {
            let text = to_text(value, style).unwrap();
            let data = read_all(&text, "test").unwrap();
            prop_assert_eq!(data.len(), 1, "{}", text);
            let read = m.literal(&data[0]).unwrap();
            prop_assert!(equal(value, read), "{text} reads back as {}", written(read));
        }
    }
}

#[test]
fn cycles_and_sharing_read_back() {
    let mut m = mutator();
    for text in ["#0=(1 2 . #0#)", "#0=#(#1=(1 2 . #1#) #0#)", "(#0=(1) #0# #0#)", "(#0=\"x\" #0#)"]
    {
        let value = m.literal(&read_all(text, "test").unwrap()[0]).unwrap();
        let written = to_text(value, Style::Shared).unwrap();
        let again = m.literal(&read_all(&written, "test").unwrap()[0]).unwrap();
        assert!(equal(value, again), "{text} became {written}");
    }
}
