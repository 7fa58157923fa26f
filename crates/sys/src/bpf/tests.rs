//! BPF programs: what they compute, observe and report. Without the capabilities, only the encoding
//! is tested.

use core::time::Duration;
use std::os::fd::AsFd;

use super::assembler::{Assembler, Condition, Helper, Register, Width};
use super::{Map, Program, Ring, Words};
use crate::error::Errno;
use crate::event::Event;
use crate::prim::atomic::unmodelled::Ordering;
use crate::prim::clock::monotonic_ns;
use crate::sleep;

/// Loads a program; `None` if the host refuses for lack of capabilities, which is reported as a
/// skipped test.
fn load(test: &str, code: &Assembler) -> Option<Program> {
    match Program::load(&code.clone().finish()) {
        Ok(program) => Some(program),
        Err(refused) if refused.errno == Errno::PERM => {
            crate::skip::skip(test, "needs CAP_BPF and CAP_PERFMON");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}

/// `answer = argument < 8 ? argument + 1 : 0`.
fn step() -> Assembler {
    let mut code = Assembler::new();
    let (small, end) = (code.label(), code.label());
    code.load(Width::Whole, Register::R0, Register::R1, 0);
    code.jump_if(Register::R0, Condition::AtMost, 7, small);
    code.set(Register::R0, 0);
    code.jump(end);
    code.place(small);
    code.add(Register::R0, 1);
    code.place(end);
    code.exit();
    code
}

#[test]
fn instructions_are_encoded_as_the_standard_says() {
    let words = [
        0x0000_0000_0000_1079, // r0 = *(u64 *)(r1 + 0)
        0x0000_0007_0002_00b5, // if r0 <= 7 goto +2
        0x0000_0000_0000_00b7, // r0 = 0
        0x0000_0000_0001_0005, // goto +1
        0x0000_0001_0000_0007, // r0 += 1
        0x0000_0000_0000_0095, // exit
    ];
    assert_eq!(step().finish(), words);
}

#[test]
#[should_panic(expected = "every label has a place")]
fn unplaced_label_panics() {
    let mut code = Assembler::new();
    let nowhere = code.label();
    code.jump(nowhere);
    drop(code.finish());
}

#[test]
fn a_program_runs_on_demand() {
    let Some(program) = load("a_program_runs_on_demand", &step()) else { return };
    for (argument, answer) in [(0, 1), (7, 8), (8, 0)] {
        assert_eq!(program.run([argument]), Ok(answer));
    }
    assert_eq!(program.run([]), Err(Errno::INVAL), "the program reads an argument");
}

#[test]
fn program_with_an_invalid_read_is_refused_with_messages() {
    if load("a_program_that_reads_where_it_must_not", &step()).is_none() {
        return;
    }
    let mut code = Assembler::new();
    code.load(Width::Whole, Register::R0, Register::R6, 0);
    code.exit();
    let refused = Program::load(&code.finish()).unwrap_err();
    assert!(refused.log.contains("R6 !read_ok"), "{refused}");
}

/// Counts in entry 0 of `words` how often the calling thread left its CPU, if the thread is in
/// `threads`. Notifies `ring`, which it finds at index 0 of `rings`.
fn count_switches(threads: &Map, words: &Words<1>, rings: &Map) -> Assembler {
    let mut code = Assembler::new();
    let end = code.label();
    code.copy(Register::R6, Register::R1);
    code.load(Width::Whole, Register::R1, Register::R6, 8);
    code.store(Width::Whole, Register::R10, -8, Register::R1);
    code.map(Register::R1, threads);
    code.stack_address(Register::R2, -8);
    code.call(Helper::MapLookup);
    code.jump_if(Register::R0, Condition::Equal, 0, end);
    code.load(Width::Half, Register::R1, Register::R0, 0);
    code.store(Width::Half, Register::R10, -12, Register::R1);
    code.map(Register::R1, words.map());
    code.stack_address(Register::R2, -12);
    code.call(Helper::MapLookup);
    code.jump_if(Register::R0, Condition::Equal, 0, end);
    code.load(Width::Whole, Register::R1, Register::R0, 0);
    code.add(Register::R1, 1);
    code.exchange(Register::R0, 0, Register::R1);
    code.map(Register::R1, rings);
    code.stack_address(Register::R2, -12);
    code.call(Helper::MapLookup);
    code.jump_if(Register::R0, Condition::Equal, 0, end);
    code.copy(Register::R1, Register::R0);
    code.stack_address(Register::R2, -8);
    code.set(Register::R3, 8);
    code.set(Register::R4, 0);
    code.call(Helper::RingOutput);
    code.place(end);
    code.set(Register::R0, 0);
    code.exit();
    code
}

/// Adds the calling thread to `threads`, with the program's argument as the value.
fn enlist(threads: &Map) -> Assembler {
    let mut code = Assembler::new();
    code.load(Width::Whole, Register::R6, Register::R1, 0);
    code.store(Width::Half, Register::R10, -12, Register::R6);
    code.call(Helper::CurrentTask);
    code.store(Width::Whole, Register::R10, -8, Register::R0);
    code.map(Register::R1, threads);
    code.stack_address(Register::R2, -8);
    code.stack_address(Register::R3, -12);
    code.set(Register::R4, 0);
    code.call(Helper::MapUpdate);
    code.exit();
    code
}

#[test]
fn program_counts_switches_and_notifies_the_ring() {
    let name = "program_counts_switches_and_notifies_the_ring";
    if load(name, &step()).is_none() {
        return;
    }
    let (threads, words) = (Map::hash(8, 4, 4).unwrap(), Words::<1>::new(2).unwrap());
    let ring = Ring::new().unwrap();
    let rings = Map::table_of(ring.map(), 1).unwrap();
    rings.put(0, ring.map()).unwrap();
    assert!(rings.put(1, ring.map()).is_err(), "the index is out of range");
    let counting = load(name, &count_switches(&threads, &words, &rings)).unwrap();
    let enlisting = load(name, &enlist(&threads)).unwrap();
    let attachment = counting.attach(c"sched_switch").unwrap();
    let unheard = Event::new().unwrap();
    let nap = || sleep::until(monotonic_ns() + 1_000_000).unwrap();
    nap();
    assert_eq!(words.entries()[0][0].load(Ordering::Relaxed), 0, "the thread has not been added");
    assert_eq!(ring.wait(unheard.as_fd(), Some(Duration::ZERO)), Ok(false));

    assert_eq!(enlisting.run([0]), Ok(0));
    nap();
    assert!(words.entries()[0][0].load(Ordering::Relaxed) > 0);
    assert_eq!(words.entries()[1][0].load(Ordering::Relaxed), 0);
    assert_eq!(ring.wait(unheard.as_fd(), None), Ok(true));

    drop(attachment);
    let before = words.entries()[0][0].load(Ordering::Relaxed);
    nap();
    assert_eq!(words.entries()[0][0].load(Ordering::Relaxed), before, "detached");
    unheard.notify().unwrap();
    ring.wait(unheard.as_fd(), None).unwrap();
}

#[test]
fn attaching_to_a_missing_tracepoint_fails() {
    let Some(program) = load("what_does_not_exist", &step()) else { return };
    assert!(program.attach(c"no_such_tracepoint").is_err());
}
