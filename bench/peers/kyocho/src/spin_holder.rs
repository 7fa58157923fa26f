//! The gain if spinners stop while the lock holder sleeps in the kernel (paper 1, §3.2, last
//! paragraph).
//!
//! Two virtual processors. Four microprocesses contend for a spin lock; every eighth critical
//! section sleeps 0.1 ms in a raw system call. Beside them two others count. The same runs with a
//! lock whose waiters always spin. The bench compares the total time, and the counts per
//! millisecond meanwhile.

use kyocho_microprocess::sync::SpinMutex;
use kyocho_microprocess::{Runtime, spawn, yield_now};
use report::check;
use serde_json::json;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONTENDERS: usize = 4;
const COUNTERS: usize = 2;
const SLEEPS_EVERY: usize = 8;
const SECTION_SLEEP: Duration = Duration::from_micros(100);

/// A lock, as a function that runs a critical section.
trait Lock: Send + Sync + 'static {
    fn under(&self, section: impl FnOnce());
}

impl Lock for SpinMutex<()> {
    fn under(&self, section: impl FnOnce()) {
        let _guard = self.lock();
        section();
    }
}

/// A lock whose waiters always spin.
#[derive(Default)]
struct Blind(AtomicBool);

impl Lock for Blind {
    fn under(&self, section: impl FnOnce()) {
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        section();
        self.0.store(false, Ordering::Release);
    }
}

/// Total time in ms, and counts per ms.
fn measure(lock: impl Lock, turns: usize) -> (f64, f64) {
    let lock = Arc::new(lock);
    let (entered, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let counters: Vec<_> = (0..COUNTERS)
        .map(|_| {
            let (stop, counted) = (Arc::clone(&stop), Arc::clone(&counted));
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    yield_now();
                }
            })
        })
        .collect();
    let start = Instant::now();
    let contenders: Vec<_> = (0..CONTENDERS)
        .map(|_| {
            let (lock, entered) = (Arc::clone(&lock), Arc::clone(&entered));
            spawn(move || {
                for turn in 0..turns {
                    lock.under(|| {
                        entered.fetch_add(1, Ordering::Relaxed);
                        if turn % SLEEPS_EVERY == 0 {
                            std::thread::sleep(SECTION_SLEEP);
                        }
                    });
                    yield_now();
                }
            })
        })
        .collect();
    for contender in contenders {
        contender.join().expect("a contender ends");
    }
    let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
    let rate = counted.load(Ordering::Relaxed) as f64 / elapsed_ms;
    stop.store(true, Ordering::Relaxed);
    for counter in counters {
        counter.join().expect("a counter ends");
    }
    let all = turns * CONTENDERS;
    check(entered.load(Ordering::Relaxed) == all, || format!("{entered:?} of {all} turns"));
    (elapsed_ms, rate)
}

/// Prints the time with avoidance, the time without it, and both rates.
pub fn run(turns: usize) {
    let runtime = Runtime::builder().virtual_processors(2).build();
    let measured =
        runtime.run(move || (measure(SpinMutex::new(()), turns), measure(Blind::default(), turns)));
    let ((with, rate_with), (without, rate_without)) = measured.expect("no lock is kept");
    let more = json!({
        "check": format!("{} critical sections entered", turns * CONTENDERS),
        "blind_ms": without,
        "counted_per_ms": rate_with,
        "blind_counted_per_ms": rate_without,
    });
    report::emit("spin_holder", with, "ms", more);
}
