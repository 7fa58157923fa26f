use super::{CELLS_MAX, CELLS_MIN, CacheSize, INTERVAL_NS};

/// Simulates a thread that uses a cell every `ns_per_cell`, over some refills. Returns the last
/// size.
fn settle(size: &mut CacheSize, now_ns: &mut u64, ns_per_cell: u64, refills: usize) -> usize {
    let mut cells = CELLS_MIN;
    for _ in 0..refills {
        *now_ns += cells as u64 * ns_per_cell;
        cells = size.next(*now_ns, cells, INTERVAL_NS);
    }
    cells
}

#[test]
fn the_size_settles_at_rate_times_interval() {
    for (ns_per_cell, expected) in [(10, 10_000), (100, 1_000), (1_000, 100)] {
        let (mut size, mut now) = (CacheSize::new(0), 0);
        let cells = settle(&mut size, &mut now, ns_per_cell, 40);
        assert!(cells.abs_diff(expected) <= expected / 50, "{ns_per_cell}: {cells}");
    }
}

#[test]
fn a_thread_that_begins_to_cons_gets_a_large_cache_within_few_refills() {
    let (mut size, mut now) = (CacheSize::new(0), 0);
    assert!(settle(&mut size, &mut now, 10, 6) >= 5_000);
}

#[test]
fn sizes_stay_within_their_bounds() {
    let (mut size, mut now) = (CacheSize::new(0), 0);
    assert_eq!(settle(&mut size, &mut now, 0, 40), CELLS_MAX);
    assert_eq!(settle(&mut size, &mut now, 1_000_000, 40), CELLS_MIN);
}

#[test]
fn a_long_sleep_makes_the_cache_small_at_once() {
    let (mut size, mut now) = (CacheSize::new(0), 0);
    let busy = settle(&mut size, &mut now, 10, 40);
    now += 1_000_000_000;
    let after = size.next(now, busy, INTERVAL_NS);
    assert!(after < busy / 100, "{busy} then {after}");
}

#[test]
fn a_clock_that_steps_back_is_tolerated() {
    let mut size = CacheSize::new(1_000_000);
    assert!((CELLS_MIN..=CELLS_MAX).contains(&size.next(0, 500, INTERVAL_NS)));
    assert!((CELLS_MIN..=CELLS_MAX).contains(&size.next(1_000_100, 500, INTERVAL_NS)));
}
