//! Every restartable sequence, aborted at every instruction.
//!
//! A trap is laid over instruction k, so that the sequence is interrupted exactly there. The handler takes the trap
//! away, lets an interloper do an operation of its own (the preemption that matters) and restarts the sequence as
//! the preemption handler does; a sequence of Linux's kind has been aborted by the kernel before the handler runs. Oracle: results and memory are as if the two operations had been done
//! one after the other. Sequences that break a rule must fail the same oracle.
#![expect(unsafe_code, reason = "patches instructions and operates on raw words")]
#![expect(clippy::unwrap_used, reason = "a test")]

#[cfg(target_arch = "x86_64")]
mod cpu;
mod harness;
mod vp;
mod world;

use harness::{Code, Event, Place, abort_everywhere};
use vp::VP;
use world::{Operation, Start};

/// Words and lists at the start of a scenario: empty, of one node, of three.
const STARTS: [Start; 3] = [
    Start { word: 0, number: 5, nodes: 0 },
    Start { word: 1, number: 6, nodes: 1 },
    Start { word: 0, number: 7, nodes: 3 },
];

/// All that may happen between an abort and the restart: nothing, the place is lost, or one of `operations`.
fn events(place: impl Place, operations: &[Operation]) -> Vec<Event> {
    let mut events = vec![Event::Nothing];
    events.extend(place.thief().map(|_| Event::Lost));
    events.extend(operations.iter().copied().map(Event::Interloper));
    events
}

/// Aborts one operation in every start, everywhere, with every event.
fn sweep(
    place: impl Place,
    operation: Operation,
    interlopers: &[Operation],
) -> Result<usize, String> {
    let mut aborts = 0;
    for start in STARTS {
        for event in events(place, interlopers) {
            aborts += abort_everywhere(place, Code::Real, start, operation, event)?;
        }
    }
    Ok(aborts)
}

/// Asserts that an operation survives all of it, and that the sweep reached all its instructions: `shortest` at least
/// each time.
fn assert_survives(
    place: impl Place,
    operation: Operation,
    interlopers: &[Operation],
    shortest: usize,
) {
    let aborts = sweep(place, operation, interlopers).unwrap_or_else(|what| panic!("{what}"));
    let aborts_min = STARTS.len() * events(place, interlopers).len() * shortest;
    assert!(aborts >= aborts_min, "{operation:?}: only {aborts} aborts");
}

fn words_survive(place: impl Place) {
    use Operation::{CompareAndSwap, FetchAdd, TestAndSet};
    assert_survives(place, TestAndSet, &[TestAndSet], 6);
    for operation in [CompareAndSwap, FetchAdd] {
        assert_survives(place, operation, &[CompareAndSwap, FetchAdd], 5);
    }
}

fn lists_survive(place: impl Place) {
    use Operation::{Pop, PopTwicePushFirst, Push};
    for operation in [Push, Pop] {
        assert_survives(place, operation, &[Push, Pop, PopTwicePushFirst], 5);
    }
}

fn queues_survive(place: impl Place) {
    use Operation::{Dequeue, DequeueEnqueue, Enqueue};
    for operation in [Enqueue, Dequeue] {
        assert_survives(place, operation, &[Enqueue, Dequeue, DequeueEnqueue], 6);
    }
}

/// Asserts that the oracle sees a breach with this event.
fn assert_caught(place: impl Place, mutant: Operation, event: Event) {
    let caught = STARTS
        .iter()
        .any(|&start| abort_everywhere(place, Code::Mutants, start, mutant, event).is_err());
    assert!(caught, "{mutant:?} passed with {event:?}: the oracle is blind");
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
    fn a_sequence_that_nobody_restarts_is_caught() {
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

    /// Runs a test at the first CPU that it may use.
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
