//! Random programs on a heap and on a naive model of it. Both must have the same graph.

use super::helped::{Helpers, helped};
use super::{mutator, small, torture};
use crate::heap::{Limits, Mutator, Torture};
use crate::value::Value;
use core::cell::RefCell;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_oneof, proptest};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

const SLOTS: usize = 12;

/// One step. Numbers select slots, elements and sizes.
#[derive(Clone, Debug)]
enum Operation {
    Cons(usize, usize, usize),
    Vector {
        into: usize,
        length: usize,
        fill: usize,
    },
    Text {
        into: usize,
        length: usize,
    },
    Flonum(usize, f64),
    /// Sets how many cells a refill requests from now on.
    Want(usize),
    Store {
        object: usize,
        part: usize,
        value: usize,
    },
    Load {
        object: usize,
        part: usize,
        into: usize,
    },
    Clear(usize),
    Collect,
}

#[derive(Debug)]
enum Node {
    Number(i64),
    Flonum(f64),
    Text(String),
    Parts(Vec<Model>),
}

type Model = Rc<RefCell<Node>>;

fn operation() -> impl Strategy<Value = Operation> {
    let slot = 0..SLOTS;
    // Lengths on both sides of a line, of a cache's run, of a wide object and of a large one.
    let length = prop_oneof![3 => 0..40usize, 1 => 100..600usize, 1 => 1500..5000usize];
    prop_oneof![
        8 => (slot.clone(), slot.clone(), slot.clone()).prop_map(|(a, b, c)| Operation::Cons(a, b, c)),
        3 => (slot.clone(), length.clone(), slot.clone())
            .prop_map(|(into, length, fill)| Operation::Vector { into, length, fill }),
        1 => (slot.clone(), length).prop_map(|(into, length)| Operation::Text { into, length }),
        1 => (slot.clone(), any::<f64>()).prop_map(|(into, number)| Operation::Flonum(into, number)),
        6 => (slot.clone(), any::<usize>(), slot.clone())
            .prop_map(|(object, part, value)| Operation::Store { object, part, value }),
        2 => (slot.clone(), any::<usize>(), slot.clone())
            .prop_map(|(object, part, into)| Operation::Load { object, part, into }),
        // From one cell to several blocks.
        1 => (0..14u32).prop_map(|bits| Operation::Want(1 << bits)),
        2 => slot.prop_map(Operation::Clear),
        1 => prop::strategy::Just(Operation::Collect),
    ]
}

struct Pair {
    mutator: Mutator,
    values: Vec<Value>,
    models: Vec<Model>,
}

impl Pair {
    fn new(limits: Limits) -> Self {
        let models = (0..SLOTS).map(|i| number_model(i as i64)).collect();
        let values = (0..SLOTS).map(|i| Value::fixnum(i as i64)).collect();
        Self { mutator: mutator(limits), values, models }
    }

    fn set(&mut self, slot: usize, value: Value, node: Node) {
        self.values[slot] = value;
        self.models[slot] = Rc::new(RefCell::new(node));
    }

    fn apply_only(&mut self, operation: &Operation) {
        match *operation {
            Operation::Cons(into, car, cdr) => {
                let pair = self.mutator.cons(self.values[car], self.values[cdr]).unwrap();
                let parts = vec![Rc::clone(&self.models[car]), Rc::clone(&self.models[cdr])];
                self.set(into, pair, Node::Parts(parts));
            }
            Operation::Vector { into, length, fill } => {
                let vector = self.mutator.vector(length, self.values[fill]).unwrap();
                let parts = vec![Rc::clone(&self.models[fill]); length];
                self.set(into, vector, Node::Parts(parts));
            }
            Operation::Text { into, length } => {
                let text = "aé日".chars().cycle().take(length).collect::<String>();
                let string = self.mutator.string(&text).unwrap();
                self.set(into, string, Node::Text(text));
            }
            Operation::Flonum(into, number) => {
                let flonum = self.mutator.flonum(number).unwrap();
                self.set(into, flonum, Node::Flonum(number));
            }
            Operation::Want(cells) => self.mutator.set_want(cells),
            Operation::Store { object, part, value } => self.store(object, part, value),
            Operation::Load { object, part, into } => self.load(object, part, into),
            Operation::Clear(slot) => self.set(slot, Value::fixnum(0), Node::Number(0)),
            Operation::Collect => {}
        }
    }

    fn apply(&mut self, operation: &Operation) {
        self.apply_only(operation);
        if matches!(operation, Operation::Collect) {
            self.collect();
        }
        if self.mutator.heap.collection_wanted() {
            self.collect();
        }
    }

