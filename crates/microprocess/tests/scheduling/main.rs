//! User schedulers, events, changes from outside, and affinity, on the real runtime.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]
#![expect(unsafe_code, reason = "the tests make raw system calls")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use kyocho_microprocess::scheduler::{
    self, Arrival, EarliestDeadline, Entry, Event, EventKind, Fault, Feedback, FixedPriority, List,
    RoundRobin, Scheduler, Slice, Throughput,
};
use kyocho_microprocess::{
    Builder, Deadline, Detection, Microprocess, Priority, Runtime, RuntimeBuilder, channel, sleep,
    spawn, yield_now,
};

mod c_library;
mod placement;
#[path = "../support/quiet.rs"]
mod quiet;
#[path = "../support/watchdog.rs"]
mod watchdog;
mod woken;
use quiet::quiet;
use watchdog::under_watchdog;

fn on(count: usize) -> RuntimeBuilder {
    Runtime::builder().virtual_processors(count).detection(Detection::Auto)
}

fn raw_sleep_ms(ms: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

type Make = fn(usize) -> Box<dyn Scheduler>;

fn policies() -> [(&'static str, Make); 5] {
    [
        ("round robin", |_| Box::new(RoundRobin::new())),
        ("fixed priority", |_| Box::new(FixedPriority::new())),
        ("feedback", |_| Box::new(Feedback::new())),
        ("earliest deadline first", |_| Box::new(EarliestDeadline::new())),
        ("throughput", |_| Box::new(Throughput::new())),
    ]
}

/// Spawns, rendezvous, sleeps in the kernel and in the runtime, and a loop that never calls the
/// runtime: 5050 + 100.
fn mixture() -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let hog = {
        let stop = Arc::clone(&stop);
        spawn(move || while !stop.load(Ordering::Relaxed) {})
    };
    let sleepers: Vec<_> = (0..10)
        .map(|number| {
            spawn(move || {
                raw_sleep_ms(3);
                sleep(Duration::from_millis(2));
                number
            })
        })
        .collect();
    let (sender, receiver) = channel::rendezvous();
    let adders: Vec<_> = (1..=100_u64)
        .map(|number| {
            let sender = sender.clone();
            spawn(move || {
                yield_now();
                sender.send(number).unwrap();
            })
        })
        .collect();
    drop(sender);
    let sum: u64 = receiver.into_iter().sum();
    let slept: u64 = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap() + 5).sum();
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    stop.store(true, Ordering::Relaxed);
    hog.join().unwrap();
    sum + slept + 5
}

#[test]
fn every_policy_runs_everything() {
    under_watchdog("policies", || {
        for (name, make) in policies() {
            for processors in [1, 2] {
                let (sum, report) = on(processors)
                    .scheduler(make)
                    .build()
                    .run(|| (mixture(), scheduler::report()))
                    .unwrap();
                assert_eq!(sum, 5150, "{name}");
                assert_eq!((report.name, report.fault), (Some(name), None));
            }
        }
    });
}

#[test]
fn schedulers_are_replaced_while_everything_runs() {
    under_watchdog("replace", || {
        for processors in [1, 2] {
            on(processors)
                .build()
                .run(|| {
                    assert_eq!(scheduler::report().name, None);
                    let workers: Vec<_> = (0..4).map(|_| spawn(mixture)).collect();
                    for (name, make) in policies().into_iter().cycle().take(20) {
                        scheduler::install(make);
                        assert_eq!(scheduler::report().name, Some(name));
                        yield_now();
                    }
                    scheduler::remove();
                    let sums: Vec<u64> = workers.into_iter().map(|w| w.join().unwrap()).collect();
                    assert_eq!(sums, [5150; 4]);
                    let report = scheduler::report();
                    assert_eq!((report.name, report.fault), (None, None));
                })
                .unwrap();
        }
    });
}

#[test]
fn the_earliest_deadline_runs_first() {
    under_watchdog("deadlines", || {
        assert_eq!(deadlines_in_the_order_of_running(), [10, 20, 30]);
    });
}

