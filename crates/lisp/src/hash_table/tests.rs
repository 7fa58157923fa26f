use super::{Equivalence, Table, Weakness, make, make_weak};
use crate::heap::{Heap, Limits, Mutator};
use crate::thread::ThreadContext;
use crate::value::Value;
use kyocho_sys::prim::thread;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::prop_assert_eq;
use std::sync::Arc;

fn mutator() -> Mutator {
    let limits = Limits { bytes_max: 64 << 20, ..Limits::default() };
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8, i64),
    Delete(u8),
    Get(u8),
    Clear,
    Copy,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<u8>(), 0..1000i64).prop_map(|(key, value)| Step::Set(key, value)),
        4 => any::<u8>().prop_map(Step::Delete),
        4 => any::<u8>().prop_map(Step::Get),
        1 => Just(Step::Copy),
        1 => (0..20).prop_map(|n| if n == 0 { Step::Clear } else { Step::Get(0) }),
    ];
    proptest::collection::vec(step, 0..400)
}

/// A key as a string, a number beyond a fixnum, or a list: a new object at each call.
fn key(m: &mut Mutator, equivalence: Equivalence, n: u8) -> Value {
    match equivalence {
        Equivalence::String => m.string(&format!("key {n}")).unwrap(),
        Equivalence::Equal => {
            let name = m.string(&n.to_string()).unwrap();
            m.list(&[Value::fixnum(i64::from(n % 3)), name]).unwrap()
        }
        Equivalence::Eqv if n.is_multiple_of(2) => m.flonum(f64::from(n)).unwrap(),
        Equivalence::Eqv | Equivalence::Custom => Value::fixnum(i64::from(n)),
    }
}

proptest! {
    #[test]
    fn a_table_agrees_with_a_list_of_associations(
        steps in steps(),
        equivalence in prop_oneof![
            Just(Equivalence::Eqv), Just(Equivalence::Equal), Just(Equivalence::String)
        ],
        // Nothing is collected meanwhile: a table that holds weakly is a table like others.
        weakness in prop_oneof![
            Just(Weakness::None), Just(Weakness::Keys), Just(Weakness::Values), Just(Weakness::Both)
        ],
    ) {
        let mut m = mutator();
        let mut object = make(&mut m, equivalence, Value::FALSE, 0).unwrap();
        make_weak(object, weakness);
        let mut model: Vec<(u8, i64)> = Vec::new();
        for step in steps {
            match step {
                Step::Set(n, value) => {
                    let key = key(&mut m, equivalence, n);
                    Table::lock(object).unwrap().set(&mut m, key, Value::fixnum(value)).unwrap();
                    match model.iter_mut().find(|(other, _)| *other == n) {
                        Some(entry) => entry.1 = value,
                        None => model.push((n, value)),
                    }
                }
                Step::Delete(n) => {
                    let key = key(&mut m, equivalence, n);
                    let was = model.iter().any(|(other, _)| *other == n);
                    prop_assert_eq!(Table::lock(object).unwrap().delete(key), was);
                    model.retain(|(other, _)| *other != n);
                }
                Step::Get(n) => {
                    let key = key(&mut m, equivalence, n);
                    let expected = model.iter().find(|(other, _)| *other == n);
                    let got = Table::lock(object).unwrap().get(key).and_then(Value::as_fixnum);
                    prop_assert_eq!(got, expected.map(|(_, value)| *value));
                }
                Step::Clear => {
                    Table::lock(object).unwrap().clear(&mut m).unwrap();
                    model.clear();
                }
                Step::Copy => object = Table::lock(object).unwrap().copy(&mut m).unwrap(),
            }
            let table = Table::lock(object).unwrap();
            prop_assert_eq!(table.count(), model.len());
            let values: Vec<i64> = table.associations().filter_map(|(_, v)| v.as_fixnum()).collect();
            prop_assert_eq!(values, model.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        }
    }
}

/// The same few keys over and over: deleted entries are swept, not kept for ever.
#[test]
fn a_table_that_stays_small_stays_small() {
    let mut m = mutator();
    let object = make(&mut m, Equivalence::Eqv, Value::FALSE, 0).unwrap();
    let mut table = Table::lock(object).unwrap();
    for i in 0..100_000 {
        table.set(&mut m, Value::fixnum(i), Value::TRUE).unwrap();
        assert!(table.delete(Value::fixnum(i)));
    }
    assert_eq!(table.count(), 0);
    assert!(table.capacity() <= 2 * super::CAPACITY_MIN);
}

fn set_all_delete_half(heap: Arc<Heap>, table: Value, keys: impl Iterator<Item = Value> + Clone) {
    let mut m = Mutator::new(heap, ThreadContext::default());
    for key in keys.clone() {
        Table::lock(table).unwrap().set(&mut m, key, key).unwrap();
    }
    for key in keys.step_by(2) {
        assert!(Table::lock(table).unwrap().delete(key));
    }
}

#[test]
fn threads_share_a_table() {
    const THREADS: i64 = 4;
    const KEYS: i64 = 2000;
    let mut m = mutator();
    let object = make(&mut m, Equivalence::Eqv, Value::FALSE, 0).unwrap();
    let heap = m.heap.clone();
    let word = object.to_word();
    let threads: Vec<_> = (0..THREADS)
        .map(|t| {
            let heap = heap.clone();
            let keys = (0..KEYS).map(move |i| Value::fixnum(i * THREADS + t));
            thread::spawn(move || set_all_delete_half(heap, Value::from_word(word), keys))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let table = Table::lock(object).unwrap();
    assert_eq!(table.count() as i64, THREADS * KEYS / 2);
    for i in 0..THREADS * KEYS {
        let key = Value::fixnum(i);
        let expected = ((i / THREADS) % 2 == 1).then_some(key);
        assert_eq!(table.get(key), expected);
    }
}
