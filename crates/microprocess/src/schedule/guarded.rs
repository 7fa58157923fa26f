//! The state of a synchronisation object, and waiting for it to change.
//!
//! On one virtual processor, masking events excludes all others without any atomic instruction.
//! While several virtual processors are awake, a short spin lock is added.
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

/// A value that one microprocess at a time accesses, briefly.
pub(crate) struct Guarded<T> {
    lock: SpinLock,
    /// The virtual processor that accessed it last. Changed by the accessor, while locks are taken.
    last: UnsafeCell<u16>,
    value: UnsafeCell<T>,
}

// SAFETY: one microprocess at a time accesses the value, and the value may move between threads.
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

    /// Masks events and gives the caller access to the value. Until the guard is dropped, nothing
    /// may be allocated or freed.
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

    /// Lets `change` access the value as [`enter_at_point`](Self::enter_at_point) would, under
    /// three conditions. The caller is a microprocess outside any section; one virtual processor is
    /// awake; there are no orders. `None`: nothing was done, and the caller must enter in the
    /// ordinary way.
    ///
    /// For operations that nearly always take a few instructions and then call nothing. The
    /// ordinary way keeps a section across calls that hardly ever happen, and must save registers
    /// for them each time.
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
            // SAFETY: events are masked, and while no locks are needed that excludes all others.
            let done = change(unsafe { &mut *self.value.get() }, section.masked());
            instruments::release(self);
            done
        };
        section.leave(done.is_some());
        done
    }

    /// As [`enter`](Self::enter), unless another microprocess has access now. Events are masked
    /// already.
    pub(crate) fn try_enter(&self) -> Option<Guard<'_, T>> {
        let section = mask();
        debug_assert!(!section.is_outermost(), "try_enter is for callers with events masked");
        let entered = self.lock.try_acquire();
        instruments::acquire(self);
        entered.then(|| Guard { object: self, section: section.pack() })
    }

    /// As [`enter`](Self::enter), and a [kill point](crate::schedule::kill_point): unwinds, without
    /// access, if the caller is killed.
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
    /// The microprocess that has access, if the accessor is one.
    #[inline(always)]
    pub(crate) fn caller(&self) -> Option<MicroprocessRef> {
        self.vp().current.get().map(MicroprocessRef)
    }

    /// The microprocess that has access.
    ///
    /// # Panics
    /// The caller is not a microprocess. The operation may have to wait, and only microprocesses
    /// can.
    #[inline(always)]
    pub(crate) fn microprocess(&self) -> MicroprocessRef {
        match self.caller() {
            Some(caller) => caller,
            None => not_a_microprocess(),
        }
    }

    /// The virtual processor of the accessor.
    #[inline(always)]
    pub(crate) fn vp(&self) -> Masked<'a> {
        // SAFETY: the guard is in a section of that virtual processor.
        unsafe { Masked::assume(self.section.vp()) }
    }

    /// Gives up access. Waits until a thread that finds the caller in a wait queue makes the caller
    /// runnable.
    ///
    /// No wake is lost: the next accessor may wake the caller at once, even before it has left its
    /// stack.
    ///
    /// # Panics
    /// The caller is not a microprocess, or has another guard.
    #[inline(always)]
    pub(crate) fn park(self, reason: Reason) -> WakeCause {
        self.suspend(reason, None)
    }

    /// As [`park`](Self::park), but at most until `deadline`.
    ///
    /// After `TimedOut` the caller enters again and removes itself from its queue. If a waker was
    /// faster, its wake is cancelled: no later wait ends by it.
    pub(crate) fn park_until(self, deadline: Deadline, reason: Reason) -> WakeCause {
        self.suspend(reason, Some(deadline))
    }

    /// The lock, still held, and the section, not left yet.
    #[inline(always)]
    fn into_parts(self) -> (&'a Guarded<T>, PackedSection) {
        let guard = ManuallyDrop::new(self);
        // SAFETY: the guard is not dropped, so its section is left by the receiver of this one.
        (guard.object, unsafe { ptr::read(&raw const guard.section) })
    }

    /// As [`park`](Self::park) and [`park_until`](Self::park_until). Calls `outside` with events
    /// masked, after access was given up and before the caller leaves its stack.
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
        // SAFETY: the guard is being dropped, and nothing else leaves its section.
        let section = unsafe { ptr::read(&raw const self.section) };
        section.unpack().leave();
    }
}
