//! One virtual processor takes no locks: seen in a process of its own, since they stay on for good.

use std::env;
use std::process::Command;

use super::is_needed;
use crate::{Mutex, Runtime, Semaphore, scheduler, spawn};

/// Says to the process that a test starts that it is that one.
const ALONE: &str = "KYOCHO_SPIN_TESTS_ALONE";

/// The other process; as a test, it does nothing.
#[test]
fn in_a_process_of_its_own() {
    let Ok(wanted) = env::var(ALONE) else { return };
    let builder = Runtime::builder().virtual_processors(1);
    let builder = match wanted.as_str() {
        "user scheduler" => builder.scheduler(|_| Box::new(scheduler::RoundRobin::new())),
        _ => builder,
    };
    let body = || {
        let (mutex, semaphore) = (Mutex::new(0), Semaphore::new(0));
        spawn(move || *mutex.lock().unwrap() += 1).join().unwrap();
        semaphore.release();
        semaphore.acquire();
        is_needed()
    };
    assert!(!builder.build().run(body).unwrap(), "locks are on");
    // This thread belongs to no runtime, and its call turns them on.
    drop(Mutex::new(0).lock());
    assert!(is_needed());
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
