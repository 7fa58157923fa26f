//! Collections by several markers: no object is lost, whichever marker scans it and wherever a
//! helper stops. Freed memory is overwritten.

use super::beside::{LENGTH, is_whole};
use super::{mutator, small};
use crate::heap::{Heap, Limits, Mutator, Torture};
use crate::value::Value;
use core::panic::AssertUnwindSafe;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::thread::{self, JoinHandle};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

pub(super) fn helped(concurrent: bool) -> Limits {
    let torture = Torture { every: 1 << 40, phase: 0, concurrent };
    Limits {
        torture: Some(torture),
        helpers_max: 2,
        shared_every: 1,
        bytes_max: 64 << 20,
        ..small()
    }
}

fn help_until(heap: &Heap, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        heap.help(|| ());
        thread::yield_now();
    }
}

/// Kernel threads that help until this is dropped.
pub(super) struct Helpers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Helpers {
    pub(super) fn of(heap: &Arc<Heap>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let (heap, stop) = (Arc::clone(heap), Arc::clone(&stop));
            thread::spawn(move || help_until(&heap, &stop))
        };
        let threads = (0..heap.limits().helpers_max).map(start).collect();
        Self { stop, threads }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "a helper failed");
        }
    }
}

/// Makes an invited helper run at once, on the inviting thread.
pub(super) fn help_when_invited(heap: &Arc<Heap>, help: impl Fn(&Heap) + Send + Sync + 'static) {
    let heap_again: Weak<Heap> = Arc::downgrade(heap);
    heap.invite_by(Box::new(move || {
        if let Some(heap) = heap_again.upgrade() {
            help(&heap);
        }
    }));
}

const ROWS: usize = 60;

/// A vector of lists of vectors.
fn table(m: &mut Mutator) -> Value {
    let rows: Vec<Value> = (0..ROWS)
        .map(|row| {
            let items: Vec<Value> =
                (0..10).map(|_| m.vector(LENGTH, Value::fixnum(row as i64)).unwrap()).collect();
            m.list(&items).unwrap()
        })
        .collect();
    m.vector_of(&rows).unwrap()
}

fn assert_whole(table: Value) {
    for row in 0..ROWS {
        let mut list = table.vector_ref(row).unwrap();
        let mut count = 0;
        while let Some((item, rest)) = list.uncons() {
            assert!(is_whole(item, row as i64), "row {row}, item {count}");
            (list, count) = (rest, count + 1);
        }
        assert_eq!(count, 10, "row {row}");
    }
}

#[test]
fn a_helper_marks_the_packets_that_it_takes() {
    let mut m = mutator(helped(false));
    let kept = table(&mut m);
    let alone = m.heap.collect(|marker| marker.mark(kept));
    assert_eq!(alone.helped_bytes, 0, "there was no helper");
    help_when_invited(&m.heap, |heap| {
        heap.help(|| ());
    });
    let together = m.heap.collect(|marker| marker.mark(kept));
    assert_eq!(together.live_bytes, alone.live_bytes);
    assert_eq!(together.held_bytes, alone.held_bytes);
    assert!(together.helped_bytes > 0, "{together:?}");
    assert_whole(kept);
    let nothing = m.heap.collect(|_| ());
    assert_eq!((nothing.live_bytes, nothing.helped_bytes), (0, 0));
}

#[test]
fn others_scan_the_rest_of_a_killed_helpers_work() {
    let mut m = mutator(helped(false));
    let kept = table(&mut m);
    let live_bytes = m.heap.collect(|marker| marker.mark(kept)).live_bytes;
    let killed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&killed);
    help_when_invited(&m.heap, move |heap| {
        let killed = || resume_unwind(Box::new("killed"));
        let died = catch_unwind(AssertUnwindSafe(|| heap.help(killed))).is_err();
        counted.fetch_add(died.into(), Ordering::Relaxed);
    });
    let done = m.heap.collect(|marker| marker.mark(kept));
    assert!(killed.load(Ordering::Relaxed) > 0);
    assert_eq!(done.live_bytes, live_bytes);
    assert_whole(kept);
}

#[test]
fn helpers_stop_when_the_maker_gives_up_and_the_next_collection_is_whole() {
    let mut m = mutator(helped(true));
    let kept = table(&mut m);
    let _helpers = Helpers::of(&m.heap);
    for scans in 0..200 {
        let heap = Arc::clone(&m.heap);
        let mut marks = heap.empty_marks();
        let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
            marker.note_no_more();
        });
        cycle.mark(&[kept]);
        cycle.mark_some(scans);
        // As if the collector were killed.
        drop(cycle);
        heap.forget_cycle();
        drop(marks);
        assert!(!heap.has_work(), "after {scans} scans");
    }
    let done = m.heap.collect(|marker| marker.mark(kept));
    assert!(done.live_bytes >= ROWS * 10 * LENGTH * 8);
    assert_whole(kept);
}

#[test]
fn ephemerons_and_keys_found_by_helpers_are_decided() {
    let mut m = mutator(helped(false));
    help_when_invited(&m.heap, |heap| {
        heap.help(|| ());
    });
    // A chain in which each datum is the next ephemeron's key; and as many ephemerons whose keys
    // are unreachable.
    let first = m.vector(LENGTH, Value::fixnum(0)).unwrap();
    let (mut key, mut links, mut lost) = (first, Vec::new(), Vec::new());
    for i in 1..100 {
        let datum = m.vector(LENGTH, Value::fixnum(i)).unwrap();
        links.push(m.ephemeron(key, datum).unwrap());
        let unreachable = m.vector(LENGTH, Value::fixnum(-i)).unwrap();
        lost.push(m.ephemeron(unreachable, datum).unwrap());
        key = datum;
    }
    let keys: Vec<Value> = (0..100).map(|i| m.vector(LENGTH, Value::fixnum(i)).unwrap()).collect();
    let held: Vec<Value> = keys.iter().map(|&key| m.ephemeron(key, Value::TRUE).unwrap()).collect();
    let all: Vec<Value> = links.iter().rev().chain(&lost).chain(&held).copied().collect();
    let all = m.vector_of(&all).unwrap();
    let keys = m.vector_of(&keys).unwrap();
    // All keys are marked after all ephemerons were examined, some by helpers.
    let done = m.heap.collect(|marker| {
        marker.mark(all);
        marker.run();
        marker.mark(first);
        marker.mark(keys);
    });
    assert!(done.helped_bytes > 50 * LENGTH * 8, "{done:?}");
    for (i, link) in links.iter().enumerate() {
        let datum = link.ephemeron_datum().expect("its key is reachable");
        assert!(is_whole(datum, i as i64 + 1), "link {i}");
    }
    assert!(lost.iter().all(|ephemeron| ephemeron.ephemeron_is_broken()));
    assert!(held.iter().all(|ephemeron| !ephemeron.ephemeron_is_broken()));
}

#[test]
fn a_long_list_is_scanned_to_its_end() {
    const LENGTH: i64 = 50_000;
    for limits in [helped(false), Limits { helpers_max: 0, mark_stack_max: 1, ..helped(false) }] {
        let mut m = mutator(limits);
        let list = super::numbers(&mut m, LENGTH);
        m.heap.collect(|marker| marker.mark(list));
        assert_eq!(super::sum(list), LENGTH * (LENGTH - 1) / 2);
    }
}
