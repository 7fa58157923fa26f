//! Kernel threads: what carries a virtual processor.
//!
//! A kernel thread runs its *base*, the dispatching loop on its own stack, or a microprocess. The
//! microprocess runs on a virtual processor that the thread holds. Or the thread lost its virtual
//! processor while the microprocess slept in the kernel. Every other kernel thread of a runtime
//! waits in [`KernelThread::await_vp`].
//!
//! How a virtual processor is lost: [`claim`](crate::protocol::claim). How a thread waits:
//! [`wait_word`](crate::protocol::wait_word). How a thread begins and ends: `life`.
#![expect(unsafe_code, reason = "follows the kernel thread's word")]

use core::cell::Cell;
use core::mem::offset_of;
use core::{fmt, ptr};

use kyocho_arch::{
    Context, current_thread_word, current_vp_word, set_current_thread_word, set_current_vp,
};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use kyocho_sys::task::{SystemCallReader, ThreadId};

use crate::data::view::ViewWords;
use crate::processor::event::Registers;
use crate::processor::kernel_stack::KernelStack;
use crate::processor::record::Record;
use crate::processor::reflection::HostLevel;
use crate::processor::runaway::SameDepth;
use crate::processor::spin;
use crate::processor::taking;
use crate::processor::vp::Vp;
use crate::protocol::claim::Hold;
use crate::protocol::wait_word::WaitWord;

#[cfg(feature = "io")]
mod child_process;
mod cpus;
mod life;
mod observed;
mod signals;

pub(crate) use life::{Handle, Role};
use observed::NO_FILE;
pub(crate) use signals::{PREEMPTING, interrupting_signal};

/// Not pinned.
pub(crate) const ANY_CPU: usize = usize::MAX;

/// The runtime's record of one kernel thread. Never freed.
#[repr(C, align(64))]
pub(crate) struct KernelThread {
    hold: Hold<Vp>,
    wait_word: WaitWord,
    /// Where the dispatching loop continues.
    pub(crate) base: Cell<Context>,
    /// The microprocess that it runs, or that is bound to it. Kept when the virtual processor is
    /// lost.
    pub(crate) running: Cell<Option<&'static Record>>,
    /// Where its microprocess was last interrupted, or found asleep in the kernel.
    pub(crate) registers: Cell<Registers>,
    /// The host's number of the thread; 0 before it runs.
    tid: AtomicU32,
    /// The thread's word that restartable sequences read to find the virtual processor.
    vp_word: AtomicPtr<AtomicPtr<()>>,
    /// The file that shows where the thread sleeps, or [`NO_FILE`] if the host does not permit it.
    /// Not in a box: the first allocation of a new thread takes as long as the rest of its start.
    reader: AtomicI32,
    /// What the host's scheduler writes about the thread; null if there is no program that writes
    /// it.
    view: AtomicPtr<ViewWords>,
    /// The host ends the thread's sleeps without slack.
    is_exact: Cell<bool>,
    /// The thread is not pinned for now; [`settle`](Self::settle) pins it again.
    roams: AtomicBool,
    /// The CPU it is pinned to, or [`ANY_CPU`].
    cpu: Cell<usize>,
    /// The priority that the host was last informed of.
    pub(crate) host_level: HostLevel,
    /// The thread carries a microprocess without a virtual processor, or will never receive a
    /// virtual processor again.
    stranded: AtomicU32,
    /// The thread sleeps in a kernel call that is to end: it is signalled until it comes back.
    called: AtomicBool,
    ended: AtomicU32,
    /// What a new thread begins with: the virtual processor that it is for, and its role.
    beginning: Cell<Option<(&'static Vp, Role)>>,
    /// The stacks of the thread, from before it begins until it has ended.
    stacks: Cell<Option<KernelStack>>,
    /// Where the thread was interrupted recently.
    pub(crate) same_depth: Cell<SameDepth>,
    /// How often in a row its preemption was postponed because the thread ran in the C library.
    pub(crate) put_offs: Cell<u32>,
    /// The virtual processor that a sentinel asked this thread to take; null otherwise.
    nominated: AtomicPtr<Vp>,
    /// The thread was the reserve of its pool. It runs no microprocess while it holds the virtual
    /// processor.
    stands_in: Cell<bool>,
    /// The next thread in the pool.
    pub(crate) pool_next: AtomicPtr<Self>,
}

/// Offset of the mask in a record, in bytes.
pub(crate) const MASK_OFFSET: usize = offset_of!(KernelThread, hold) + Hold::<Vp>::MASK_OFFSET;
/// Offset of the virtual processor in a record, in bytes.
pub(crate) const VP_OFFSET: usize = offset_of!(KernelThread, hold) + Hold::<Vp>::VP_OFFSET;
/// How many bytes, from the start of a record, the program in the host's scheduler reads.
pub(crate) const HEAD_BYTES: usize = VP_OFFSET + size_of::<usize>();

// SAFETY: the cells are used by the thread itself, with these exceptions. `stacks` is set while
// there is no thread, and read by all. `running` and `registers` are also used by the thread that
// took its virtual processor, `cpu` and `stands_in` by the thread that gives it one. In both cases
// the thread sleeps. The rest is atomic.
unsafe impl Sync for KernelThread {}

/// Represents every kernel thread outside the runtimes.
static FOREIGN: KernelThread =
    KernelThread::new(ptr::from_ref(&crate::processor::vp::FOREIGN).cast_mut());

impl KernelThread {
    /// Offset of the thread's number, for debuggers.
    pub(crate) const TID_OFFSET: usize = core::mem::offset_of!(Self, tid);

