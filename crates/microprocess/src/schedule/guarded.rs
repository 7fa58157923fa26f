//! State of a synchronisation object, and waiting for it to change.
//!
//! On one virtual processor masking events excludes everybody; no atomic instruction is executed. With several, a short spin lock is added.
#![expect(unsafe_code, reason = "a lock around a cell")]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;

use kyocho_sys::prim::cell::UnsafeCell;

pub(crate) use crate::data::deadline::Deadline;
use crate::processor::instruments;
pub(crate) use crate::processor::record::make_runnable_from;
use crate::processor::record::{MicroprocessRef, Reason};
use crate::processor::spin::{SpinLock, is_needed};
use crate::processor::vp::Masked;
pub(crate) use crate::schedule::WakeCause;
use crate::schedule::{
    PackedSection, mask, mask_at_point, mask_quickly, prepare_to_park, resume, switch_away,
};

/// A value that one microprocess at a time enters, briefly.
pub(crate) struct Guarded<T> {
    lock: SpinLock,
    /// Which virtual processor was inside last; changed inside, while locks are taken.
    last: UnsafeCell<u16>,
    value: UnsafeCell<T>,
}

// SAFETY: one microprocess at a time gets to the value, and the value may change threads.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: SpinLock::new(), last: UnsafeCell::new(0), value: UnsafeCell::new(value) }
    }

    /// Masks events and lets the caller to the value. Inside, nothing may be allocated or freed.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Guard<'_, T> {
        let section = mask();
        self.acquire(section.masked());
        Guard { object: self, section: section.pack() }
    }

    #[inline(always)]
    fn acquire(&self, vp: Masked<'_>) {
        if is_needed() {
            self.acquire_among_others(vp);
        }
        instruments::acquire(self);
    }

    fn acquire_among_others(&self, vp: Masked<'_>) {
        self.lock.contend();
        // SAFETY: events are masked and the lock is held.
        let last = unsafe { &mut *self.last.get() };
        let index = vp.index as u16;
        let from = core::mem::replace(last, index);
        if from != index {
            vp.note_travel(usize::from(from));
        }
    }

    /// Lets `change` to the value as [`enter_at_point`](Self::enter_at_point) would, where nothing stands in the way: a microprocess
    /// calls, outside of any section, one virtual processor runs, and nobody has orders. `None`: nothing was done, enter.
    ///
    /// For what nearly always takes a few instructions, and calls nothing then: the ordinary way has to keep a section across calls
    /// that hardly ever happen, and saves registers for them each time.
    #[inline(always)]
    pub(crate) fn quickly<R>(
        &self,
        change: impl FnOnce(&mut T, Masked<'_>) -> Option<R>,
    ) -> Option<R> {
        let section = mask_quickly()?;
        let done = if is_needed() {
            None
        } else {
            instruments::acquire(self);
            // SAFETY: events are masked, and while no locks are needed that excludes everybody.
            let done = change(unsafe { &mut *self.value.get() }, section.masked());
            instruments::release(self);
            done
        };
        section.leave(done.is_some());
        done
    }

    /// As [`enter`](Self::enter), unless somebody is inside. Events are masked already.
    pub(crate) fn try_enter(&self) -> Option<Guard<'_, T>> {
        let section = mask();
        debug_assert!(!section.is_outermost(), "tried where waiting is forbidden");
        let entered = self.lock.try_acquire();
        instruments::acquire(self);
        entered.then(|| Guard { object: self, section: section.pack() })
    }

    /// As [`enter`](Self::enter), at a [kill point](crate::schedule::kill_point): unwinds, outside, if the caller is killed.
    #[inline(always)]
    pub(crate) fn enter_at_point(&self) -> Guard<'_, T> {
        let section = mask_at_point();
        self.acquire(section.masked());
        Guard { object: self, section: section.pack() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Access to the value of a [`Guarded`].
pub(crate) struct Guard<'a, T> {
    object: &'a Guarded<T>,
    section: PackedSection,
}

