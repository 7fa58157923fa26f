//! A debugger walks a switched stack: the running one, and a suspended one with the registers from
//! `Context`. Both walks end at the entry, without a report of a corrupt stack.
#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "switches stacks")]

use core::cell::Cell;
use core::hint::black_box;
use std::io::{ErrorKind, Write};
use std::process::Command;

use kyocho_arch::{Context, prepare, switch};

struct Pair {
    main: Cell<Context>,
    other: Cell<Context>,
}

/// Where the debugger stops while the other stack runs.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn kyocho_running(value: usize) -> usize {
    black_box(value)
}

/// Where the debugger stops while the other stack is suspended, and gets its registers.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn kyocho_suspended(pc: usize, sp: usize, fp: usize) -> usize {
    black_box(pc) ^ black_box(sp) ^ black_box(fp)
}

#[inline(never)]
fn innermost_function(pair: &Pair) {
    kyocho_running(black_box(1));
    // SAFETY: the main stack is suspended in its own switch.
    unsafe { switch(pair.other.as_ptr(), pair.main.get()) };
    black_box(pair);
}

unsafe extern "C" fn outermost_function(pair: usize) -> ! {
    // SAFETY: the test below passes its pair, which outlives the stack.
    let pair = unsafe { &*(pair as *const Pair) };
    loop {
        innermost_function(pair);
    }
}

#[test]
fn program() {
    let mut stack = vec![0_u8; 64 * 1024];
    let (main, other) = (Cell::new(Context::NULL), Cell::new(Context::NULL));
    let pair = Pair { main, other };
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the vector lies below its end and outlives the use of the stack.
    pair.other.set(unsafe { prepare(top, outermost_function, &raw const pair as usize) });
    // SAFETY: prepared above.
    unsafe { switch(pair.main.as_ptr(), pair.other.get()) };
    // SAFETY: it is suspended: it has just switched back.
    let suspended = unsafe { pair.other.get().suspended() };
    assert_ne!(kyocho_suspended(suspended.pc, suspended.sp, suspended.fp), 0);
}

/// What the debugger does in [`program`]: `x86-64` passes the three arguments in `rdi`, `rsi`,
/// `rdx`.
const SCRIPT: [&str; 12] = [
    "set debuginfod enabled off",
    "break kyocho_running",
    "break *kyocho_suspended",
    "run",
    "echo RUNNING\\n",
    "backtrace",
    "continue",
    "echo SUSPENDED\\n",
    "set $next = $rdi",
    "set $rsp = $rsi",
    "set $rbp = $rdx",
    "set $rip = $next",
];

fn skip(why: &str) {
    // As `kyocho_sys::skip`, which this crate cannot use.
    let _ = writeln!(std::io::stderr(), "skipped debugger_walks_a_switched_stack: {why}");
}

#[test]
fn debugger_walks_a_switched_stack() {
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]);
    for line in SCRIPT.iter().chain(&["backtrace", "kill"]) {
        gdb.args(["-ex", line]);
    }
    gdb.arg("--args").arg(std::env::current_exe().unwrap());
    gdb.args(["--exact", "program", "--test-threads", "1"]);
    let output = match gdb.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return skip("no gdb"),
        answer => answer.unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("ptrace: Operation not permitted") {
        return skip("this machine does not let gdb trace");
    }
    let (_, walks) = text.split_once("RUNNING").unwrap_or_else(|| panic!("{text}{errors}"));
    let (running, suspended) = walks.split_once("SUSPENDED").unwrap();
    for (walk, innermost) in [(running, "kyocho_running"), (suspended, "innermost_function")] {
        let frames: Vec<&str> = walk.lines().filter(|line| line.starts_with('#')).collect();
        assert!(frames.iter().any(|frame| frame.contains(innermost)), "{text}{errors}");
        let entry = frames.iter().position(|frame| frame.contains("outermost_function"));
        let beyond = &frames[entry.unwrap_or_else(|| panic!("{text}{errors}")) + 1..];
        let trampoline_alone = beyond.len() == 1 && beyond[0].contains("kyocho_trampoline");
        assert!(beyond.is_empty() || trampoline_alone, "continues beyond the entry:\n{text}");
    }
    let complaint = ["Backtrace stopped", "corrupt"].iter().find(|word| walks.contains(**word));
    assert_eq!(complaint, None, "{text}{errors}");
}
