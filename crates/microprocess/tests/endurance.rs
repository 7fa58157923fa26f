//! Long and hard runs: storms of signals, lack of kernel threads, forks, hours of load. Nothing may
//! be left behind afterwards.
#![expect(unsafe_code, reason = "the tests make raw system calls")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: process, watchdog, runtime, microprocess"
)]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{Read, pipe};
use std::sync::Arc;

use kyocho_microprocess::{Detection, JoinHandle, Runtime, sleep, spawn, statistics, yield_now};

#[path = "support/alone.rs"]
mod alone;
#[path = "endurance/mixed_load.rs"]
mod mixed_load;
#[path = "support/watchdog.rs"]
mod watchdog;
use alone::{alone, alone_judged, say};
use mixed_load::{MIXED, mixed_round, raw_sleep_ms};
use watchdog::{under_watchdog, under_watchdog_for};

fn on(count: usize, detection: Detection) -> Runtime {
    Runtime::builder().virtual_processors(count).detection(detection).build()
}

fn count_entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn kernel_threads() -> usize {
    count_entries("/proc/self/task")
}

fn descriptors() -> usize {
    count_entries("/proc/self/fd")
}

/// Microprocesses that all sleep in the kernel until the pipe is closed.
fn crowd(size: usize) -> (Vec<JoinHandle<()>>, std::io::PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    let reader = Arc::new(reader);
    let sleepers = (0..size).map(|_| {
        let reader = Arc::clone(&reader);
        spawn(move || assert_eq!((&*reader).read(&mut [0]).unwrap(), 0))
    });
    (sleepers.collect(), writer)
}

/// Lets a crowd sleep at the same time, and wakes it.
fn crowd_sleeps(size: usize) {
    let before = statistics();
    let (sleepers, writer) = crowd(size);
    while statistics().blocked - before.blocked < size as u64 {
        yield_now();
    }
    drop(writer);
    sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
}

#[test]
fn kernel_threads_of_a_crowd_end_after_it() {
    alone("kernel_threads_of_a_crowd_end_after_it", || {
        under_watchdog("pool", || {
            on(1, Detection::Auto)
                .run(|| {
                    // The runtime's own threads may begin after `main`.
                    let mut before = 0;
                    while kernel_threads() != before {
                        before = kernel_threads();
                        sleep(Duration::from_millis(50));
                    }
                    crowd_sleeps(100);
                    assert!(kernel_threads() > before + 100 / 2, "each had a kernel thread");
                    // Two spares may remain for good.
                    while kernel_threads() > before + 2 {
                        sleep(Duration::from_millis(50));
                    }
                    crowd_sleeps(100);
                })
                .unwrap();
        });
    });
}

/// Other threads look at a holder nearly all the time. A dismissed kernel thread is joined and its
/// descriptor closed all the same.
#[test]
fn descriptors_of_a_crowd_are_closed_under_load() {
    alone("descriptors_of_a_crowd_are_closed_under_load", || {
        under_watchdog("descriptors", || {
            on(2, Detection::Sentinel)
                .run(|| {
                    crowd_sleeps(100);
                    let stop = Arc::new(AtomicBool::new(false));
                    let load: Vec<_> = (0..4)
                        .map(|_| {
                            let stop = Arc::clone(&stop);
                            spawn(move || {
                                while !stop.load(Ordering::Relaxed) {
                                    raw_sleep_ms(1);
                                }
                            })
                        })
                        .collect();
                    // Some kernel threads have been dismissed, and at most a few of those are not
                    // joined yet. Each thread has a descriptor, and there are few other
                    // descriptors.
                    let most = kernel_threads();
                    while kernel_threads() > most - 20 || descriptors() > kernel_threads() + 20 {
                        sleep(Duration::from_millis(5));
                    }
                    stop.store(true, Ordering::Relaxed);
                    load.into_iter().for_each(|one| one.join().unwrap());
                })
                .unwrap();
        });
    });
}

#[test]
fn stopped_runtime_leaves_nothing_behind() {
    alone("stopped_runtime_leaves_nothing_behind", || {
        under_watchdog("nothing is left behind", || {
            for detection in [Detection::Sentinel, Detection::Bpf, Detection::Monitor] {
                let run = || on(2, detection).run(|| crowd_sleeps(50)).unwrap();
                // What is made once remains: the I/O port, and the BPF program in the host.
                run();
                let (threads, open) = (kernel_threads(), descriptors());
                (0..3).for_each(|_| run());
                assert_eq!(kernel_threads(), threads, "{detection:?}");
                assert_eq!(descriptors(), open, "{detection:?}");
            }
        });
    });
}

/// Takes privileges from this process, and the right to more than `more` further kernel threads.
fn limit_kernel_threads(more: usize) {
    const NOBODY: u32 = 65_534;
    // SAFETY: passes numbers.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: as above. The limit does not apply to the superuser.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        // SAFETY: as above. A process that changes its user may no longer inspect its own threads,
        // unless it is made dumpable.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }, 0);
    }
    set_limit((kernel_threads_of_user() + more) as libc::rlim_t);
}

