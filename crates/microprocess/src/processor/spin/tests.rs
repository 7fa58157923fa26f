//! A virtual processor that is alone awake takes no locks, and mutex and semaphore work without
//! them. Each test runs in a process of its own, since a call from a kernel thread outside any
//! runtime turns locks on for good.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use std::env;
use std::process::Command;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::is_needed;
use crate::schedule::mask;
use crate::scheduler;
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{Builder, Killed, Microprocess, Mutex, Runtime, Semaphore};
use crate::{scope, spawn, statistics, virtual_processor};

/// Set for the process that a test starts, with the test's name.
const ALONE: &str = "KYOCHO_SPIN_TESTS_ALONE";

/// The body of the other process. As a test it does nothing.
#[test]
fn in_a_process_of_its_own() {
    let Ok(wanted) = env::var(ALONE) else { return };
    if wanted == "several" {
        // The watchdog's thread does not call the runtime.
        locks_come_and_go();
        a_virtual_processor_joins_another();
        return;
    }
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
    assert!(!are_needed, "short locks are taken");
    // This thread is outside any runtime, so its call turns locks on.
    drop(Mutex::new(0).lock());
    assert!(is_needed());
}

/// Two virtual processors: no locks while one sleeps, locks while both run, and none again.
fn locks_come_and_go() {
    on_processors(2, || {
        for _ in 0..20 {
            while is_needed() {
                yield_now();
            }
            let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(false));
            let other = 1 - virtual_processor();
            scope(|scope| {
                let body = || {
                    assert!(is_needed(), "two virtual processors are awake");
                    begun.store(true, Ordering::SeqCst);
                    while !stop.load(Ordering::SeqCst) {
                        yield_now();
                    }
                };
                // Moving to the other virtual processor leaves this one without work.
                let me = Microprocess::current();
                me.set_virtual_processor(Some(virtual_processor()));
                let there = Builder::new().virtual_processor(other);
                let there = scope.spawn_with(there, body).unwrap();
                while !begun.load(Ordering::SeqCst) {
                    yield_now();
                }
                assert!(is_needed(), "two virtual processors are awake");
                stop.store(true, Ordering::SeqCst);
                there.join().unwrap();
                me.set_virtual_processor(None);
            });
        }
    });
}

/// If a virtual processor joins another, all its microprocesses move there, except pinned ones.
fn a_virtual_processor_joins_another() {
    on_processors(2, || {
        let stop = AtomicBool::new(false);
        Microprocess::current().set_virtual_processor(Some(0));
        scope(|scope| {
            let stays = || {
                while !stop.load(Ordering::SeqCst) {
                    assert_eq!(virtual_processor(), 1);
                    yield_now();
                }
            };
            let there = || Builder::new().virtual_processor(1);
            let staying = scope.spawn_with(there(), stays).unwrap();
            let leaving = (0..3).map(|_| scope.spawn_with(there(), leave_for_the_first).unwrap());
            let leaving: Vec<_> = leaving.collect();
            leaving.into_iter().for_each(|one| one.join().unwrap());
            stop.store(true, Ordering::SeqCst);
            staying.join().unwrap();
        });
        assert!(statistics().gathered > 0);
    });
}

/// Makes its virtual processor join the first until it is there; sharing may move it back
/// meanwhile.
fn leave_for_the_first() {
    Microprocess::current().set_virtual_processor(None);
    while virtual_processor() != 0 {
        let section = mask();
        section.masked().join_now(0);
        section.leave();
    }
}

/// Producers and consumers pass items for some time slices. No item is lost or comes twice.
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

/// An operation that is always granted at once is a kill point all the same.
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

/// Runs the tests named by `wanted` in a process of their own.
fn alone(wanted: &str) {
    let (_crate, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::in_a_process_of_its_own");
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(ALONE, wanted)
        .output()
        .unwrap();
    assert!(output.status.success(), "{wanted}: {output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{wanted}: the test did not run, or failed: {output:?}");
}

#[test]
fn one_virtual_processor_takes_no_locks() {
    alone("built in");
    alone("user scheduler");
}

#[test]
fn locks_are_taken_while_two_are_awake_and_sharing_gathers_microprocesses() {
    alone("several");
}