    fn store(&mut self, object: usize, part: usize, value: usize) {
        let new = Rc::clone(&self.models[value]);
        let mut node = self.models[object].borrow_mut();
        let Node::Parts(parts) = &mut *node else { return };
        if parts.is_empty() {
            return;
        }
        let part = part % parts.len();
        parts[part] = new;
        let (object, value) = (self.values[object], self.values[value]);
        assert!(match object.is_pair() {
            true if part == 0 => object.set_car(value),
            true => object.set_cdr(value),
            false => object.vector_set(part, value),
        });
    }

    fn load(&mut self, object: usize, part: usize, into: usize) {
        let model = match &*self.models[object].borrow() {
            Node::Parts(parts) if !parts.is_empty() => {
                let part = part % parts.len();
                Some((part, Rc::clone(&parts[part])))
            }
            _ => None,
        };
        if let Some((part, model)) = model {
            self.values[into] = part_of(self.values[object], part).unwrap();
            self.models[into] = model;
        }
    }

    fn collect(&mut self) {
        let values = &self.values;
        self.mutator.heap.collect(|marker| values.iter().for_each(|&value| marker.mark(value)));
    }

    /// Whether both have the same graph: equal leaves, and equal sharing.
    fn same(&self) -> bool {
        let mut seen: HashMap<*const RefCell<Node>, Value> = HashMap::new();
        let mut pending: Vec<(Value, Model)> =
            self.values.iter().copied().zip(self.models.iter().cloned()).collect();
        while let Some((value, model)) = pending.pop() {
            let first_visit = !seen.contains_key(&Rc::as_ptr(&model));
            match &*model.borrow() {
                Node::Number(n) if value.as_fixnum() == Some(*n) => continue,
                Node::Flonum(n) if value.as_flonum().map(f64::to_bits) == Some(n.to_bits()) => {}
                Node::Text(text) if value.to_text().as_ref() == Some(text) => {}
                Node::Parts(parts) if part_count(value) == Some(parts.len()) => {
                    let parts = parts.iter().filter(|_| first_visit).enumerate();
                    pending.extend(
                        parts.map(|(i, part)| (part_of(value, i).unwrap(), Rc::clone(part))),
                    );
                }
                _ => return false,
            }
            if *seen.entry(Rc::as_ptr(&model)).or_insert(value) != value {
                return false;
            }
        }
        true
    }
}

fn number_model(n: i64) -> Model {
    Rc::new(RefCell::new(Node::Number(n)))
}

fn part_count(value: Value) -> Option<usize> {
    if value.is_pair() { Some(2) } else { value.vector_length() }
}

fn part_of(value: Value, part: usize) -> Option<Value> {
    match value.uncons() {
        Some((car, cdr)) => Some(if part == 0 { car } else { cdr }),
        None => value.vector_ref(part),
    }
}

/// How the sweep after a cycle runs.
#[derive(Clone, Copy, Debug)]
enum Sweep {
    /// With the world stopped.
    Stopped,
    /// Concurrently: a part is swept after this many operations.
    Beside(usize),
    /// It is aborted.
    GivenUp,
}

/// As [`same_after`], during a cycle: one object is scanned after each of the later operations.
fn same_beside(
    limits: Limits,
    operations: &[Operation],
    later: &[Operation],
    sweep: Sweep,
) -> bool {
    let mut pair = Pair::new(Limits { bytes_max: 64 << 20, ..limits });
    let _helpers = Helpers::of(&pair.mutator.heap);
    operations.iter().for_each(|operation| pair.apply(operation));
    let heap = Arc::clone(&pair.mutator.heap);
    let mut marks = heap.empty_marks();
    let mut roots = Vec::new();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        pair.values.iter().for_each(|&value| marker.mark(value));
        (roots, _) = marker.take_noted();
        marker.note_no_more();
    });
    cycle.mark(&roots);
    for operation in later {
        pair.apply_only(operation);
        cycle.mark_some(1);
    }
    cycle.mark_all();
    match sweep {
        Sweep::Stopped => drop(cycle.finish()),
        Sweep::Beside(every) => {
            let (mut unswept, dead) = cycle.end();
            drop(dead);
            for (i, operation) in later.iter().chain(operations).enumerate() {
                pair.apply_only(operation);
                if i % every == 0 {
                    unswept.sweep_some();
                }
            }
            unswept.finish();
        }
        Sweep::GivenUp => {
            drop(cycle.end());
            heap.forget_cycle();
            later.iter().for_each(|operation| pair.apply_only(operation));
        }
    }
    drop(marks);
    let after = pair.same();
    // Unreachable memory taken during the cycle is free now, and nothing else is.
    operations.iter().for_each(|operation| pair.apply(operation));
    pair.collect();
    let after = after && pair.same();
    for model in &pair.models {
        *model.borrow_mut() = Node::Number(0);
    }
    after
}

