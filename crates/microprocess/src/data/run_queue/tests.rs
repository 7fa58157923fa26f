//! Compares the run queue with a naive model: a vector that is searched for the first element of
//! the highest level.

use core::cell::Cell;

use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{Queued, RunQueue};

#[derive(Debug)]
struct Element {
    number: usize,
    link: Cell<Option<&'static Self>>,
}

impl Queued for Element {
    fn link(&self) -> &Cell<Option<&'static Self>> {
        &self.link
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Push(u8),
    PushFirst(u8),
    Pop,
    /// Removes the k-th element present, if there are that many.
    Remove(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    // A few levels are chosen often, so that elements share a level; every level is chosen
    // sometimes.
    let level = prop_oneof![0..3_u8, 0..64_u8, 61..64_u8];
    prop_oneof![
        level.clone().prop_map(Operation::Push),
        level.prop_map(Operation::PushFirst),
        any::<u8>().prop_map(|_| Operation::Pop),
        (0..20_usize).prop_map(Operation::Remove),
    ]
}

#[derive(Default)]
struct Model(Vec<(u8, usize)>);

impl Model {
    fn pop(&mut self) -> Option<usize> {
        let highest = self.0.iter().map(|&(level, _)| level).max()?;
        let at = self.0.iter().position(|&(level, _)| level == highest)?;
        Some(self.0.remove(at).1)
    }
}

proptest! {
    #[test]
    fn behaves_as_a_searched_vector(operations in proptest::collection::vec(operation(), 0..200)) {
        let (queue, mut model) = (RunQueue::<Element>::new(), Model::default());
        let mut elements = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            let element = &*Box::leak(Box::new(Element { number, link: Cell::new(None) }));
            elements.push(element);
            match operation {
                Operation::Push(level) => {
                    queue.push(element, level);
                    model.0.push((level, number));
                }
                Operation::PushFirst(level) => {
                    queue.push_first(element, level);
                    model.0.insert(0, (level, number));
                }
                Operation::Remove(k) if k < model.0.len() => {
                    let (level, number) = model.0.remove(k);
                    queue.remove(elements[number], level);
                }
                Operation::Remove(_) => {}
                Operation::Pop => {
                    prop_assert_eq!(queue.pop().map(|element| element.number), model.pop());
                }
            }
            let highest = model.0.iter().map(|&(level, _)| level).max();
            prop_assert_eq!(queue.highest(), highest);
            prop_assert_eq!(queue.is_empty(), model.0.is_empty());
            prop_assert_eq!(queue.count_up_to(usize::MAX), model.0.len());
            prop_assert_eq!(queue.count_up_to(3), model.0.len().min(3));
        }
        while let Some(expected) = model.pop() {
            prop_assert_eq!(queue.pop().map(|element| element.number), Some(expected));
        }
        prop_assert_eq!(queue.pop().is_none(), true);
    }
}
