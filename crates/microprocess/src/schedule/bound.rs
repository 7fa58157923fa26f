//! Code that stays on one kernel thread.

use crate::processor::record::Record;
use crate::schedule;

/// Runs `body` on one kernel thread. If it suspends, it keeps that thread, and other microprocesses
/// run on another one.
///
/// Needed by code that keeps thread-local state, or holds a `std::sync::MutexGuard`, across calls
/// of this crate. A suspension inside costs two switches of kernel threads (some 10 µs) instead of
/// one switch of stacks.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// use kyocho_microprocess::{bound, spawn, yield_now};
/// let other = spawn(|| ());
/// bound(|| {
///     let here = std::thread::current().id();
///     yield_now();
///     assert_eq!(std::thread::current().id(), here);
/// });
/// other.join().unwrap();
/// # }).unwrap();
/// ```
///
/// # Panics
/// The caller is not a microprocess.
pub fn bound<R>(body: impl FnOnce() -> R) -> R {
    let me = schedule::current();
    // Read only by its own suspensions.
    let _end = Unbind { me, before: me.in_place.replace(true) };
    body()
}

/// Ends the binding.
struct Unbind {
    me: &'static Record,
    before: bool,
}

impl Drop for Unbind {
    fn drop(&mut self) {
        self.me.in_place.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use core::panic::AssertUnwindSafe;
    use std::panic::{catch_unwind, resume_unwind};
    use std::sync::Arc;

    use super::bound;
    use crate::wait::sync::tests::on_processors;
    use crate::yield_now;
    use crate::{Semaphore, spawn};

    /// Suspends in every way while others keep the virtual processors busy; returns whether the
    /// kernel thread stayed the same.
    fn stays(permits: &Semaphore) -> bool {
        let here = std::thread::current().id();
        (0..20).all(|_| {
            yield_now();
            permits.acquire();
            yield_now();
            permits.release();
            std::thread::current().id() == here
        })
    }

    fn sleep_in_the_kernel() {
        // A signal ends it early, which does no harm.
        let _early = kyocho_sys::sleep::until(kyocho_sys::clock::monotonic_ns() + 200_000);
        yield_now();
    }

    fn party(permits: &Arc<Semaphore>) -> impl FnOnce() -> bool + use<> {
        let permits = Arc::clone(permits);
        move || bound(|| stays(&permits))
    }

    #[test]
    fn bound_microprocess_keeps_its_kernel_thread_and_lets_others_run() {
        for virtual_processors in [1, 2] {
            on_processors(virtual_processors, || {
                let permits = Arc::new(Semaphore::new(1));
                // Each sleep moves a virtual processor to another kernel thread.
                spawn(|| (0..20).for_each(|_| sleep_in_the_kernel()));
                let parties: Vec<_> = (0..8).map(|_| spawn(party(&permits))).collect();
                assert!(parties.into_iter().all(|party| party.join().unwrap()));
            });
        }
    }

    #[test]
    fn stay_ends_by_return_and_by_panic_and_nests() {
        on_processors(1, || {
            let in_place = || crate::schedule::current().in_place.get();
            bound(|| {
                bound(|| assert!(in_place()));
                assert!(in_place());
            });
            assert!(!in_place());
            let panics = || bound(|| resume_unwind(Box::new("on purpose")));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
            assert!(!in_place());
        });
    }
}
