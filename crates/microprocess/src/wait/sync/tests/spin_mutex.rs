//! When a waiter stops spinning, and that no waiter sleeps while the lock is free.

use std::io::{Read, Write, pipe};
use std::sync::{Arc, Barrier};

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use kyocho_sys::prim::thread;

use super::{SpinMutex, on_processors};
use crate::Runtime;
use crate::processor::kernel_thread::KernelThread;
use crate::{spawn, statistics, yield_now};

#[test]
fn waiters_do_not_spin_for_a_holder_that_cannot_release() {
    let holder = KernelThread::recycled();
    assert!(holder.may_run_beside());
    holder.strand(true);
    assert!(!holder.may_run_beside(), "Blocked or Preempted");
    holder.strand(false);
    assert!(holder.may_run_beside());
    on_processors(1, || {
        assert!(!KernelThread::current().may_run_beside(), "on the spinner's own kernel thread");
    });
}

#[test]
fn waiters_do_not_spin_for_a_holder_preempted_by_the_host() {
    let holder = KernelThread::recycled();
    let words: &'static [AtomicU64; 8] = Box::leak(Box::default());
    holder.set_view(words);
    let says = |state: u64| words[0].store(state, Ordering::SeqCst);
    says(1);
    assert!(holder.may_run_beside(), "the contents of a view without a thread are ignored");
    words[1].store(1, Ordering::SeqCst);
    assert!(!holder.may_run_beside(), "it waits for a CPU");
    says(2);
    assert!(!holder.may_run_beside(), "it sleeps");
    says(4);
    assert!(holder.may_run_beside(), "it runs");
}

#[test]
fn waiters_for_a_holder_that_sleeps_in_the_kernel_let_others_run() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            const WAITERS: u32 = 5;
            let lock = Arc::new(SpinMutex::new(0));
            let (mut reader, mut writer) = pipe().unwrap();
            let guarded = Arc::clone(&lock);
            let holder = spawn(move || {
                let mut value = guarded.lock();
                reader.read_exact(&mut [0]).unwrap();
                *value += 1;
            });
            while statistics().blocked == 0 {
                yield_now();
            }
            let waiters: Vec<_> = (0..WAITERS)
                .map(|_| {
                    let lock = Arc::clone(&lock);
                    spawn(move || *lock.lock() += 1)
                })
                .collect();
            while lock.waiting.load(Ordering::SeqCst) < WAITERS {
                yield_now();
            }
            assert!(lock.try_lock().is_none());
            writer.write_all(&[1]).unwrap();
            holder.join().unwrap();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
            assert_eq!(*lock.lock(), 1 + WAITERS);
            assert_eq!(lock.waiting.load(Ordering::SeqCst), 0);
        });
    }
}

/// All microprocesses wait for a kernel thread outside any runtime, which the host may suspend for
/// any time. That is no deadlock.
#[test]
fn waiting_for_a_kernel_thread_is_no_deadlock() {
    for virtual_processors in [1, 2] {
        let lock = Arc::new(SpinMutex::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let held = Arc::new(Barrier::new(2));
        let outside = {
            let (lock, is_over, held) =
                (Arc::clone(&lock), Arc::clone(&is_over), Arc::clone(&held));
            thread::spawn(move || {
                let mut value = lock.lock();
                held.wait();
                let waits = || lock.waiting.load(Ordering::SeqCst) != 0;
                let is_over = || is_over.load(Ordering::SeqCst);
                // Until a microprocess has begun to wait, and has tried again since.
                while !waits() && !is_over() {}
                while waits() && !is_over() {}
                *value += 1;
            })
        };
        held.wait();
        let run = Runtime::builder().virtual_processors(virtual_processors).build().run(|| {
            let inside = Arc::clone(&lock);
            spawn(move || *inside.lock() += 1).join().unwrap();
        });
        is_over.store(true, Ordering::SeqCst);
        outside.join().unwrap();
        assert!(run.is_ok(), "{run:?}");
        assert_eq!(*lock.lock(), 2);
    }
}

#[test]
fn kernel_threads_and_microprocesses_exclude_each_other() {
    const TURNS: u64 = 20_000;
    let count = Arc::new(SpinMutex::new(0_u64));
    let outside = Arc::clone(&count);
    let add = |count: &SpinMutex<u64>| (0..TURNS).for_each(|_| *count.lock() += 1);
    let kernel_thread = thread::spawn(move || add(&outside));
    let inside = Arc::clone(&count);
    on_processors(2, move || {
        let parts: Vec<_> = (0..3)
            .map(|_| {
                let count = Arc::clone(&inside);
                spawn(move || add(&count))
            })
            .collect();
        parts.into_iter().for_each(|part| part.join().unwrap());
    });
    kernel_thread.join().unwrap();
    assert_eq!(*count.lock(), 4 * TURNS);
}