    pub(crate) const fn new(vp: *mut Vp) -> Self {
        Self {
            hold: Hold::new(vp),
            wait_word: WaitWord::new(),
            base: Cell::new(Context::NULL),
            running: Cell::new(None),
            registers: Cell::new(Registers { instruction: 0, stack: 0 }),
            tid: AtomicU32::new(0),
            vp_word: AtomicPtr::new(ptr::null_mut()),
            reader: AtomicI32::new(NO_FILE),
            view: AtomicPtr::new(ptr::null_mut()),
            is_exact: Cell::new(false),
            roams: AtomicBool::new(false),
            cpu: Cell::new(ANY_CPU),
            host_level: HostLevel::new(),
            stranded: AtomicU32::new(0),
            called: AtomicBool::new(false),
            ended: AtomicU32::new(0),
            beginning: Cell::new(None),
            stacks: Cell::new(None),
            same_depth: Cell::new(SameDepth::NONE),
            put_offs: Cell::new(0),
            nominated: AtomicPtr::new(ptr::null_mut()),
            stands_in: Cell::new(false),
            pool_next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The calling kernel thread. Read again at every call: a microprocess migrates between
    /// threads.
    #[inline(always)]
    pub(crate) fn current() -> &'static Self {
        let thread = current_thread_word().cast::<Self>();
        // SAFETY: null or set by `become_current` to a record that lives for ever.
        match unsafe { thread.as_ref() } {
            Some(thread) => thread,
            None => foreign(),
        }
    }

    /// The calling kernel thread, if it belongs to a runtime.
    #[inline(always)]
    pub(crate) fn current_of_ours() -> Option<&'static Self> {
        // SAFETY: as in `current`.
        unsafe { current_thread_word().cast::<Self>().as_ref() }
    }

    /// Whether the calling kernel thread belongs to a runtime.
    pub(crate) fn is_ours() -> bool {
        !current_thread_word().is_null()
    }

    /// Whether this represents the kernel threads outside the runtimes.
    pub(crate) fn is_foreign(&self) -> bool {
        ptr::eq(self, &raw const FOREIGN)
    }

    /// The stacks of the thread; `None` for a thread outside the runtimes.
    pub(crate) fn stacks(&self) -> Option<KernelStack> {
        self.stacks.get()
    }

    /// Makes this the record of the calling kernel thread; `reader` reads where the thread sleeps.
    /// Events stay masked.
    pub(crate) fn become_current(&'static self, reader: Option<SystemCallReader>) {
        let word = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: code that reads the word expects a `KernelThread`, and this one is never freed.
        unsafe { set_current_thread_word(word) };
        self.vp_word.store(current_vp_word().cast(), Ordering::Release);
        self.tid.store(ThreadId::current().number(), Ordering::Release);
        if let Some(reader) = reader {
            self.set_reader(reader);
        }
    }

