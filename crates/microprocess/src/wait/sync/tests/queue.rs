//! Compares the queue of waiters with a naive model.
#![expect(unsafe_code, reason = "queues nodes by address")]

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

use super::on_processors;
use crate::schedule::guarded::Guarded;
use crate::wait::sync::{wait::Waiter, wait_queue::WaitQueue};

#[derive(Clone, Copy, Debug)]
enum Step {
    Push { priority: u8 },
    Pop,
    Remove { nth: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0_u8..5).prop_map(|priority| Step::Push { priority }),
        2 => prop::strategy::Just(Step::Pop),
        1 => any::<usize>().prop_map(|nth| Step::Remove { nth }),
    ];
    prop::collection::vec(step, 1..80)
}

/// Runs the steps; returns what is left in the queue, first to last, and what came out of it.
fn play(steps: &[Step]) -> (Vec<u32>, Vec<u32>) {
    let waiters: Vec<Waiter> = (0..)
        .zip(steps)
        .map(|(index, step)| {
            let priority = if let Step::Push { priority } = step { *priority } else { 0 };
            Waiter::with_priority(index, priority)
        })
        .collect();
    let queue = Guarded::new(WaitQueue::new());
    let mut queue = queue.enter();
    let mut popped = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match step {
            // SAFETY: the waiters outlive the queue, and each is pushed once.
            Step::Push { .. } => unsafe { queue.push(&waiters[index]) },
            Step::Pop => popped.extend(queue.pop().map(|claimed| claimed.token())),
            Step::Remove { nth } => {
                let count = queue.iter().count();
                let chosen = queue.iter().nth(nth % count.max(1)).map(Waiter::token);
                if let Some(token) = chosen {
                    queue.remove(&waiters[token as usize]);
                }
            }
        }
    }
    (queue.iter().map(Waiter::token).collect(), popped)
}

/// The same with a sorted list.
fn model(steps: &[Step]) -> (Vec<u32>, Vec<u32>) {
    let (mut queue, mut popped) = (Vec::<(u8, u32)>::new(), Vec::new());
    for (index, step) in (0..).zip(steps) {
        match *step {
            Step::Push { priority } => {
                let at = queue.iter().position(|&(p, _)| p < priority).unwrap_or(queue.len());
                queue.insert(at, (priority, index));
            }
            Step::Pop if queue.is_empty() => {}
            Step::Pop => popped.push(queue.remove(0).1),
            Step::Remove { nth } => {
                if !queue.is_empty() {
                    queue.remove(nth % queue.len());
                }
            }
        }
    }
    (queue.into_iter().map(|(_, index)| index).collect(), popped)
}

proptest! {
    #[test]
    fn queue_does_as_a_sorted_list(steps in steps()) {
        let played = on_processors(1, || play(&steps));
        prop_assert_eq!(played, model(&steps));
    }
}
