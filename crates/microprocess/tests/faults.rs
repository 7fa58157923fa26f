//! Failing system calls: every run either works or reports the failure, and none hangs. In a
//! separate program, since there is one fault plane for each process.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::panic::AssertUnwindSafe;
use std::io::{Read, Write, pipe};
use std::panic::catch_unwind;
use std::sync::Mutex;

use kyocho_microprocess::{Builder, Detection, Runtime, spawn, statistics, yield_now};
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{Call, Kinds, sweep};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// One test at a time, since there is one fault plane for each process.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a few microprocesses with all stack sizes. Returns the sum of their results, or `None` if
/// the runtime could not start.
fn scenario(detection: Detection) -> Option<u64> {
    let runtime = Runtime::builder().virtual_processors(2).detection(detection).build();
    let main = || {
        let handles: Vec<_> = [1_usize, 100 << 10, 500 << 10]
            .into_iter()
            .map(|stack| {
                Builder::new().stack_bytes(stack).spawn(|| {
                    yield_now();
                    1
                })
            })
            .collect();
        // Those that were refused do the work here.
        handles.into_iter().map(|handle| handle.map_or(1, |handle| handle.join().unwrap())).sum()
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.run(main)));
    match outcome {
        Ok(sum) => Some(sum.unwrap()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("");
            assert!(text.contains("to start a runtime") || text.contains("main stack"), "{text}");
            None
        }
    }
}

#[test]
fn run_succeeds_or_reports_the_error_whichever_system_call_fails() {
    let _turn = TURN.lock();
    let calls = [Call::ThreadStart, Call::Mmap, Call::Madvise, Call::Mprotect, Call::Open];
    let others = [Call::Affinity, Call::Scheduler, Call::Signal, Call::Kill, Call::Read];
    let usual = calls.into_iter().chain(others).map(|call| (call, Detection::Auto));
    under_watchdog("faults", || {
        // Without the BPF program, another source is used.
        for (call, detection) in usual.chain([(Call::Bpf, Detection::Bpf)]) {
            // Runs differ in their number of calls. The sweep ends at the first run that met no
            // fault.
            let met = sweep(Kinds::Only(call), Errno::NOMEM, 100, |nth| {
                let sum = scenario(detection);
                assert!(sum.is_none_or(|sum| sum == 3), "{call:?} {nth}");
            });
            let always = matches!(call, Call::ThreadStart | Call::Open | Call::Bpf);
            assert!(met > 0 || !always, "{call:?}");
        }
        assert_eq!(scenario(Detection::Auto), Some(3));
        assert_eq!(scenario(Detection::Bpf), Some(3));
    });
}

/// A microprocess sleeps in the kernel until its sleep was noticed.
fn is_seen_asleep(runtime: &Runtime) {
    let (mut reader, mut writer) = pipe().unwrap();
    let slept = runtime.run(|| {
        let sleeper = spawn(move || reader.read_exact(&mut [0]).unwrap());
        while statistics().blocked == 0 {
            yield_now();
        }
        writer.write_all(&[7]).unwrap();
        sleeper.join().unwrap();
    });
    assert_eq!(slept, Ok(()));
}

/// A sleeping kernel thread is observed through a file. If it could not be opened when the thread
/// began, it must be opened later.
#[test]
fn failed_observation_of_a_holder_is_repeated() {
    let _turn = TURN.lock();
    under_watchdog("the holder is observed later", || {
        for detection in [Detection::Sentinel, Detection::Monitor] {
            // What it asks of the host meanwhile is not refused; otherwise it would do without.
            let runtime = Runtime::builder().virtual_processors(1).detection(detection).build();
            sweep(Kinds::Only(Call::Open), Errno::PERM, 100, |_| is_seen_asleep(&runtime));
        }
    });
}
