//! Threads that allocate in parallel in one heap, and a collector that stops them.

use super::{numbers, small, sum};
use crate::heap::ThreadContext;
use crate::heap::{Heap, Limits, Mutator, Torture};
use crate::value::Value;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use kyocho_sys::prim::thread;
use std::sync::{Arc, PoisonError, RwLock};

const THREADS: usize = 4;
const ROUNDS: i64 = 150;

/// A thread without the read lock is at a safepoint. It publishes its roots before it releases the
/// lock.
struct World {
    heap: Arc<Heap>,
    running: RwLock<()>,
    roots: [AtomicU64; THREADS],
    finished: AtomicUsize,
}

/// Counts a thread as finished, also if it fails, so that the test does not hang.
struct Finish<'a>(&'a AtomicUsize);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn work(world: &World, me: usize) {
    let _finish = Finish(&world.finished);
    let mut m = Mutator::new(Arc::clone(&world.heap), ThreadContext::default());
    let mut kept = Value::NIL;
    for round in 0..ROUNDS {
        let _running = world.running.read().unwrap_or_else(PoisonError::into_inner);
        let list = numbers(&mut m, 200);
        let garbage = m.vector((round as usize % 7) * 300, list).unwrap();
        assert_eq!(sum(list), 19_900);
        assert_ne!(garbage, list);
        if round % 10 == 0 {
            kept = m.cons(list, kept).unwrap();
        }
        world.roots[me].store(kept.to_word(), Ordering::SeqCst);
    }
}

#[test]
fn threads_allocate_in_parallel_between_collections() {
    let limits = Limits { bytes_max: 64 << 20, torture: Some(Torture::ALWAYS), ..small() };
    let world = Arc::new(World {
        heap: Heap::new(limits).unwrap(),
        running: RwLock::new(()),
        roots: core::array::from_fn(|_| AtomicU64::new(Value::NIL.to_word())),
        finished: AtomicUsize::new(0),
    });
    let threads: Vec<_> = (0..THREADS)
        .map(|me| {
            let world = Arc::clone(&world);
            thread::spawn(move || work(&world, me))
        })
        .collect();
    while world.finished.load(Ordering::SeqCst) < THREADS {
        let _stopped = world.running.write().unwrap_or_else(PoisonError::into_inner);
        world.heap.collect(|marker| {
            world.roots.iter().for_each(|root| marker.mark_word(root.load(Ordering::SeqCst)));
        });
    }
    for thread in threads {
        thread.join().unwrap();
    }
    for root in &world.roots {
        let mut lists = Value::from_word(root.load(Ordering::SeqCst));
        let mut count = 0;
        while let Some((list, rest)) = lists.uncons() {
            assert_eq!(sum(list), 19_900);
            lists = rest;
            count += 1;
        }
        assert_eq!(count, ROUNDS / 10);
    }
}
