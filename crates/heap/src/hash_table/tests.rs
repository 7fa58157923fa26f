use super::growth::MOVES;
use super::{Equivalence, Table, Walk, Weakness, copy, count, make, make_weak};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator};
use crate::raise::Result;
use crate::value::Value;
use core::cell::Cell;
use kyocho_sys::prim::thread;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::prop_assert_eq;
use std::collections::BTreeSet;
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

/// A key as a string, a number beyond a fixnum, or a list. Each call makes a new object.
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
        // No collection runs meanwhile, so a weak table behaves like any other.
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
                Step::Copy => object = copy(&mut m, Table::lock(object).unwrap()).unwrap(),
            }
            prop_assert_eq!(count(&mut m, object).unwrap(), model.len());
            let table = Table::lock(object).unwrap();
            let values: Vec<i64> = table.associations().filter_map(|(_, v)| v.as_fixnum()).collect();
            prop_assert_eq!(values, model.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        }
    }
}

/// The same few keys again and again: deleted entries must be removed.
#[test]
fn a_table_that_stays_small_stays_small() {
    let mut m = mutator();
    let object = make(&mut m, Equivalence::Eqv, Value::FALSE, 0).unwrap();
    let mut table = Table::lock(object).unwrap();
    for i in 0..100_000 {
        table.set(&mut m, Value::fixnum(i), Value::TRUE).unwrap();
        assert!(table.delete(Value::fixnum(i)));
    }
    assert_eq!(table.associations().count(), 0);
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
    assert_eq!(table.associations().count() as i64, THREADS * KEYS / 2);
    for i in 0..THREADS * KEYS {
        let key = Value::fixnum(i);
        let expected = ((i / THREADS) % 2 == 1).then_some(key);
        assert_eq!(table.get(key), expected);
    }
}

const LARGE: i64 = 100_000;

/// A table that maps numbers to themselves and is full: one more entry makes it grow.
fn full(m: &mut Mutator) -> Value {
    let object = make(m, Equivalence::Eqv, Value::FALSE, LARGE as usize).unwrap();
    let mut table = Table::lock(object).unwrap();
    for i in 0..LARGE {
        table.set(m, Value::fixnum(i), Value::fixnum(i)).unwrap();
    }
    assert!(table.growth.is_none());
    drop(table);
    object
}

/// Each operation on a growing table moves a few entries, whatever its size, and finds all keys.
#[test]
fn a_large_table_grows_in_small_steps() {
    let mut m = mutator();
    let object = full(&mut m);
    let mut table = Table::lock(object).unwrap();
    let mut steps = 0;
    let mut moved = 0;
    loop {
        let key = Value::fixnum(LARGE + steps);
        match steps % 4 {
            0 | 1 => table.set(&mut m, key, key).unwrap(),
            2 => table.set(&mut m, Value::fixnum(steps), Value::fixnum(-1)).unwrap(),
            _ => assert!(table.delete(Value::fixnum(LARGE - steps))),
        }
        steps += 1;
        let Some(growth) = &table.growth else { break };
        assert!(growth.moved() <= moved + MOVES, "{moved} and then {}", growth.moved());
        moved = growth.moved();
        if steps % 500 == 0 {
            for i in 0..LARGE + steps {
                let is_new = i >= LARGE;
                let expected = match i {
                    _ if is_new => (i - LARGE) % 4 < 2,
                    _ => LARGE - i >= steps || (LARGE - i) % 4 != 3,
                };
                assert_eq!(table.get(Value::fixnum(i)).is_some(), expected, "{i} after {steps}");
            }
        }
    }
    assert!(steps >= LARGE / MOVES as i64, "{steps} steps");
    let keys: Vec<_> = table.associations().map(|(key, _)| key.as_fixnum().unwrap()).collect();
    assert!(keys.is_sorted(), "in the order of insertion");
    assert_eq!(table.get(Value::fixnum(2)), Some(Value::fixnum(-1)));
}

/// A value removed from a growing table is not kept alive by the old storage.
#[test]
fn a_growing_table_removes_from_both_storages() {
    let mut m = mutator();
    let object = full(&mut m);
    let mut table = Table::lock(object).unwrap();
    let value = |n: i64| Value::fixnum(1_000_000 + n);
    for i in 0..LARGE / MOVES as i64 / 4 {
        table.set(&mut m, Value::fixnum(LARGE + i), Value::TRUE).unwrap();
        table.set(&mut m, Value::fixnum(2 * i), value(i)).unwrap();
        assert!(table.delete(Value::fixnum(2 * i + 1)));
    }
    let growth = table.growth.as_ref().expect("it is still growing");
    let entries = growth.from.entries;
    let kept: BTreeSet<_> =
        (0..LARGE as usize).filter_map(|i| entries.field_at(3 * i + 2).as_fixnum()).collect();
    for i in 0..LARGE / MOVES as i64 / 4 {
        assert!(!kept.contains(&(2 * i + 1)), "deleted: {i}");
        assert!(!kept.contains(&(2 * i)), "replaced: {i}");
    }
}

/// Called at each pause: uses the table as another thread would.
fn use_it(m: &mut Mutator) -> Result<()> {
    let Some(object) = SHARED.get() else { return Ok(()) };
    PAUSES.set(PAUSES.get() + 1);
    assert!(object.try_lock(), "the spin bit is free during a pause");
    object.unlock();
    let hook = m.context.at_pause.take();
    let key = Value::fixnum(PAUSES.get() % LARGE);
    assert!(Table::lock(object).unwrap().get(key).is_some());
    Table::lock(object).unwrap().set(m, key, Value::fixnum(-1))?;
    m.context.at_pause = hook;
    let heap = Arc::clone(&m.heap);
    heap.collect(|marker| {
        m.context.trace(marker);
        marker.mark(object);
    });
    for _ in 0..10_000 {
        m.cons(Value::fixnum(-1), Value::fixnum(-1))?;
    }
    Ok(())
}

thread_local! {
    static SHARED: Cell<Option<Value>> = const { Cell::new(None) };
    static PAUSES: Cell<i64> = const { Cell::new(0) };
}

/// Growing, copying, reading and counting a large table pause for collections and other threads.
#[test]
fn operations_on_a_large_table_run_in_slices() {
    let mut m = mutator();
    let object = full(&mut m);
    SHARED.set(Some(object));
    let mut work = |work: &mut dyn FnMut(&mut Mutator)| {
        PAUSES.set(0);
        m.context.at_pause = Some(use_it);
        work(&mut m);
        m.context.at_pause = None;
        assert!(PAUSES.get() > 3, "{} pauses", PAUSES.get());
    };
    work(&mut |m| {
        let new = copy(m, Table::lock(object).unwrap()).unwrap();
        assert_eq!(count(m, new).unwrap() as i64, LARGE);
    });
    work(&mut |m| {
        let mut walk = Walk::over(Table::lock(object).unwrap());
        let mut next = 0;
        while let Some(part) = walk.next_part() {
            for (key, _) in part {
                assert_eq!(key, Value::fixnum(next));
                next += 1;
            }
            m.pause_with(&mut walk.held().collect()).unwrap();
        }
        assert_eq!(next, LARGE);
    });
    work(&mut |m| {
        let key = Value::fixnum(LARGE);
        Table::lock(object).unwrap().set(m, key, key).unwrap();
    });
    assert!(Table::lock(object).unwrap().growth.is_some());
    for i in 0..=LARGE {
        assert!(Table::lock(object).unwrap().get(Value::fixnum(i)).is_some(), "{i}");
    }
}
