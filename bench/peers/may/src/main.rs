//! The thread workloads on may's coroutines, with one worker.
//!
//! may has no rendezvous channel: two of its semaphores around a slot make one, as they do on
//! kernel threads. Its timer thread runs coroutines whose sleep has ended, so these do not share
//! the one worker (`blocked`, `page_fault`, `preempted`).

use may::coroutine::{self, JoinHandle};
use may::sync::{Mutex, Semphore};
use report::{Arguments, NAP, Overshoot, SLOTS, SPIN, Ticker, check, per};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn main() {
    let arguments = Arguments::from_env();
    // In words: 16 KiB, the smallest stack that lets a coroutine print a panic.
    may::config().set_workers(1).set_stack_size(0x800);
    // SAFETY: as in `spawn`, with a stack for reading files.
    let caller =
        unsafe { coroutine::Builder::new().stack_size(0x1_0000).spawn(move || run(&arguments)) };
    if let Err(panic) = caller.expect("one stack can be mapped").join() {
        std::panic::resume_unwind(panic);
    }
}

fn run(arguments: &Arguments) {
    let number = |at, otherwise| arguments.number(at, otherwise);
    match arguments.bench.as_str() {
        "spawn_join" => spawn_join(number(0, 300_000)),
        "yield" => yields(number(0, 3_000_000)),
        "rendezvous" => rendezvous(number(0, 500_000)),
        "sieve" => sieve(number(0, 700)),
        "semaphores" => semaphores(number(0, 2), number(1, 2), number(2, 500)),
        "parked" => parked(number(0, 100_000)),
        "blocked" => blocked(number(0, 1000)),
        "page_fault" => page_fault(number(0, 200)),
        "preempted" => preempted(number(0, 100)),
        "urgent" => report::unsupported("urgent", "coroutines have no priorities"),
        "sieve_messages" => {
            report::unsupported("sieve_messages", "its sieve passes messages already");
        }
        "address_space" => {
            report::unsupported("address_space", "only the kernel makes address spaces");
        }
        bench @ ("priorities" | "priorities_alone" | "priorities_plain") => {
            report::unsupported(bench, "coroutines have no priorities")
        }
        "version" => println!("may 0.3"),
        _ => report::usage(),
    }
}

fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: no body touches thread-local storage, and none needs more than the stack set above.
    unsafe { coroutine::spawn(body) }
}

/// Adds one without an atomic read-modify-write: one worker runs every coroutine.
fn bump(counter: &AtomicUsize) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

fn spawn_join(iters: usize) {
    let ran = Arc::new(AtomicUsize::new(0));
    let round = |n: usize| {
        for _ in 0..n {
            let ran = Arc::clone(&ran);
            spawn(move || bump(&ran)).join().expect("an empty body ends");
        }
    };
    round(iters / 10);
    ran.store(0, Relaxed);
    let start = Instant::now();
    round(iters);
    let elapsed = start.elapsed();
    check(ran.load(Relaxed) == iters, || format!("{ran:?} of {iters} threads ran"));
    let more = json!({ "check": format!("{iters} threads ran") });
    report::emit("spawn_join", per(elapsed, iters), "ns", more);
}

fn yields(iters: usize) {
    let last = Arc::new(AtomicUsize::new(usize::MAX));
    let turns = Arc::new(AtomicUsize::new(0));
    let round = |n: usize| {
        let spinner = |me: usize| {
            let (last, turns) = (Arc::clone(&last), Arc::clone(&turns));
            spawn(move || {
                for _ in 0..n {
                    if last.load(Relaxed) != me {
                        last.store(me, Relaxed);
                        bump(&turns);
                    }
                    coroutine::yield_now();
                }
            })
        };
        let (first, second) = (spinner(0), spinner(1));
        first.join().and(second.join()).expect("a yielding loop ends");
    };
    round(iters / 10);
    turns.store(0, Relaxed);
    let start = Instant::now();
    round(iters);
    let elapsed = start.elapsed();
    let turns = turns.load(Relaxed);
    check(turns >= iters, || format!("only {turns} of {} yields switched", 2 * iters));
    let share = turns as f64 / (2 * iters) as f64;
    let more = json!({ "turns_per_yield": share, "check": format!("{turns} turns") });
    report::emit("yield", per(elapsed, 2 * iters), "ns", more);
}

