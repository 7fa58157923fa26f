//! The thread workloads on tokio's tasks, on its current-thread runtime.
//!
//! tokio has no rendezvous channel. Its smallest channel, of one slot, is used instead, so a sender
//! may be one message ahead, which is less work than the others do.

use report::{Arguments, NAP, Overshoot, SLOTS, SPIN, Ticker, check, per};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Notify, Semaphore, mpsc};
use tokio::{spawn, task::yield_now};

fn main() {
    let arguments = Arguments::from_env();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("the runtime needs an epoll descriptor");
    runtime.block_on(run(arguments));
}

async fn run(arguments: Arguments) {
    let number = |at, otherwise| arguments.number(at, otherwise);
    match arguments.bench.as_str() {
        "spawn_join" => spawn_join(number(0, 2_000_000)).await,
        "yield" => yields(number(0, 3_000_000)).await,
        "rendezvous" => rendezvous(number(0, 1_000_000)).await,
        "sieve" => sieve(number(0, 700)).await,
        "semaphores" => semaphores(number(0, 2), number(1, 2), number(2, 500)).await,
        "parked" => parked(number(0, 100_000)).await,
        "blocked" => blocked(number(0, 1000)).await,
        "page_fault" => page_fault(number(0, 200)).await,
        "preempted" => preempted(number(0, 100)).await,
        "urgent" => report::unsupported("urgent", "tasks have no priorities"),
        "sieve_messages" => {
            report::unsupported("sieve_messages", "its sieve passes messages already");
        }
        "address_space" => {
            report::unsupported("address_space", "only the kernel makes address spaces");
        }
        bench @ ("priorities" | "priorities_alone" | "priorities_plain") => {
            report::unsupported(bench, "tasks have no priorities")
        }
        "version" => println!("tokio 1"),
        _ => report::usage(),
    }
}

/// Adds one without an atomic read-modify-write: one thread runs every task.
fn bump(counter: &AtomicUsize) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

async fn spawn_join(iters: usize) {
    let ran = Arc::new(AtomicUsize::new(0));
    let round = async |n: usize| {
        for _ in 0..n {
            let ran = Arc::clone(&ran);
            spawn(async move { bump(&ran) }).await.expect("an empty body ends");
        }
    };
    round(iters / 10).await;
    ran.store(0, Relaxed);
    let start = Instant::now();
    round(iters).await;
    let elapsed = start.elapsed();
    check(ran.load(Relaxed) == iters, || format!("{} of {iters} threads ran", ran.load(Relaxed)));
    let more = json!({ "check": format!("{iters} threads ran") });
    report::emit("spawn_join", per(elapsed, iters), "ns", more);
}

async fn yields(iters: usize) {
    let last = Arc::new(AtomicUsize::new(usize::MAX));
    let turns = Arc::new(AtomicUsize::new(0));
    let round = async |n: usize| {
        let spinner = |me: usize| {
            let (last, turns) = (Arc::clone(&last), Arc::clone(&turns));
            spawn(async move {
                for _ in 0..n {
                    if last.load(Relaxed) != me {
                        last.store(me, Relaxed);
                        bump(&turns);
                    }
                    yield_now().await;
                }
            })
        };
        let (first, second) = (spinner(0), spinner(1));
        first.await.and(second.await).expect("a yielding loop ends");
    };
    round(iters / 10).await;
    turns.store(0, Relaxed);
    let start = Instant::now();
    round(iters).await;
    let elapsed = start.elapsed();
    let turns = turns.load(Relaxed);
    check(turns >= iters, || format!("only {turns} of {} yields switched", 2 * iters));
    let share = turns as f64 / (2 * iters) as f64;
    let more = json!({ "turns_per_yield": share, "check": format!("{turns} turns") });
    report::emit("yield", per(elapsed, 2 * iters), "ns", more);
}

async fn rendezvous(iters: usize) {
    let (there, mut inbox) = mpsc::channel::<usize>(1);
    let (reply, mut back) = mpsc::channel::<usize>(1);
    let echo = spawn(async move {
        while let Some(n) = inbox.recv().await {
            reply.send(n + 1).await.expect("the caller waits for the reply");
        }
    });
    let mut n = 0;
    let mut elapsed = Duration::ZERO;
    for count in [iters / 10, iters] {
        n = 0;
        let start = Instant::now();
        for _ in 0..count {
            there.send(n).await.expect("the echo runs");
            n = back.recv().await.expect("the echo replies");
        }
        elapsed = start.elapsed();
    }
    drop(there);
    echo.await.expect("the echo ends");
    check(n == iters, || format!("the echo counted to {n}, not {iters}"));
    let more = json!({ "check": format!("{n} round trips") });
    report::emit("rendezvous", per(elapsed, iters), "ns", more);
}

async fn sieve(limit: usize) {
    sieve_run(limit).await;
    let start = Instant::now();
    let (primes, messages) = sieve_run(limit).await;
    report::emit_sieve(limit, start.elapsed(), primes, messages);
}

