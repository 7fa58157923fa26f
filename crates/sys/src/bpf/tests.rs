//! Programs that the host runs: what they compute, see and tell. Without the capabilities, only the encoding is tested.

use core::time::Duration;
use std::os::fd::AsFd;

use super::assembler::{Assembler, Condition, Helper, Register, Width};
use super::{Map, Program, Ring, Words};
use crate::error::Errno;
use crate::event::Event;
use crate::prim::atomic::unmodelled::Ordering;
use crate::prim::clock::monotonic_ns;
use crate::sleep;

/// A program, or `None`, said once, where the host does not let us have one.
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
fn a_jump_to_nowhere_is_no_program() {
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
    assert_eq!(program.run([]), Err(Errno::INVAL), "it reads an argument");
}

#[test]
fn a_program_that_reads_where_it_must_not_is_refused_with_reasons() {
    if load("a_program_that_reads_where_it_must_not", &step()).is_none() {
        return;
    }
    let mut code = Assembler::new();
    code.load(Width::Whole, Register::R0, Register::R6, 0);
    code.exit();
    let refused = Program::load(&code.finish()).unwrap_err();
    assert!(refused.log.contains("R6 !read_ok"), "{refused}");
}

/// Counts in entry 0 of `words` how often the calling thread left its CPU, told by its place in `threads`; tells `ring`, which it
/// finds in place 0 of `rings`.
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

/// Enters the calling thread into `threads`, with its argument as the value.
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
fn a_program_sees_us_sleep_and_tells() {
    let name = "a_program_sees_us_sleep_and_tells";
    if load(name, &step()).is_none() {
        return;
    }
    let (threads, words) = (Map::hash(8, 4, 4).unwrap(), Words::<1>::new(2).unwrap());
    let ring = Ring::new().unwrap();
    let rings = Map::table_of(ring.map(), 1).unwrap();
    rings.put(0, ring.map()).unwrap();
    assert!(rings.put(1, ring.map()).is_err(), "no such place");
    let counting = load(name, &count_switches(&threads, &words, &rings)).unwrap();
    let enlisting = load(name, &enlist(&threads)).unwrap();
    let attachment = counting.attach(c"sched_switch").unwrap();
    let unheard = Event::new().unwrap();
    let nap = || sleep::until(monotonic_ns() + 1_000_000).unwrap();
    nap();
    assert_eq!(words.entries()[0][0].load(Ordering::Relaxed), 0, "not enlisted");
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
fn what_does_not_exist_cannot_be_attached_to() {
    let Some(program) = load("what_does_not_exist", &step()) else { return };
    assert!(program.attach(c"no_such_tracepoint").is_err());
}