fn deadlines_in_the_order_of_running() -> Vec<u64> {
    let runtime = on(1).scheduler(|_| Box::new(EarliestDeadline::new())).build();
    let run = runtime.run(|| {
        let now = Deadline::now();
        // Has an earlier deadline than all of them, until it waits.
        Microprocess::current().set_parameter(now.ns());
        yield_now();
        let log = Arc::new(Mutex::new(Vec::new()));
        let handles: Vec<_> = [30_u64, 10, 20]
            .into_iter()
            .map(|seconds| {
                let log = Arc::clone(&log);
                let at = Deadline::after(Duration::from_secs(seconds)).unwrap_or(now);
                let builder = Builder::new().deadline(at);
                builder.spawn(move || log.lock().unwrap().push(seconds)).unwrap()
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        log.lock().unwrap().clone()
    });
    run.unwrap()
}

/// Round robin that breaks a rule after some picks.
struct Broken {
    list: List,
    turns: u32,
    last: Option<Entry>,
    how: Fault,
}

impl Scheduler for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn enqueue(&mut self, entry: Entry, _arrival: Arrival, _now_ns: u64) {
        self.list.push_back(entry);
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.turns += 1;
        match self.how {
            Fault::Lost if self.turns >= 100 => None,
            Fault::NotRunnable if self.turns == 100 => self.last,
            Fault::Panicked if self.turns == 100 => {
                yield_now();
                None
            }
            _ => {
                let next = self.list.pop_front();
                // Picking none would be another fault.
                self.last = next.or(self.last);
                next
            }
        }
    }

    fn remove(&mut self, entry: Entry) {
        self.list.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.list.first().map(Entry::priority)
    }

    fn preempts(&self, _running: Entry, slice: Slice, _now_ns: u64) -> bool {
        slice == Slice::Over && !self.list.is_empty()
    }
}

#[test]
fn broken_scheduler_is_removed_and_no_microprocess_is_lost() {
    quiet("a user scheduler must not suspend");
    under_watchdog("broken", || {
        for how in [Fault::Lost, Fault::NotRunnable, Fault::Panicked] {
            for processors in [1, 2] {
                let (sum, report) = on(processors)
                    .scheduler(move |_| {
                        Box::new(Broken { list: List::new(), turns: 0, last: None, how })
                    })
                    .build()
                    .run(|| {
                        let sum: u64 = (0..4).map(|_| mixture()).sum();
                        (sum, scheduler::report())
                    })
                    .unwrap();
                assert_eq!(sum, 4 * 5150, "{how}");
                // An entry that is picked again may be runnable by chance. Then the list is broken,
                // and loses an entry.
                let by_chance = how == Fault::NotRunnable && report.fault == Some(Fault::Lost);
                assert!(report.fault == Some(how) || by_chance, "{how}: {:?}", report.fault);
            }
        }
    });
}

/// Fixed priorities that count events, and check the paper's rules for their arguments.
struct Observer {
    inner: FixedPriority,
    seen: Arc<[AtomicUsize; EventKind::COUNT]>,
}

impl Scheduler for Observer {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, now_ns: u64) {
        self.inner.enqueue(entry, arrival, now_ns);
    }

    fn pick(&mut self, now_ns: u64) -> Option<Entry> {
        self.inner.pick(now_ns)
    }

    fn remove(&mut self, entry: Entry) {
        self.inner.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.inner.best()
    }

    fn preempts(&self, running: Entry, slice: Slice, now_ns: u64) -> bool {
        self.inner.preempts(running, slice, now_ns)
    }

    fn event(&mut self, event: &Event, now_ns: u64) {
        assert!(now_ns > 0);
        let is_resumed = event.kind == EventKind::Resumed;
        assert_eq!(event.bound.is_none(), is_resumed);
        let registers = event.bound.and_then(|bound| bound.registers);
        let kinds = [EventKind::Blocked, EventKind::Unblocked, EventKind::Preempted];
        if kinds.contains(&event.kind) {
            assert!(registers.is_some_and(|found| found.instruction != 0 && found.stack != 0));
        }
        self.seen[event.kind as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_event_reaches_the_user_scheduler() {
    under_watchdog("events", || {
        let seen: Arc<[AtomicUsize; EventKind::COUNT]> = Arc::default();
        let count = |kind: EventKind| seen[kind as usize].load(Ordering::Relaxed);
        let theirs = Arc::clone(&seen);
        let make = move |_| -> Box<dyn Scheduler> {
            Box::new(Observer { inner: FixedPriority::new(), seen: Arc::clone(&theirs) })
        };
        on(1)
            .scheduler(make)
            .build()
            .run(|| {
                // More urgent than the hogs, whatever their priority.
                Microprocess::current().set_priority(Priority::new(50).unwrap());
                let stop = Arc::new(AtomicBool::new(false));
                let hog = || {
                    let stop = Arc::clone(&stop);
                    let builder = Builder::new().priority(Priority::NORMAL);
                    builder.spawn(move || while !stop.load(Ordering::Relaxed) {}).unwrap()
                };
                let hogs = [hog(), hog()];
                let urgent = Builder::new().priority(Priority::HIGHEST);
                let urgent = urgent.spawn(|| (0..3).for_each(|_| raw_sleep_ms(2))).unwrap();
                let modest = {
                    let stop = Arc::clone(&stop);
                    spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            raw_sleep_ms(5);
                            // A kernel thread notices at its next call that it lost its virtual
                            // processor.
                            yield_now();
                        }
                    })
                };
                urgent.join().unwrap();
                // It falls asleep when it is more urgent than the hogs, and returns when it is less
                // urgent.
                while count(EventKind::UnblockedPreempted) == 0 || count(EventKind::Preempted) == 0
                {
                    modest.microprocess().set_priority(Priority::new(40).unwrap());
                    sleep(Duration::from_millis(2));
                    modest.microprocess().set_priority(Priority::LOWEST);
                    sleep(Duration::from_millis(10));
                }
                stop.store(true, Ordering::Relaxed);
                hogs.into_iter().for_each(|hog| hog.join().unwrap());
                modest.join().unwrap();
                assert_eq!(scheduler::report().fault, None);
            })
            .unwrap();
        for kind in [EventKind::Blocked, EventKind::Preempted, EventKind::Resumed] {
            assert!(count(kind) > 0, "{kind}");
        }
        assert!(count(EventKind::Unblocked) + count(EventKind::UnblockedPreempted) > 0);
        assert!(count(EventKind::Changed) >= 2);
    });
}

