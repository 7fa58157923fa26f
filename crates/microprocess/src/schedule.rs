//! Scheduling points: masking events, giving up the virtual processor, and getting it back.
//!
//! ```text
//!   mask ──► [ queues, records, objects ] ──► switch_away ─► … ─► unmask ─► attention? ─► attend
//! ```
//!
//! A switch from one stackful microprocess to the next is one switch of stacks, at user level. The
//! loop on the kernel thread's own stack, the *base*, does the rest: stackless steps, idling,
//! microprocesses that are bound to a kernel thread ([`dispatch`](crate::thread::dispatch)).
//!
//! **Invariant:** a microprocess is suspended and resumed with events masked.
#![expect(unsafe_code, reason = "switches stacks")]

use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use kyocho_arch::switch;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::panicking;

use crate::data::deadline::Deadline;
use crate::processor::instruments;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::{Kind, MicroprocessRef, Reason, Record, State, remote};
use crate::processor::scheduler::{Arrival, Slice};
use crate::processor::taking;
use crate::processor::vp::{self, Masked, Vp, attention};

pub(crate) mod bound;
pub(crate) mod fork;
pub(crate) mod guarded;
pub(crate) mod in_place;
pub(crate) mod kill_point;
pub(crate) mod preempt;

/// Code with events masked, on the virtual processor `vp`.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) vp: &'static Vp,
    outermost: bool,
    /// The section belongs to the kernel thread that entered it.
    not_send: PhantomData<*const ()>,
}

/// As [`mask`], and a [kill point](crate::schedule::kill_point): unwinds if the caller is killed.
#[inline(always)]
pub(crate) fn mask_at_point() -> Section {
    let section = mask();
    if section.vp.attention.load(Ordering::Relaxed) & attention::ORDERS != 0 {
        return kill_point::obey(section);
    }
    section
}

/// Masks events. The section must be ended by [`Section::leave`] or by suspending.
#[inline(always)]
pub(crate) fn mask() -> Section {
    let thread = KernelThread::current();
    let outermost = thread.mask();
    let vp = match thread.held() {
        Some(vp) => vp,
        None => reacquire(thread),
    };
    Section { vp, outermost, not_send: PhantomData }
}

/// An outermost [`Section`] of a microprocess without orders, for short operations that make no
/// further calls.
#[derive(Debug)]
pub(crate) struct QuickSection {
    thread: &'static KernelThread,
    vp: &'static Vp,
}

/// As [`mask_at_point`], if the caller is a microprocess without orders. `None`: the mask is as
/// before.
#[inline(always)]
pub(crate) fn mask_quickly() -> Option<QuickSection> {
    let thread = KernelThread::current_of_ours()?;
    if !thread.mask() {
        return None;
    }
    match thread.held() {
        Some(vp) if vp.attention.load(Ordering::Relaxed) & attention::ORDERS == 0 => {
            Some(QuickSection { thread, vp })
        }
        _ => {
            thread.unmask();
            None
        }
    }
}

impl QuickSection {
    /// Access to the holder's data until the section is left.
    #[inline(always)]
    pub(crate) fn masked(&self) -> Masked<'_> {
        // SAFETY: the section's thread holds it, with events masked.
        unsafe { Masked::assume(self.vp) }
    }

    /// Unmasks events. If this was the `last` section of the operation, serves the attention bits
    /// set meanwhile.
    #[inline(always)]
    pub(crate) fn leave(self, last: bool) {
        self.thread.unmask();
        if last && self.vp.attention.load(Ordering::Relaxed) != 0 {
            attend();
        }
    }
}

/// A [`Section`] in one word: virtual processors are aligned, so the lowest bit can say whether the
/// section is the outermost one.
///
/// Guards are passed by value. Two words are passed in registers; a byte beside a pointer is passed
/// through memory. There a byte is stored and then loaded as part of a word, which costs five
/// nanoseconds each time.
#[derive(Debug)]
pub(crate) struct PackedSection(NonNull<Vp>);

