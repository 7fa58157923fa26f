//! Timing calls one by one.

use kyocho_sys::clock::monotonic_ns;
use serde_json::{Value, json};

/// Times `calls` calls after a tenth as many to warm up; nanoseconds each.
pub fn each(calls: usize, mut call: impl FnMut()) -> Vec<f64> {
    (0..calls / 10).for_each(|_| call());
    let mut ns = Vec::with_capacity(calls);
    let mut before_ns = monotonic_ns();
    for _ in 0..calls {
        call();
        let now_ns = monotonic_ns();
        ns.push((now_ns - before_ns) as f64);
        before_ns = now_ns;
    }
    ns
}

/// Median, tail and greatest.
pub fn spread(ns: &[f64]) -> Value {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |hundredth: usize| sorted[(sorted.len() - 1) * hundredth / 100];
    json!({ "p50": at(50), "p90": at(90), "p99": at(99), "max": at(100) })
}