#[test]
fn a_runnable_microprocess_is_queued_anew_when_its_priority_changes() {
    under_watchdog("changed", || {
        on(1)
            .build()
            .run(|| {
                let log = Arc::new(Mutex::new(Vec::new()));
                let [a, b] = ['a', 'b'].map(|name| {
                    let log = Arc::clone(&log);
                    spawn(move || log.lock().unwrap().push(name))
                });
                b.microprocess().set_priority(Priority::new(32).unwrap());
                // Takes effect at once: the more urgent one has run before this continues.
                assert_eq!(log.lock().unwrap().first(), Some(&'b'));
                assert_eq!(b.microprocess().priority().level(), 32);
                a.join().unwrap();
                b.join().unwrap();
            })
            .unwrap();
    });
}

#[test]
fn lowering_oneself_lets_the_more_urgent_run_at_once() {
    under_watchdog("lowered", || {
        on(1)
            .build()
            .run(|| {
                let ran = Arc::new(AtomicBool::new(false));
                let other = {
                    let ran = Arc::clone(&ran);
                    spawn(move || ran.store(true, Ordering::Relaxed))
                };
                Microprocess::current().set_priority(Priority::LOWEST);
                assert!(ran.load(Ordering::Relaxed));
                other.join().unwrap();
            })
            .unwrap();
    });
}

/// How often two loops overtake each other on one virtual processor. Each ends after `enough`
/// times, or after `longest`.
fn times_outrun(slice: Duration, enough: usize, longest: Duration) -> usize {
    let runtime = on(1).time_slice(slice).build();
    let count = AtomicUsize::new(0);
    let spin = || {
        let begin = std::time::Instant::now();
        let mut outrun = 0;
        let mut next = count.load(Ordering::Relaxed);
        while outrun < enough && begin.elapsed() < longest {
            let now = count.fetch_add(1, Ordering::Relaxed);
            outrun += usize::from(now != next);
            next = now + 1;
        }
        outrun
    };
    let both = runtime.run(|| {
        assert_eq!(kyocho_microprocess::report().time_slice, slice);
        kyocho_microprocess::scope(|scope| {
            let loops = [scope.spawn(spin), scope.spawn(spin)];
            loops.map(|spinning| spinning.join().unwrap()).iter().sum()
        })
    });
    both.unwrap()
}

#[test]
fn equals_take_turns_by_the_time_slice_that_was_asked_for() {
    under_watchdog("equals_take_turns_by_the_time_slice_that_was_asked_for", || {
        // The last time is at the end of the other one.
        assert!(times_outrun(Duration::from_millis(2), 5, Duration::from_secs(10)) >= 9);
        // At most once each, if the host has taken the CPU for a second.
        assert!(times_outrun(Duration::from_secs(1), 5, Duration::from_millis(30)) <= 2);
    });
}