impl<T> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: events are masked and the lock is held.
        unsafe { &*self.object.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: events are masked and the lock is held; `self` is borrowed exclusively.
        unsafe { &mut *self.object.value.get() }
    }
}

impl<'a, T> Guard<'a, T> {
    /// Who is inside, if it is a microprocess.
    #[inline(always)]
    pub(crate) fn caller(&self) -> Option<MicroprocessRef> {
        self.vp().current.get().map(MicroprocessRef)
    }

    /// The microprocess inside.
    ///
    /// # Panics
    /// The caller is none: what follows may have to wait, which nobody else can.
    #[inline(always)]
    pub(crate) fn microprocess(&self) -> MicroprocessRef {
        match self.caller() {
            Some(caller) => caller,
            None => not_a_microprocess(),
        }
    }

    /// The virtual processor of whoever is inside.
    #[inline(always)]
    pub(crate) fn vp(&self) -> Masked<'a> {
        // SAFETY: the guard is in a section of that virtual processor.
        unsafe { Masked::assume(self.section.vp()) }
    }

    /// Leaves the guard and waits to be made runnable by whoever finds the caller in a wait queue.
    ///
    /// No wake is lost: who enters next may wake the caller at once, even before it has left its stack.
    ///
    /// # Panics
    /// The caller is no microprocess, or inside another guard.
    #[inline(always)]
    pub(crate) fn park(self, reason: Reason) -> WakeCause {
        self.suspend(reason, None)
    }

    /// As [`park`](Self::park), but not longer than until `deadline`.
    ///
    /// After `TimedOut` the caller enters again and takes itself out of its queue. If a waker was faster, the wake is void: no
    /// later wait ends by it.
    pub(crate) fn park_until(self, deadline: Deadline, reason: Reason) -> WakeCause {
        self.suspend(reason, Some(deadline))
    }

    /// The lock, still held, and the section, still entered.
    #[inline(always)]
    fn into_parts(self) -> (&'a Guarded<T>, PackedSection) {
        let guard = ManuallyDrop::new(self);
        // SAFETY: the guard is not dropped, so its section is left by whoever gets this one.
        (guard.object, unsafe { ptr::read(&raw const guard.section) })
    }

    /// As [`park`](Self::park) and [`park_until`](Self::park_until); calls `outside` after the guard was left and before the caller
    /// leaves its stack, masked.
    pub(crate) fn park_after(
        self,
        reason: Reason,
        deadline: Option<Deadline>,
        outside: impl FnOnce(Masked<'_>),
    ) -> WakeCause {
        self.suspend_after(reason, deadline, outside)
    }

    #[inline(always)]
    fn suspend(self, reason: Reason, deadline: Option<Deadline>) -> WakeCause {
        self.suspend_after(reason, deadline, |_| {})
    }

    #[inline(always)]
    fn suspend_after(
        self,
        reason: Reason,
        deadline: Option<Deadline>,
        outside: impl FnOnce(Masked<'_>),
    ) -> WakeCause {
        let (object, section) = self.into_parts();
        let section = section.unpack();
        assert!(section.is_outermost(), "a microprocess waits in one guard at a time");
        let vp = section.masked();
        let me = vp.running();
        prepare_to_park(vp, me, reason, deadline);
        instruments::release(object);
        object.lock.release();
        outside(vp);
        switch_away(vp, me);
        let cause = if me.timed_out.get() { WakeCause::TimedOut } else { WakeCause::Woken };
        resume();
        cause
    }
}

#[cold]
fn not_a_microprocess() -> ! {
    panic!("only a microprocess can wait here: see `kyocho_microprocess::run`")
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        instruments::release(self.object);
        self.object.lock.release();
        // SAFETY: the guard is going, and nobody else leaves its section.
        let section = unsafe { ptr::read(&raw const self.section) };
        section.unpack().leave();
    }
}
