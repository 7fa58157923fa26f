//! Wakes that come from outside the runtime.

use core::fmt;

use crate::processor::shared::Shared;
use crate::schedule;

/// Announces that a kernel thread outside any runtime will wake a microprocess. While such a value
/// exists, a wait is not reported as a deadlock.
///
/// Such a thread may make every call that does not wait: it may unpark, release, notify, and send
/// if there is room. If all microprocesses wait for it, the runtime would otherwise report a
/// deadlock.
///
/// ```
/// use kyocho_microprocess::{Outside, channel, run};
///
/// let sum: u32 = run(|| {
///     let (sender, receiver) = channel::unbounded();
///     let outside = Outside::expect();
///     std::thread::spawn(move || {
///         (1..=4).for_each(|n| sender.send(n).unwrap());
///         drop(sender);
///         drop(outside);
///     });
///     receiver.into_iter().sum()
/// })
/// .unwrap();
/// assert_eq!(sum, 10);
/// ```
#[must_use = "the announcement ends when it is dropped"]
pub struct Outside {
    shared: &'static Shared,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl Outside {
    /// Announces to the caller's runtime that a kernel thread outside will wake a microprocess. The
    /// value may be dropped on any kernel thread.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn expect() -> Self {
        let section = schedule::mask();
        let shared = section.vp.shared();
        section.leave();
        shared.expect_outside();
        Self { shared }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.shared.forget_outside();
    }
}

#[cfg(test)]
mod tests {
    use super::Outside;
    use crate::processor::record::State;
    use crate::processor::shared::{detect_deadlocks, outcome};
    use crate::runtime::Deadlock;
    use crate::wait::sync::{Mutex, RwLock};
    use crate::{Microprocess, Runtime, park, sleep};
    use core::time::Duration;
    use kyocho_sys::prim::atomic::Ordering;
    use kyocho_sys::prim::thread::{self, JoinHandle};
    use std::sync::{Arc, mpsc};

    type Run = JoinHandle<Result<(), Deadlock>>;

    /// Runs `wait` as the only microprocess. Returns once that is parked, and its virtual processor
    /// idle.
    fn run_until_parked(wait: impl FnOnce() + Send + 'static) -> (Microprocess, Run) {
        let (tell, told) = mpsc::channel();
        let run = thread::spawn(move || {
            let main = move || {
                tell.send(Microprocess::current()).unwrap();
                wait();
            };
            Runtime::builder().virtual_processors(1).build().run(main)
        });
        let waiter: Microprocess = told.recv().unwrap();
        let record = waiter.record();
        let rests = || record.state.get() == State::Parked && record.home().is_idle();
        while !run.is_finished() && !rests() {
            thread::yield_now();
        }
        (waiter, run)
    }

    /// Runs `wait` as the only microprocess while the caller holds what `hold` gives.
    fn wait_while_held<G>(hold: impl FnOnce() -> G, wait: impl FnOnce() + Send + 'static) {
        let guard = hold();
        let (_waiter, run) = run_until_parked(wait);
        // As its virtual processor did, or is about to do.
        detect_deadlocks();
        drop(guard);
        let ended: Result<(), _> = run.join().unwrap();
        ended.unwrap();
    }

    #[test]
    fn a_deadlock_beside_the_lock_of_a_kernel_thread_is_told_when_that_is_unlocked() {
        let mutex = Mutex::new(());
        let guard = mutex.lock().unwrap();
        let (waiter, run) = run_until_parked(park);
        detect_deadlocks();
        let shared = waiter.record().home().shared();
        assert_eq!(shared.outcome.load(Ordering::SeqCst), outcome::RUNNING, "it may be unparked");
        // Other tests may hold locks: then they end the wait.
        drop(guard);
        assert_eq!(run.join().unwrap().unwrap_err().waiting.len(), 1);
    }

    #[test]
    fn lock_of_a_kernel_thread_is_no_deadlock() {
        let mutex = Arc::new(Mutex::new(0));
        let other = Arc::clone(&mutex);
        wait_while_held(|| mutex.lock().unwrap(), move || *other.lock().unwrap() += 1);
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        wait_while_held(|| lock.write().unwrap(), move || drop(other.read().unwrap()));
        let other = Arc::clone(&lock);
        wait_while_held(|| lock.read().unwrap(), move || *other.write().unwrap() += 1);
        assert_eq!((*mutex.lock().unwrap(), *lock.read().unwrap()), (1, 1));
    }

    #[test]
    fn lock_of_who_waits_for_the_run_is_one() {
        let mutex = Mutex::new(0);
        let _guard = mutex.lock().unwrap();
        let runtime = Runtime::builder().virtual_processors(1).build();
        let deadlock = runtime.run(|| drop(mutex.lock())).unwrap_err();
        assert_eq!(deadlock.waiting.len(), 1);
    }

    #[test]
    fn waiting_is_a_deadlock_only_once_nobody_outside_is_expected() {
        let (tell, told) = mpsc::channel();
        let run = thread::spawn(move || {
            let main = move || {
                tell.send(Outside::expect()).unwrap();
                sleep(Duration::MAX);
            };
            Runtime::builder().virtual_processors(1).build().run(main)
        });
        let outside: Outside = told.recv().unwrap();
        // However long it waits, nothing ends the wait before this.
        drop(outside);
        let deadlock = run.join().unwrap();
        assert_eq!(deadlock.unwrap_err().waiting.len(), 1);
    }
}
