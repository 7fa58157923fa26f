//! The state word alone, in every state that few threads can reach.

use std::collections::HashSet;

use super::{LOWER, READERS, Use, WRITER, WRITER_WAITS};

/// Most waiting threads of each kind, and most readers inside.
const FEW: usize = 3;
const BOTH: [Use; 2] = [Use::Read, Use::Write];

/// All states that one step of any thread leads to.
fn successors(state: usize) -> Vec<usize> {
    let mut next = Vec::new();
    for as_what in BOTH {
        next.extend(as_what.enter(state));
        if as_what.waiting(state) < FEW {
            next.extend(as_what.wait(state));
        }
        if as_what.waiting(state) > 0 {
            next.push(as_what.wait_no_more(state));
            next.extend(as_what.enter(state).map(|inside| as_what.wait_no_more(inside)));
        }
    }
    if state & WRITER != 0 {
        next.push(state - WRITER);
    } else if state & READERS != 0 {
        next.push(state - 1);
    }
    next.retain(|next| next & READERS <= FEW);
    next
}

/// All states reachable from a free lock.
fn states() -> HashSet<usize> {
    let (mut known, mut new) = (HashSet::from([0]), vec![0]);
    while let Some(state) = new.pop() {
        new.extend(successors(state).into_iter().filter(|&next| known.insert(next)));
    }
    known
}

#[test]
fn lower_half_of_the_word_decides_which_threads_may_enter() {
    let states = states();
    assert!(states.len() > 2 * FEW * FEW, "{} states", states.len());
    for state in states {
        for as_what in BOTH {
            let (whole, lower) = (as_what.enter(state), as_what.enter(state & LOWER));
            assert_eq!(whole.is_some(), lower.is_some(), "{as_what:?} in {state:#x}");
        }
    }
}

#[test]
fn writer_is_alone_inside_and_marked_while_it_waits() {
    for state in states() {
        assert!(state & WRITER == 0 || state & READERS == 0, "{state:#x}");
        assert_eq!(state & WRITER_WAITS != 0, Use::Write.waiting(state) > 0, "{state:#x}");
    }
}

#[test]
fn more_readers_than_can_be_counted_wait() {
    assert_eq!(Use::Read.enter(READERS - 1), Some(READERS));
    assert_eq!(Use::Read.enter(READERS), None);
}
