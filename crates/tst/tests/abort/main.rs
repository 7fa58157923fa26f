//! Every restartable sequence, aborted at every instruction.
//!
//! A trap is laid over instruction k, so that the sequence is interrupted exactly there. The handler takes the trap
//! away, lets an interloper do an operation of its own (the preemption that matters) and restarts the sequence as
//! the preemption handler does. Oracle: results and memory are as if the two operations had been done
//! one after the other. Sequences that break a rule must fail the same oracle.
#![expect(unsafe_code, reason = "patches instructions and operates on raw words")]
#![expect(clippy::unwrap_used, reason = "a test")]

mod harness;
mod world;

use harness::{Event, Sequences, abort_everywhere};
use kyocho_arch::{mutant, restartable};
use world::{Operation, Start};

const REAL: Sequences =
    Sequences { ranges: || restartable::ranges().collect(), rewind: restartable::rewind };
const MUTANTS: Sequences =
    Sequences { ranges: || mutant::ranges().collect(), rewind: mutant::rewind };

/// Words and lists at the start of a scenario: empty, of one node, of three.
const STARTS: [Start; 3] = [
    Start { word: 0, number: 5, nodes: 0 },
    Start { word: 1, number: 6, nodes: 1 },
    Start { word: 0, number: 7, nodes: 3 },
];

/// All that may happen between an abort and the restart: nothing, the virtual processor is lost, or one of `operations`.
fn events(operations: &[Operation]) -> Vec<Event> {
    let mut events = vec![Event::Nothing, Event::VirtualProcessorLost];
    events.extend(operations.iter().copied().map(Event::Interloper));
    events
}

/// Aborts one operation in every start, everywhere, with every event.
fn sweep(
    sequences: Sequences,
    operation: Operation,
    interlopers: &[Operation],
) -> Result<usize, String> {
    let mut aborts = 0;
    for start in STARTS {
        for event in events(interlopers) {
            aborts += abort_everywhere(sequences, start, operation, event)?;
        }
    }
    Ok(aborts)
}

/// Asserts that an operation survives all of it, and that the sweep reached all its instructions.
fn assert_survives(operation: Operation, interlopers: &[Operation], aborts_min: usize) {
    let aborts = sweep(REAL, operation, interlopers).unwrap_or_else(|what| panic!("{what}"));
    assert!(aborts >= aborts_min, "{operation:?}: only {aborts} aborts");
}

#[test]
fn words_survive_an_abort_at_every_instruction() {
    use Operation::{CompareAndSwap, Exchange, FetchAdd, TestAndSet};
    let on_number = [CompareAndSwap, FetchAdd, Exchange];
    assert_survives(TestAndSet, &[TestAndSet], 3 * 3 * 6);
    for operation in on_number {
        assert_survives(operation, &on_number, 3 * 5 * 5);
    }
}

#[test]
fn lists_survive_an_abort_at_every_instruction() {
    use Operation::{Pop, PopTwicePushFirst, Push};
    for operation in [Push, Pop] {
        assert_survives(operation, &[Push, Pop, PopTwicePushFirst], 3 * 5 * 5);
    }
}

#[test]
fn queues_survive_an_abort_at_every_instruction() {
    use Operation::{Dequeue, DequeueEnqueue, Enqueue};
    for operation in [Enqueue, Dequeue] {
        assert_survives(operation, &[Enqueue, Dequeue, DequeueEnqueue], 3 * 5 * 6);
    }
}

/// Asserts that the oracle sees a breach: with any event, and which event is enough.
fn assert_caught(mutant: Operation, event: Event) {
    let caught =
        STARTS.iter().any(|&start| abort_everywhere(MUTANTS, start, mutant, event).is_err());
    assert!(caught, "{mutant:?} passed with {event:?}: the oracle is blind");
}

#[test]
fn a_sequence_that_commits_twice_is_caught() {
    assert_caught(Operation::MutantTestAndSetTwice, Event::Nothing);
    assert_caught(Operation::MutantEnqueueTailFirst, Event::Nothing);
}

#[test]
fn a_sequence_that_nobody_restarts_is_caught() {
    use Operation::{MutantFetchAddUnregistered, MutantTestAndSetUnregistered};
    for mutant in [MutantTestAndSetUnregistered, MutantFetchAddUnregistered] {
        assert_caught(mutant, Event::Interloper(mutant));
        assert_caught(mutant, Event::VirtualProcessorLost);
    }
}
