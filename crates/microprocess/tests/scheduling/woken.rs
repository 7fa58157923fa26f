//! What happens to microprocesses that become runnable while others run. More urgent ones go first,
//! and none waits behind a long run while virtual processors are idle.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use kyocho_microprocess::scheduler::{Arrival, EarliestDeadline, Entry, Fault, Scheduler, Slice};
use kyocho_microprocess::{Builder, Microprocess, Priority, park, spawn, yield_now};

use super::watchdog::under_watchdog;
use super::{on, scheduler};

/// The longest possible slice. If a microprocess waits for the end of one in each of the
/// [`ROUNDS`], the watchdog ends the test.
const SLICE: Duration = Duration::from_secs(1);
const ROUNDS: usize = 200;

/// A microprocess of the highest priority, which sets a flag when it runs.
fn urgent(ran: &Arc<AtomicBool>, parks_first: bool) -> kyocho_microprocess::JoinHandle<()> {
    let ran = Arc::clone(ran);
    let body = move || {
        if parks_first {
            park();
        }
        ran.store(true, Ordering::Relaxed);
    };
    Builder::new().priority(Priority::HIGHEST).spawn(body).unwrap()
}

#[test]
fn the_more_urgent_run_as_soon_as_they_may() {
    under_watchdog("urgent at once", || {
        on(1)
            .build()
            .run(|| {
                let ran = Arc::new(AtomicBool::new(false));
                let spawned = urgent(&ran, false);
                assert!(ran.swap(false, Ordering::Relaxed), "when it was made");
                let parked = urgent(&ran, true);
                assert!(!ran.load(Ordering::Relaxed));
                parked.microprocess().unpark();
                assert!(ran.load(Ordering::Relaxed), "when it was woken");
                spawned.join().unwrap();
                parked.join().unwrap();
            })
            .unwrap();
    });
}

#[test]
fn user_schedulers_are_asked_when_a_microprocess_becomes_runnable() {
    under_watchdog("asked", || {
        on(1)
            .build()
            .run(|| {
                scheduler::install(|_| Box::new(EarliestDeadline::new()));
                yield_now();
                let ran = Arc::new(AtomicBool::new(false));
                let parked = spawn({
                    let ran = Arc::clone(&ran);
                    move || {
                        park();
                        ran.store(true, Ordering::Relaxed);
                    }
                });
                parked.microprocess().set_parameter(1);
                Microprocess::current().set_parameter(2);
                yield_now();
                parked.microprocess().unpark();
                // Of the same priority, but with an earlier deadline.
                assert!(ran.load(Ordering::Relaxed));
                parked.join().unwrap();
            })
            .unwrap();
    });
}

/// Loses its entries, and sees no reason to preempt.
struct Forgetful;

impl Scheduler for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn enqueue(&mut self, _entry: Entry, _arrival: Arrival, _now_ns: u64) {}

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        None
    }

    fn remove(&mut self, _entry: Entry) {}

    fn best(&self) -> Option<Priority> {
        None
    }

    fn preempts(&self, _running: Entry, _slice: Slice, _now_ns: u64) -> bool {
        false
    }
}

#[test]
fn scheduler_that_forgets_a_waiting_microprocess_is_detected_while_others_run() {
    under_watchdog("forgetful", || {
        on(1)
            .build()
            .run(|| {
                scheduler::install(|_| Box::new(Forgetful));
                yield_now();
                let ran = Arc::new(AtomicBool::new(false));
                let other = spawn({
                    let ran = Arc::clone(&ran);
                    move || ran.store(true, Ordering::Relaxed)
                });
                while !ran.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
                other.join().unwrap();
                assert_eq!(scheduler::report().fault, Some(Fault::Lost));
            })
            .unwrap();
    });
}

#[test]
fn no_microprocess_waits_behind_a_long_run_while_a_virtual_processor_is_idle() {
    under_watchdog("behind a long run", || {
        on(2)
            .time_slice(SLICE)
            .build()
            .run(|| {
                for _ in 0..ROUNDS {
                    let me = Microprocess::current();
                    let went_on = Arc::new(AtomicBool::new(false));
                    let hog = spawn({
                        let went_on = Arc::clone(&went_on);
                        move || {
                            me.unpark();
                            while !went_on.load(Ordering::Relaxed) {
                                core::hint::spin_loop();
                            }
                        }
                    });
                    park();
                    went_on.store(true, Ordering::Relaxed);
                    hog.join().unwrap();
                }
            })
            .unwrap();
    });
}

#[test]
fn no_microprocess_waits_behind_a_more_urgent_one_while_a_virtual_processor_is_idle() {
    under_watchdog("outranked", || {
        on(2)
            .time_slice(SLICE)
            .build()
            .run(|| {
                for _ in 0..ROUNDS {
                    let went_on = Arc::new(AtomicBool::new(false));
                    let outranks = Builder::new().priority(Priority::HIGHEST).spawn({
                        let went_on = Arc::clone(&went_on);
                        move || {
                            while !went_on.load(Ordering::Relaxed) {
                                core::hint::spin_loop();
                            }
                        }
                    });
                    went_on.store(true, Ordering::Relaxed);
                    outranks.unwrap().join().unwrap();
                }
            })
            .unwrap();
    });
}
