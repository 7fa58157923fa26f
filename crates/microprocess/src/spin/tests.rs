//! One virtual processor takes no locks, and mutex and semaphore keep their promises without: in a process of its own, since locks stay on
//! for good once they are.

use std::env;
use std::process::Command;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::is_needed;
use crate::sync::tests::on_processors;
use crate::{Killed, Mutex, Runtime, Semaphore, scheduler, scope, spawn, yield_now};

/// Says to the process that a test starts that it is that one.
const ALONE: &str = "KYOCHO_SPIN_TESTS_ALONE";

/// The other process; as a test, it does nothing.
#[test]
fn in_a_process_of_its_own() {
    let Ok(wanted) = env::var(ALONE) else { return };
    let are_needed = if wanted == "user scheduler" {
        let builder = Runtime::builder().virtual_processors(1);
        let builder = builder.scheduler(|_| Box::new(scheduler::RoundRobin::new()));
        builder.build().run(is_needed).unwrap()
    } else {
        on_processors(1, || {
            items_pass_a_buffer();
            loops_that_never_wait_are_killed();
            is_needed()
        })
    };
    assert!(!are_needed, "locks are on");
    // This thread belongs to no runtime, and its call turns them on.
    drop(Mutex::new(0).lock());
    assert!(is_needed());
}

/// Between producers and consumers, for some time slices; none is lost, none comes twice.
fn items_pass_a_buffer() {
    const PARTIES: usize = 4;
    const ITEMS: usize = 100_000;
    let (free, full, buffer) = (Semaphore::new(8), Semaphore::new(0), Mutex::new(Vec::new()));
    let sum = AtomicUsize::new(0);
    let produce = |item| {
        free.acquire();
        buffer.lock().unwrap().push(item);
        full.release();
    };
    let consume = || {
        full.acquire();
        let item: usize = buffer.lock().unwrap().pop().unwrap();
        free.release();
        sum.fetch_add(item, Ordering::Relaxed);
    };
    scope(|scope| {
        for _ in 0..PARTIES {
            scope.spawn(|| (0..ITEMS).for_each(produce));
            scope.spawn(|| (0..ITEMS).for_each(|_| consume()));
        }
    });
    assert_eq!(sum.into_inner(), PARTIES * ITEMS * (ITEMS - 1) / 2);
    assert_eq!((free.permits(), full.permits()), (8, 0));
}

/// What is always granted is a kill point none the less.
fn loops_that_never_wait_are_killed() {
    let loops: [fn(); 2] = [
        || {
            let mutex = Mutex::new(());
            loop {
                drop(mutex.lock());
            }
        },
        || {
            let semaphore = Semaphore::new(1);
            loop {
                semaphore.acquire();
                semaphore.release();
            }
        },
    ];
    for body in loops {
        let victim = spawn(body);
        yield_now();
        victim.microprocess().kill().unwrap();
        assert!(victim.join().unwrap_err().is::<Killed>());
    }
}

#[test]
fn one_virtual_processor_takes_no_locks() {
    for scheduler in ["built in", "user scheduler"] {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "spin::tests::in_a_process_of_its_own", "--nocapture"])
            .env(ALONE, scheduler)
            .output()
            .unwrap();
        assert!(output.status.success(), "{scheduler}: {output:?}");
    }
}
