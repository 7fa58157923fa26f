//! Kernel threads: what carries a virtual processor.
//!
//! A kernel thread runs one of three things: its *base* (the dispatching loop, on its own stack), a microprocess while it
//! holds a virtual processor, or a microprocess that lost its virtual processor while it slept in the kernel.
//! Everybody else waits in [`KernelThread::await_vp`].
//!
//! How one is lost: [`claim`](crate::protocol::claim). How a thread waits: [`turn`](crate::protocol::turn).
#![expect(unsafe_code, reason = "follows the kernel thread's word")]

use core::cell::Cell;
use core::ffi::c_void;
use core::mem::offset_of;
use core::{fmt, ptr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_arch::{
    Context, current_thread_word, current_vp_word, set_current_thread_word, set_current_vp,
};
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use kyocho_sys::signal::use_alternate_stack;
use kyocho_sys::task::{SystemCallReader, ThreadId};
use kyocho_sys::thread::{OnStack, start_on};

use crate::data::view::ViewWords;
use crate::processor::condemned::Strikes;
use crate::processor::event::Registers;
use crate::processor::instruments;
use crate::processor::kernel_stack::{self, KernelStack};
use crate::processor::record::Record;
use crate::processor::reflection::Told;
use crate::processor::spin;
use crate::processor::taking;
use crate::processor::vp::Vp;
use crate::protocol::claim::Hold;
use crate::protocol::turn::Turn;

mod cpus;
mod observed;
mod signals;

use observed::{NO_FILE, open_reader};
pub(crate) use signals::{PREEMPTING, interrupting_signal};

/// Not pinned.
pub(crate) const ANY_CPU: usize = usize::MAX;

/// The runtime's record of one kernel thread. Lives for ever.
#[repr(C, align(64))]
pub(crate) struct KernelThread {
    hold: Hold<Vp>,
    turn: Turn,
    /// Where the dispatching loop goes on.
    pub(crate) base: Cell<Context>,
    /// The microprocess it runs, or that is bound to it; kept when the processor is lost.
    pub(crate) running: Cell<Option<&'static Record>>,
    /// Where its microprocess stopped when it was last bound.
    pub(crate) registers: Cell<Registers>,
    /// Its number; 0 before it runs.
    tid: AtomicU32,
    /// Where it keeps the word that restartable sequences ask for the processor.
    vp_word: AtomicPtr<AtomicPtr<()>>,
    /// The file that tells where it sleeps, or [`NO_FILE`] where the kernel does not let us look. Not in a box: a new thread's first
    /// allocation takes as long as all else it begins with.
    reader: AtomicI32,
    /// What the host's scheduler writes about it; null where nobody has it do that.
    view: AtomicPtr<ViewWords>,
    /// The host ends its sleeps without slack.
    is_exact: Cell<bool>,
    /// It runs where it likes for now, and is to be pinned afterwards.
    roams: AtomicBool,
    /// The CPU it is pinned to, or [`ANY_CPU`].
    cpu: Cell<usize>,
    /// What the host was told of it.
    pub(crate) told: Told,
    /// Carries a microprocess without a virtual processor, or will never be given one again.
    stranded: AtomicU32,
    /// It sleeps in a kernel call that is to end: it is signalled until it comes back.
    called: AtomicBool,
    ended: AtomicU32,
    /// What a new thread finds: for whom, and as what.
    beginning: Cell<Option<(&'static Vp, Role)>>,
    /// Its stacks, from before it begins until after it ended.
    stacks: Cell<Option<KernelStack>>,
    /// Where it was interrupted of late.
    pub(crate) strikes: Cell<Strikes>,
    /// How often in a row its preemption was put off, because it was in the C library.
    pub(crate) put_offs: Cell<u32>,
    /// The virtual processor that it is to take, asked by a sentinel; null otherwise.
    nominated: AtomicPtr<Vp>,
    /// It was the reserve of its pool, and is to run no microprocess while it holds a processor.
    stands_in: Cell<bool>,
    /// Next in the pool.
    pub(crate) pool_next: AtomicPtr<Self>,
}

/// Where the mask is in a record, in bytes.
pub(crate) const MASK_OFFSET: usize = offset_of!(KernelThread, hold) + Hold::<Vp>::MASK_OFFSET;
/// Where the processor is, and the end of what the program in the host's scheduler reads.
pub(crate) const VP_OFFSET: usize = offset_of!(KernelThread, hold) + Hold::<Vp>::VP_OFFSET;
pub(crate) const HEAD_BYTES: usize = VP_OFFSET + size_of::<usize>();

// SAFETY: cells are touched by the thread itself; `stacks` is set while there is none, and read by all; `running` and `registers` also by those who took its processor, `cpu` and `stands_in` by who gives it one,
// while it sleeps. The rest is atomic.
unsafe impl Sync for KernelThread {}

/// Stands for every kernel thread that belongs to no runtime.
static FOREIGN: KernelThread =
    KernelThread::new(ptr::from_ref(&crate::processor::vp::FOREIGN).cast_mut());

impl KernelThread {
    /// Where its number is, for debuggers.
    pub(crate) const TID_OFFSET: usize = core::mem::offset_of!(Self, tid);

    pub(crate) const fn new(vp: *mut Vp) -> Self {
        Self {
            hold: Hold::new(vp),
            turn: Turn::new(),
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
            told: Told::new(),
            stranded: AtomicU32::new(0),
            called: AtomicBool::new(false),
            ended: AtomicU32::new(0),
            beginning: Cell::new(None),
            stacks: Cell::new(None),
            strikes: Cell::new(Strikes::NONE),
            put_offs: Cell::new(0),
            nominated: AtomicPtr::new(ptr::null_mut()),
            stands_in: Cell::new(false),
            pool_next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The calling kernel thread. Read afresh at every call: a microprocess changes threads.
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

    /// Whether this stands for kernel threads of no runtime.
    pub(crate) fn is_foreign(&self) -> bool {
        ptr::eq(self, &raw const FOREIGN)
    }

    /// A record that no kernel thread uses. Allocates.
    pub(crate) fn recycled() -> &'static Self {
        match unused().pop() {
            Some(record) => record,
            None => Box::leak(Box::new(Self::new(ptr::null_mut()))),
        }
    }

    /// Starts a kernel thread with this record, for `vp`. Allocates.
    pub(crate) fn start(&'static self, vp: &'static Vp, role: Role) -> Result<Handle, Errno> {
        let stack = KernelStack::take().inspect_err(|_| self.retire())?;
        self.beginning.set(Some((vp, role)));
        self.stacks.set(Some(stack));
        let argument = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the stack is nobody else's until the handle is joined. `run` catches no panic, so that one ends the process.
        let started = unsafe { start_on(stack.base(), kernel_stack::BASE_BYTES, run, argument) };
        match started {
            Ok(join) => Ok(Handle { thread: self, stack, join }),
            Err(errno) => {
                stack.give_back();
                self.retire();
                Err(errno)
            }
        }
    }

    /// Its stacks; `None` for a kernel thread of no runtime.
    pub(crate) fn stacks(&self) -> Option<KernelStack> {
        self.stacks.get()
    }

    /// Whether the kernel thread is done with its record.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst) != 0
    }

    /// Makes this the record of the calling kernel thread; `reader` tells where it sleeps. Events stay masked.
    pub(crate) fn become_current(&'static self, reader: Option<SystemCallReader>) {
        let word = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the readers expect a `KernelThread`, and this one lives for ever.
        unsafe { set_current_thread_word(word) };
        self.vp_word.store(current_vp_word().cast(), Ordering::Release);
        self.tid.store(ThreadId::current().number(), Ordering::Release);
        if let Some(reader) = reader {
            self.set_reader(reader);
        }
    }

    /// Its number, once it runs.
    pub(crate) fn id(&self) -> Option<ThreadId> {
        match self.tid.load(Ordering::Acquire) {
            0 => None,
            number => Some(ThreadId::new(number)),
        }
    }

    /// The processor it holds. Events must be masked.
    #[inline(always)]
    pub(crate) fn held(&self) -> Option<&'static Vp> {
        self.hold.held()
    }

    /// Whether it carries a microprocess that no virtual processor runs.
    pub(crate) fn is_stranded(&self) -> bool {
        self.stranded.load(Ordering::SeqCst) != 0
    }

    /// Whether what it carries may go on while the caller does something else: it is another thread, and its microprocess is neither
    /// Blocked nor Preempted, nor its CPU taken, as far as known.
    pub(crate) fn may_run_beside(&self) -> bool {
        let on_cpu = || self.view().is_none_or(|view| !view.is_known() || view.is_on_cpu());
        !self.is_stranded() && !ptr::eq(self, Self::current()) && on_cpu()
    }

    pub(crate) fn strand(&self, stranded: bool) {
        self.stranded.store(u32::from(stranded), Ordering::SeqCst);
    }

    /// The kernel call that it sleeps in, without a processor, is to end.
    pub(crate) fn call_back(&self) {
        self.called.store(true, Ordering::SeqCst);
    }

    /// Whether that is so, and it has not come back since.
    pub(crate) fn is_called_back(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// It is back, and nobody takes it for Blocked any more.
    pub(crate) fn has_come_back(&self) {
        self.called.store(false, Ordering::SeqCst);
    }

    /// Takes its processor from the calling thread, for good, in the child process of a fork. Safe in a signal handler.
    pub(crate) fn orphan_current() {
        let thread = if Self::is_ours() { Self::current() } else { &FOREIGN };
        thread.hold.lose();
        // SAFETY: null is always right.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    /// Waits until nobody decides about its processor; the one it holds then.
    #[cold]
    pub(crate) fn settle_claim(&self) -> Option<&'static Vp> {
        self.hold.settle_claim()
    }

    /// Takes `vp` from this thread if `look` finds it asleep where it may lose it; what it found. [`lose`](Self::lose) makes it final.
    pub(crate) fn take<S>(&self, vp: &'static Vp, look: impl FnOnce() -> Option<S>) -> Option<S> {
        self.hold.take(vp, |vp| self.tell_sequences(vp.cast()), look)
    }

    /// Whether somebody decides about its processor just now.
    #[cfg(test)]
    pub(crate) fn is_claimed(&self) -> bool {
        self.hold.is_claimed()
    }

    /// The claim stands: the thread holds nothing.
    pub(crate) fn lose(&self) {
        self.hold.lose();
    }

    /// Sets the word that the thread's restartable sequences look at.
    fn tell_sequences(&self, vp: *mut ()) {
        // SAFETY: null, or static TLS of a thread that lives: it holds a virtual processor.
        if let Some(word) = unsafe { self.vp_word.load(Ordering::Acquire).as_ref() } {
            word.store(vp, Ordering::SeqCst);
        }
    }

    /// Gives up `vp`, which it holds with events masked.
    fn let_go(&self, vp: &'static Vp) {
        self.hold.let_go(vp);
        // SAFETY: null is always right.
        unsafe { set_current_vp(ptr::null_mut()) };
    }

    /// Passes `vp`, which the calling thread holds, to `heir`, who waits for one.
    pub(crate) fn pass(&self, vp: &'static Vp, heir: &'static Self) {
        self.let_go(vp);
        heir.give(vp);
    }

    /// Gives `vp`, which nobody holds, to this thread, which waits for one.
    pub(crate) fn give(&'static self, vp: &'static Vp) {
        self.pin(vp.cpu());
        self.follow(vp);
        self.show(vp);
        self.hold.set(vp);
        self.turn.run();
    }

    /// Gives `vp`, which nobody holds, to this thread, the reserve of a pool that was taken from
    /// there.
    pub(crate) fn give_to_reserve(&'static self, vp: &'static Vp) {
        self.stands_in.set(true);
        self.give(vp);
    }

    /// Whether it has the processor that it was given as a reserve; it has not from here on. This
    /// is the calling thread.
    pub(crate) fn takes_duty(&self) -> bool {
        self.stands_in.replace(false)
    }

    /// Has this thread, which waits for a processor and is in no pool, take `vp` from its holder by itself.
    pub(crate) fn nominate(&self, vp: &'static Vp) {
        self.pin(vp.cpu());
        self.follow(vp);
        self.nominated.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
        self.turn.run();
    }

    /// Takes the processor that this thread, the calling one, was nominated for, if it was.
    fn accept_nomination(&'static self) -> Option<&'static Vp> {
        if self.nominated.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let vp = self.nominated.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: null or set by `nominate` to one that lives for ever.
        let vp = unsafe { vp.as_ref() }?;
        taking::accept(vp, self).then_some(vp)
    }

    /// Holds `vp`, which nobody holds. This is the calling thread, with events masked.
    pub(crate) fn hold(&'static self, vp: &'static Vp) {
        self.follow(vp);
        self.show(vp);
        self.hold.set(vp);
        // SAFETY: nobody else holds it.
        unsafe { set_current_vp(ptr::from_ref(vp).cast_mut().cast()) };
    }

    /// Shows that it is the one that holds `vp` from here on.
    fn show(&self, vp: &Vp) {
        vp.holder.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        vp.bell.show_holder(self.id());
    }

    /// Has the host schedule this thread as it did the last holder of `vp`.
    fn follow(&self, vp: &Vp) {
        if let Some(means) = vp.shared().means {
            self.told.tell(self.id(), vp.reflected.level(), means);
        }
    }

    /// Ends its idling. Comes too late harmlessly: who waits for a processor looks whether it has one.
    pub(crate) fn rouse(&self) {
        self.turn.rouse();
    }

    /// Tells a thread that waits for a processor to exit instead.
    pub(crate) fn dismiss(&self) {
        self.turn.exit();
    }

    /// Sleeps until it is given a virtual processor; `None` when it is to exit.
    pub(crate) fn await_vp(&'static self) -> Option<&'static Vp> {
        // Acquires what the giver did, even where an earlier rouse made the thread look.
        let vp = self.turn.wait(|| self.settle_claim().or_else(|| self.accept_nomination()))?;
        // SAFETY: `give` made this thread the only holder.
        unsafe { set_current_vp(ptr::from_ref(vp).cast_mut().cast()) };
        Some(vp)
    }

    /// Sleeps until [`rouse`](Self::rouse) or `deadline_ns`; tells whether it was roused.
    pub(crate) fn idle(&self, deadline_ns: Option<u64>) -> bool {
        self.turn.idle(deadline_ns)
    }

    /// Masks events on the calling thread; tells whether they were not.
    #[inline(always)]
    pub(crate) fn mask(&self) -> bool {
        self.hold.mask()
    }

    #[inline(always)]
    pub(crate) fn unmask(&self) {
        self.hold.unmask();
    }

    /// Whether events are masked, for others than the thread itself.
    pub(crate) fn is_masked(&self) -> bool {
        self.hold.is_masked()
    }
}

/// A kernel thread of no runtime calls us: from now on, locks must exclude.
#[cold]
fn foreign() -> &'static KernelThread {
    spin::require();
    &FOREIGN
}

/// What a kernel thread starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It holds the virtual processor.
    Holder,
    /// It waits for one.
    Spare,
}

/// The right, and the duty, to join a kernel thread.
#[derive(Debug)]
pub(crate) struct Handle {
    thread: &'static KernelThread,
    stack: KernelStack,
    join: OnStack,
}

impl fmt::Debug for KernelThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelThread").field("tid", &self.tid).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn thread(&self) -> &'static KernelThread {
        self.thread
    }

    /// Waits for the end of the thread. Nobody looks at it any more.
    pub(crate) fn join(self) {
        self.join.join();
        self.stack.give_back();
        self.thread.close_reader();
        self.thread.retire();
    }

    /// The thread sleeps for ever, with its record and its stacks.
    pub(crate) fn forget(self) {
        let Self { join: _never, .. } = self;
    }
}

