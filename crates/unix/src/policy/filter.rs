//! The policy as a program for the host's filter (classic BPF).
//!
//! ```text
//!   architecture is not x86-64 → kill
//!   call of a FreeBSD program that its library does not make → trap
//!   number is at least 2^30 (x32) → ENOSYS
//!   for each number with rules: if it is that, its rules in turn;
//!       a condition that fails jumps to the next rule; after the last: ask the server
//!   for each native number: if it is that, allow
//!   ask the server
//! ```
//!
//! When the program is installed, the host runs it once for each number. It remembers the numbers
//! that are allowed whatever their arguments are: those calls cost nothing more.

use super::{Condition, Limited, NATIVE, RULES, Rule, Verdict};
use crate::options::Personality;
use crate::program::launcher::{BASE, GUARD, PATH_ADDRESS};
use kyocho_sys::confined::CHANNEL;
use kyocho_sys::seccomp::Instruction;

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const GREATER: u16 = 0x25;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const COUNTER: u32 = 8;
const X86_64: u32 = 0xc000_003e;
const X32: u32 = 0x4000_0000;

const fn low(argument: usize) -> u32 {
    16 + 8 * argument as u32
}

const fn high(argument: usize) -> u32 {
    low(argument) + 4
}

const fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// Skips `jt` instructions if the test holds, else `jf`.
const fn test(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn verdict(verdict: Verdict, limited: Limited) -> Instruction {
    plain(
        RETURN,
        match verdict {
            Verdict::Native => libc::SECCOMP_RET_ALLOW,
            Verdict::Counted(resource) if !limited.has(resource) => libc::SECCOMP_RET_ALLOW,
            Verdict::Counted(_) | Verdict::Served => libc::SECCOMP_RET_USER_NOTIF,
            Verdict::Refused(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
        },
    )
}

/// The calls that the server receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Those that it answers.
    Served,
    /// All: it shows the native ones for `--trace` and lets them through.
    All,
}

/// The whole filter. Allocates.
///
/// # Panics
/// When the rules of one number have more than 255 instructions.
pub(crate) fn program(
    calls: Calls,
    limited: Limited,
    personality: Personality,
) -> Vec<Instruction> {
    let mut program = deciding(limited);
    if calls == Calls::All {
        let allow = verdict(Verdict::Native, limited).k;
        for instruction in program.iter_mut().filter(|each| each.code == RETURN && each.k == allow)
        {
            instruction.k = verdict(Verdict::Served, limited).k;
        }
    }
    if personality == Personality::FreeBsd {
        program = [trapping(), program].concat();
    }
    if calls == Calls::All || personality == Personality::FreeBsd {
        program = [beginning(limited), program].concat();
    }
    program
}

/// The calls of a new process before the server listens to it, and before it has a library. It
/// talks to the server through a channel, and executes the launcher. Neither call is shown, and
/// neither traps. The numbers mean other calls to a FreeBSD program, but those never have these
/// argument words.
fn beginning(limited: Limited) -> Vec<Instruction> {
    // Without an address: only to the other end.
    const CHANNEL_FIRST: &[Condition] =
        &[Condition::Is(0, CHANNEL as u64), Condition::Is(3, 0), Condition::Is(4, 0)];
    const LAUNCHER_FIRST: &[Condition] = &[Condition::Is(0, PATH_ADDRESS as u64)];
    let mut beginning = vec![
        plain(LOAD, ARCHITECTURE),
        test(EQUAL, X86_64, 1, 0),
        plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for (number, words) in [
        (libc::SYS_recvfrom, CHANNEL_FIRST),
        (libc::SYS_sendto, CHANNEL_FIRST),
        (libc::SYS_execve, LAUNCHER_FIRST),
    ] {
        let mut body = conditions(words);
        body.push(verdict(Verdict::Native, limited));
        beginning.push(plain(LOAD, NUMBER));
        beginning.push(test(EQUAL, number as u32, 0, distance(body.len())));
        beginning.extend(body);
    }
    beginning
}

/// Falls through for calls from addresses where no client can map; other calls trap.
fn trapping() -> Vec<Instruction> {
    vec![
        plain(LOAD, COUNTER + 4),
        test(EQUAL, 0, 0, 3),
        plain(LOAD, COUNTER),
        test(AT_LEAST, BASE as u32, 0, 1),
        test(AT_LEAST, GUARD, 0, 1),
        plain(RETURN, libc::SECCOMP_RET_TRAP),
    ]
}

fn deciding(limited: Limited) -> Vec<Instruction> {
    let mut program = vec![
        plain(LOAD, ARCHITECTURE),
        test(EQUAL, X86_64, 1, 0),
        plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        plain(LOAD, NUMBER),
        test(AT_LEAST, X32, 0, 1),
        verdict(Verdict::Refused(libc::ENOSYS), limited),
    ];
    for rules in RULES.chunk_by(|a, b| a.number == b.number) {
        let body = body(rules, limited);
        program.push(test(EQUAL, rules[0].number as u32, 0, distance(body.len())));
        program.extend(body);
    }
    for &number in NATIVE {
        program.push(test(EQUAL, number as u32, 0, 1));
        program.push(verdict(Verdict::Native, limited));
    }
    program.push(verdict(Verdict::Served, limited));
    program
}

fn distance(instructions: usize) -> u8 {
    u8::try_from(instructions).expect("the rules of one number are few")
}

/// The rules of one number. Every path ends in a return.
fn body(rules: &[Rule], limited: Limited) -> Vec<Instruction> {
    let mut body = Vec::new();
    for rule in rules {
        body.extend(conditions(rule.conditions));
        body.push(verdict(rule.verdict, limited));
    }
    body.push(verdict(Verdict::Served, limited));
    body
}

/// Instructions that fall through if all of `list` hold, and otherwise skip one instruction after
/// their end.
fn conditions(list: &[Condition]) -> Vec<Instruction> {
    let mut done = Vec::new();
    for &condition in list.iter().rev() {
        let fail = distance(done.len() + 1);
        let mut whole = one(condition, fail);
        whole.extend(done);
        done = whole;
    }
    done
}

/// One condition. If it does not hold, `fail` instructions after its end are skipped.
fn one(condition: Condition, fail: u8) -> Vec<Instruction> {
    match condition {
        Condition::Is(index, word) => vec![
            plain(LOAD, low(index)),
            test(EQUAL, word as u32, 0, fail + 2),
            plain(LOAD, high(index)),
            test(EQUAL, (word >> 32) as u32, 0, fail),
        ],
        Condition::AtLeast(index, least) => vec![
            plain(LOAD, high(index)),
            test(GREATER, 0, 2, 0),
            plain(LOAD, low(index)),
            test(AT_LEAST, least, 0, fail),
        ],
        Condition::NoBits(index, bits) => {
            vec![plain(LOAD, low(index)), test(ANY_BIT, bits, fail, 0)]
        }
        Condition::Bit(index, bit) => {
            vec![plain(LOAD, low(index)), test(ANY_BIT, bit, 0, fail)]
        }
        Condition::FromLauncher => vec![
            plain(LOAD, COUNTER + 4),
            test(EQUAL, 0, 0, fail + 3),
            plain(LOAD, COUNTER),
            test(AT_LEAST, BASE as u32, 0, fail + 1),
            test(AT_LEAST, GUARD, fail, 0),
        ],
        Condition::OneOf(index, list) => {
            let mut tests = vec![plain(LOAD, low(index))];
            for (place, &value) in list.iter().enumerate() {
                let left = list.len() - 1 - place;
                let no = if left == 0 { fail } else { 0 };
                tests.push(test(EQUAL, value, distance(left), no));
            }
            tests
        }
    }
}
