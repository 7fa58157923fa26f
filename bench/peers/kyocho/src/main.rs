//! The thread workloads on Kyocho's microprocesses, with one virtual processor, or as many as
//! `KYOCHO_PROCESSORS` specifies.

use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_microprocess::sync::{Mutex, Semaphore};
use kyocho_microprocess::{
    Builder, JoinHandle, Priority, Reflection, Runtime, Stackless, Step, sleep, spawn, yield_now,
};
use report::contest::{self, Half};
use report::stall::Stall;
use report::{Arguments, NAP, Overshoot, SLOTS, SPIN, Ticker, check, per};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

mod spin_holder;

fn main() {
    let arguments = Arguments::from_env();
    let contest = match arguments.bench.as_str() {
        "priorities" => Some(["priorities_half", "priorities_half"]),
        "priorities_alone" => Some(["alone_half", "alone_half"]),
        "priorities_plain" => Some(["priorities_half", "plain_half"]),
        _ => None,
    };
    if let Some(halves) = contest {
        let length = Duration::from_millis(arguments.number(0, 3000) as u64);
        return contest::run(&arguments.bench, halves, length);
    }
    if arguments.bench == "plain_half" {
        return Half::from_numbers(|at| arguments.number(at, 1)).spin();
    }
    if arguments.bench == "spin_holder" {
        return spin_holder::run(arguments.number(0, 1000));
    }
    let reflection =
        if arguments.bench == "alone_half" { Reflection::Off } else { Reflection::Auto };
    let runtime =
        Runtime::builder().virtual_processors(processors()).reflection(reflection).build();
    runtime.run(move || run(&arguments)).expect("no workload waits for what never comes");
}

fn run(arguments: &Arguments) {
    let number = |at, otherwise| arguments.number(at, otherwise);
    match arguments.bench.as_str() {
        "spawn_join" => spawn_join(number(0, 5_000_000)),
        "yield" => yields(number(0, 10_000_000)),
        "rendezvous" => rendezvous(number(0, 5_000_000)),
        "sieve" => sieve(number(0, 700)),
        "semaphores" => semaphores(number(0, 2), number(1, 2), number(2, 500)),
        "parked" => parked(number(0, 100_000)),
        "parked_stackless" => parked_stackless(number(0, 100_000)),
        "blocked" => blocked(number(0, 1000)),
        "page_fault" => page_fault(number(0, 200)),
        "preempted" => overshoot("preempted", number(0, 100), Priority::NORMAL),
        "urgent" => overshoot("urgent", number(0, 100), Priority::HIGHEST),
        "sieve_messages" => {
            report::unsupported("sieve_messages", "its sieve passes messages already");
        }
        "address_space" => {
            report::unsupported("address_space", "only the kernel makes address spaces");
        }
        "priorities_half" | "alone_half" => half(Half::from_numbers(|at| number(at, 1))),
        "version" => match processors() {
            1 => println!("Kyocho {}", env!("CARGO_PKG_VERSION")),
            count => println!("Kyocho {}, {count} VPs", env!("CARGO_PKG_VERSION")),
        },
        _ => report::usage(),
    }
}

/// Number of virtual processors of the workload.
fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let told = std::env::var("KYOCHO_PROCESSORS").ok();
        told.map_or(1, |told| told.parse().expect("KYOCHO_PROCESSORS is a number"))
    })
}

/// Adds one, without an atomic read-modify-write if one virtual processor runs all threads.
fn bump(counter: &AtomicUsize) {
    if processors() == 1 {
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    } else {
        counter.fetch_add(1, Relaxed);
    }
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
                    yield_now();
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
    // On several processors each of the two may run alone.
    check(turns >= iters || processors() > 1, || {
        format!("only {turns} of {} yields switched", 2 * iters)
    });
    let share = turns as f64 / (2 * iters) as f64;
    let more = json!({ "turns_per_yield": share, "check": format!("{turns} turns") });
    report::emit("yield", per(elapsed, 2 * iters), "ns", more);
}

fn rendezvous(iters: usize) {
    let (there, inbox) = channel::rendezvous::<usize>();
    let (reply, back) = channel::rendezvous::<usize>();
    let echo = spawn(move || {
        for n in inbox {
            reply.send(n + 1).expect("the caller waits for the reply");
        }
    });
    let mut n = 0;
    let mut elapsed = Duration::ZERO;
    for count in [iters / 10, iters] {
        n = 0;
        let start = Instant::now();
        for _ in 0..count {
            there.send(n).expect("the echo runs");
            n = back.recv().expect("the echo replies");
        }
        elapsed = start.elapsed();
    }
    drop(there);
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
    let (to, mut from) = channel::rendezvous();
    let sent = Arc::clone(&messages);
    spawn(move || (2..=limit).chain([0]).for_each(|n| send_counted(&to, n, &sent)));
    let mut primes = 0;
    loop {
        let prime = from.recv().expect("a stream ends with its mark");
        if prime == 0 {
            return (primes, messages.load(Relaxed));
        }
        primes += 1;
        let (to, next) = channel::rendezvous();
        let inbox = std::mem::replace(&mut from, next);
        let sent = Arc::clone(&messages);
        spawn(move || pass_on(&inbox, prime, &to, &sent));
    }
}

