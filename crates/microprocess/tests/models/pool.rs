//! The pool of waiting kernel threads: whoever is taken is taken once, and nobody is lost, whatever comes and goes meanwhile.

#[path = "../../src/processor/pool.rs"]
mod real;

use loom::thread::spawn;

use crate::kernel_thread::KernelThread;
use crate::prim::atomic::{AtomicPtr, Ordering};
use crate::{explore, for_ever, must_fail};
use real::Pool;

/// What both kinds of pool do.
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

/// Mutant: the same stack with a bare pointer for a head, so that one which went away and came back looks as if it had stayed.
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
            // SAFETY: null or a record that lives for ever.
            let thread = unsafe { head.as_ref() }?;
            let next = thread.pool_next.load(Ordering::Relaxed);
            match self.0.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(thread),
                Err(now) => head = now,
            }
        }
    }
}

/// One takes; the other takes two and puts the first back. Each of the two threads ends up in one place.
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
            assert!(found.len() < 2, "nobody is there twice");
            found.push(thread);
        }
        let count = |thread: &KernelThread| {
            found.iter().filter(|other| core::ptr::eq(**other, thread)).count()
        };
        assert_eq!(threads.map(count), [1, 1], "everybody is in one place");
    });
}

#[test]
fn everybody_is_taken_once() {
    taken_and_put_back(Pool::new);
}

#[test]
fn a_head_without_a_tag_is_caught() {
    must_fail(|| taken_and_put_back(|| Untagged(AtomicPtr::new(core::ptr::null_mut()))));
}
