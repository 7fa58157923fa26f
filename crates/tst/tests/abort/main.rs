//! Every restartable sequence, aborted at every instruction.
//!
//! A trap replaces instruction k, so that the sequence is interrupted exactly there. The handler
//! removes the trap, lets an interloper do an operation (as after a preemption) and restarts the
//! sequence as the preemption handler does. A sequence of Linux's kind has been aborted by the
//! kernel before the handler runs. Oracle: results and memory are as if the two operations had run
//! one after the other. Sequences that break a rule must fail the same oracle.
#![expect(unsafe_code, reason = "patches instructions and operates on raw words")]
#![expect(clippy::unwrap_used, reason = "a test")]

#[cfg(target_arch = "x86_64")]
mod cpu;
mod harness;
mod vp;
mod world;

use harness::{Code, Event, TestHolder, abort_everywhere};
use vp::VP;
use world::{Operation, Start};

/// Words and lists at the start of a scenario: empty, with one node, with three.
const STARTS: [Start; 3] = [
    Start { word: 0, number: 5, nodes: 0 },
    Start { word: 1, number: 6, nodes: 1 },
    Start { word: 0, number: 7, nodes: 3 },
];

/// Everything that may happen between an abort and the restart: nothing, the loss of the holder, or
/// one of `operations`.
fn events(holder: impl TestHolder, operations: &[Operation]) -> Vec<Event> {
    let mut events = vec![Event::Nothing];
    events.extend(holder.loss().map(|_| Event::Lost));
    events.extend(operations.iter().copied().map(Event::Interloper));
    events
}

/// Aborts one operation from every start, at every instruction, with every event.
fn sweep(
    holder: impl TestHolder,
    operation: Operation,
    interlopers: &[Operation],
) -> Result<usize, String> {
    let mut aborts = 0;
    for start in STARTS {
        for event in events(holder, interlopers) {
            aborts += abort_everywhere(holder, Code::Real, start, operation, event)?;
        }
    }
    Ok(aborts)
}

/// Asserts that an operation survives all aborts, and that the sweep reached all its instructions:
/// at least `shortest` in each scenario.
fn assert_survives(
    holder: impl TestHolder,
    operation: Operation,
    interlopers: &[Operation],
    shortest: usize,
) {
    let aborts = sweep(holder, operation, interlopers).unwrap_or_else(|what| panic!("{what}"));
    let aborts_min = STARTS.len() * events(holder, interlopers).len() * shortest;
    assert!(aborts >= aborts_min, "{operation:?}: only {aborts} aborts");
}

fn words_survive(holder: impl TestHolder) {
    use Operation::{CompareAndSwap, FetchAdd, TestAndSet};
    assert_survives(holder, TestAndSet, &[TestAndSet], 6);
    for operation in [CompareAndSwap, FetchAdd] {
        assert_survives(holder, operation, &[CompareAndSwap, FetchAdd], 5);
    }
}

fn lists_survive(holder: impl TestHolder) {
    use Operation::{Pop, PopTwicePushFirst, Push};
    for operation in [Push, Pop] {
        assert_survives(holder, operation, &[Push, Pop, PopTwicePushFirst], 5);
    }
}

fn queues_survive(holder: impl TestHolder) {
    use Operation::{Dequeue, DequeueEnqueue, Enqueue};
    for operation in [Enqueue, Dequeue] {
        assert_survives(holder, operation, &[Enqueue, Dequeue, DequeueEnqueue], 6);
    }
}

/// Asserts that the oracle catches a mutant with this event.
fn assert_caught(holder: impl TestHolder, mutant: Operation, event: Event) {
    let caught = STARTS
        .iter()
        .any(|&start| abort_everywhere(holder, Code::Mutants, start, mutant, event).is_err());
    assert!(caught, "{mutant:?} passed with {event:?}: the oracle missed it");
}

mod restarted_by_our_handler {
    use super::{
        Event, Operation, VP, assert_caught, lists_survive, queues_survive, words_survive,
    };

    #[test]
    fn words_survive_an_abort_at_every_instruction() {
        words_survive(VP);
    }

    #[test]
    fn lists_survive_an_abort_at_every_instruction() {
        lists_survive(VP);
    }

    #[test]
    fn queues_survive_an_abort_at_every_instruction() {
        queues_survive(VP);
    }

    #[test]
    fn a_sequence_that_commits_twice_is_caught() {
        assert_caught(VP, Operation::TestAndSetTwice, Event::Nothing);
        assert_caught(VP, Operation::EnqueueTailFirst, Event::Nothing);
    }

    #[test]
    fn sequence_that_is_not_restarted_is_caught() {
        use Operation::{FetchAddUnregistered, TestAndSetUnregistered};
        for mutant in [TestAndSetUnregistered, FetchAddUnregistered] {
            assert_caught(VP, mutant, Event::Interloper(mutant));
            assert_caught(VP, mutant, Event::Lost);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod restarted_by_linux {
    use kyocho_arch::rseq::Cpu;
    use kyocho_sys::rseq::register_thread;
    use kyocho_sys::skip::skip;

    use super::{
        Event, Operation, assert_caught, cpu, lists_survive, queues_survive, words_survive,
    };

    /// Runs a test on the first CPU that this thread may use.
    fn on_a_cpu(name: &str, test: impl FnOnce(Cpu)) {
        match register_thread() {
            Ok(()) => test(Cpu::new(cpu::allowed().iter().next().unwrap() as u32)),
            Err(why) => skip(name, &why.to_string()),
        }
    }

    #[test]
    fn words_survive_an_abort_at_every_instruction() {
        on_a_cpu("words_survive_by_linux", words_survive);
    }

    #[test]
    fn lists_survive_an_abort_at_every_instruction() {
        on_a_cpu("lists_survive_by_linux", lists_survive);
    }

    #[test]
    fn queues_survive_an_abort_at_every_instruction() {
        on_a_cpu("queues_survive_by_linux", queues_survive);
    }

    #[test]
    fn a_sequence_that_commits_twice_is_caught() {
        on_a_cpu("twice_is_caught_by_linux", |cpu| {
            assert_caught(cpu, Operation::TestAndSetTwice, Event::Nothing);
        });
    }

    #[test]
    fn a_sequence_that_the_kernel_does_not_abort_is_caught() {
        use Operation::{FetchAddEndsEarly, FetchAddUnwatched};
        on_a_cpu("unwatched_is_caught_by_linux", |cpu| {
            for mutant in [FetchAddUnwatched, FetchAddEndsEarly] {
                assert_caught(cpu, mutant, Event::Interloper(mutant));
            }
        });
    }

    #[test]
    fn a_sequence_aborted_after_its_commit_is_caught() {
        on_a_cpu("ends_late_is_caught_by_linux", |cpu| {
            assert_caught(cpu, Operation::FetchAddEndsLate, Event::Nothing);
        });
    }
}