fn pass_on(from: &Receiver<usize>, prime: usize, to: &Sender<usize>, sent: &AtomicUsize) {
    loop {
        let n = from.recv().expect("a stream ends with its mark");
        if n == 0 || !n.is_multiple_of(prime) {
            send_counted(to, n, sent);
        }
        if n == 0 {
            return;
        }
    }
}

fn send_counted(to: &Sender<usize>, n: usize, sent: &AtomicUsize) {
    bump(sent);
    to.send(n).expect("the next filter waits for the end mark");
}

struct Buffer {
    empty: Semaphore,
    full: Semaphore,
    ring: Mutex<VecDeque<u64>>,
}

impl Buffer {
    fn put(&self, item: u64) {
        self.empty.acquire();
        self.ring.lock().expect("no holder panics").push_back(item);
        self.full.release();
    }

    fn get(&self) -> u64 {
        self.full.acquire();
        let item = self.ring.lock().expect("no holder panics").pop_front();
        self.empty.release();
        item.expect("a full slot holds an item")
    }
}

fn semaphores(producers: usize, consumers: usize, limit_ms: usize) {
    let buffer = Arc::new(Buffer {
        empty: Semaphore::new(SLOTS),
        full: Semaphore::new(0),
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
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::new(Semaphore::new(0));
    let before = report::memory_bytes();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (gate, waiting) = (Arc::clone(&gate), Arc::clone(&waiting));
            spawn(move || {
                waiting.release();
                gate.acquire();
            })
        })
        .collect();
    for _ in 0..count {
        waiting.acquire();
    }
    let after = report::memory_bytes();
    for _ in 0..count {
        gate.release();
    }
    for thread in threads {
        thread.join().expect("a released thread ends");
    }
    report::emit_parked(count, before, after);
}

/// Parks once, then ends.
struct Waiter {
    waiting: Arc<AtomicUsize>,
    released: Arc<AtomicUsize>,
    is_parked: bool,
}

impl Stackless for Waiter {
    fn step(&mut self) -> Step {
        if self.is_parked {
            bump(&self.released);
            return Step::Done;
        }
        self.is_parked = true;
        bump(&self.waiting);
        Step::Park
    }
}

fn parked_stackless(count: usize) {
    let (waiting, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let before = report::memory_bytes();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (waiting, released) = (Arc::clone(&waiting), Arc::clone(&released));
            let machine = Box::new(Waiter { waiting, released, is_parked: false });
            Builder::new().spawn_stackless(machine).expect("memory for one more record")
        })
        .collect();
    until_all(count, &waiting);
    let after = report::memory_bytes();
    for thread in &threads {
        thread.unpark();
    }
    until_all(count, &released);
    let grown = after.saturating_sub(before);
    let more = json!({ "args": [count], "total_bytes": grown,
        "check": format!("{count} threads released") });
    report::emit("parked_stackless", grown as f64 / count as f64, "B", more);
}

fn until_all(count: usize, counter: &AtomicUsize) {
    while counter.load(Relaxed) < count {
        yield_now();
    }
}

fn blocked(count: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let ticking = {
        let stop = Arc::clone(&stop);
        spawn(move || {
            let mut ticker = Ticker::start();
            while !stop.load(Relaxed) {
                sleep(Duration::from_millis(1));
                ticker.tick();
            }
            ticker
        })
    };
    yield_now();
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
    let Some(stall) = Stall::new(pages) else { return };
    let neighbour = spawn(|| {
        while !stall.see() {
            yield_now();
        }
    });
    for page in 0..stall.pages() {
        stall.touch(page);
        while !stall.was_seen() {
            yield_now();
        }
    }
    neighbour.join().expect("the neighbour ends");
    stall.emit();
}

fn overshoot(bench: &str, samples: usize, sleeper: Priority) {
    let stop = Arc::new(AtomicBool::new(false));
    // Spawned first, so that it sleeps before the loop starts.
    let napping = {
        let stop = Arc::clone(&stop);
        Builder::new().priority(sleeper).spawn(move || {
            let mut overshoot = Overshoot::default();
            while overshoot.len() < samples && !stop.load(Relaxed) {
                let before = Instant::now();
                sleep(NAP);
                overshoot.record(before);
            }
            stop.store(true, Relaxed);
            overshoot
        })
    };
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
    let napping: JoinHandle<Overshoot> = napping.expect("memory for one more stack");
    hog.join().expect("the loop ends");
    let overshoot = napping.join().expect("the sleeper ends");
    check(spins.load(Relaxed) > 0, || "the loop never ran".into());
    overshoot.emit(bench);
}

/// Unbound: the program tells the host nothing about this microprocess.
fn half(half: Half) {
    let priority = if half.is_urgent { Priority::HIGHEST } else { Priority::LOWEST };
    let spinner = Builder::new().priority(priority).spawn(move || half.spin());
    spinner.expect("memory for one more stack").join().expect("a half ends");
}
