//! The purposes of inheritance, one scenario for each test, and where it must not go wrong.

use core::time::Duration;
use std::sync::Arc;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;

use super::{LOCKS, at, on_one, settle};
use crate::processor::record::Kind;
use crate::runtime::control::find;
use crate::{Barrier, Microprocess, Mutex, Priority, Runtime, RwLock};
use crate::{schedule, sleep, spawn, yield_now};

/// Longer than any microprocess waits that is served by priority. If this time passes, the order of
/// events is wrong.
const GIVE_UP_NS: u64 = 20_000_000_000;

/// Spins without a call into the runtime until `stop` is set.
fn spin_until(stop: &AtomicBool) {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while !stop.load(Ordering::Relaxed) && monotonic_ns() < end_ns {}
}

/// Plays the scenario of Mars Pathfinder: low locks, high waits, medium runs.
fn pathfinder(
    lock_and_work: impl FnOnce(&dyn Fn()) + Send + 'static,
    wait: impl FnOnce() + Send + 'static,
) {
    on_one(move || {
        let clock = Arc::new(AtomicU32::new(0));
        let held = Arc::new(AtomicBool::new(false));
        let medium_ran = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let low = {
            let (held, clock, medium_ran) =
                (Arc::clone(&held), Arc::clone(&clock), Arc::clone(&medium_ran));
            at(10).spawn(move || {
                let work = || {
                    held.store(true, Ordering::SeqCst);
                    // The medium one interrupts this work, and then does not stop by itself.
                    spin_until(&medium_ran);
                    clock.fetch_add(1, Ordering::SeqCst);
                };
                lock_and_work(&work);
            })
        };
        while !held.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        let medium = {
            let (medium_ran, stop, clock) =
                (Arc::clone(&medium_ran), Arc::clone(&stop), Arc::clone(&clock));
            at(20).spawn(move || {
                medium_ran.store(true, Ordering::SeqCst);
                spin_until(&stop);
                clock.fetch_add(1, Ordering::SeqCst)
            })
        };
        while !medium_ran.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        let high = {
            let (stop, clock) = (Arc::clone(&stop), Arc::clone(&clock));
            at(40).spawn(move || {
                wait();
                stop.store(true, Ordering::SeqCst);
                clock.fetch_add(1, Ordering::SeqCst)
            })
        };
        // Low ends its work (0), high continues (1), and only then medium ends (2).
        assert_eq!(high.unwrap().join().unwrap(), 1);
        assert_eq!(medium.unwrap().join().unwrap(), 2);
        low.unwrap().join().unwrap();
    });
}

#[test]
fn mutex_is_acquired_although_a_medium_priority_spins() {
    let mutex = Arc::new(Mutex::new(()));
    let other = Arc::clone(&mutex);
    pathfinder(
        move |work| {
            let _guard = mutex.lock().unwrap();
            work();
        },
        move || drop(other.lock().unwrap()),
    );
}

#[test]
fn write_lock_is_acquired_although_a_medium_priority_spins() {
    let lock = Arc::new(RwLock::new(()));
    let other = Arc::clone(&lock);
    pathfinder(
        move |work| {
            let _guard = lock.write().unwrap();
            work();
        },
        move || drop(other.read().unwrap()),
    );
}

#[test]
fn joined_microprocess_runs_although_a_medium_priority_spins() {
    on_one(|| {
        let clock = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let tick = |clock: &Arc<AtomicU32>| {
            let clock = Arc::clone(clock);
            move || clock.fetch_add(1, Ordering::SeqCst)
        };
        let (low_ticks, medium_ticks, high_ticks) = (tick(&clock), tick(&clock), tick(&clock));
        let high = at(40).spawn(move || {
            let medium_ran = Arc::new(AtomicBool::new(false));
            let low = at(10).spawn(low_ticks).unwrap();
            let (ran, stopped) = (Arc::clone(&medium_ran), Arc::clone(&stop));
            let medium = at(20).spawn(move || {
                ran.store(true, Ordering::SeqCst);
                spin_until(&stopped);
                medium_ticks()
            });
            while !medium_ran.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
            assert_eq!(low.join().unwrap(), 0);
            assert_eq!(high_ticks(), 1);
            stop.store(true, Ordering::SeqCst);
            assert_eq!(medium.unwrap().join().unwrap(), 2);
        });
        high.unwrap().join().unwrap();
    });
}

#[test]
fn wait_that_times_out_withdraws_its_donation() {
    on_one(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock().unwrap();
        let me = schedule::current();
        let asked = me.level();
        let other = Arc::clone(&mutex);
        let waits = at(50).spawn(move || other.lock_timeout(Duration::from_millis(20)).is_err());
        settle();
        assert_eq!((me.level(), me.effective_level()), (50, 50));
        assert!(waits.unwrap().join().unwrap());
        assert_eq!((me.level(), me.effective_level()), (asked, asked));
        drop(guard);
    });
}

#[test]
fn spawn_uses_the_spawners_own_priority_and_not_an_inherited_one() {
    on_one(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock().unwrap();
        let other = Arc::clone(&mutex);
        let waits = at(50).spawn(move || drop(other.lock().unwrap())).unwrap();
        settle();
        let child = spawn(|| Microprocess::current().priority());
        drop(guard);
        assert_eq!(child.join().unwrap(), Priority::NORMAL);
        waits.join().unwrap();
    });
}