/// One sender, one receiver; `send` returns when the receiver has the value.
struct Rendezvous {
    offered: Semphore,
    taken: Semphore,
    slot: AtomicUsize,
}

impl Rendezvous {
    fn new() -> Arc<Self> {
        let (offered, taken) = (Semphore::new(0), Semphore::new(0));
        Arc::new(Self { offered, taken, slot: AtomicUsize::new(0) })
    }

    fn send(&self, n: usize) {
        self.slot.store(n, Relaxed);
        self.offered.post();
        self.taken.wait();
    }

    fn receive(&self) -> usize {
        self.offered.wait();
        let n = self.slot.load(Relaxed);
        self.taken.post();
        n
    }
}

fn rendezvous(iters: usize) {
    let (there, back) = (Rendezvous::new(), Rendezvous::new());
    let echo = {
        let (there, back) = (Arc::clone(&there), Arc::clone(&back));
        spawn(move || {
            for _ in 0..iters / 10 + iters {
                back.send(there.receive() + 1);
            }
        })
    };
    let mut n = 0;
    let mut elapsed = Duration::ZERO;
    for count in [iters / 10, iters] {
        n = 0;
        let start = Instant::now();
        for _ in 0..count {
            there.send(n);
            n = back.receive();
        }
        elapsed = start.elapsed();
    }
    echo.join().expect("the echo ends");
    check(n == iters, || format!("the echo counted to {n}, not {iters}"));
    let more = json!({ "check": format!("{n} round trips") });
    report::emit("rendezvous", per(elapsed, iters), "ns", more);
}

fn sieve(limit: usize) {
    sieve_run(limit);
    let start = Instant::now();
    let (primes, messages) = sieve_run(limit);
    report::emit_sieve(limit, start.elapsed(), primes, messages);
}

/// One source and a filter for each prime; the caller receives the primes. 0 ends a stream.
fn sieve_run(limit: usize) -> (usize, usize) {
    let messages = Arc::new(AtomicUsize::new(0));
    let mut from = Rendezvous::new();
    let (to, sent) = (Arc::clone(&from), Arc::clone(&messages));
    spawn(move || {
        for n in (2..=limit).chain([0]) {
            bump(&sent);
            to.send(n);
        }
    });
    let mut primes = 0;
    loop {
        let prime = from.receive();
        if prime == 0 {
            return (primes, messages.load(Relaxed));
        }
        primes += 1;
        let to = Rendezvous::new();
        let inbox = std::mem::replace(&mut from, Arc::clone(&to));
        let sent = Arc::clone(&messages);
        spawn(move || {
            loop {
                let n = inbox.receive();
                if n == 0 || !n.is_multiple_of(prime) {
                    bump(&sent);
                    to.send(n);
                }
                if n == 0 {
                    return;
                }
            }
        });
    }
}

struct Buffer {
    empty: Semphore,
    full: Semphore,
    ring: Mutex<VecDeque<u64>>,
}

impl Buffer {
    fn put(&self, item: u64) {
        self.empty.wait();
        self.ring.lock().expect("no holder panics").push_back(item);
        self.full.post();
    }

    fn get(&self) -> u64 {
        self.full.wait();
        let item = self.ring.lock().expect("no holder panics").pop_front();
        self.empty.post();
        item.expect("a full slot holds an item")
    }
}

