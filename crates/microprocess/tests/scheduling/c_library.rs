//! Code that is interrupted inside the C library may hold its locks, so its preemption is
//! postponed.

use core::hint::black_box;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use kyocho_microprocess::scheduler::{Arrival, Entry, Event, EventKind, List, Scheduler, Slice};
use kyocho_microprocess::{Priority, spawn};

use crate::on;
use crate::watchdog::under_watchdog;

/// How many preemptions are examined.
const ENOUGH: usize = 60;

/// Counts all preemptions, and those inside the C library.
struct Counting {
    queue: List,
    library: Range<usize>,
    counts: Arc<[AtomicUsize; 2]>,
}

impl Scheduler for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn enqueue(&mut self, entry: Entry, _arrival: Arrival, _now_ns: u64) {
        self.queue.push_back(entry);
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.queue.pop_front()
    }

    fn remove(&mut self, entry: Entry) {
        self.queue.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.queue.first().map(Entry::priority)
    }

    fn preempts(&self, _running: Entry, slice: Slice, _now_ns: u64) -> bool {
        slice == Slice::Over
    }

    fn event(&mut self, event: &Event, _now_ns: u64) {
        if event.kind != EventKind::Preempted {
            return;
        }
        let Some(registers) = event.bound.and_then(|bound| bound.registers) else { return };
        let inside = self.library.contains(&registers.instruction);
        self.counts[1].fetch_add(usize::from(inside), Ordering::SeqCst);
        self.counts[0].fetch_add(1, Ordering::SeqCst);
    }
}

/// The code of the C library; `None` if it is part of the program.
fn library() -> Option<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("r-xp") && line.contains("/libc.so"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).unwrap();
    Some(address(start)..address(end))
}

/// Spends about half of its time in the allocator, until `counts` are enough.
fn allocate(counts: &[AtomicUsize; 2]) {
    let mut length = 1;
    while counts[0].load(Ordering::SeqCst) < ENOUGH {
        for _ in 0..100 {
            length = length * 5 % 997;
            let taken: Vec<u8> = Vec::with_capacity(black_box(2000 + length));
            drop(black_box(taken));
            for step in 0..20 {
                black_box(step);
            }
        }
    }
}

#[test]
fn few_are_preempted_while_they_may_hold_a_lock_of_the_allocator() {
    let name = "few_are_preempted_while_they_may_hold_a_lock_of_the_allocator";
    let Some(library) = library() else {
        return kyocho_sys::skip::skip(name, "the C library is part of the program");
    };
    under_watchdog(name, || {
        let counts: Arc<[AtomicUsize; 2]> = Arc::default();
        let (counting, counted) = (Arc::clone(&counts), Arc::clone(&counts));
        let make = move |_| {
            let (library, counts) = (library.clone(), Arc::clone(&counting));
            Box::new(Counting { queue: List::new(), library, counts }) as Box<dyn Scheduler>
        };
        let run = || {
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let counts = Arc::clone(&counted);
                    spawn(move || allocate(&counts))
                })
                .collect();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        };
        on(1).scheduler(make).build().run(run).unwrap();
        let [all, inside] = [0, 1].map(|at| counts[at].load(Ordering::SeqCst));
        assert!(all >= ENOUGH && inside * 4 < all, "{inside} of {all} in the C library");
    });
}
