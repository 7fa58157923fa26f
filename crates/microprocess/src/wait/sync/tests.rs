//! One test suite for all objects that exclude, and one test for each promise of the others; on one
//! and on two virtual processors.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::{Barrier, Condvar, Mutex, RwLock, Semaphore, SpinMutex, TryLockError};
use crate::{Runtime, scope, spawn, yield_now};

/// Runs `main` as the first microprocess of a runtime. Ends the process if that hangs.
pub(crate) fn on_processors<T>(virtual_processors: usize, main: impl FnOnce() -> T + Send) -> T
where
    T: Send,
{
    /// The longest a test may hang, in seconds.
    const WATCHDOG_SECONDS: u64 = 60;
    let (done, over) = mpsc::channel::<()>();
    let watchdog = kyocho_sys::prim::thread::spawn(move || {
        if over.recv_timeout(Duration::from_secs(WATCHDOG_SECONDS))
            == Err(mpsc::RecvTimeoutError::Timeout)
        {
            eprintln!("a test hangs");
            std::process::abort();
        }
    });
    let runtime = Runtime::builder().virtual_processors(virtual_processors).build();
    let result = runtime.run(main).expect("no deadlock");
    drop(done);
    watchdog.join().unwrap();
    result
}

const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(2);

/// Checks that `critical` runs its body in one microprocess at a time, even if the body yields.
fn excludes(virtual_processors: usize, critical: impl Fn(&mut dyn FnMut()) + Send + Sync) {
    const PARTIES: usize = 8;
    const TURNS: usize = 200;
    let inside = AtomicUsize::new(0);
    let entries = AtomicUsize::new(0);
    on_processors(virtual_processors, || {
        scope(|scope| {
            for party in 0..PARTIES {
                let (inside, entries, critical) = (&inside, &entries, &critical);
                scope.spawn(move || {
                    for turn in 0..TURNS {
                        critical(&mut || {
                            assert_eq!(
                                inside.fetch_add(1, Ordering::Relaxed),
                                0,
                                "two microprocesses are inside"
                            );
                            entries.store(entries.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            if (party + turn) % 3 == 0 {
                                yield_now();
                            }
                            inside.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
    });
    assert_eq!(entries.load(Ordering::Relaxed), PARTIES * TURNS);
}

macro_rules! exclusion_suite {
    ($($name:ident: $lock:expr, $critical:expr;)*) => {$(
        #[test]
        fn $name() {
            for virtual_processors in [1, 2] {
                let lock = $lock;
                excludes(virtual_processors, |body| $critical(&lock, body));
            }
        }
    )*};
}

exclusion_suite! {
    mutex_excludes: Mutex::new(()), |lock: &Mutex<()>, body: &mut dyn FnMut()| {
        let _guard = lock.lock().unwrap();
        body();
    };
    mutex_tried_excludes: Mutex::new(()), |lock: &Mutex<()>, body: &mut dyn FnMut()| {
        let _guard = loop {
            match lock.try_lock() {
                Ok(guard) => break guard,
                Err(_) => yield_now(),
            }
        };
        body();
    };
    mutex_with_a_limit_excludes: Mutex::new(()), |lock: &Mutex<()>, body: &mut dyn FnMut()| {
        let _guard = loop {
            match lock.lock_timeout(Duration::from_micros(20)) {
                Ok(guard) => break guard,
                Err(_) => yield_now(),
            }
        };
        body();
    };
    spin_mutex_excludes: SpinMutex::new(()), |lock: &SpinMutex<()>, body: &mut dyn FnMut()| {
        let _guard = lock.lock();
        body();
    };
    spin_mutex_tried_excludes: SpinMutex::new(()), |lock: &SpinMutex<()>, body: &mut dyn FnMut()| {
        let _guard = loop {
            match lock.try_lock() {
                Some(guard) => break guard,
                None => yield_now(),
            }
        };
        body();
    };
    rwlock_writers_exclude: RwLock::new(()), |lock: &RwLock<()>, body: &mut dyn FnMut()| {
        let _guard = lock.write().unwrap();
        body();
    };
    rwlock_with_a_limit_excludes: RwLock::new(()), |lock: &RwLock<()>, body: &mut dyn FnMut()| {
        let _guard = loop {
            match lock.write_timeout(Duration::from_micros(20)) {
                Ok(guard) => break guard,
                Err(_) => yield_now(),
            }
        };
        body();
    };
    semaphore_of_one_excludes: Semaphore::new(1), |lock: &Semaphore, body: &mut dyn FnMut()| {
        lock.acquire();
        body();
        lock.release();
    };
    semaphore_with_a_limit_excludes: Semaphore::new(1), |lock: &Semaphore, body: &mut dyn FnMut()| {
        while !lock.acquire_timeout(Duration::from_micros(20)) {
            yield_now();
        }
        body();
        lock.release();
    };
}

#[test]
fn panic_poisons_mutex_and_write_lock_but_not_read_lock() {
    on_processors(1, || {
        let mutex = Arc::new(Mutex::new(1));
        let lock = Arc::new(RwLock::new(1));
        let (their_mutex, their_lock) = (Arc::clone(&mutex), Arc::clone(&lock));
        let _ = spawn(move || {
            let _read = their_lock.read().unwrap();
            let _guard = their_mutex.lock().unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        })
        .join();
        assert!(mutex.is_poisoned());
        assert!(
            matches!(mutex.try_lock(), Err(TryLockError::Poisoned(guard)) if **guard.get_ref() == 1)
        );
        mutex.clear_poison();
        assert!(mutex.lock().is_ok());
        assert!(!lock.is_poisoned());
        let their_lock = Arc::clone(&lock);
        let _ = spawn(move || {
            let _guard = their_lock.write().unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        })
        .join();
        assert!(lock.read().is_err());
    });
}

#[test]
fn waits_with_a_limit_end_without_a_grant() {
    on_processors(1, || {
        let mutex = Mutex::new(());
        let lock = RwLock::new(());
        let semaphore = Semaphore::new(0);
        let held = (mutex.lock().unwrap(), lock.read().unwrap());
        scope(|scope| {
            scope.spawn(|| {
                assert!(matches!(mutex.lock_timeout(SOON), Err(TryLockError::WouldBlock)));
                assert!(matches!(lock.write_timeout(SOON), Err(TryLockError::WouldBlock)));
                assert!(lock.read_timeout(SOON).is_ok());
                assert!(!semaphore.acquire_timeout(SOON));
            });
        });
        drop(held);
        semaphore.release();
        assert!(semaphore.acquire_timeout(SOON), "a waiter that gave up takes nothing");
    });
}

#[test]
fn readers_share() {
    on_processors(2, || {
        let lock = RwLock::new(0);
        let together = Barrier::new(3);
        scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let value = lock.read().unwrap();
                    together.wait();
                    assert_eq!(*value, 0);
                });
            }
        });
        *lock.write().unwrap() = 1;
        assert_eq!(lock.into_inner().unwrap(), 1);
    });
}

#[test]
fn writer_that_gives_up_lets_readers_behind_it_in() {
    on_processors(1, || {
        let lock = RwLock::new(());
        let first = lock.read().unwrap();
        scope(|scope| {
            scope.spawn(|| assert!(lock.write_timeout(SOON).is_err()));
            scope.spawn(|| drop(lock.read().unwrap()));
        });
        drop(first);
    });
}

#[test]
fn condition_is_seen_by_all_waiters() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let stage = Mutex::new(0);
            let changed = Condvar::new();
            scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        let guard = changed.wait_while(stage.lock().unwrap(), |s| *s == 0).unwrap();
                        assert_eq!(*guard, 1);
                    });
                }
                yield_now();
                *stage.lock().unwrap() = 1;
                changed.notify_all();
            });
        });
    }
}