/// Freed memory is overwritten; no collection comes but those that are asked for.
fn poisoned() -> Limits {
    let torture = Torture { every: 1 << 40, phase: 0, concurrent: true };
    Limits { torture: Some(torture), ..small() }
}

fn same_after(limits: Limits, operations: &[Operation]) -> bool {
    let mut pair = Pair::new(Limits { bytes_max: 64 << 20, ..limits });
    let _helpers = Helpers::of(&pair.mutator.heap);
    operations.iter().for_each(|operation| pair.apply(operation));
    let before = pair.same();
    pair.collect();
    let after = before && pair.same();
    // Reference counts never free a model with cycles, so cut them here.
    for model in &pair.models {
        *model.borrow_mut() = Node::Number(0);
    }
    after
}

proptest! {
    #[test]
    fn the_heap_agrees_with_the_model_during_concurrent_collections(
        operations in prop::collection::vec(operation(), 0..200),
        later in prop::collection::vec(operation(), 0..200),
    ) {
        prop_assert!(same_beside(poisoned(), &operations, &later, Sweep::Stopped));
    }

    #[test]
    fn the_heap_agrees_with_the_model_when_the_heap_is_swept_beside_the_program(
        operations in prop::collection::vec(operation(), 0..200),
        later in prop::collection::vec(operation(), 0..200),
        every in 1..100_usize,
    ) {
        prop_assert!(same_beside(poisoned(), &operations, &later, Sweep::Beside(every)));
    }

    #[test]
    fn the_heap_agrees_with_the_model_when_the_sweep_is_aborted(
        operations in prop::collection::vec(operation(), 0..200),
        later in prop::collection::vec(operation(), 0..200),
    ) {
        prop_assert!(same_beside(poisoned(), &operations, &later, Sweep::GivenUp));
    }

    #[test]
    fn the_heap_has_the_same_graph_as_the_model(
        operations in prop::collection::vec(operation(), 0..400)
    ) {
        prop_assert!(same_after(small(), &operations));
    }

    #[test]
    fn the_heap_agrees_with_the_model_when_freed_memory_is_overwritten(
        operations in prop::collection::vec(operation(), 0..400)
    ) {
        let limits = Limits { torture: Some(Torture { every: 1 << 40, phase: 0, concurrent: false }), ..small() };
        prop_assert!(same_after(limits, &operations));
    }

    #[test]
    fn the_heap_agrees_with_the_model_with_several_markers(
        operations in prop::collection::vec(operation(), 0..400)
    ) {
        prop_assert!(same_after(helped(false), &operations));
    }

    #[test]
    fn the_heap_agrees_with_the_model_with_several_concurrent_markers(
        operations in prop::collection::vec(operation(), 0..200),
        later in prop::collection::vec(operation(), 0..200),
    ) {
        prop_assert!(same_beside(helped(true), &operations, &later, Sweep::Stopped));
    }

    #[test]
    fn the_heap_agrees_with_the_model_with_several_markers_and_small_stacks(
        operations in prop::collection::vec(operation(), 0..150)
    ) {
        let limits = Limits { mark_stack_max: 1, ..helped(false) };
        prop_assert!(same_after(limits, &operations));
    }

    #[test]
    fn the_heap_agrees_with_the_model_when_every_step_is_followed_by_a_collection(
        operations in prop::collection::vec(operation(), 0..150)
    ) {
        prop_assert!(same_after(torture(), &operations));
    }

    #[test]
    fn the_heap_agrees_with_the_model_when_the_mark_stack_is_too_small(
        operations in prop::collection::vec(operation(), 0..150)
    ) {
        let limits = Limits { mark_stack_max: 1, ..torture() };
        prop_assert!(same_after(limits, &operations));
    }
}

#[test]
fn a_mark_stack_of_one_overflows_and_loses_nothing() {
    let m = mutator(Limits { mark_stack_max: 1, ..torture() });
    let mut rows = Vec::new();
    for row in 0..50 {
        let items: Vec<Value> =
            (0..20).map(|i| m.flonum(f64::from(row * 20 + i)).unwrap()).collect();
        rows.push(m.list(&items).unwrap());
    }
    let kept = m.vector_of(&rows).unwrap();
    let done = m.heap.collect(|marker| marker.mark(kept));
    assert!(done.mark_overflows > 0);
    let mut total = 0.0;
    for i in 0..50 {
        let mut list = kept.vector_ref(i).unwrap();
        while let Some((car, cdr)) = list.uncons() {
            total += car.as_flonum().unwrap();
            list = cdr;
        }
    }
    assert!(total == 499_500.0, "{total}");
}