impl PackedSection {
    /// The virtual processor.
    #[inline(always)]
    pub(crate) fn vp(&self) -> &'static Vp {
        let address = self.0.as_ptr().map_addr(|address| address & !1);
        // SAFETY: made by `pack` from a virtual processor, which is never freed.
        unsafe { &*address }
    }

    /// The section itself.
    #[inline(always)]
    pub(crate) fn unpack(self) -> Section {
        let outermost = self.0.as_ptr().addr() & 1 != 0;
        Section { vp: self.vp(), outermost, not_send: PhantomData }
    }
}

impl Section {
    /// Access to the holder's data until the section is left or its microprocess suspended.
    #[inline(always)]
    pub(crate) fn masked(&self) -> Masked<'_> {
        // SAFETY: the section's thread holds it, with events masked.
        unsafe { Masked::assume(self.vp) }
    }

    /// The section in one word.
    #[inline(always)]
    pub(crate) fn pack(self) -> PackedSection {
        let outermost = usize::from(self.outermost);
        PackedSection(NonNull::from(self.vp).map_addr(|address| address | outermost))
    }

    /// Unmasks events, and serves the attention bits set meanwhile.
    #[inline(always)]
    pub(crate) fn leave(self) {
        if self.outermost {
            KernelThread::current().unmask();
            if self.vp.attention.load(Ordering::Relaxed) != 0 {
                attend();
            }
        }
    }

    /// Whether leaving it unmasks events.
    pub(crate) fn is_outermost(&self) -> bool {
        self.outermost
    }
}

/// Unmasks events after a suspension, on the present kernel thread, which may be another one.
///
/// If no virtual processor is visible, a claim is pending. [`attend`] waits for its outcome.
#[inline(always)]
pub(crate) fn resume() {
    let thread = KernelThread::current();
    let vp = thread.held();
    thread.unmask();
    if vp.is_none_or(|vp| vp.attention.load(Ordering::Relaxed) != 0) {
        attend();
    }
}

/// As [`resume`], at a kill point.
#[inline(always)]
pub(crate) fn resume_at_point() {
    let thread = KernelThread::current();
    let vp = thread.held();
    thread.unmask();
    if vp.is_none_or(|vp| vp.attention.load(Ordering::Relaxed) != 0) {
        attend();
        kill_point::point();
    }
}

/// Unblocked: the calling thread slept in the kernel and lost its virtual processor. Its
/// microprocess becomes runnable.
///
/// If the present holder sleeps in the kernel itself, the thread takes the virtual processor back,
/// and no spare is needed. Otherwise the microprocess waits for its turn, bound to the thread.
#[cold]
fn reacquire(thread: &'static KernelThread) -> &'static Vp {
    if let Some(vp) = thread.settle_claim() {
        return vp;
    }
    fork::refuse();
    let record =
        thread.running.get().expect("a thread without a virtual processor carries a microprocess");
    let home = record.home();
    // A microprocess with orders goes by way of the base, which acts on them.
    if !record.orders.is_any() && record.destination().is_none() && taking::take_for(home, thread) {
        return continue_on(thread, home, record);
    }
    queue_up(thread, record)
}

/// Queues `record`, which returned from the kernel with `thread`, and waits for its turn.
pub(crate) fn queue_up(thread: &'static KernelThread, record: &'static Record) -> &'static Vp {
    record.post(remote::UNBLOCKED);
    record.home().shared().leave_kernel();
    let vp = wait_for_vp(thread);
    thread.strand(false);
    thread.has_come_back();
    vp
}