/// Records whose kernel threads have ended.
static UNUSED: Mutex<Vec<&'static KernelThread>> = Mutex::new(Vec::new());

fn unused() -> MutexGuard<'static, Vec<&'static KernelThread>> {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelThread {
    /// For the next kernel thread.
    fn retire(&'static self) {
        self.hold.renew();
        self.turn.renew();
        self.running.set(None);
        self.nominated.store(ptr::null_mut(), Ordering::Relaxed);
        self.stacks.set(None);
        self.tid.store(0, Ordering::Relaxed);
        self.vp_word.store(ptr::null_mut(), Ordering::Relaxed);
        self.cpu.set(ANY_CPU);
        self.is_exact.set(false);
        self.has_come_back();
        self.ended.store(0, Ordering::Release);
        unused().push(self);
    }
}

/// The life of a kernel thread.
extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a record, which lives for ever.
    let thread = unsafe { &*argument.cast_const().cast::<KernelThread>() };
    let (beginning, stacks) = (thread.beginning.take(), thread.stacks());
    let Some(((vp, role), stack)) = beginning.zip(stacks) else { return ptr::null_mut() };
    thread.told.begin(vp.shared().means);
    instruments::begin_base();
    thread.become_current(open_reader());
    let shared = vp.shared();
    (shared.dispatcher.enter)(thread, shared);
    if role == Role::Holder {
        thread.pin(vp.cpu());
        spin::wake(vp);
    }
    // SAFETY: the memory is this thread's until it is joined. Refused: an overflow ends the process without a word.
    let _mute = unsafe { use_alternate_stack(stack.handlers(), kernel_stack::HANDLER_BYTES) };
    if role == Role::Spare {
        vp.pool.put(thread);
        vp.starting.fetch_sub(1, Ordering::SeqCst);
    }
    (shared.dispatcher.dispatch)(thread);
    (shared.dispatcher.leave)(thread, shared);
    // Its words go with it; destructors of thread-local values find it of no runtime.
    thread.vp_word.store(ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: null is always right.
    unsafe { set_current_thread_word(ptr::null_mut()) };
    thread.ended.store(1, Ordering::SeqCst);
    ptr::null_mut()
}
