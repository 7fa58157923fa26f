//! The pool of waiting kernel threads: each thread is taken once and none is lost, whatever is
//! added and taken at the same time.

#[path = "../../src/processor/pool.rs"]
mod real;

use loom::thread::spawn;

use crate::kernel_thread::KernelThread;
use crate::prim::atomic::{AtomicPtr, Ordering};
use crate::{explore, for_ever, must_fail};
use real::Pool;

/// The interface of both kinds of pool.
trait Threads: Send + Sync {
    fn put(&self, thread: &'static KernelThread);
    fn take(&self) -> Option<&'static KernelThread>;
}

impl Threads for Pool {
    fn put(&self, thread: &'static KernelThread) {
        self.put(thread);
    }

    fn take(&self) -> Option<&'static KernelThread> {
        self.take()
    }
}

/// Mutant: the same stack with a bare pointer as its head. A head that was removed and added again
/// looks as if it had never been removed.
struct Untagged(AtomicPtr<KernelThread>);

impl Threads for Untagged {
    fn put(&self, thread: &'static KernelThread) {
        let entry = core::ptr::from_ref(thread).cast_mut();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            thread.pool_next.store(head, Ordering::Relaxed);
            match self.0.compare_exchange(head, entry, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn take(&self) -> Option<&'static KernelThread> {
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: null or a record that is never freed.
            let thread = unsafe { head.as_ref() }?;
            let next = thread.pool_next.load(Ordering::Relaxed);
            match self.0.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(thread),
                Err(now) => head = now,
            }
        }
    }
}

/// One loom thread takes an entry. The other takes two and puts the first back. Each of the two
/// entries ends up in one place.
fn taken_and_put_back<P: Threads + 'static>(make: fn() -> P) {
    explore(Some(3), move || {
        let pool: &'static P = for_ever(make());
        let threads = [for_ever(KernelThread::new()), for_ever(KernelThread::new())];
        threads.iter().for_each(|thread| pool.put(thread));
        let taker = spawn(move || pool.take());
        let first = pool.take();
        let second = pool.take();
        if let Some(first) = first {
            pool.put(first);
        }
        let mut found: Vec<_> = [taker.join().unwrap(), second].into_iter().flatten().collect();
        while let Some(thread) = pool.take() {
            assert!(found.len() < 2, "no thread is in the pool twice");
            found.push(thread);
        }
        let count = |thread: &KernelThread| {
            found.iter().filter(|other| core::ptr::eq(**other, thread)).count()
        };
        assert_eq!(threads.map(count), [1, 1], "each thread is in one place");
    });
}

/// A pool that has a reserve already.
fn with_reserve() -> Pool {
    let pool = Pool::new();
    pool.put(for_ever(KernelThread::new()));
    pool
}

#[test]
fn everybody_is_taken_once() {
    taken_and_put_back(with_reserve);
}

/// Two threads are put into an empty pool while `take` removes one.
fn reserve_is_kept(take: fn(&Pool) -> Option<&'static KernelThread>) {
    explore(None, move || {
        let pool: &'static Pool = for_ever(Pool::new());
        // The first access to its words.
        assert!(pool.take().is_none() && pool.take_reserve().is_none());
        let threads = [for_ever(KernelThread::new()), for_ever(KernelThread::new())];
        let first = spawn(move || pool.put(threads[0]));
        let taker = spawn(move || take(pool));
        pool.put(threads[1]);
        first.join().unwrap();
        let taken = [taker.join().unwrap(), pool.take()];
        let reserve = pool.take_reserve().expect("the reserve is not taken with the others");
        let mut found: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(found.len(), 1, "one is the reserve, the other is not");
        found.push(reserve);
        let is_found = |thread: &KernelThread| found.iter().any(|it| core::ptr::eq(*it, thread));
        assert!(threads.into_iter().all(is_found), "everybody is in one place");
    });
}

#[test]
fn one_of_those_who_come_is_the_reserve() {
    reserve_is_kept(Pool::take);
}

#[test]
fn taking_the_reserve_for_a_spare_is_caught() {
    must_fail(|| reserve_is_kept(|pool| pool.take().or_else(|| pool.take_reserve())));
}

#[test]
fn a_head_without_a_tag_is_caught() {
    must_fail(|| taken_and_put_back(|| Untagged(AtomicPtr::new(core::ptr::null_mut()))));
}