fn set_limit(soft: libc::rlim_t) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one structure of this function.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit) }, 0);
    limit.rlim_cur = soft.min(limit.rlim_max);
    // SAFETY: reads one structure of this function.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) }, 0);
}

/// The number of kernel threads of all processes of this process's user, which the limit counts.
fn kernel_threads_of_user() -> usize {
    // SAFETY: has no arguments.
    let user = unsafe { libc::geteuid() };
    let owned = |path: &std::path::Path| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).is_ok_and(|data| data.uid() == user)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let tasks =
        |path: std::path::PathBuf| std::fs::read_dir(path.join("task")).map_or(0, Iterator::count);
    processes.filter(|path| owned(path)).map(tasks).sum()
}

/// Microprocesses can sleep in the kernel as long as there are kernel threads for them. The next
/// one keeps its virtual processor until it wakes. No microprocess is lost; once there are threads
/// again, all is as before.
#[test]
fn lack_of_kernel_threads_only_delays() {
    alone("lack_of_kernel_threads_only_delays", || {
        under_watchdog("want of kernel threads", || {
            let woken = Arc::new(AtomicUsize::new(0));
            on(1, Detection::Sentinel)
                .run(|| {
                    limit_kernel_threads(4);
                    let sleepers: Vec<_> = (0..40)
                        .map(|_| {
                            let woken = Arc::clone(&woken);
                            spawn(move || {
                                raw_sleep_ms(5);
                                woken.fetch_add(1, Ordering::SeqCst);
                            })
                        })
                        .collect();
                    sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
                    assert_eq!(woken.load(Ordering::SeqCst), 40);
                    assert!(
                        std::thread::Builder::new().spawn(|| ()).is_err() || kernel_threads() < 40
                    );
                    set_limit(libc::RLIM_INFINITY);
                    crowd_sleeps(40);
                })
                .unwrap();
        });
    });
}

extern "C" fn nothing(_signal: core::ffi::c_int) {}

/// Sends `count` signals to the threads of this process, as fast as one thread can: the runtime's
/// signal, and one with a handler.
fn storm(count: usize) -> f64 {
    // SAFETY: all zero is a valid value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler does nothing.
    let set = unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, core::ptr::null_mut()) };
    assert_eq!(set, 0);
    let process = std::process::id();
    let start = std::time::Instant::now();
    let mut sent = 0;
    while sent < count {
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let thread: i32 = task.file_name().to_string_lossy().parse().unwrap();
            for _ in 0..20 {
                let signal = if sent % 2 == 0 { libc::SIGURG } else { libc::SIGUSR2 };
                // SAFETY: passes numbers; if the thread has ended, the error is ignored.
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
                sent += 1;
            }
        }
    }
    sent as f64 / start.elapsed().as_secs_f64()
}

#[test]
fn a_storm_of_signals_over_a_mixed_load_loses_nothing() {
    alone("a_storm_of_signals_over_a_mixed_load_loses_nothing", || {
        for (processors, detection) in [
            (1, Detection::Sentinel),
            (2, Detection::Sentinel),
            (2, Detection::Bpf),
            (1, Detection::Monitor),
        ] {
            under_watchdog("storm", || {
                let over = Arc::new(AtomicBool::new(false));
                let told = Arc::clone(&over);
                let stormy = std::thread::spawn(move || {
                    let rate = storm(40_000);
                    told.store(true, Ordering::SeqCst);
                    rate
                });
                let rounds = on(processors, detection)
                    .run(|| {
                        let mut rounds = 0;
                        while !over.load(Ordering::SeqCst) || rounds == 0 {
                            assert_eq!(mixed_round(), MIXED);
                            rounds += 1;
                        }
                        rounds
                    })
                    .unwrap();
                let rate = stormy.join().unwrap();
                say(&format!(
                    "soak storm: {rate:.0} signals/s over {rounds} rounds, {detection:?}"
                ));
            });
        }
    });
}

