//! Two processes that compete for one CPU: the share of the urgent one.
//!
//! The parent confines itself to one CPU and starts its own program twice; the halves spin between
//! two agreed times and print the processor time of their whole process between them.

use crate::{check, emit};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time for both halves to start.
const START_NS: u64 = 500_000_000;

/// One of the two processes, and when it spins.
#[derive(Debug, Clone, Copy)]
pub struct Half {
    /// Whether it is the urgent one.
    pub is_urgent: bool,
    start_ns: u64,
    end_ns: u64,
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Half {
    /// The half that the command line `PROG ..._half IS_URGENT START END` names.
    pub fn from_numbers(number: impl Fn(usize) -> usize) -> Self {
        let at_ns = |at| number(at) as u64;
        Self { is_urgent: number(0) == 2, start_ns: at_ns(1), end_ns: at_ns(2) }
    }

    /// Waits for the start, spins to the end, prints.
    pub fn spin(self) {
        let until = |end_ns| while clock_ns(libc::CLOCK_MONOTONIC) < end_ns {};
        until(self.start_ns);
        let before_ns = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        until(self.end_ns);
        println!("{}", clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID) - before_ns);
    }
}

/// Runs both halves, the urgent one first, for `length` and prints the result line of `bench`.
pub fn run(bench: &str, halves: [&str; 2], length: Duration) {
    // SAFETY: a set of CPUs is bits, for which all zero is a value.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: takes nothing; writes into our set.
    unsafe { libc::CPU_SET(libc::sched_getcpu() as usize, &mut one) };
    // SAFETY: reads one set.
    let confined =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one) };
    check(confined == 0, || "cannot be confined to one CPU".into());
    let start_ns = clock_ns(libc::CLOCK_MONOTONIC) + START_NS;
    let times = [start_ns, start_ns + length.as_nanos() as u64].map(|ns| ns.to_string());
    let half = |name: &str, is_urgent: &str| {
        Command::new("/proc/self/exe")
            .args([name, is_urgent])
            .args(&times)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process")
    };
    let halves = [half(halves[0], "2"), half(halves[1], "1")];
    let [urgent, other] = halves.map(|half| {
        let output = half.wait_with_output().expect("a half ends");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        text.parse::<f64>().unwrap_or_else(|_| panic!("a half printed `{text}`"))
    });
    check(urgent + other > 0.0, || "neither half ran".into());
    let more = json!({ "check": format!("{:.3} s and {:.3} s of processor time", urgent / 1e9, other / 1e9) });
    emit(bench, 100.0 * urgent / (urgent + other), "%", more);
}