#[test]
fn a_ring_of_waits_ends_and_is_a_deadlock() {
    let deadlock = Runtime::builder().virtual_processors(2).build().run(|| {
        let locks: Arc<[Mutex<()>; 3]> = Arc::new(Default::default());
        let all_hold = Arc::new(Barrier::new(3));
        let ring: Vec<_> = (0..3)
            .map(|first| {
                let (locks, all_hold) = (Arc::clone(&locks), Arc::clone(&all_hold));
                at(10 + first as u8).spawn(move || {
                    let _held = locks[first].lock().unwrap();
                    all_hold.wait();
                    drop(locks[(first + 1) % 3].lock());
                })
            })
            .collect();
        for waits in ring {
            waits.unwrap().join().unwrap();
        }
    });
    assert_eq!(deadlock.unwrap_err().waiting.len(), 4);
}

/// Sleeps until `who` runs at `level`; fails after a long time.
pub(super) fn await_level(who: &Microprocess, level: u8) {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while who.effective_priority().level() != level {
        assert!(
            monotonic_ns() < end_ns,
            "the level is {} instead of {level}",
            who.effective_priority().level()
        );
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn change_from_outside_is_passed_along_the_chain() {
    on_one(|| {
        let (gate, locks) = (AtomicBool::new(false), [Mutex::new(()), Mutex::new(())]);
        let (gate, locks) = (Arc::new(gate), Arc::new(locks));
        let (wait_here, both) = (Arc::clone(&gate), Arc::clone(&locks));
        let low = at(10).spawn(move || {
            let _held = both[0].lock().unwrap();
            while !wait_here.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
        });
        let low = low.unwrap();
        while locks[0].try_lock().is_ok() {
            sleep(Duration::from_millis(1));
        }
        let both = Arc::clone(&locks);
        let middle = at(11).spawn(move || {
            let _held = both[1].lock().unwrap();
            drop(both[0].lock());
        });
        await_level(&low.microprocess(), 11);
        let top = at(12).spawn(move || drop(locks[1].lock()));
        await_level(&low.microprocess(), 12);
        let (middle, top) = (middle.unwrap(), top.unwrap());
        for level in [50, 20] {
            // From a kernel thread outside any runtime, as the control socket does.
            let id = top.microprocess().id();
            let order = move || find(id).unwrap().order_priority(Priority::new(level).unwrap());
            kyocho_sys::prim::thread::spawn(order).join().unwrap().unwrap();
            await_level(&middle.microprocess(), level);
            await_level(&low.microprocess(), level);
        }
        gate.store(true, Ordering::SeqCst);
        low.join().and(middle.join()).and(top.join()).unwrap();
    });
}

#[test]
fn joiner_that_becomes_more_urgent_donates_its_level() {
    for processors in [1, 2] {
        let run = || {
            let stop = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&stop);
            let joined = at(10).spawn(move || {
                while !other.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1));
                }
            });
            let joined = joined.unwrap();
            let who = joined.microprocess();
            // Less urgent when it begins to wait: it has nothing to donate.
            let joiner = at(5).spawn(move || joined.join().unwrap()).unwrap();
            while joiner.microprocess().record().reason.get().kind != Kind::Join {
                sleep(Duration::from_millis(1));
            }
            for level in [50, 30] {
                joiner.microprocess().set_priority(Priority::new(level).unwrap());
                await_level(&who, level);
            }
            joiner.microprocess().set_priority(Priority::new(5).unwrap());
            await_level(&who, 10);
            stop.store(true, Ordering::SeqCst);
            Microprocess::current().set_priority(Priority::LOWEST);
            joiner.join().unwrap();
        };
        Runtime::builder().virtual_processors(processors).build().run(run).unwrap();
    }
}

#[test]
fn chains_hold_on_two_virtual_processors() {
    Runtime::builder()
        .virtual_processors(2)
        .build()
        .run(|| {
            // Otherwise each joined worker would be at least as urgent as this one.
            Microprocess::current().set_priority(Priority::LOWEST);
            let locks: Arc<[Mutex<u64>; LOCKS]> = Arc::new(Default::default());
            let workers: Vec<_> = (0..8_u8)
                .map(|worker| {
                    let locks = Arc::clone(&locks);
                    at(10 + worker).spawn(move || {
                        for round in 0..2_000 {
                            let first = (usize::from(worker) + round) % (LOCKS - 1);
                            let mut outer = locks[first].lock().unwrap();
                            let mut inner = locks[LOCKS - 1].lock().unwrap();
                            *outer += 1;
                            *inner += 1;
                            if round % 7 == 0 {
                                yield_now();
                            }
                        }
                        (schedule::current().level(), 10 + worker)
                    })
                })
                .collect();
            for worker in workers {
                let (level, asked) = worker.unwrap().join().unwrap();
                assert_eq!(level, asked);
            }
            assert_eq!(*locks[LOCKS - 1].lock().unwrap(), 16_000);
        })
        .unwrap();
}
