//! Waiting for the end of a microprocess.
#![expect(unsafe_code, reason = "takes results out of stack slots")]

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::mem;

use super::stored::take_result;
use crate::data::killed::Killed;
use crate::processor::inherit;
use crate::processor::instruments;
use crate::processor::record::{Kind, Reason, Record};
use crate::processor::slot;
use crate::protocol::pause::let_others_run;
use crate::schedule::kill_point;
use crate::schedule::{Section, WakeCause, mask, mask_at_point, park_in, void_late_wake};
use crate::thread::microprocess::Microprocess;

/// The right to wait for a microprocess and to take its result. If it is dropped, the microprocess
/// continues, and its result is dropped.
pub struct JoinHandle<T> {
    pub(super) record: &'static Record,
    pub(super) id: u64,
    pub(super) result: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<T> JoinHandle<T> {
    /// The microprocess.
    #[must_use]
    pub fn microprocess(&self) -> Microprocess {
        Microprocess::new(self.record, self.id)
    }

    /// Whether it has ended, or never runs again because its run has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let section = mask();
        self.lock(&section);
        let finished = self.record.has_finished(self.id);
        self.record.completion.lock.release();
        section.leave();
        finished != Some(false)
    }

    /// Acquires the lock of the completion, in a section.
    ///
    /// A handle inside the run of the microprocess takes it as a short lock, which the bias may
    /// skip. A handle outside that run always takes it. At the end of the run, `Record::abandon`
    /// always takes it as well, on a thread that the bias does not cover.
    #[inline]
    fn lock(&self, section: &Section) {
        let lock = &self.record.completion.lock;
        if section.vp.is_beside(self.record.home()) {
            lock.acquire();
        } else {
            lock.contend();
        }
    }

    /// Waits for the end of the microprocess.
    ///
    /// # Errors
    /// The payload, if it panicked. [`Killed`], if it was killed or had not ended when its run
    /// ended.
    ///
    /// # Panics
    /// The microprocess has not ended, and the caller is not a microprocess.
    #[inline]
    pub fn join(self) -> Result<T, Box<dyn Any + Send + 'static>> {
        let record = self.record;
        let completion = &record.completion;
        let mut section = mask_at_point();
        self.lock(&section);
        let Some(finished) = record.has_finished(self.id) else {
            completion.lock.release();
            mem::forget(self);
            section.leave();
            return Err(Box::new(Killed::new()));
        };
        if !finished {
            let me = section.vp.running();
            // It parks without holding the lock.
            void_late_wake(me);
            completion.joiner.set(Some(me));
            completion.lock.release();
            me.joins.set(Some(record));
            let join = inherit::Join::new(record);
            let wait = inherit::Wait { source: &join };
            let ranked = inherit::Ranked { by: &join };
            me.begin_ranked(&ranked);
            if me.effective_level() > record.asked_level() {
                join.begin(section.masked(), me, &wait);
            }
            let reason = Reason { kind: Kind::Join, object: self.id as usize };
            let cause = park_in(section, reason, None);
            section = mask();
            me.end_ranked();
            join.end(section.masked(), me);
            if cause == WakeCause::TimedOut {
                section.leave();
                kill_point::after_wait(None);
                section = mask();
            }
            me.joins.set(None);
        } else {
            completion.lock.release();
        }
        instruments::acquire(record);
        if completion.abandoned.get() {
            mem::forget(self);
            section.leave();
            return Err(Box::new(Killed::new()));
        }
        // SAFETY: it has finished, and this is its only handle, which takes the result once.
        let stored = unsafe { take_result::<T>(record) };
        recycle(&section, record);
        mem::forget(self);
        section.leave();
        stored.into_outcome()
    }
}

/// Frees the slot of a finished microprocess whose result was taken.
#[inline]
fn recycle(section: &Section, record: &'static Record) {
    if section.vp.is_foreign() {
        slot::give_back(record);
    } else {
        section.masked().put_slot(record);
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let record = self.record;
        let completion = &record.completion;
        loop {
            let section = mask();
            self.lock(&section);
            let Some(finished) = record.has_finished(self.id) else {
                completion.lock.release();
                return section.leave();
            };
            let finishing = completion.finishing.get();
            if !finished && !finishing {
                completion.detached.set(true);
            }
            completion.lock.release();
            if finished && completion.abandoned.get() {
                return section.leave();
            }
            if finished {
                // SAFETY: as in `join`.
                let stored = unsafe { take_result::<T>(record) };
                recycle(&section, record);
                section.leave();
                return drop(stored);
            }
            section.leave();
            if !finishing {
                return;
            }
            // It is about to leave its stack, on another virtual processor.
            let_others_run();
        }
    }
}
