//! Code shared by the peers in Rust: arguments, the clock, memory, the result line.
//!
//! A peer prints one JSON line per workload and exits with 1 if its check fails. `bench/README.md`
//! describes each workload.

pub mod contest;
pub mod stall;

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Slots of the bounded buffer in the `semaphores` workload.
pub const SLOTS: usize = 128;
/// How long the loop of the `preempted` workload runs without yielding.
pub const SPIN: Duration = Duration::from_secs(1);
/// How long the sleeper beside it sleeps at a time.
pub const NAP: Duration = Duration::from_millis(5);

/// The command line of a peer: `PROG BENCH [ARGS...]`.
#[derive(Debug)]
pub struct Arguments {
    pub bench: String,
    numbers: Vec<usize>,
}

impl Arguments {
    /// Reads the command line; a malformed one ends the program with status 2.
    pub fn from_env() -> Self {
        let mut words = std::env::args().skip(1);
        let bench = words.next().unwrap_or_else(|| usage());
        let numbers = words
            .map(|word| word.parse().ok().filter(|n| *n > 0).unwrap_or_else(|| usage()))
            .collect();
        Self { bench, numbers }
    }

    /// The number at index `at`, or `otherwise` if the command line is shorter.
    pub fn number(&self, at: usize, otherwise: usize) -> usize {
        self.numbers.get(at).copied().unwrap_or(otherwise)
    }
}

/// Prints the usage and ends the program with status 2.
pub fn usage() -> ! {
    eprintln!(
        "usage: PROG spawn_join|yield|rendezvous|sieve|semaphores|parked|blocked|page_fault|preempted|urgent|\
         priorities|priorities_alone|priorities_plain [ARGS]"
    );
    std::process::exit(2)
}

/// Ends the program with status 1 unless `holds`.
pub fn check(holds: bool, complaint: impl FnOnce() -> String) {
    if !holds {
        eprintln!("{}", complaint());
        std::process::exit(1);
    }
}

/// Prints the result line; `more` is an object whose fields join it.
pub fn emit(bench: &str, value: f64, unit: &str, more: Value) {
    let mut line = json!({ "bench": bench, "value": value, "unit": unit });
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    println!("{line}");
}

/// Prints the reason why this system cannot run the workload.
pub fn unsupported(bench: &str, why: &str) {
    println!("{}", json!({ "bench": bench, "unsupported": why }));
}

/// Nanoseconds an operation.
pub fn per(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}

pub fn millis(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e3
}

/// Resident memory and its page tables, in bytes.
pub fn memory_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib: usize = status
        .lines()
        .filter(|line| line.starts_with("VmRSS:") || line.starts_with("VmPTE:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok())
        .sum();
    check(kib > 0, || "no VmRSS in /proc/self/status".into());
    kib * 1024
}

/// Sleeps 10 ms in the kernel with a raw system call, which no runtime intercepts.
pub fn raw_nanosleep() {
    let request = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    // SAFETY: the request outlives the call, and a null remainder is allowed.
    unsafe {
        libc::syscall(libc::SYS_nanosleep, &raw const request, std::ptr::null::<libc::timespec>())
    };
}

/// Primes up to `limit` and the messages that the sieve sends for them, by trial division: a number
/// passes one channel for each prime up to its smallest factor; the end mark passes every channel.
pub fn sieve_expected(limit: usize) -> (usize, usize) {
    let mut primes = Vec::new();
    let mut messages = 0;
    for n in 2..=limit {
        let passed = primes.iter().take_while(|&&p| n % p != 0).count();
        messages += passed + 1;
        if passed == primes.len() {
            primes.push(n);
        }
    }
    (primes.len(), messages + primes.len() + 1)
}

/// Checks one run of the sieve and prints its line.
pub fn emit_sieve(limit: usize, elapsed: Duration, primes: usize, messages: usize) {
    let expected = sieve_expected(limit);
    check((primes, messages) == expected, || {
        format!("{primes} primes, {messages} messages; expected {expected:?}")
    });
    let check = format!("{} threads, {messages} messages", primes + 1);
    let more = json!({ "args": [limit], "primes": primes, "threads": primes + 1,
        "messages": messages, "check": check });
    emit("sieve", millis(elapsed), "ms", more);
}

/// Checks one run of the bounded buffer and prints its line.
pub fn emit_semaphores(threads: (usize, usize), elapsed: Duration, sums: (u64, u64), items: u64) {
    check(sums.0 == sums.1, || format!("produced {}, consumed {}", sums.0, sums.1));
    let more = json!({ "args": [threads.0, threads.1], "check": format!("{items} items") });
    emit("semaphores", items as f64 / elapsed.as_secs_f64() / 1e6, "M items/s", more);
}

/// Prints the line of the `parked` workload from the memory before and after the spawns.
pub fn emit_parked(count: usize, before: usize, after: usize) {
    let grown = after.saturating_sub(before);
    let more = json!({ "args": [count], "total_bytes": grown,
        "check": format!("{count} threads released") });
    emit("parked", grown as f64 / count as f64, "B", more);
}

/// Wakes of a thread that ticks every millisecond, and the longest time between two of them.
#[derive(Debug)]
pub struct Ticker {
    last: Instant,
    gap: Duration,
    ticks: usize,
}

impl Ticker {
    pub fn start() -> Self {
        Self { last: Instant::now(), gap: Duration::ZERO, ticks: 0 }
    }

    pub fn tick(&mut self) {
        let now = Instant::now();
        self.gap = self.gap.max(now - self.last);
        self.last = now;
        self.ticks += 1;
    }

    /// Prints the line of the `blocked` workload.
    pub fn emit(&self, count: usize, elapsed: Duration) {
        let more = json!({ "args": [count], "gap_ms": millis(self.gap), "ticks": self.ticks,
            "check": format!("{count} sleepers joined") });
        emit("blocked", millis(elapsed), "ms", more);
    }
}

/// By how much short sleeps lasted too long.
#[derive(Debug, Default)]
pub struct Overshoot {
    samples_ms: Vec<f64>,
}

impl Overshoot {
    pub fn len(&self) -> usize {
        self.samples_ms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.samples_ms.is_empty()
    }

    /// Records a nap that began at `before` and ends now.
    pub fn record(&mut self, before: Instant) {
        self.samples_ms.push(millis(before.elapsed().saturating_sub(NAP)));
    }

    /// Prints the line of the `preempted` workload.
    pub fn emit(mut self, bench: &str) {
        check(!self.is_empty(), || "no nap ended".into());
        self.samples_ms.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = (q * self.len() as f64) as usize;
            self.samples_ms[at.min(self.len() - 1)]
        };
        let more = json!({ "p99_ms": quantile(0.99), "samples": self.len(),
            "check": format!("{} samples", self.len()) });
        emit(bench, quantile(0.5), "ms", more);
    }
}
