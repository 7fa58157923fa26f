//! Calls of the installed user scheduler, and the checks of its answers.
#![expect(unsafe_code, reason = "follows the pointer to the installed scheduler")]

use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

use super::{Installed, ReadyQueue, retire};
use crate::data::slice::{SLICE_NS_MAX, SLICE_NS_MIN};
use crate::processor::event::{Bound, Event, EventKind};
use crate::processor::record::Record;
use crate::processor::scheduler::{Arrival, Entry, Fault, Scheduler};
use crate::processor::slot;

impl ReadyQueue {
    /// The installed user scheduler.
    pub(super) fn installed(&self) -> Option<&Installed> {
        // SAFETY: null, or made by `Box::into_raw`. It is freed only after the holder, the caller,
        // has removed it.
        unsafe { self.user.get().as_ref() }
    }

    /// Calls the user scheduler; `None` if there is none, if it is busy, or if it failed.
    pub(super) fn call<T>(
        &self,
        body: impl FnOnce(&Installed, &mut dyn Scheduler, u64) -> T,
    ) -> Option<T> {
        let user = self.installed()?;
        let mut place = user.scheduler.try_borrow_mut().ok()?;
        let scheduler = place.as_mut()?;
        let now_ns = monotonic_ns();
        let result = catch_unwind(AssertUnwindSafe(|| body(user, scheduler.as_mut(), now_ns)));
        drop(place);
        result
            .map_err(|panic| {
                // Dropping the payload would free memory.
                core::mem::forget(panic);
                self.fail(Fault::Panicked);
            })
            .ok()
    }

    /// Reports an event to the user scheduler.
    #[cold]
    pub(super) fn user_tell(&self, kind: EventKind, index: usize, bound: Option<&'static Record>) {
        let bound = bound.map(Bound::new);
        self.call(|user, scheduler, now_ns| {
            if kind == EventKind::Blocked {
                user.settle(scheduler, now_ns);
            }
            scheduler.event(&Event { kind, virtual_processor: index, bound }, now_ns);
        });
    }

    /// Whether the user scheduler is in the middle of a call, from which it called the runtime.
    fn is_busy(&self) -> bool {
        self.installed().is_some_and(|user| user.scheduler.try_borrow().is_err())
    }

    /// Passes `record` to the user scheduler, or to the built-in queue during a call of the
    /// scheduler.
    #[cold]
    #[inline(never)]
    pub(super) fn user_push(&self, record: &'static Record, arrival: Arrival) {
        if self.is_busy() {
            let suspends =
                matches!(arrival, Arrival::Yielded | Arrival::SliceOver | Arrival::Outranked);
            assert!(!suspends, "a user scheduler must not suspend");
            return self.built_in.push(record, record.level());
        }
        if arrival == Arrival::Spawned {
            record.scheduling.reset();
        }
        record.scheduling.set_queued(true);
        if let Some(user) = self.installed() {
            user.count.set(user.count.get() + 1);
        }
        // If it panics, all queued microprocesses are found and continue.
        self.call(|user, scheduler, now_ns| {
            if user.ran.get().is_some_and(|(ran, _)| ptr::eq(ran, record)) {
                user.settle(scheduler, now_ns);
            }
            scheduler.enqueue(Entry::of(record), arrival, now_ns);
        });
    }

    /// Removes and returns the microprocess that the user scheduler picks. A faulty scheduler is
    /// removed; then the built-in queue decides.
    #[cold]
    #[inline(never)]
    pub(super) fn user_pop(&self) -> Option<&'static Record> {
        assert!(!self.is_busy(), "a user scheduler must not suspend");
        while self.has_user()
            && let Some(record) = self.built_in.pop()
        {
            self.user_push(record, Arrival::Woken);
        }
        let picked = self.call(|user, scheduler, now_ns| {
            user.settle(scheduler, now_ns);
            (user.count.get() > 0).then(|| scheduler.pick(now_ns))
        });
        match picked.flatten() {
            // No microprocess is queued, or the scheduler failed.
            None => self.built_in.pop(),
            Some(None) => {
                self.fail(Fault::Lost);
                self.built_in.pop()
            }
            Some(Some(entry)) => match self.check(entry) {
                None => self.built_in.pop(),
                Some(record) => {
                    self.begin(record);
                    Some(record)
                }
            },
        }
    }

    /// `record` was picked: its time begins.
    fn begin(&self, record: &'static Record) {
        let slice_ns = self.call(|user, scheduler, now_ns| {
            user.ran.set(Some((record, now_ns)));
            scheduler.slice_ns(Entry::of(record))
        });
        let slice_ns = slice_ns
            .unwrap_or_else(|| self.control.default_slice_ns())
            .clamp(SLICE_NS_MIN, SLICE_NS_MAX);
        self.control.slice_ns.store(slice_ns, Ordering::Relaxed);
    }

    /// Whether this is the queue of the home of `record`.
    pub(super) fn is_of(&self, record: &'static Record) -> bool {
        ptr::eq(record.home().queue_control(), &raw const self.control)
    }

    /// The record of an entry that the scheduler removed, if it was queued here.
    pub(super) fn check(&self, entry: Entry) -> Option<&'static Record> {
        let record = entry.record();
        let is_ours = record.scheduling.is_queued() && self.is_of(record);
        let Some(user) = self.installed().filter(|_| is_ours) else {
            self.fail(Fault::NotRunnable);
            return None;
        };
        record.scheduling.set_queued(false);
        user.count.set(user.count.get() - 1);
        Some(record)
    }

    /// Removes a broken scheduler. Takes time in proportion to all records.
    #[cold]
    pub(super) fn fail(&self, fault: Fault) {
        let user = self.user.replace(ptr::null_mut());
        if user.is_null() {
            return;
        }
        retire(user);
        self.control.fault.store(fault as u8 + 1, Ordering::Relaxed);
        self.control.slice_ns.store(self.control.default_slice_ns(), Ordering::Relaxed);
        self.control.seeks_work.store(false, Ordering::Relaxed);
        for record in slot::all().filter(|record| record.scheduling.is_queued()) {
            if self.is_of(record) {
                record.scheduling.set_queued(false);
                self.built_in.push(record, record.level());
            }
        }
    }
}
