//! The cost of revoking the bias for a visitor: while the owner sleeps, and while it runs on
//! another CPU.

use core::sync::atomic::{AtomicBool, Ordering};

use kyocho_sys::clock::monotonic_ns;
use kyocho_tst::biased::{REBIAS_AFTER, biased};
use serde_json::json;

use crate::timing::spread;

const REPEATS: usize = 301;

/// Prints a line for each.
pub fn run() {
    let (mut owner, visitor) = biased(0_u64);
    let mut ns = Vec::new();
    for _ in 0..REPEATS {
        (0..=REBIAS_AFTER).for_each(|_| *owner.lock() += 1);
        assert!(owner.is_biased());
        let start_ns = monotonic_ns();
        *visitor.lock() += 1;
        ns.push((monotonic_ns() - start_ns) as f64);
    }
    print("the owner elsewhere asleep", &ns);

    let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    ns.clear();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                *owner.lock() += 1;
                if owner.is_biased() {
                    ready.store(true, Ordering::Release);
                }
            }
        });
        for _ in 0..REPEATS {
            ready.store(false, Ordering::Release);
            while !ready.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let start_ns = monotonic_ns();
            *visitor.lock() += 1;
            ns.push((monotonic_ns() - start_ns) as f64);
        }
        stop.store(true, Ordering::Relaxed);
    });
    print("the owner at the lock on another CPU", &ns);
}

fn print(name: &str, ns: &[f64]) {
    println!("{}", json!({ "bench": "revocation", "name": name, "ns": spread(ns) }));
}