#[test]
fn condition_variable_counts_its_notifications() {
    on_processors(1, || {
        let (tickets, changed) = (Mutex::new(0), Condvar::new());
        scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let mut tickets = tickets.lock().unwrap();
                    while *tickets == 0 {
                        tickets = changed.wait(tickets).unwrap();
                    }
                    *tickets -= 1;
                });
            }
            for _ in 0..5 {
                *tickets.lock().unwrap() += 1;
                changed.notify_one();
            }
        });
        assert_eq!(tickets.into_inner().unwrap(), 0);
    });
}

#[test]
fn condition_wait_with_a_limit_reports_why_it_ended() {
    on_processors(1, || {
        let (ready, changed) = (Mutex::new(false), Condvar::new());
        let (guard, result) = changed.wait_timeout(ready.lock().unwrap(), SOON).unwrap();
        assert!(result.timed_out() && !*guard);
        drop(guard);
        let (guard, result) =
            changed.wait_timeout_while(ready.lock().unwrap(), SOON, |ready| !*ready).unwrap();
        assert!(result.timed_out());
        drop(guard);
        scope(|scope| {
            scope.spawn(|| {
                *ready.lock().unwrap() = true;
                changed.notify_one();
            });
            let (guard, result) =
                changed.wait_timeout_while(ready.lock().unwrap(), NEVER, |ready| !*ready).unwrap();
            assert!(!result.timed_out() && *guard);
        });
    });
}

#[test]
fn barrier_lets_all_parties_through_together_again_and_again() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            const PARTIES: usize = 5;
            let barrier = Barrier::new(PARTIES);
            let (arrived, leaders) = (AtomicUsize::new(0), AtomicUsize::new(0));
            scope(|scope| {
                for _ in 0..PARTIES {
                    scope.spawn(|| {
                        for round in 1..=20 {
                            arrived.fetch_add(1, Ordering::Relaxed);
                            if barrier.wait().is_leader() {
                                leaders.fetch_add(1, Ordering::Relaxed);
                            }
                            assert!(arrived.load(Ordering::Relaxed) >= round * PARTIES);
                            barrier.wait();
                        }
                    });
                }
            });
            assert_eq!(leaders.load(Ordering::Relaxed), 20);
        });
    }
}

#[test]
fn bounded_buffer_of_semaphores_loses_and_repeats_no_item() {
    for virtual_processors in [1, 2] {
        const PARTIES: usize = 4;
        const ITEMS: usize = 500;
        let sum = on_processors(virtual_processors, || {
            let (room, items) = (Semaphore::new(3), Semaphore::new(0));
            let (buffer, sum) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
            scope(|scope| {
                for producer in 0..PARTIES {
                    let (room, items, buffer) = (&room, &items, &buffer);
                    scope.spawn(move || {
                        for item in 0..ITEMS {
                            room.acquire();
                            buffer.lock().unwrap().push(producer * ITEMS + item);
                            items.release();
                        }
                    });
                    scope.spawn(|| {
                        for _ in 0..ITEMS {
                            items.acquire();
                            let item =
                                buffer.lock().unwrap().pop().expect("one item for each permit");
                            room.release();
                            sum.fetch_add(item, Ordering::Relaxed);
                        }
                    });
                }
            });
            assert_eq!((room.permits(), items.permits()), (3, 0));
            sum.into_inner()
        });
        assert_eq!(sum, (0..PARTIES * ITEMS).sum::<usize>());
    }
}

mod passed_over;
mod queue;
mod slices;
mod spin_mutex;