    /// The host's number of the thread, once it runs.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        match self.tid.load(Ordering::Acquire) {
            0 => None,
            number => Some(ThreadId::new(number)),
        }
    }

    /// The virtual processor that the thread holds. Events must be masked.
    #[inline(always)]
    pub(crate) fn held(&self) -> Option<&'static Vp> {
        self.hold.held()
    }

    /// Whether the thread carries a microprocess that no virtual processor runs.
    pub(crate) fn is_stranded(&self) -> bool {
        self.stranded.load(Ordering::SeqCst) != 0
    }

    /// Whether the microprocess of this thread may run at the same time as the caller. So this is
    /// another thread, its microprocess is neither Blocked nor Preempted, and the host has not
    /// taken its CPU, as far as known.
    pub(crate) fn may_run_beside(&self) -> bool {
        let on_cpu = || self.view().is_none_or(|view| !view.is_known() || view.is_on_cpu());
        !self.is_stranded() && !ptr::eq(self, Self::current()) && on_cpu()
    }

    pub(crate) fn strand(&self, stranded: bool) {
        self.stranded.store(u32::from(stranded), Ordering::SeqCst);
    }

    /// Records that the kernel call in which the thread sleeps, without a virtual processor, is to
    /// end.
    pub(crate) fn call_back(&self) {
        self.called.store(true, Ordering::SeqCst);
    }

    /// Whether a kernel call of the thread is to end and the thread has not come back since.
    pub(crate) fn is_called_back(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// Records that the thread has come back and no longer counts as Blocked.
    pub(crate) fn has_come_back(&self) {
        self.called.store(false, Ordering::SeqCst);
    }

    /// Takes the virtual processor from the calling thread for good, in the child process of a
    /// fork. May be called in a signal handler.
    pub(crate) fn orphan_current() {
        let thread = if Self::is_ours() { Self::current() } else { &FOREIGN };
        thread.hold.lose();
        // SAFETY: null is always valid.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    /// As [`held`](Self::held), where it must not be missed: another thread that took this one for
    /// asleep may be about to withdraw its claim.
    pub(crate) fn held_settled(&self) -> Option<&'static Vp> {
        self.held().or_else(|| self.settle_claim())
    }

    /// Waits until no claim to its virtual processor is pending; returns the one it holds then.
    #[cold]
    pub(crate) fn settle_claim(&self) -> Option<&'static Vp> {
        self.hold.settle_claim()
    }

    /// Takes `vp` from this thread if `look` finds it asleep where it may lose it; returns what
    /// `look` found. [`lose`](Self::lose) makes the loss final.
    pub(crate) fn take<S>(&self, vp: &'static Vp, look: impl FnOnce() -> Option<S>) -> Option<S> {
        self.hold.take(vp, |vp| self.tell_sequences(vp.cast()), look)
    }

    /// Whether a claim to its virtual processor is pending.
    #[cfg(test)]
    pub(crate) fn is_claimed(&self) -> bool {
        self.hold.is_claimed()
    }

    /// Makes the claim final: the thread holds nothing.
    pub(crate) fn lose(&self) {
        self.hold.lose();
    }

    /// Sets the word that the thread's restartable sequences read.
    fn tell_sequences(&self, vp: *mut ()) {
        // SAFETY: null, or in static TLS of a thread that exists, since it holds a virtual
        // processor.
        if let Some(word) = unsafe { self.vp_word.load(Ordering::Acquire).as_ref() } {
            word.store(vp, Ordering::SeqCst);
        }
    }

    /// Gives up `vp`, which the calling thread holds with events masked.
    fn let_go(&self, vp: &'static Vp) {
        self.hold.let_go(vp);
        // SAFETY: null is always valid.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    /// Passes `vp`, which the calling thread holds, to `successor`, which waits for a virtual
    /// processor.
    pub(crate) fn pass(&self, vp: &'static Vp, successor: &'static Self) {
        self.let_go(vp);
        successor.give(vp);
    }

    /// Gives `vp`, which no thread holds, to this thread, which waits for a virtual processor.
    pub(crate) fn give(&'static self, vp: &'static Vp) {
        self.pin(vp.cpu());
        self.follow(vp);
        self.publish(vp);
        self.hold.set(vp);
        self.wait_word.run();
    }

    /// Gives `vp`, which no thread holds, to this thread, which was taken from its pool as the
    /// reserve.
    pub(crate) fn give_to_reserve(&'static self, vp: &'static Vp) {
        self.stands_in.set(true);
        self.give(vp);
    }

    /// Returns whether the calling thread received its virtual processor as a reserve, and clears
    /// that mark.
    pub(crate) fn takes_duty(&self) -> bool {
        self.stands_in.replace(false)
    }

    /// Makes this thread, which waits for a virtual processor and is in no pool, take `vp` from its
    /// holder.
    pub(crate) fn nominate(&self, vp: &'static Vp) {
        self.pin(vp.cpu());
        self.follow(vp);
        self.nominated.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
        self.wait_word.run();
    }

    /// Takes the virtual processor for which this thread, the caller, was nominated; `None` if it
    /// was not, or if the holder kept it.
    fn accept_nomination(&'static self) -> Option<&'static Vp> {
        if self.nominated.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let vp = self.nominated.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: null, or set by `nominate` to a virtual processor, which is never freed.
        let vp = unsafe { vp.as_ref() }?;
        taking::accept(vp, self).then_some(vp)
    }

    /// Holds `vp`, which no thread holds. Call as this thread, with events masked.
    pub(crate) fn hold(&'static self, vp: &'static Vp) {
        self.follow(vp);
        self.publish(vp);
        self.hold.set(vp);
        // SAFETY: no other thread holds it.
        unsafe { set_current_vp(ptr::from_ref(vp).cast_mut().cast()) };
    }

    /// Publishes that this thread holds `vp` from now on.
    fn publish(&self, vp: &Vp) {
        vp.holder.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        vp.bell.publish_holder(self.id());
    }

    /// Makes the host schedule this thread as it did the last holder of `vp`.
    fn follow(&self, vp: &Vp) {
        if let Some(permissions) = vp.shared().permissions {
            self.host_level.inform(self.id(), vp.reflected.level(), permissions);
        }
    }

    /// Ends the thread's idling. Harmless if it comes too late: a thread that waits for a virtual
    /// processor checks whether it has one.
    pub(crate) fn rouse(&self) {
        self.wait_word.rouse();
    }

    /// Makes a thread that waits for a virtual processor exit instead.
    pub(crate) fn dismiss(&self) {
        self.wait_word.exit();
    }

    /// Sleeps until the thread receives a virtual processor; returns `None` if it is to exit.
    pub(crate) fn await_vp(&'static self) -> Option<&'static Vp> {
        // Acquires what the giving thread did, even if an earlier `rouse` caused the check.
        let vp =
            self.wait_word.wait(|| self.settle_claim().or_else(|| self.accept_nomination()))?;
        // SAFETY: `give` made this thread the only holder.
        unsafe { set_current_vp(ptr::from_ref(vp).cast_mut().cast()) };
        Some(vp)
    }

    /// Sleeps until [`rouse`](Self::rouse) or `deadline_ns`; returns whether it was roused.
    pub(crate) fn idle(&self, deadline_ns: Option<u64>) -> bool {
        self.wait_word.idle(deadline_ns)
    }

    /// Masks events on the calling thread; returns whether they were unmasked.
    #[inline(always)]
    pub(crate) fn mask(&self) -> bool {
        self.hold.mask()
    }

    #[inline(always)]
    pub(crate) fn unmask(&self) {
        self.hold.unmask();
    }

    /// Whether events are masked, as seen by other threads.
    pub(crate) fn is_masked(&self) -> bool {
        self.hold.is_masked()
    }
}

impl fmt::Debug for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelThread").field("tid", &self.tid).finish_non_exhaustive()
    }
}

/// A kernel thread outside the runtimes calls the runtime: locks must exclude from now on.
#[cold]
fn foreign() -> &'static KernelThread {
    spin::require();
    &FOREIGN
}