/// Runs `me` on `vp`, which its thread has taken: at once, or after those that go first.
fn continue_on(thread: &'static KernelThread, vp: &'static Vp, me: &'static Record) -> &'static Vp {
    // SAFETY: the thread has just taken it, with events masked.
    let vp = unsafe { Masked::assume(vp) };
    thread.strand(false);
    vp.tell_blocked();
    vp.note_unblocked(me);
    thread.has_come_back();
    me.bound.set(None);
    me.refresh_special();
    vp.shared().leave_kernel();
    let level = me.level();
    let is_first = match vp.queue().highest() {
        // The user scheduler decides, and counts the time.
        _ if vp.queue().has_user() => false,
        Some(best) if best > level => false,
        Some(best) if best == level => vp.unblocked_may_lead(),
        _ => true,
    };
    vp.begin(me);
    if is_first {
        return vp.vp();
    }
    vp.queue().push(me, Arrival::Unblocked);
    switch_away(vp, me);
    let thread = KernelThread::current();
    thread.held_settled().expect("a resumed microprocess has a virtual processor")
}

/// Sleeps until the microprocess bound to `thread` gets a virtual processor; for ever if the
/// runtime stops first.
pub(crate) fn wait_for_vp(thread: &'static KernelThread) -> &'static Vp {
    loop {
        // A thread that is not in the pool is never dismissed.
        if let Some(vp) = thread.await_vp() {
            return vp;
        }
    }
}

/// Serves the attention bits that were set while events were masked, or by another thread.
#[cold]
#[inline(never)]
pub(crate) fn attend() {
    loop {
        let section = mask();
        let vp = section.masked();
        let bits = vp.serve();
        let Some(me) = vp.current.get() else {
            // On the base: its loop checks everything itself.
            KernelThread::current().unmask();
            return;
        };
        if bits & attention::STOP != 0 {
            stop(vp, me);
        }
        if me.orders.is_any() {
            kill_point::act_on_orders(vp, me);
        }
        let thread = KernelThread::current();
        let vp = thread.held_settled().expect("a resumed microprocess has a virtual processor");
        // SAFETY: held as just found, with events masked.
        let vp = unsafe { Masked::assume(vp) };
        reconsider(vp, me, bits);
        let thread = KernelThread::current();
        let vp = thread.held_settled();
        thread.unmask();
        if vp.is_none_or(|vp| !vp.wants_more()) {
            return;
        }
    }
}

/// Gives the virtual processor to a more urgent microprocess, or to an equal one if the time slice
/// of `me` is over.
fn reconsider(vp: Masked<'_>, me: &'static Record, bits: u32) {
    let slice = vp::slice(bits);
    let gathers = bits & attention::GATHER != 0 && !me.is_pinned();
    let leaves = gathers || me.destination().is_some();
    if !leaves && !vp.queue().outranks(me, slice) {
        return;
    }
    if me.is_stackless.get() {
        me.poll.store(1, Ordering::Relaxed);
    } else if !panicking() {
        let over = slice == Slice::Over;
        vp.queue().push(me, if over { Arrival::SliceOver } else { Arrival::Outranked });
        if leaves {
            // The base sends it away. If the virtual processor is retired or joins another, the
            // base sends all others away, too.
            return switch_to_base(vp, me, None);
        }
        switch_away(vp, me);
    }
}

/// The runtime stops: `me` never runs again.
fn stop(vp: Masked<'_>, me: &'static Record) -> ! {
    me.state.set(State::Parked);
    if me.is_stackless.get() {
        in_place::abandon(vp);
    }
    vp.current.set(None);
    // Set again, for the base.
    vp.attention.fetch_or(attention::STOP, Ordering::Relaxed);
    leave_stack(me)
}

/// Switches to the base, and never back to the stack of `me`.
pub(crate) fn leave_stack(me: &'static Record) -> ! {
    let base = KernelThread::current().base.get();
    instruments::leave_for_base();
    // SAFETY: the base suspended itself to run this microprocess, and no switch to `me` follows.
    unsafe { switch(me.context.as_ptr(), base) };
    unreachable!("an abandoned microprocess was resumed")
}

/// Suspends `me`, the caller, which has been queued, parked or finished, in favour of the best
/// runnable microprocess. Returns with events masked once `me` is chosen again, perhaps on another
/// kernel thread and virtual processor.
///
/// Inlined up to the waiting call, like everything on that path. The CPU predicts returns from the
/// calls of the microprocess that was left, so each return after a switch is mispredicted. With
/// inlining, a rendezvous round trip takes 36 ns instead of 56.
#[inline(always)]
pub(crate) fn switch_away(vp: Masked<'_>, me: &'static Record) {
    if me.in_place.get() || panicking() {
        return in_place::suspend_in_place(vp, me);
    }
    match vp.queue().pop() {
        Some(next) if !next.special.get() => {
            vp.begin(next);
            if !ptr::eq(next, me) {
                instruments::leave_for(next);
                // SAFETY: `next` was queued, so it is suspended, and only this thread took it out
                // of the queue. No thread switches to `me` before this stack is left: the caller
                // holds the virtual processor until then. Records move to others only from its run
                // queue, at the next scheduling point, or while its holder sleeps on the base
                // stack.
                unsafe { switch(me.context.as_ptr(), next.context.get()) };
            }
        }
        other => switch_to_base(vp, me, other),
    }
}

/// As [`switch_away`], by way of the base, which runs `chosen`.
#[cold]
#[inline(never)]
fn switch_to_base(vp: Masked<'_>, me: &'static Record, chosen: Option<&'static Record>) {
    vp.own().chosen.set(chosen);
    vp.current.set(None);
    let base = KernelThread::current().base.get();
    instruments::leave_for_base();
    // SAFETY: the base suspended itself when it switched to this microprocess, or to one before it.
    // For `me`: as above.
    unsafe { switch(me.context.as_ptr(), base) };
}

/// The calling microprocess.
///
/// # Panics
/// The caller is not a microprocess.
#[inline]
pub(crate) fn current() -> &'static Record {
    let section = mask();
    let record = section.vp.running();
    section.leave();
    record
}

/// The caller, if it is a microprocess.
#[inline]
pub(crate) fn try_current() -> Option<&'static Record> {
    let section = mask();
    let record = section.vp.current.get();
    section.leave();
    record
}

