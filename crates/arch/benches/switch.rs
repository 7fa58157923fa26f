//! The time of a stack switch against a call that the compiler cannot inline, in the same run; and
//! of a restartable test-and-set with its release against `lock cmpxchg`.
//!
//! Unit: ns. Repeats: 31 of a million each; median, 10th and 90th percentile.
#![expect(unsafe_code, reason = "switches stacks")]
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use core::cell::Cell;
use core::hint::black_box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use kyocho_arch::{Context, prepare, restartable, set_current_vp, switch};

const REPEATS: usize = 31;
const ROUNDS: u64 = 1_000_000;

struct Pair {
    main: Cell<Context>,
    other: Cell<Context>,
    visits: Cell<u64>,
}

unsafe extern "C" fn visit(pair: usize) -> ! {
    // SAFETY: `main` keeps the pair for as long as it runs this stack.
    let pair = unsafe { &*(pair as *const Pair) };
    loop {
        pair.visits.set(pair.visits.get() + 1);
        // SAFETY: the main stack is suspended in its own switch.
        unsafe { switch(pair.other.as_ptr(), pair.main.get()) };
    }
}

/// Percentiles of the time of one `operation`, printed with their ratio to `baseline`.
fn report(what: &str, per_round: f64, baseline: Option<f64>, mut operation: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| operation());
            start.elapsed().as_nanos() as f64 / ROUNDS as f64 / per_round
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let [low, median, high] = [REPEATS / 10, REPEATS / 2, REPEATS * 9 / 10].map(|i| times[i]);
    let ratio =
        baseline.map_or(String::new(), |base| format!("  {:.2} of baseline", median / base));
    println!("{what:<44} {median:6.2} ns  [{low:.2}..{high:.2}]{ratio}");
    median
}

#[inline(never)]
extern "C" fn callee(x: u64) -> u64 {
    x + 1
}

fn main() {
    let mut stack = vec![0_u8; 64 * 1024];
    let (main, other) = (Cell::new(Context::NULL), Cell::new(Context::NULL));
    let pair = Pair { main, other, visits: Cell::new(0) };
    let at = &raw const pair;
    // SAFETY: the vector lies below its end and outlives the bench.
    pair.other.set(unsafe { prepare(stack.as_mut_ptr_range().end, visit, at as usize) });
    let call: extern "C" fn(u64) -> u64 = black_box(callee);
    let base = report("call through a pointer (baseline)", 1.0, None, || {
        black_box(call(black_box(1)));
    });
    report("stack switch, one way", 2.0, Some(base), || {
        // SAFETY: the other stack is suspended or prepared.
        unsafe { switch(pair.main.as_ptr(), pair.other.get()) };
    });
    assert_eq!(pair.visits.get(), REPEATS as u64 * ROUNDS, "every switch must arrive");

    let vp = NonNull::dangling();
    let word = AtomicU32::new(0);
    let base = report("lock cmpxchg + store (baseline)", 1.0, None, || {
        assert!(word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok());
        word.store(0, Ordering::Release);
    });
    // SAFETY: this thread alone touches the word.
    unsafe { set_current_vp(vp.as_ptr()) };
    report("restartable test-and-set + store", 1.0, Some(base), || {
        // SAFETY: as above.
        assert_eq!(unsafe { restartable::test_and_set(vp, word.as_ptr()) }, Ok(false));
        word.store(0, Ordering::Release);
    });
}
