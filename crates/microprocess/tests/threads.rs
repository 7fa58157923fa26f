//! Spawning, joining, yielding, parking, sleeping, priorities, panics and deadlocks, through the
//! public interface.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use kyocho_microprocess::{
    Builder, Deadline, Detection, Kind, Microprocess, Priority, Runtime, Stackless, Step, park,
    park_timeout, run, sleep, spawn, spawn_future, statistics, yield_now,
};

#[path = "threads/futures.rs"]
mod futures;
#[path = "threads/runs.rs"]
mod runs;

fn on_one<T: Send>(main: impl FnOnce() -> T + Send) -> T {
    Runtime::builder().virtual_processors(1).build().run(main).unwrap()
}

/// The longest possible time slice.
const SLICE: Duration = Duration::from_secs(1);

/// Runs `scenario` until only its own calls caused switches. Sleeps in the kernel are not detected,
/// and a slice ends only if the host takes a second from the process. In that case the scenario
/// runs again, with longer times. It returns `None` if it finds itself disturbed.
fn undisturbed<T: Send>(scenario: impl Fn(u32) -> Option<T> + Sync) -> T {
    const ATTEMPTS: u32 = 10;
    let attempt = |times: u32| {
        let runtime = Runtime::builder().virtual_processors(1).detection(Detection::Off);
        let main = || {
            let started = Instant::now();
            let result = scenario(times);
            let counted = statistics();
            assert_eq!(counted.blocked, 0);
            result.filter(|_| counted.preempted == 0 && started.elapsed() < SLICE)
        };
        runtime.time_slice(SLICE).build().run(main).unwrap()
    };
    let result = (0..ATTEMPTS).find_map(|number| attempt(1 << number.min(4)));
    result.expect("the host let the process run undisturbed")
}

