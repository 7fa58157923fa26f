//! Acquire and release without contention, each beside `xchg` and a store.

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use kyocho_tst::biased::biased;
use kyocho_tst::blocking::mutex::RawMutex;
use kyocho_tst::blocking::rwlock::RawRwLock;
use kyocho_tst::blocking::semaphore::Semaphore;
use kyocho_tst::{Atomics, Mechanism, Lamport, PerCpuCounter, SignalsBlocked, SystemCall, TestAndSet};

use crate::methods::{confine_to_one_cpu, restartable, rseq};
use crate::timing::{Subject, print_side_by_side};

/// Rounds of a repeat, for operations of a few and of some hundred nanoseconds.
const MANY: u64 = 200_000;
const FEW: u64 = 5_000;

/// A test-and-set and its release by a method, which is checked first.
fn by_method<M: TestAndSet + 'static>(name: &'static str, rounds: u64, mechanism: M) -> Subject {
    let word = AtomicU32::new(0);
    assert_eq!(mechanism.test_and_set(&word), Ok(false), "{name}");
    assert_eq!(mechanism.test_and_set(&word), Ok(true), "{name}");
    mechanism.clear(&word);
    Subject::new(name, rounds, move |rounds| {
        for _ in 0..rounds {
            assert_eq!(mechanism.test_and_set(black_box(&word)), Ok(false));
            mechanism.clear(&word);
        }
    })
}

/// `lock` and `unlock` in turns.
fn turns(name: &'static str, lock: impl Fn() + 'static, unlock: impl Fn() + 'static) -> Subject {
    Subject::new(name, MANY, move |rounds| {
        for _ in 0..rounds {
            lock();
            unlock();
        }
    })
}

/// Prints a line for each.
pub fn run() {
    confine_to_one_cpu();
    let word = AtomicU32::new(0);
    let mut subjects = vec![Subject::new("xchg + store", MANY, move |rounds| {
        for _ in 0..rounds {
            assert_eq!(black_box(&word).swap(1, Ordering::Acquire), 0);
            word.store(0, Ordering::Release);
        }
    })];
    subjects.extend(tst());
    subjects.extend(peers());
    print_side_by_side("uncontended", subjects);
}

/// The locks of `tst`.
fn tst() -> Vec<Subject> {
    let word = AtomicU32::new(0);
    let plain = Subject::new("plain stores", MANY, move |rounds| {
        for _ in 0..rounds {
            black_box(&word).store(1, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            word.store(0, Ordering::Release);
        }
    });
    let (mut owner, _visitor) = biased(0_u64);
    let biased = Subject::new("biased lock, owner", MANY, move |rounds| {
        for _ in 0..rounds {
            black_box(&mut *owner.lock());
        }
    });
    let counter = PerCpuCounter::with_mechanism(Mechanism::Rseq);
    let counter = counter.map(|counter| {
        Subject::new("per-CPU counter, rseq: one add", MANY, move |rounds| {
            (0..rounds).for_each(|_| counter.add(1));
        })
    });
    let (mutex, semaphore, lock) = (RawMutex::new(), Semaphore::new(1), RawRwLock::new());
    let (mutex, semaphore, lock): (&_, &_, &_) =
        (Box::leak(mutex.into()), Box::leak(semaphore.into()), Box::leak(lock.into()));
    let mut subjects = vec![plain, biased];
    subjects.extend(counter);
    subjects.extend([
        by_method("restartable (PC-rollback)", MANY, restartable()),
        by_method("rseq", MANY, rseq()),
        by_method("atomics", MANY, Atomics),
        turns("tst mutex", || mutex.lock(), || mutex.unlock()),
        turns(
            "tst semaphore",
            || semaphore.acquire(),
            || semaphore.release().expect("it was taken"),
        ),
        turns(
            "tst readers-writer lock, read",
            || assert!(lock.read_until(None)),
            || assert!(lock.leave()),
        ),
        by_method("lamport", MANY / 4, Lamport::new(4)),
        by_method("signals blocked", FEW, SignalsBlocked),
        by_method("system call", FEW, SystemCall::new()),
    ]);
    subjects
}

/// An object of the C library, at an address that does not change.
fn c_object<T>(init: impl Fn(*mut T) -> i32) -> *mut T {
    let place = Box::leak(Box::new(UnsafeCell::new(MaybeUninit::<T>::uninit())));
    let object = place.get().cast::<T>();
    assert_eq!(init(object), 0, "the C library refuses a lock");
    object
}

/// The peers.
fn peers() -> Vec<Subject> {
    let standard = std::sync::Mutex::new(());
    let other = parking_lot::Mutex::new(());
    // SAFETY (all): objects of the C library, initialised here, never destroyed, and used as the
    // library requires.
    let semaphore = c_object(|place| unsafe { libc::sem_init(place, 0, 1) });
    let mutex = c_object(|place| unsafe { libc::pthread_mutex_init(place, core::ptr::null()) });
    vec![
        Subject::new("std Mutex", MANY, move |rounds| {
            for _ in 0..rounds {
                drop(black_box(&standard).lock());
            }
        }),
        Subject::new("parking_lot Mutex", MANY, move |rounds| {
            for _ in 0..rounds {
                drop(black_box(&other).lock());
            }
        }),
        turns(
            "glibc semaphore",
            move || assert_eq!(unsafe { libc::sem_wait(semaphore) }, 0),
            move || assert_eq!(unsafe { libc::sem_post(semaphore) }, 0),
        ),
        turns(
            "pthread mutex",
            move || assert_eq!(unsafe { libc::pthread_mutex_lock(mutex) }, 0),
            move || assert_eq!(unsafe { libc::pthread_mutex_unlock(mutex) }, 0),
        ),
    ]
}
