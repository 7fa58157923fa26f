//! Paper 0, figure 13: producers and consumers, kernel threads on one CPU, between blocking
//! semaphores of each method.
//!
//! Two semaphores count a buffer's free and full slots, a mutex guards it, all three over the
//! method. The check: an item is its number in the order of production, so a consumer knows what it
//! must find; one violation of exclusion ends the program.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::scheduling::{Class, set_class};
use kyocho_sys::task::ThreadId;
use kyocho_tst::blocking::mutex::RawMutex;
use kyocho_tst::blocking::semaphore::Semaphore;
use kyocho_tst::{Atomics, Lamport, SignalsBlocked, SystemCall, TestAndSet};
use serde_json::json;

use crate::methods::{confine_to_one_cpu, rseq, unsupported};
use crate::usage;

/// Slots of the buffer, as in the other bench of figure 13.
const SLOTS: u32 = 128;

/// Runs it over the method of that name.
pub fn run(method: &str, producers: usize, consumers: usize, millis: u64) {
    confine_to_one_cpu();
    let items = match method {
        "rseq" => contest(rseq, producers, consumers, millis),
        "atomics" => contest(|| Atomics, producers, consumers, millis),
        "lamport" => {
            contest(|| Lamport::new(producers + consumers + 1), producers, consumers, millis)
        }
        "system-call" => contest(SystemCall::new, producers, consumers, millis),
        "signals-blocked" => {
            // Threads of one CPU do not preempt each other only in a real-time class.
            if let Err(why) = set_class(ThreadId::current(), Class::Fifo(1)) {
                unsupported(&format!("excludes kernel threads in a real-time class only: {why}"));
            }
            contest(|| SignalsBlocked, producers, consumers, millis)
        }
        "restartable" => unsupported("serves microprocesses: see the threads bench"),
        _ => usage(),
    };
    println!(
        "{}",
        json!({ "bench": "items", "method": method, "value": items, "unit": "items/s",
            "args": [producers, consumers] })
    );
}

/// The buffer between producers and consumers.
struct Buffer<M> {
    free: Semaphore<M>,
    full: Semaphore<M>,
    guard: RawMutex<M>,
    /// Slots, next number to put, next number to take: guarded.
    ring: UnsafeCell<([u64; SLOTS as usize], u64, u64)>,
    stop: AtomicBool,
    taken: AtomicU64,
}

// SAFETY: `ring` is accessed under `guard`.
unsafe impl<M: Sync> Sync for Buffer<M> {}

impl<M: TestAndSet> Buffer<M> {
    /// Waits for a slot of one kind, changes the ring, and releases a slot of the other kind.
    /// Returns `false` when it is time to stop.
    fn turn(
        &self,
        wait_for: &Semaphore<M>,
        give: &Semaphore<M>,
        change: impl Fn(&mut ([u64; SLOTS as usize], u64, u64)),
    ) -> bool {
        wait_for.acquire();
        if self.stop.load(Ordering::Relaxed) {
            // A thread that leaves wakes those that still sleep.
            for semaphore in [&self.free, &self.full] {
                semaphore.release().expect("one a thread is far from the limit");
            }
            return false;
        }
        self.guard.lock();
        // SAFETY: under the guard.
        change(unsafe { &mut *self.ring.get() });
        self.guard.unlock();
        give.release().expect("no more slots than there are");
        true
    }

    fn put(&self) -> bool {
        self.turn(&self.free, &self.full, |(slots, next, _)| {
            slots[(*next % u64::from(SLOTS)) as usize] = *next;
            *next += 1;
        })
    }

    fn take(&self) -> bool {
        self.turn(&self.full, &self.free, |(slots, _, next)| {
            let item = slots[(*next % u64::from(SLOTS)) as usize];
            if item != *next {
                eprintln!("took item {item} in place of {next}: two were inside");
                std::process::exit(1);
            }
            *next += 1;
        })
    }
}

/// Items per second. The threads are on one CPU, and in a real-time class if the method blocks
/// signals, so every method excludes them.
fn contest<M: TestAndSet + Sync>(
    method: impl Fn() -> M,
    producers: usize,
    consumers: usize,
    millis: u64,
) -> f64 {
    // SAFETY: see above.
    let semaphore = |value| unsafe { Semaphore::confined(method(), value) };
    let buffer = Buffer {
        free: semaphore(SLOTS),
        full: semaphore(0),
        // SAFETY: see above.
        guard: unsafe { RawMutex::confined(method()) },
        ring: UnsafeCell::new(([0; SLOTS as usize], 0, 0)),
        stop: AtomicBool::new(false),
        taken: AtomicU64::new(0),
    };
    let start_ns = monotonic_ns();
    let end_ns = start_ns + millis * 1_000_000;
    let consume = || {
        let mut count = 0;
        while buffer.take() {
            count += 1;
            if count % 64 == 0 && monotonic_ns() >= end_ns {
                buffer.stop.store(true, Ordering::Relaxed);
            }
        }
        buffer.taken.fetch_add(count, Ordering::Relaxed);
    };
    std::thread::scope(|threads| {
        for _ in 0..producers {
            threads.spawn(|| while buffer.put() {});
        }
        for _ in 0..consumers {
            threads.spawn(consume);
        }
    });
    let seconds = (monotonic_ns() - start_ns) as f64 / 1e9;
    buffer.taken.load(Ordering::Relaxed) as f64 / seconds
}