fn semaphores(producers: usize, consumers: usize, limit_ms: usize) {
    let buffer = Arc::new(Buffer {
        empty: Semphore::new(SLOTS),
        full: Semphore::new(0),
        ring: Mutex::new(VecDeque::with_capacity(SLOTS)),
    });
    let limit = Duration::from_millis(limit_ms as u64);
    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let makers: Vec<_> = (1..=producers as u64)
        .map(|first| {
            let (buffer, stop) = (Arc::clone(&buffer), Arc::clone(&stop));
            spawn(move || {
                let (mut item, mut sum, mut n) = (first, 0u64, 0);
                while !stop.load(Relaxed) {
                    buffer.put(item);
                    sum += item;
                    item += producers as u64;
                    n += 1;
                    if n % 64 == 0 && start.elapsed() >= limit {
                        stop.store(true, Relaxed);
                    }
                }
                sum
            })
        })
        .collect();
    let takers: Vec<_> = (0..consumers)
        .map(|_| {
            let buffer = Arc::clone(&buffer);
            spawn(move || {
                let (mut sum, mut count) = (0u64, 0u64);
                loop {
                    match buffer.get() {
                        0 => return (sum, count),
                        item => sum += item,
                    }
                    count += 1;
                }
            })
        })
        .collect();
    let produced = makers.into_iter().map(|maker| maker.join().expect("a producer ends")).sum();
    for _ in 0..consumers {
        buffer.put(0);
    }
    let (mut consumed, mut items) = (0, 0);
    for taker in takers {
        let (sum, count) = taker.join().expect("a consumer ends");
        consumed += sum;
        items += count;
    }
    report::emit_semaphores((producers, consumers), start.elapsed(), (produced, consumed), items);
}

fn parked(count: usize) {
    let gate = Arc::new(Semphore::new(0));
    let waiting = Arc::new(Semphore::new(0));
    let before = report::memory_bytes();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (gate, waiting) = (Arc::clone(&gate), Arc::clone(&waiting));
            spawn(move || {
                waiting.post();
                gate.wait();
            })
        })
        .collect();
    for _ in 0..count {
        waiting.wait();
    }
    let after = report::memory_bytes();
    for _ in 0..count {
        gate.post();
    }
    for thread in threads {
        thread.join().expect("a released thread ends");
    }
    report::emit_parked(count, before, after);
}

fn blocked(count: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let ticking = {
        let stop = Arc::clone(&stop);
        spawn(move || {
            let mut ticker = Ticker::start();
            while !stop.load(Relaxed) {
                coroutine::sleep(Duration::from_millis(1));
                ticker.tick();
            }
            ticker
        })
    };
    coroutine::yield_now();
    let start = Instant::now();
    let sleepers: Vec<_> = (0..count).map(|_| spawn(report::raw_nanosleep)).collect();
    for sleeper in sleepers {
        sleeper.join().expect("a sleeper ends");
    }
    let elapsed = start.elapsed();
    stop.store(true, Relaxed);
    ticking.join().expect("the ticker ends").emit(count, elapsed);
}

fn page_fault(pages: usize) {
    let Some(stall) = report::stall::Stall::new(pages) else { return };
    let neighbour = spawn(|| {
        while !stall.see() {
            coroutine::yield_now();
        }
    });
    for page in 0..stall.pages() {
        stall.touch(page);
        while !stall.was_seen() {
            // A coroutine that yields may be resumed at once.
            coroutine::sleep(Duration::from_millis(1));
        }
    }
    neighbour.join().expect("the neighbour ends");
    stall.emit();
}

fn preempted(samples: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    // The loop's only exit, which the optimiser must not remove.
    let spins = Arc::new(AtomicU64::new(0));
    let hog = {
        let (stop, spins) = (Arc::clone(&stop), Arc::clone(&spins));
        let start = Instant::now();
        spawn(move || {
            while !stop.load(Relaxed) && start.elapsed() < SPIN {
                spins.store(spins.load(Relaxed) + 1, Relaxed);
            }
            stop.store(true, Relaxed);
        })
    };
    let mut overshoot = Overshoot::default();
    while overshoot.len() < samples && !stop.load(Relaxed) {
        let before = Instant::now();
        coroutine::sleep(NAP);
        overshoot.record(before);
    }
    stop.store(true, Relaxed);
    hog.join().expect("the loop ends");
    check(spins.load(Relaxed) > 0, || "the loop never ran".into());
    overshoot.emit("preempted");
}
