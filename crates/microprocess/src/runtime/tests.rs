//! What the next run reuses of a run: its shared part, its virtual processors and the slots of its
//! microprocesses. Nothing that happened in the run affects the next one.

use core::ptr;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Mutex;

use kyocho_sys::prim::thread;

use crate::data::killed::Killed;
use crate::processor::record::{Record, State, remote};
use crate::schedule::mask;
use crate::{Detection, JoinHandle, Outside, Runtime, park, sleep, spawn, statistics, yield_now};

/// A runtime whose options differ from those of all other tests: each test passes another `kind`. A
/// run reuses parts only of an earlier run with the same options, so no other test interferes.
fn runtime(kind: u64) -> Runtime {
    let cpu_yield_max = Duration::from_nanos(123_456_700 + kind);
    // Not by sentinels: if the host is busy, a thread of the lowest class takes long to end.
    let builder = Runtime::builder().virtual_processors(2).detection(Detection::Monitor);
    builder.cpu_yield_max(cpu_yield_max).build()
}

/// The addresses of the shared part and of the virtual processors of the caller's run.
fn parts() -> Vec<usize> {
    let section = mask();
    let shared = section.vp.shared();
    section.leave();
    let vps = shared.vps().iter().map(|vp| ptr::from_ref(*vp).addr());
    vps.chain([ptr::from_ref(shared).addr()]).collect()
}

fn record<T>(handle: &JoinHandle<T>) -> &'static Record {
    handle.microprocess().record()
}

/// Yields until the microprocess of `handle` is parked.
fn await_parked<T>(handle: &JoinHandle<T>) {
    while record(handle).state.get() != State::Parked {
        yield_now();
    }
}

/// Spawns and joins some microprocesses and leaves one that sleeps; returns the addresses of the
/// run's parts.
fn short_run(runtime: &Runtime) -> Vec<usize> {
    const WORKERS: u64 = 10;
    let main = || {
        let sleeper = spawn(|| sleep(Duration::from_secs(1 << 30)));
        let workers: Vec<_> = (0..WORKERS).map(|number| spawn(move || number)).collect();
        let sum: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(sum, WORKERS * (WORKERS - 1) / 2);
        await_parked(&sleeper);
        let counted = statistics();
        assert_eq!((counted.spawned, counted.ended), (WORKERS + 2, WORKERS), "counts begin anew");
        parts()
    };
    runtime.run(main).unwrap()
}

#[test]
fn a_thousand_runs_share_what_four_at_a_time_need() {
    const SIDE_BY_SIDE: usize = 4;
    const RUNS: usize = 250;
    let seen = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                let runtime = runtime(1);
                let mine: BTreeSet<usize> = (0..RUNS).flat_map(|_| short_run(&runtime)).collect();
                seen.lock().unwrap().extend(mine);
            });
        }
    });
    let seen = seen.into_inner().unwrap().len();
    assert!(seen <= SIDE_BY_SIDE * 3, "{seen} parts");
}

#[test]
fn what_handles_of_an_ended_run_do_does_not_reach_the_next_one() {
    let runtime = runtime(2);
    let (parts_before, ended) = runtime
        .run(|| {
            let ended = spawn(|| 5);
            while !ended.is_finished() {
                yield_now();
            }
            (parts(), ended)
        })
        .unwrap();
    ended.microprocess().unpark();
    ended.microprocess().set_virtual_processor(Some(1));
    let parts_after = runtime
        .run(|| {
            ended.microprocess().unpark();
            parts()
        })
        .unwrap();
    assert_eq!(parts_before, parts_after, "the handle keeps nothing from being used again");
    assert_eq!(short_run(&runtime), parts_before);
    assert_eq!(ended.join().unwrap(), 5);
    assert_eq!(short_run(&runtime), parts_before);
}

#[test]
fn handles_tell_in_the_next_run_how_the_former_ended() {
    let runtime = runtime(3);
    let (parts_before, finished, parked) = runtime
        .run(|| {
            let (finished, parked) = (spawn(|| 7), spawn(park));
            while !finished.is_finished() {
                yield_now();
            }
            await_parked(&parked);
            (parts(), finished, parked)
        })
        .unwrap();
    let main = || {
        // One of them uses the slot of the microprocess that was parked.
        let others: Vec<_> = (0..10).map(|_| spawn(|| ())).collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(parked.is_finished(), "it never runs again");
        assert!(parked.join().unwrap_err().is::<Killed>());
        assert_eq!(finished.join().unwrap(), 7);
        parts()
    };
    assert_eq!(runtime.run(main).unwrap(), parts_before);
}

#[test]
fn a_promise_of_an_ended_run_is_none_of_the_next() {
    let runtime = runtime(4);
    let (parts_before, promise) = runtime.run(|| (parts(), Outside::expect())).unwrap();
    let mut parts_after = Vec::new();
    let deadlock = runtime.run(|| {
        parts_after = parts();
        park();
    });
    assert!(deadlock.is_err(), "nobody outside is expected there");
    assert_ne!(parts_before, parts_after);
    drop(promise);
    assert_eq!(short_run(&runtime), parts_after);
}

/// Parks enough microprocesses to reuse the slot of `former`, and wakes them from a kernel thread.
/// Returns whether one of them used that slot.
fn wake_the_next_user(former: &'static Record) -> bool {
    const SLOTS: usize = 100;
    let sleepers: Vec<_> = (0..SLOTS).map(|_| spawn(park)).collect();
    sleepers.iter().for_each(await_parked);
    let next = sleepers.iter().any(|sleeper| ptr::eq(record(sleeper), former));
    let outside = Outside::expect();
    let wanted: Vec<_> = sleepers.iter().map(JoinHandle::microprocess).collect();
    let waker = thread::spawn(move || {
        wanted.iter().for_each(crate::Microprocess::unpark);
        drop(outside);
    });
    sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    waker.join().unwrap();
    next
}

#[test]
fn a_message_to_a_stopped_virtual_processor_costs_the_next_user_of_the_slot_no_wake() {
    // With other options: otherwise the next run would use the same virtual processors, and their
    // holders would find the message.
    let (runtime, next_runtime) = (runtime(5), runtime(6));
    // Another test may take the slot first.
    for _ in 0..1000 {
        let former = runtime
            .run(|| {
                let parked = spawn(park);
                await_parked(&parked);
                record(&parked)
            })
            .unwrap();
        // Like a kernel thread that saw the microprocess alive and posts too late.
        former.post(remote::UNPARK);
        if next_runtime.run(|| wake_the_next_user(former)).expect("all of them are woken") {
            return;
        }
    }
    unreachable!("somebody else had the slot a thousand times");
}
