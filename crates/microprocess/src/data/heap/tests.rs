//! Compares the heap with a naive model: a vector that is searched for the earliest element.

use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{Heap, Linked, Links, Sleeping};

struct Element {
    number: usize,
    links: Links<Self>,
}

impl Linked<Sleeping> for Element {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Insert(u64),
    TakeDue(u64),
    /// Removes the k-th element present, if there are that many.
    Remove(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..50_u64).prop_map(Operation::Insert),
        2 => (0..60_u64).prop_map(Operation::TakeDue),
        1 => (0..20_usize).prop_map(Operation::Remove),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_searched_vector(operations in proptest::collection::vec(operation(), 0..300)) {
        let heap = Heap::<Element, Sleeping>::new();
        let mut model: Vec<(u64, &'static Element)> = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            match operation {
                Operation::Insert(deadline) => {
                    let element = &*Box::leak(Box::new(Element { number, links: Links::new() }));
                    heap.insert(element, deadline);
                    model.push((deadline, element));
                }
                Operation::TakeDue(now) => {
                    let earliest = model.iter().map(|&(deadline, _)| deadline).min();
                    let taken = heap.take_up_to(now);
                    prop_assert_eq!(taken.is_some(), earliest.is_some_and(|at| at <= now));
                    if let Some(taken) = taken {
                        let at = model.iter().position(|(_, e)| e.number == taken.number);
                        let (deadline, _) = model.remove(at.unwrap());
                        prop_assert_eq!(Some(deadline), earliest);
                        prop_assert!(!taken.links.is_set());
                    }
                }
                Operation::Remove(k) if k < model.len() => {
                    let (_, element) = model.remove(k);
                    heap.remove(element);
                    prop_assert!(!element.links.is_set());
                }
                Operation::Remove(_) => {}
            }
            prop_assert_eq!(heap.least(), model.iter().map(|&(at, _)| at).min());
        }
        model.sort_by_key(|&(deadline, _)| deadline);
        for (deadline, _) in model {
            prop_assert_eq!(heap.least(), Some(deadline));
            prop_assert!(heap.take_up_to(u64::MAX).is_some());
        }
        prop_assert!(heap.take_up_to(u64::MAX).is_none());
    }
}