impl MicroprocessRef {
    /// The caller.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    #[inline]
    pub(crate) fn current() -> Self {
        Self(current())
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeCause {
    /// The microprocess was made runnable.
    Woken,
    /// Its deadline passed first, or it was killed.
    TimedOut,
}

/// Cancels a late wake for a wait that has timed out, so that it does not end the next wait. Call
/// before others can wake `me` from that next wait: their wake would be cancelled, too.
#[inline(always)]
pub(crate) fn void_late_wake(me: &Record) {
    if me.timed_out.get() {
        me.timed_out.set(false);
        me.remote.fetch_and(!remote::WAKE, Ordering::AcqRel);
    }
}

/// Marks `me` parked. From here on a waker on another virtual processor may post a wake. This one
/// handles it after `me` has left its stack.
#[inline]
pub(crate) fn prepare_to_park(
    vp: Masked<'_>,
    me: &'static Record,
    reason: Reason,
    deadline: Option<Deadline>,
) {
    void_late_wake(me);
    me.reason.set(reason);
    me.state.set(State::Parked);
    if let Some(deadline) = deadline {
        vp.set_timer(me, deadline.ns());
    }
}

/// Parks the caller in a section entered by [`mask`], and leaves the section.
pub(crate) fn park_in(section: Section, reason: Reason, deadline: Option<Deadline>) -> WakeCause {
    assert!(section.is_outermost(), "a microprocess suspends in its outermost section");
    let vp = section.masked();
    let me = vp.running();
    prepare_to_park(vp, me, reason, deadline);
    switch_away(vp, me);
    let cause = if me.timed_out.get() { WakeCause::TimedOut } else { WakeCause::Woken };
    resume();
    cause
}

/// Waits for an unpark, at most until `deadline`.
pub(crate) fn park(deadline: Option<Deadline>) {
    let section = mask_at_point();
    let me = section.vp.running();
    if me.token.replace(false) {
        instruments::acquire(me);
        return section.leave();
    }
    let cause = park_in(section, Reason { kind: Kind::Park, object: 0 }, deadline);
    instruments::acquire(me);
    if cause == WakeCause::TimedOut {
        kill_point::point();
    }
}

/// Waits until `deadline`.
pub(crate) fn sleep_until(deadline: Deadline) {
    park_in(mask_at_point(), Reason { kind: Kind::Sleep, object: 0 }, Some(deadline));
    kill_point::point();
}

/// Lets others of the same priority or above run first.
#[inline]
pub(crate) fn yield_now() {
    let section = mask_at_point();
    let vp = section.masked();
    let me = vp.running();
    if vp.queue().may_follow(me) {
        vp.queue().push(me, Arrival::Yielded);
        switch_away(vp, me);
        resume_at_point();
    } else {
        section.leave();
    }
}