#[test]
fn ten_thousand_are_spawned_and_joined() {
    let sum = on_one(|| {
        let handles: Vec<_> = (0..10_000_u64).map(|i| spawn(move || i)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>()
    });
    assert_eq!(sum, 49_995_000);
}

#[test]
fn several_virtual_processors_run_them_all() {
    let sum = Runtime::builder().virtual_processors(2).build().run(|| {
        let handles: Vec<_> = (0..10_000_u64)
            .map(|i| {
                spawn(move || {
                    yield_now();
                    i
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>()
    });
    assert_eq!(sum.unwrap(), 49_995_000);
}

#[test]
fn equals_run_in_the_order_of_their_arrival_and_the_urgent_first() {
    let order = undisturbed(|_| {
        let log = Arc::new(Mutex::new(Vec::new()));
        // None runs before main waits.
        Microprocess::current().set_priority(Priority::HIGHEST);
        let handles: Vec<_> = [(10, 1), (40, 2), (10, 3), (63, 4), (40, 5), (0, 6)]
            .into_iter()
            .map(|(level, number)| {
                let log = Arc::clone(&log);
                let builder = Builder::new().priority(Priority::new(level).unwrap());
                builder.spawn(move || log.lock().unwrap().push(number)).unwrap()
            })
            .collect();
        Microprocess::current().set_priority(Priority::NORMAL);
        for handle in handles {
            handle.join().unwrap();
        }
        Some(log.lock().unwrap().clone())
    });
    assert_eq!(order, [4, 2, 5, 1, 3, 6]);
}

#[test]
fn yield_takes_turns_among_equals() {
    let order = undisturbed(|_| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let turns = |name: char| {
            let log = Arc::clone(&log);
            spawn(move || {
                for turn in 0..3 {
                    log.lock().unwrap().push((name, turn));
                    yield_now();
                }
            })
        };
        let (a, b) = (turns('a'), turns('b'));
        a.join().unwrap();
        b.join().unwrap();
        Some(log.lock().unwrap().clone())
    });
    let expected = [('a', 0), ('b', 0), ('a', 1), ('b', 1), ('a', 2), ('b', 2)];
    assert_eq!(order, expected);
}

#[test]
fn panic_ends_only_its_microprocess() {
    let (outcome, after) = on_one(|| {
        let outcome = spawn(|| -> u32 { resume_unwind(Box::new("contained")) }).join();
        (
            outcome.unwrap_err().downcast_ref::<&str>().map(|text| (*text).to_owned()),
            spawn(|| 7).join().unwrap(),
        )
    });
    assert_eq!((outcome.as_deref(), after), (Some("contained"), 7));
}

#[test]
fn a_panic_of_main_reaches_the_caller() {
    let outcome = catch_unwind(|| on_one(|| resume_unwind(Box::new("of main"))));
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"of main"));
}

#[test]
fn large_closures_and_results_pass() {
    let (bytes, sum) = on_one(|| {
        let (large, more) = ([3_u8; 5000], [5_u8; 900]);
        let bytes = spawn(move || large).join().unwrap();
        (bytes, spawn(move || more.iter().map(|&b| u32::from(b)).sum::<u32>()).join().unwrap())
    });
    assert_eq!((bytes, sum), ([3_u8; 5000], 4500));
}

#[test]
fn an_unpark_before_the_park_is_kept() {
    on_one(|| {
        let me = Microprocess::current();
        me.unpark();
        park();
        spawn(move || me.unpark());
        park();
    });
}

#[test]
fn stale_handle_unparks_no_microprocess() {
    on_one(|| {
        let ended = spawn(Microprocess::current).join().unwrap();
        let next = spawn(park);
        yield_now();
        ended.unpark();
        yield_now();
        assert!(!next.is_finished());
        next.microprocess().unpark();
        next.join().unwrap();
    });
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    let order = undisturbed(|times| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let started = Instant::now();
        let sleepers: Vec<_> = [30_u64, 10, 20]
            .into_iter()
            .map(|ms| {
                let log = Arc::clone(&log);
                spawn(move || {
                    let time = Duration::from_millis(ms) * times;
                    sleep(time);
                    assert!(started.elapsed() >= time);
                    log.lock().unwrap().push(ms);
                })
            })
            .collect();
        yield_now();
        // All three sleep now. If one of them began too late, their deadlines would be in another
        // order.
        let began_together = started.elapsed() < Duration::from_millis(10) * times;
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
        let order = log.lock().unwrap().clone();
        began_together.then_some(order)
    });
    assert_eq!(order, [10, 20, 30]);
}

#[test]
fn a_hundred_thousand_are_parked_at_once() {
    let woken = Arc::new(AtomicUsize::new(0));
    on_one(|| {
        let handles: Vec<_> = (0..100_000)
            .map(|_| {
                let woken = Arc::clone(&woken);
                spawn(move || {
                    park();
                    woken.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        yield_now();
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        for handle in &handles {
            handle.microprocess().unpark();
        }
        for handle in handles {
            handle.join().unwrap();
        }
    });
    assert_eq!(woken.load(Ordering::Relaxed), 100_000);
}

#[test]
fn deadlock_report_names_each_waiter_and_its_object() {
    let deadlock = run(|| {
        let stuck = Builder::new().name("stuck").spawn(park).unwrap();
        stuck.join().unwrap();
    })
    .unwrap_err();
    let names: Vec<_> =
        deadlock.waiting.iter().map(|w| (w.name.as_deref(), w.reason.kind)).collect();
    assert_eq!(names, [(Some("main"), Kind::Join), (Some("stuck"), Kind::Park)]);
    let id = deadlock.waiting[1].id;
    assert_eq!(deadlock.waiting[0].reason.object as u64, id);
    assert!(deadlock.to_string().contains("stuck, priority 31, waits for an unpark"), "{deadlock}");
}

/// Counts down in steps, then wakes another microprocess.
struct Counter {
    left: u32,
    step: fn(u32) -> Step,
    done: Microprocess,
    total: Arc<AtomicUsize>,
}

impl Stackless for Counter {
    fn step(&mut self) -> Step {
        assert!(kyocho_microprocess::is_stackless());
        self.total.fetch_add(1, Ordering::Relaxed);
        self.left -= 1;
        if self.left == 0 {
            self.done.unpark();
            return Step::Done;
        }
        (self.step)(self.left)
    }
}

#[test]
fn stackless_machines_share_the_queues() {
    let total = Arc::new(AtomicUsize::new(0));
    on_one(|| {
        for step in [
            |_| Step::Yield,
            |_| Step::ParkUntil(Deadline::now()),
            |left| {
                Microprocess::current().unpark();
                if left % 2 == 0 { Step::Park } else { Step::Yield }
            },
        ] {
            let (done, total) = (Microprocess::current(), Arc::clone(&total));
            Builder::new()
                .spawn_stackless(Box::new(Counter { left: 1000, step, done, total }))
                .unwrap();
            park();
        }
    });
    assert_eq!(total.load(Ordering::Relaxed), 3000);
}

#[test]
fn a_kernel_thread_outside_of_runtimes_makes_no_microprocess() {
    struct Ends;
    impl Stackless for Ends {
        fn step(&mut self) -> Step {
            Step::Done
        }
    }
    let stackless = || Builder::new().spawn_stackless(Box::new(Ends)).is_ok();
    assert!(catch_unwind(stackless).is_err());
    assert!(catch_unwind(|| spawn_future(async {}).is_ok()).is_err());
    assert!(catch_unwind(|| Builder::new().spawn(|| ()).is_ok()).is_err());
    // The panics have left no events masked, and runs still work.
    on_one(|| assert_eq!(spawn(|| 7).join().unwrap(), 7));
}

#[test]
fn stackless_step_that_suspends_occupies_only_its_kernel_thread() {
    struct Sleeper(Microprocess);
    impl Stackless for Sleeper {
        fn step(&mut self) -> Step {
            sleep(Duration::from_millis(5));
            spawn(yield_now).join().unwrap();
            self.0.unpark();
            Step::Done
        }
    }
    on_one(|| {
        let me = Microprocess::current();
        Builder::new().spawn_stackless(Box::new(Sleeper(me))).unwrap();
        let other = spawn(|| (0..100).for_each(|_| yield_now()));
        park();
        other.join().unwrap();
    });
}

#[test]
fn a_microprocess_suspends_while_it_unwinds() {
    struct SleepsInDrop;
    impl Drop for SleepsInDrop {
        fn drop(&mut self) {
            sleep(Duration::from_millis(2));
            assert!(std::thread::panicking());
        }
    }
    on_one(|| {
        let unwinding = spawn(|| {
            let _sleeps = SleepsInDrop;
            resume_unwind(Box::new("to unwind"));
        });
        let neighbour = spawn(|| {
            for _ in 0..100 {
                assert!(!std::thread::panicking());
                yield_now();
            }
        });
        neighbour.join().unwrap();
        assert!(unwinding.join().is_err());
    });
}

#[test]
fn microprocesses_still_running_are_abandoned_when_main_ends() {
    for _ in 0..50 {
        on_one(|| {
            for _ in 0..20 {
                spawn(park);
            }
            yield_now();
        });
    }
}

#[test]
fn statistics_count_events() {
    let counted = on_one(|| {
        for _ in 0..10 {
            spawn(|| ()).join().unwrap();
        }
        statistics()
    });
    assert_eq!((counted.spawned, counted.ended), (11, 10));
    assert!(counted.switches >= 20);
}

#[test]
fn runnable_microprocesses_spread_over_idle_virtual_processors() {
    let counted = Runtime::builder().virtual_processors(2).build().run(|| {
        let met = Arc::new(AtomicUsize::new(0));
        // Each waits for the other without a call into the runtime.
        let meet = || {
            let met = Arc::clone(&met);
            spawn(move || {
                met.fetch_add(1, Ordering::SeqCst);
                while met.load(Ordering::SeqCst) < 2 {}
            })
        };
        let (a, b) = (meet(), meet());
        a.join().unwrap();
        b.join().unwrap();
        statistics()
    });
    // Either one moved, or they took turns by preemption; with two virtual processors nothing else
    // happens.
    let counted = counted.unwrap();
    assert!(counted.shared + counted.preempted > 0, "{counted:?}");
}

#[test]
fn an_unpark_comes_from_outside() {
    on_one(|| {
        let me = Microprocess::current();
        let outside = std::thread::spawn(move || me.unpark());
        park_timeout(Duration::from_secs(60));
        outside.join().unwrap();
    });
}