/// Forks; the child runs `body` and ends. Returns how it ended, and what it wrote to standard
/// error.
fn in_fork(body: impl FnOnce()) -> (i32, String) {
    let (mut reader, writer) = pipe().unwrap();
    // SAFETY: the child does what is safe in a signal handler, or what the test examines.
    let process = unsafe { libc::fork() };
    if process == 0 {
        use std::os::fd::AsRawFd;
        // SAFETY: passes numbers.
        unsafe { libc::dup2(writer.as_raw_fd(), 2) };
        body();
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    let mut status = 0;
    // SAFETY: writes one number into a variable of this function.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    (status, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn the_child_of_a_fork_may_do_what_a_signal_handler_may() {
    alone("the_child_of_a_fork_may_do_what_a_signal_handler_may", || {
        under_watchdog("fork", || {
            on(2, Detection::Auto)
                .run(|| {
                    let (status, said) = in_fork(|| {
                        // SAFETY: writes a constant.
                        unsafe { libc::write(2, c"alive".as_ptr().cast(), 5) };
                    });
                    assert_eq!((status, said.as_str()), (0, "alive"));
                    let (status, said) = in_fork(|| {
                        let words = [c"/bin/echo".as_ptr(), core::ptr::null()];
                        // SAFETY: the path and the words end in zero bytes, and the list in a null
                        // pointer.
                        unsafe { libc::execv(words[0], words.as_ptr()) };
                    });
                    assert_eq!((status, said.as_str()), (0, ""));
                    // The parent continues.
                    assert_eq!(mixed_round(), MIXED);
                })
                .unwrap();
        });
    });
}

#[test]
fn child_of_a_fork_gets_an_error_for_using_microprocesses() {
    alone("child_of_a_fork_gets_an_error_for_using_microprocesses", || {
        under_watchdog("fork", || {
            on(1, Detection::Auto)
                .run(|| {
                    let uses: [fn(); 4] = [
                        yield_now,
                        || drop(spawn(|| ())),
                        || sleep(Duration::from_millis(1)),
                        || drop(on(1, Detection::Auto).run(|| ())),
                    ];
                    for misuse in uses {
                        let other = Arc::new(AtomicUsize::new(0));
                        let seen = Arc::clone(&other);
                        let neighbour = spawn(move || seen.fetch_add(1, Ordering::SeqCst));
                        let (status, said) = in_fork(misuse);
                        assert_ne!(status, 0);
                        assert!(said.contains("forked while a runtime ran"), "{said:?}");
                        neighbour.join().unwrap();
                        assert_eq!(other.load(Ordering::SeqCst), 1);
                    }
                })
                .unwrap();
        });
    });
}

#[test]
fn without_a_runtime_a_fork_is_an_ordinary_fork() {
    alone("without_a_runtime_a_fork_is_an_ordinary_fork", || {
        on(1, Detection::Auto).run(mixed_round).unwrap();
        let (status, said) = in_fork(|| {
            assert_eq!(on(2, Detection::Auto).run(mixed_round).unwrap(), MIXED);
        });
        assert_eq!(status, 0, "{said}");
    });
}

#[test]
fn judge_notices_a_misused_handle() {
    // Tests the judge itself: it must notice a process that fails.
    let mut judged = false;
    alone_judged(
        "judge_notices_a_misused_handle",
        || panic!("on purpose"),
        |said, status| judged = !status.success() && said.contains("on purpose"),
    );
    assert!(judged);
}

/// What a soak measures: memory in KiB, kernel threads, descriptors.
#[derive(Debug, Clone, Copy)]
struct Sample {
    memory_kib: usize,
    kernel_threads: usize,
    descriptors: usize,
}

impl Sample {
    fn take() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let memory_kib = line.split_whitespace().next().unwrap().parse().unwrap();
        Self { memory_kib, kernel_threads: kernel_threads(), descriptors: descriptors() }
    }
}

/// The greatest value of one figure.
fn most(samples: &[Sample], figure: fn(&Sample) -> usize) -> usize {
    samples.iter().map(figure).max().unwrap()
}

/// How long the soak lasts, unless `KYOCHO_SOAK_SECONDS` sets another time.
const SOAK_SECONDS: u64 = 180;
/// The sleepers at a time (20, 9 and some that return), and twice the spares of two virtual
/// processors: 64 each.
const SOAK_THREADS_MAX: usize = 300;

/// Measures memory, kernel threads and descriptors of a long mixed run: `scripts/soak`.
#[test]
#[ignore = "takes minutes: run by scripts/soak"]
fn soak() {
    alone("soak", || {
        let seconds = std::env::var("KYOCHO_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
        let seconds = seconds.unwrap_or(SOAK_SECONDS);
        under_watchdog_for(Duration::from_secs(seconds + 120), "soak", || {
            for detection in [Detection::Sentinel, Detection::Bpf] {
                let all = on(2, detection).run(|| soak_for(seconds / 2, detection)).unwrap();
                // What the first third needed must suffice for the rest.
                let (first, rest) = all.split_at(all.len() / 3);
                let memory_max_kib = most(first, |s| s.memory_kib) * 11 / 10 + 2048;
                assert!(most(rest, |s| s.memory_kib) <= memory_max_kib, "memory grows: {all:?}");
                assert!(
                    most(&all, |s| s.kernel_threads) <= SOAK_THREADS_MAX,
                    "threads grow: {all:?}"
                );
                let descriptors_max = SOAK_THREADS_MAX + 50;
                assert!(
                    most(&all, |s| s.descriptors) <= descriptors_max,
                    "descriptors grow: {all:?}"
                );
            }
        });
    });
}

fn soak_for(seconds: u64, detection: Detection) -> Vec<Sample> {
    const SAMPLES: u32 = 9;
    let sample = |_| {
        let end = std::time::Instant::now() + Duration::from_secs(seconds) / SAMPLES;
        let mut rounds = 0_u64;
        while std::time::Instant::now() < end {
            assert_eq!(mixed_round(), MIXED);
            crowd_sleeps(20);
            rounds += 1;
        }
        let sample = Sample::take();
        say(&format!("soak {detection:?}: {rounds} rounds; {sample:?}"));
        sample
    };
    (0..SAMPLES).map(sample).collect()
}
