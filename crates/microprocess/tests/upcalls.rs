//! The events of Paper 1: Blocked, Unblocked, Resumed, Preempted; and errors on a stack.
#![expect(unsafe_code, reason = "the tests make raw system calls")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use kyocho_microprocess::channel::bounded;
use kyocho_microprocess::{
    Builder, Detection, Microprocess, Priority, Runtime, Stackless, Statistics, Step, park,
    park_timeout, sleep, spawn, statistics, yield_now,
};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;
#[path = "support/late_page.rs"]
mod late_page;
use late_page::LatePage;
#[path = "upcalls/thread_locals.rs"]
mod thread_locals;

fn on(count: usize, detection: Detection) -> Runtime {
    Runtime::builder().virtual_processors(count).detection(detection).build()
}

fn raw_sleep_ms(ms: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

/// How often a virtual processor was taken from its running microprocess. A job that the user stops
/// and continues counts as asleep.
fn taken_off(counted: &Statistics) -> u64 {
    counted.preempted + counted.blocked
}

/// Lets microprocesses sleep in the kernel at the same time, while others run.
fn raw_sleepers(runtime: &Runtime, count: usize) -> Statistics {
    let asleep = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let counted = runtime
        .run(|| {
            let sleepers: Vec<_> = (0..count)
                .map(|_| {
                    let (asleep, most) = (Arc::clone(&asleep), Arc::clone(&most));
                    spawn(move || {
                        let now = asleep.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        raw_sleep_ms(100);
                        asleep.fetch_sub(1, Ordering::SeqCst);
                    })
                })
                .collect();
            for sleeper in sleepers {
                sleeper.join().unwrap();
            }
            statistics()
        })
        .unwrap();
    assert!(most.load(Ordering::SeqCst) > 1, "sleeps must overlap");
    counted
}

#[test]
fn raw_sleeps_on_one_virtual_processor_overlap() {
    under_watchdog("raw sleeps, sentinel", || {
        let counted = raw_sleepers(&on(1, Detection::Sentinel), 100);
        assert!(counted.blocked >= 50, "{counted:?}");
        assert!(counted.unblocked >= 50, "{counted:?}");
        assert!(counted.resumed >= 50, "{counted:?}");
    });
}

#[test]
fn raw_sleeps_overlap_under_the_monitor() {
    under_watchdog("raw sleeps, monitor", || {
        assert!(raw_sleepers(&on(1, Detection::Monitor), 20).blocked > 0);
        assert!(raw_sleepers(&on(2, Detection::Monitor), 20).blocked > 0);
    });
}

#[test]
fn without_detection_sleeps_are_serial() {
    under_watchdog("serial sleeps", || {
        let counted = on(1, Detection::Off).run(|| {
            let sleepers: Vec<_> = (0..3).map(|_| spawn(|| raw_sleep_ms(5))).collect();
            for sleeper in sleepers {
                sleeper.join().unwrap();
            }
            statistics()
        });
        assert_eq!(counted.unwrap().blocked, 0);
    });
}

#[test]
fn a_pipe_read_in_the_kernel_lets_the_writer_run() {
    under_watchdog("pipe", || {
        let read = on(1, Detection::Auto).run(|| {
            let mut ends = [0; 2];
            // SAFETY: the kernel writes two descriptors.
            assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
            let [from, to] = ends;
            let reader = spawn(move || {
                let mut byte = 0_u8;
                // SAFETY: reads one byte into a variable of this function.
                let count = unsafe { libc::read(from, (&raw mut byte).cast(), 1) };
                (count, byte)
            });
            yield_now();
            let byte = 42_u8;
            // SAFETY: writes one byte of this function.
            assert_eq!(unsafe { libc::write(to, (&raw const byte).cast(), 1) }, 1);
            let read = reader.join().unwrap();
            for end in ends {
                // SAFETY: a descriptor of this test, which is not used any more.
                unsafe { libc::close(end) };
            }
            read
        });
        assert_eq!(read.unwrap(), (1, 42));
    });
}

#[test]
fn owner_of_a_std_mutex_held_across_a_park_runs() {
    under_watchdog("std mutex", || {
        let total = on(1, Detection::Auto).run(|| {
            // A lock of the C library: its waiters wait for a futex, which the runtime does not
            // know.
            let mutex = Arc::new(std::sync::Mutex::new(0));
            let contenders: Vec<_> = (0..8)
                .map(|_| {
                    let mutex = Arc::clone(&mutex);
                    spawn(move || {
                        for _ in 0..10 {
                            let mut value = mutex.lock().unwrap();
                            yield_now();
                            *value += 1;
                        }
                    })
                })
                .collect();
            for contender in contenders {
                contender.join().unwrap();
            }
            *mutex.lock().unwrap()
        });
        assert_eq!(total.unwrap(), 80);
    });
}

#[test]
fn loop_without_calls_is_preempted() {
    under_watchdog("hog", || {
        for processors in [1, 2] {
            let stop = Arc::new(AtomicBool::new(false));
            let turns = Arc::new(AtomicU32::new(0));
            let counted = on(processors, Detection::Auto).run(|| {
                let hogs: Vec<_> = (0..processors)
                    .map(|_| {
                        let stop = Arc::clone(&stop);
                        spawn(move || while !stop.load(Ordering::Relaxed) {})
                    })
                    .collect();
                for _ in 0..10 {
                    sleep(Duration::from_millis(2));
                    turns.fetch_add(1, Ordering::Relaxed);
                }
                stop.store(true, Ordering::Relaxed);
                for hog in hogs {
                    hog.join().unwrap();
                }
                statistics()
            });
            assert_eq!(turns.load(Ordering::Relaxed), 10);
            let counted = counted.unwrap();
            assert!(processors == 2 || taken_off(&counted) >= 1);
        }
    });
}

#[test]
fn join_after_a_wait_that_timed_out_is_woken_by_a_concurrent_end() {
    let (_kept, nothing) = bounded::<()>(1);
    let waits: [&(dyn Fn(Duration) + Sync); 2] =
        [&sleep, &|limit| assert!(nothing.recv_timeout(limit).is_err())];
    for wait in waits {
        under_watchdog("join behind a wait", || {
            let joined = on(2, Detection::Auto).run(|| {
                for _ in 0..200 {
                    let stop = Arc::new(AtomicBool::new(false));
                    let seen = Arc::clone(&stop);
                    let busy = spawn(move || while !seen.load(Ordering::Relaxed) {});
                    wait(Duration::from_micros(100));
                    stop.store(true, Ordering::Relaxed);
                    busy.join().unwrap();
                }
            });
            joined.unwrap();
        });
    }
}

#[test]
fn the_urgent_run_while_a_hog_runs() {
    under_watchdog("urgent", || {
        let stop = Arc::new(AtomicBool::new(false));
        on(1, Detection::Auto)
            .run(|| {
                let urgent = Builder::new().priority(Priority::HIGHEST);
                let sleeper =
                    urgent.spawn(|| (0..20).for_each(|_| sleep(Duration::from_millis(1))));
                let hogs_stop = Arc::clone(&stop);
                let hog = spawn(move || while !hogs_stop.load(Ordering::Relaxed) {});
                sleeper.unwrap().join().unwrap();
                stop.store(true, Ordering::Relaxed);
                hog.join().unwrap();
            })
            .unwrap();
    });
}

#[test]
fn hogs_of_one_priority_share_their_virtual_processor() {
    under_watchdog("fair hogs", || {
        let counts: Vec<Arc<AtomicUsize>> = (0..3).map(|_| Arc::default()).collect();
        on(1, Detection::Auto)
            .run(|| {
                let hogs: Vec<_> = counts
                    .iter()
                    .map(|count| {
                        let count = Arc::clone(count);
                        // Each ends once all have run. None can if one keeps the virtual processor.
                        let all = counts.clone();
                        spawn(move || {
                            while all.iter().any(|count| count.load(Ordering::Relaxed) < 1000) {
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                        })
                    })
                    .collect();
                for hog in hogs {
                    hog.join().unwrap();
                }
            })
            .unwrap();
    });
}

#[test]
fn a_stackless_hog_is_asked_and_then_preempted() {
    struct Hog {
        polls: bool,
        stop: Arc<AtomicBool>,
        done: Microprocess,
    }
    impl Stackless for Hog {
        fn step(&mut self) -> Step {
            let me = Microprocess::current();
            while !self.stop.load(Ordering::Relaxed) {
                if self.polls && me.is_wanted() {
                    return Step::Yield;
                }
            }
            self.done.unpark();
            Step::Done
        }
    }
    under_watchdog("stackless hog", || {
        for polls in [true, false] {
            let counted = on(1, Detection::Auto).run(|| {
                let stop = Arc::new(AtomicBool::new(false));
                let done = Microprocess::current();
                let hog = Hog { polls, stop: Arc::clone(&stop), done };
                Builder::new().spawn_stackless(Box::new(hog)).unwrap();
                for _ in 0..5 {
                    sleep(Duration::from_millis(2));
                }
                stop.store(true, Ordering::Relaxed);
                while Arc::strong_count(&stop) > 1 {
                    park_timeout(Duration::from_millis(1));
                }
                statistics()
            });
            // On a busy host, even one that polls may be interrupted twice.
            assert!(polls || taken_off(&counted.unwrap()) > 0);
        }
    });
}

#[test]
fn a_hog_does_not_keep_the_runtime_from_ending() {
    under_watchdog("hog at the end", || {
        for processors in [1, 2] {
            on(processors, Detection::Auto)
                .run(|| {
                    for _ in 0..2 {
                        spawn(|| {
                            loop {
                                core::hint::spin_loop();
                            }
                        });
                        spawn(|| raw_sleep_ms(50));
                    }
                    sleep(Duration::from_millis(20));
                })
                .unwrap();
        }
    });
}

#[test]
fn page_fault_that_waits_passes_the_processor_on() {
    let Some(page) = LatePage::new() else {
        return kyocho_sys::skip::skip("a_page_fault_that_waits", "no userfaultfd here");
    };
    under_watchdog("page fault", || {
        let counted = on(1, Detection::Sentinel).run(|| {
            let address = page.address();
            // SAFETY: reads a mapped byte. The kernel waits until it is filled.
            let touching = spawn(move || unsafe { (address as *const u8).read_volatile() });
            yield_now();
            // Only another kernel thread can get here: the first one sleeps in the fault.
            page.fill();
            assert_eq!(touching.join().unwrap(), 0);
            statistics()
        });
        assert!(counted.unwrap().blocked > 0);
    });
}

#[test]
fn a_storm_of_signals_harms_nothing() {
    under_watchdog("storm", || {
        let sum = on(2, Detection::Auto).run(|| {
            let stop = Arc::new(AtomicBool::new(false));
            let stormy = Arc::clone(&stop);
            let storm = std::thread::spawn(move || {
                let process = std::process::id() as i32;
                while !stormy.load(Ordering::Relaxed) {
                    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
                        let tid: i32 = task.file_name().to_string_lossy().parse().unwrap();
                        // SAFETY: passes numbers; if the thread has ended, the error is ignored.
                        unsafe { libc::syscall(libc::SYS_tgkill, process, tid, libc::SIGURG) };
                    }
                }
            });
            let sum: usize = (0..50)
                .map(|_| {
                    let handles: Vec<_> = (0..100)
                        .map(|i| {
                            spawn(move || {
                                yield_now();
                                vec![i; 10].into_iter().sum::<usize>()
                            })
                        })
                        .collect();
                    handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>()
                })
                .sum();
            stop.store(true, Ordering::Relaxed);
            storm.join().unwrap();
            sum
        });
        assert_eq!(sum.unwrap(), 50 * 10 * 4950);
    });
}

#[test]
fn many_wakes_between_two_virtual_processors_arrive() {
    under_watchdog("ring", || {
        let turns = on(2, Detection::Auto).run(|| {
            let turns = Arc::new(AtomicUsize::new(0));
            let members: Vec<_> = (0..50)
                .map(|_| {
                    let turns = Arc::clone(&turns);
                    spawn(move || {
                        for _ in 0..100 {
                            park();
                            turns.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let wakers: Vec<_> = members
                .iter()
                .map(|member| {
                    let (member, turns) = (member.microprocess(), Arc::clone(&turns));
                    spawn(move || {
                        while turns.load(Ordering::Relaxed) < 5000 {
                            member.unpark();
                            yield_now();
                        }
                    })
                })
                .collect();
            for handle in members.into_iter().chain(wakers) {
                handle.join().unwrap();
            }
            turns.load(Ordering::Relaxed)
        });
        assert_eq!(turns.unwrap(), 5000);
    });
}

/// Set for a child process of this test program, which runs one of its tests.
const CHILD: &str = "KYOCHO_TEST_CHILD";

#[inline(never)]
fn recurse(depth: u64) -> u64 {
    let frame = core::hint::black_box([depth; 32]);
    if depth == 0 { 0 } else { recurse(depth - 1) + frame[7] }
}

#[test]
fn a_stack_overflow_names_the_microprocess() {
    if std::env::var_os(CHILD).is_some() {
        let deep = Builder::new().name("deep one");
        on(1, Detection::Off)
            .run(|| deep.spawn(|| recurse(1 << 20)).unwrap().join().unwrap())
            .unwrap();
        return;
    }
    under_watchdog("overflow", || {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_stack_overflow_names_the_microprocess", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("stack overflow in microprocess"), "{text}");
        assert!(text.contains("deep one: 64 KiB"), "{text}");
    });
}
