//! Locks between threads on separate virtual processors: they exclude, no waiter is forgotten, and
//! none gets what belongs to another one.

use core::time::Duration;

use loom::cell::UnsafeCell;
use loom::thread::spawn;

use crate::guarded::leave_early;
use crate::prim::atomic::{forget_orderings, order_loads, order_stores};
use crate::prim::clock;
use crate::record::MicroprocessRef;
use crate::sync::{Barrier, Condvar, Mutex, RwLock, Semaphore, SpinMutex};
use crate::{explore, for_ever, must_fail};

const SOME_TIME: Duration = Duration::from_secs(1);

/// Data that only the lock's owner may use. Loom fails the model if two do.
#[derive(Default)]
struct Inside(UnsafeCell<u32>);

// SAFETY: the models check it.
unsafe impl Sync for Inside {}

impl Inside {
    fn change(&self) {
        // SAFETY: the models check it.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn look(&self) -> u32 {
        // SAFETY: the models check it.
        self.0.with(|count| unsafe { *count })
    }
}

fn mutex_between(others: usize, turns: u32, preemptions_max: usize) {
    explore(Some(preemptions_max), move || {
        let lock: &Mutex<Inside> = for_ever(Mutex::new(Inside::default()));
        let enter = move || (0..turns).for_each(|_| lock.lock().unwrap().change());
        let others: Vec<_> = (0..others).map(|_| spawn(enter)).collect();
        enter();
        let all = others.len() as u32 + 1;
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(lock.lock().unwrap().look(), all * turns);
    });
}

#[test]
fn mutex_excludes_and_wakes_every_waiter() {
    mutex_between(2, 1, 2);
}

/// A waiter that is overtaken twice is handed the lock.
#[test]
fn mutex_is_handed_to_a_waiter_that_was_overtaken_twice() {
    clock::step(1_000_000_000);
    mutex_between(1, 3, 3);
}

#[test]
fn mutex_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        mutex_between(2, 1, 2);
    });
}

#[test]
fn a_mutex_is_free_after_a_wait_with_a_limit_however_that_ended() {
    explore(Some(3), || {
        let lock: &Mutex<Inside> = for_ever(Mutex::new(Inside::default()));
        let waiter = MicroprocessRef::current().0;
        let holder = spawn(move || lock.lock().unwrap().change());
        let clock = spawn(move || waiter.time_out());
        let got = lock.lock_timeout(SOME_TIME).map(|inside| inside.change()).is_ok();
        holder.join().unwrap();
        clock.join().unwrap();
        let inside = lock.try_lock().expect("the lock is free");
        assert_eq!(inside.look(), 1 + u32::from(got));
    });
}

fn spin_mutex_between(others: usize) {
    order_loads();
    order_stores();
    explore(Some(3), move || {
        let lock: &SpinMutex<Inside> = for_ever(SpinMutex::new(Inside::default()));
        drop(lock.lock());
        let mine = lock.lock();
        let enter = move || lock.lock().change();
        let others: Vec<_> = (0..others).map(|_| spawn(enter)).collect();
        mine.change();
        drop(mine);
        let all = others.len() + 1;
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(lock.lock().look(), all as u32);
    });
}

#[test]
fn spin_mutex_excludes_and_wakes_every_waiter() {
    spin_mutex_between(2);
}

#[test]
fn a_spin_mutex_without_orderings_is_caught() {
    must_fail(|| {
        forget_orderings();
        spin_mutex_between(1);
    });
}

#[test]
fn spin_mutex_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        spin_mutex_between(1);
    });
}

fn writers_and_a_reader(preemptions_max: usize) {
    explore(Some(preemptions_max), || {
        let lock: &RwLock<Inside> = for_ever(RwLock::new(Inside::default()));
        let writer = spawn(move || lock.write().unwrap().change());
        let reader = spawn(move || lock.read().unwrap().look());
        lock.write().unwrap().change();
        writer.join().unwrap();
        assert!(reader.join().unwrap() <= 2);
        assert_eq!(lock.read().unwrap().look(), 2);
    });
}

#[test]
fn writers_exclude_all_others_and_readers_see_their_writes() {
    writers_and_a_reader(3);
}

/// A waiter that is overtaken is handed the lock the next time.
#[test]
fn readers_writer_lock_is_handed_to_a_waiter_that_was_overtaken_twice() {
    clock::step(1_000_000_000);
    writers_and_a_reader(3);
}

#[test]
fn readers_writer_lock_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        writers_and_a_reader(3);
    });
}

/// A waiter that was woken to write finds readers inside.
#[test]
fn readers_and_a_writer_that_overtake_each_other_all_enter() {
    explore(Some(2), || {
        let lock: &RwLock<Inside> = for_ever(RwLock::new(Inside::default()));
        let readers = [(); 2].map(|()| spawn(move || lock.read().unwrap().look()));
        (0..2).for_each(|_| lock.write().unwrap().change());
        readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() <= 2));
        assert_eq!(lock.read().unwrap().look(), 2);
    });
}

#[test]
fn writer_that_times_out_lets_the_next_reader_in() {
    explore(Some(2), || {
        let lock: &RwLock<Inside> = for_ever(RwLock::new(Inside::default()));
        let waiter = MicroprocessRef::current().0;
        let first = lock.read().unwrap();
        let clock = spawn(move || waiter.time_out());
        let reader = spawn(move || lock.read().unwrap().look());
        drop(first);
        if let Ok(inside) = lock.write_timeout(SOME_TIME) {
            inside.change();
        }
        clock.join().unwrap();
        assert!(reader.join().unwrap() <= 1);
    });
}

fn permits() {
    explore(Some(3), || {
        let permits: &Semaphore = for_ever(Semaphore::new(0));
        let takers = [spawn(move || permits.acquire()), spawn(move || permits.acquire())];
        permits.release();
        permits.release();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(permits.permits(), 0);
    });
}

#[test]
fn each_permit_is_taken_once() {
    permits();
}

#[test]
fn semaphore_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        permits();
    });
}

#[test]
fn permit_is_not_lost_in_a_wait_that_times_out() {
    explore(Some(3), || {
        let permits: &Semaphore = for_ever(Semaphore::new(0));
        let waiter = MicroprocessRef::current().0;
        let giver = spawn(move || permits.release());
        let clock = spawn(move || waiter.time_out());
        let got = permits.acquire_timeout(SOME_TIME);
        giver.join().unwrap();
        clock.join().unwrap();
        assert_eq!(permits.permits(), usize::from(!got));
    });
}

#[test]
fn notification_between_the_check_and_the_wait_is_not_lost() {
    explore(Some(3), || {
        let shared: &(Mutex<bool>, Condvar) = for_ever((Mutex::new(false), Condvar::new()));
        let (said, condition) = shared;
        let sayer = spawn(move || {
            *said.lock().unwrap() = true;
            condition.notify_one();
        });
        let mut heard = said.lock().unwrap();
        while !*heard {
            heard = condition.wait(heard).unwrap();
        }
        drop(heard);
        sayer.join().unwrap();
    });
}

#[test]
fn one_of_the_parties_at_a_barrier_leads_each_time() {
    explore(Some(2), || {
        let barrier: &Barrier = for_ever(Barrier::new(2));
        let meet = move || [(); 2].map(|()| usize::from(barrier.wait().is_leader()));
        let other = spawn(meet);
        let (mine, theirs) = (meet(), other.join().unwrap());
        assert_eq!([mine[0] + theirs[0], mine[1] + theirs[1]], [1, 1]);
    });
}
