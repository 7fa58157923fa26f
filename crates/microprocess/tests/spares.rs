//! Lack of spare kernel threads while the maker waits for the allocator, whose lock a preempted
//! microprocess holds.
//!
//! The allocator of this program takes one lock around each call of the system's allocator. So
//! every allocation waits for the holder of the lock, also one by the maker.
#![expect(unsafe_code, reason = "an allocator")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::alloc::{GlobalAlloc, Layout};
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_microprocess::{Detection, Runtime, scheduler, spawn};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// More microprocesses than there are spare kernel threads.
const ALLOCATING: usize = 100;

static LOCK: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

struct OneLock;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for OneLock {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _guard = lock();
        // SAFETY: the caller keeps the contract of this function, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let _guard = lock();
        // SAFETY: the caller keeps the contract of this function, which is that of the system's.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: OneLock = OneLock;

fn spin_until(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        spin_loop();
    }
}

/// Returns after a preemption, which takes a spare thread: from then on there are spare threads.
fn await_spares() {
    let [one, other]: [Arc<AtomicBool>; 2] = Default::default();
    let pairs = [(Arc::clone(&one), Arc::clone(&other)), (other, one)];
    let workers = pairs.map(|(mine, other)| {
        spawn(move || {
            mine.store(true, Ordering::SeqCst);
            spin_until(&other);
        })
    });
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// One microprocess is preempted while it holds the lock. Then `ALLOCATING` others allocate before
/// it gets the virtual processor again.
fn allocate_behind_a_preempted_holder() {
    await_spares();
    let others_run = Arc::new(AtomicBool::new(false));
    // The spawning microprocess must not wait for the lock before another one can run.
    let mut others = Vec::with_capacity(ALLOCATING);
    let begun = Arc::clone(&others_run);
    let holder = spawn(move || {
        let guard = lock();
        spin_until(&begun);
        drop(guard);
    });
    for size in 0..ALLOCATING {
        let begun = Arc::clone(&others_run);
        others.push(spawn(move || {
            begun.store(true, Ordering::SeqCst);
            drop(black_box(Vec::<u8>::with_capacity(1 + size)));
        }));
    }
    holder.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn a_preempted_holder_of_the_allocators_lock_gets_a_processor_although_no_spare_can_be_made() {
    under_watchdog("a_preempted_holder_of_the_allocators_lock", || {
        for detection in [Detection::Monitor, Detection::Sentinel] {
            let runtime = Runtime::builder().virtual_processors(1).detection(detection).build();
            runtime.run(allocate_behind_a_preempted_holder).unwrap();
        }
    });
}

#[test]
fn a_user_scheduler_does_not_keep_it_from_that() {
    under_watchdog("a_user_scheduler_does_not_keep_it_from_that", || {
        let runtime = Runtime::builder()
            .virtual_processors(1)
            .detection(Detection::Monitor)
            .scheduler(|_| Box::new(scheduler::RoundRobin::new()))
            .build();
        runtime.run(allocate_behind_a_preempted_holder).unwrap();
    });
}