/// One source and a filter for each prime; the caller receives the primes. 0 ends a stream.
async fn sieve_run(limit: usize) -> (usize, usize) {
    let messages = Arc::new(AtomicUsize::new(0));
    let (to, mut from) = mpsc::channel(1);
    let sent = Arc::clone(&messages);
    spawn(async move {
        for n in (2..=limit).chain([0]) {
            bump(&sent);
            to.send(n).await.expect("the next filter waits for the end mark");
        }
    });
    let mut primes = 0;
    loop {
        let prime = from.recv().await.expect("a stream ends with its mark");
        if prime == 0 {
            return (primes, messages.load(Relaxed));
        }
        primes += 1;
        let (to, next) = mpsc::channel(1);
        let mut inbox = std::mem::replace(&mut from, next);
        let sent = Arc::clone(&messages);
        spawn(async move {
            while let Some(n) = inbox.recv().await {
                if n == 0 || !n.is_multiple_of(prime) {
                    bump(&sent);
                    to.send(n).await.expect("the next filter waits for the end mark");
                }
                if n == 0 {
                    return;
                }
            }
        });
    }
}

struct Buffer {
    empty: Semaphore,
    full: Semaphore,
    ring: Mutex<VecDeque<u64>>,
}

impl Buffer {
    async fn put(&self, item: u64) {
        self.empty.acquire().await.expect("never closed").forget();
        self.ring.lock().await.push_back(item);
        self.full.add_permits(1);
    }

    async fn get(&self) -> u64 {
        self.full.acquire().await.expect("never closed").forget();
        let item = self.ring.lock().await.pop_front().expect("a full slot holds an item");
        self.empty.add_permits(1);
        item
    }
}

async fn semaphores(producers: usize, consumers: usize, limit_ms: usize) {
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
            spawn(async move {
                let (mut item, mut sum, mut n) = (first, 0u64, 0);
                while !stop.load(Relaxed) {
                    buffer.put(item).await;
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
            spawn(async move {
                let (mut sum, mut count) = (0u64, 0u64);
                loop {
                    match buffer.get().await {
                        0 => return (sum, count),
                        item => sum += item,
                    }
                    count += 1;
                }
            })
        })
        .collect();
    let (mut produced, mut consumed, mut items) = (0, 0, 0);
    for maker in makers {
        produced += maker.await.expect("a producer ends");
    }
    for _ in 0..consumers {
        buffer.put(0).await;
    }
    for taker in takers {
        let (sum, count) = taker.await.expect("a consumer ends");
        consumed += sum;
        items += count;
    }
    report::emit_semaphores((producers, consumers), start.elapsed(), (produced, consumed), items);
}

async fn parked(count: usize) {
    let gate = Arc::new(Notify::new());
    let waiting = Arc::new(AtomicUsize::new(0));
    let before = report::memory_bytes();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (gate, waiting) = (Arc::clone(&gate), Arc::clone(&waiting));
            spawn(async move {
                bump(&waiting);
                gate.notified().await;
            })
        })
        .collect();
    while waiting.load(Relaxed) < count {
        yield_now().await;
    }
    let after = report::memory_bytes();
    gate.notify_waiters();
    for thread in threads {
        thread.await.expect("a released thread ends");
    }
    report::emit_parked(count, before, after);
}

async fn blocked(count: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let ticking = {
        let stop = Arc::clone(&stop);
        spawn(async move {
            let mut ticker = Ticker::start();
            while !stop.load(Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                ticker.tick();
            }
            ticker
        })
    };
    yield_now().await;
    let start = Instant::now();
    let sleepers: Vec<_> = (0..count).map(|_| spawn(async { report::raw_nanosleep() })).collect();
    for sleeper in sleepers {
        sleeper.await.expect("a sleeper ends");
    }
    let elapsed = start.elapsed();
    stop.store(true, Relaxed);
    ticking.await.expect("the ticker ends").emit(count, elapsed);
}

async fn page_fault(pages: usize) {
    let Some(stall) = report::stall::Stall::new(pages) else { return };
    let neighbour = spawn(async {
        while !stall.see() {
            yield_now().await;
        }
    });
    for page in 0..stall.pages() {
        stall.touch(page);
        while !stall.was_seen() {
            yield_now().await;
        }
    }
    neighbour.await.expect("the neighbour ends");
    stall.emit();
}

async fn preempted(samples: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut overshoot = Overshoot::default();
    let hog = {
        let stop = Arc::clone(&stop);
        let start = Instant::now();
        spawn(async move {
            while !stop.load(Relaxed) && start.elapsed() < SPIN {}
            stop.store(true, Relaxed);
        })
    };
    while overshoot.len() < samples && !stop.load(Relaxed) {
        let before = Instant::now();
        tokio::time::sleep(NAP).await;
        overshoot.record(before);
    }
    stop.store(true, Relaxed);
    hog.await.expect("the loop ends");
    overshoot.emit("preempted");
}
