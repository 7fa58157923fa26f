//! The control block of a microprocess.
//!
//! A record lies at the top of its own stack slot (see [`slot`](crate::processor::slot)). It is
//! recycled with the slot and never unmapped, so a reference to a record is valid for ever. A stale
//! reference at worst reaches the next user of the slot. `id` distinguishes the users.
//!
//! # Access rules
//! * **Cells** belong to the virtual processor in `home`: only its holder accesses them, with
//!   events masked. The home of a microprocess changes only while the microprocess is suspended and
//!   in no run queue.
//! * `remote` and `inbox_next` carry requests of all other threads. A thread sets a bit; if it was
//!   the first bit, the thread also links the record into its home's inbox.
//! * `completion` has a lock of its own.
#![expect(unsafe_code, reason = "states which fields are shared, and how")]

use core::any::Any;
use core::cell::Cell;
use core::{fmt, ptr};
use std::rc::Rc;

use kyocho_arch::Context;
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::data::heap::{Linked, Links, Sleeping};
use crate::data::run_queue::Queued;
use crate::data::stackless::Stackless;
use crate::data::statistics::Counter;
use crate::processor::inherit::Inheritance;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::orders::Orders;
use crate::processor::published::{Published, PublishedName, PublishedReason};
use crate::processor::scheduler::Scheduling;
use crate::processor::spin::SpinLock;
use crate::processor::vp::{Home, Vp};
use crate::protocol::inbox::Posted;
use crate::protocol::tenure;

mod home;
mod name;
mod reason;
mod reference;

pub(crate) use home::make_runnable_from;
pub(crate) use name::{NAME_BYTES_MAX, Name};
pub(crate) use reason::KINDS;
pub use reason::{Kind, Reason};
pub(crate) use reference::MicroprocessRef;

/// The local values of one microprocess, by the number of their key. A value is shared with the
/// code that uses it.
pub(crate) type Locals = Vec<Option<Rc<dyn Any>>>;

/// Bits of [`Record::remote`], above [`inbox::LINKED`].
pub(crate) mod remote {
    /// A synchronisation object has chosen it to be woken.
    pub(crate) const WAKE: u32 = 2;
    /// `Microprocess::unpark` was called.
    pub(crate) const UNPARK: u32 = 4;
    /// It is runnable and comes from another virtual processor or from the kernel.
    pub(crate) const ARRIVE: u32 = 8;
    /// Its orders have changed.
    pub(crate) const ORDERS: u32 = 16;
    /// Its kernel thread woke from a sleep in the kernel.
    pub(crate) const UNBLOCKED: u32 = 32;
    /// Its priority, its parameter or its pin was changed.
    pub(crate) const CHANGED: u32 = 64;
}

/// Pinned to no virtual processor.
pub(crate) const ANYWHERE: usize = usize::MAX;

/// The life cycle of a microprocess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No microprocess: the slot is free.
    Free,
    /// Running, in a run queue, or about to be in one.
    Runnable,
    /// Waits for another microprocess, for I/O of the runtime or for a point in time.
    Parked,
    /// Its kernel thread sleeps in the kernel, or has woken and not called the runtime since.
    Blocked,
    /// Suspended by an order; would be runnable otherwise. In no queue.
    Suspended,
    /// It has ended; the slot waits for its handle.
    Finished,
    /// It never runs again although it has not ended. There may still be pointers into its stack.
    Abandoned,
}

/// The names of the [`State`]s, in order, for debuggers.
pub(crate) const STATES: &str = "free runnable parked blocked suspended finished abandoned";

/// The offset of the level in a record, for debuggers.
pub(crate) const LEVEL_OFFSET: usize = core::mem::offset_of!(Record, level);

/// The end of a microprocess, and its joiner.
pub(crate) struct Completion {
    pub(crate) lock: SpinLock,
    /// The microprocess has ended. Its result is in the slot, unless it was abandoned.
    pub(crate) finished: Cell<bool>,
    /// The result is in the slot, and the microprocess is about to leave its stack.
    pub(crate) finishing: Cell<bool>,
    /// The result will not be asked for.
    pub(crate) detached: Cell<bool>,
    pub(crate) joiner: Cell<Option<&'static Record>>,
    /// It was killed where it could not unwind. There is no result, and its slot is never reused.
    pub(crate) abandoned: Cell<bool>,
}

/// A control block. The module's documentation has the access rules.
///
/// The fields that every wait, wake and switch uses come first and fit one cache line; the timer is
/// in the next. So of a hundred microprocesses that take turns, the caches hold only a few lines
/// each.
#[repr(C, align(64))]
pub(crate) struct Record {
    /// Where it continues, while it is not running.
    pub(crate) context: Cell<Context>,
    /// The next one in a run queue, or in a list of free slots.
    pub(crate) link: Cell<Option<&'static Self>>,
    pub(crate) home: Home,
    /// How often it was given a virtual processor. Incremented by the holder.
    pub(crate) switches: Counter,
    pub(crate) reason: PublishedReason,
    /// How many mutexes it holds. Changed by the microprocess itself, with events masked.
    mutexes: Cell<u32>,
    pub(crate) state: Published<State>,
    /// The level at which it is queued. Changed by the home's holder.
    level: AtomicU8,
    /// The level that was asked for. It becomes `level` when the home's holder handles the change.
    asked_level: AtomicU8,
    /// Switching to it takes more than a switch of stacks: it is stackless, bound to a kernel
    /// thread, has orders, or must move to another virtual processor.
    pub(crate) special: Cell<bool>,
    pub(crate) is_stackless: Cell<bool>,
    /// Suspends together with its kernel thread: it is stackless, or called
    /// [`bound`](crate::schedule::bound()).
    pub(crate) in_place: Cell<bool>,
    /// An `unpark` came before its `park`.
    pub(crate) token: Cell<bool>,
    /// The last wait ended by its deadline; a wake for that wait may still arrive.
    pub(crate) timed_out: Cell<bool>,
    /// It kept the virtual processor at the end of its time slice because it held a mutex.
    is_prolonged: Cell<bool>,
    pub(crate) timer: Links<Self>,
    /// The levels donated to it by others that wait for it.
    pub(crate) inheritance: Inheritance,
    /// The virtual processor it must run on, or [`ANYWHERE`].
    pin: AtomicUsize,
    /// The size class of its slot.
    pub(crate) class: Cell<u8>,
    /// The microprocess whose end it waits for. In a list of magazines: the next magazine of free
    /// slots.
    pub(crate) joins: Cell<Option<&'static Self>>,
    /// It was unwinding when it last suspended together with its kernel thread.
    pub(crate) is_unwinding: Cell<bool>,
    /// It has left its body: a kill comes too late.
    pub(crate) is_ending: Cell<bool>,
    /// If killed, it runs to its next kill point, however far that is.
    pub(crate) always_unwinds: Cell<bool>,
    pub(crate) orders: Orders,
    /// The members of the scope to which it belongs, from its beginning until it leaves the scope;
    /// null otherwise.
    pub(crate) scope: AtomicPtr<()>,
    /// The only kernel thread that can run it, while it is bound to one.
    pub(crate) bound: Cell<Option<&'static KernelThread>>,
    pub(crate) scheduling: Scheduling,
    pub(crate) completion: Completion,
    /// Bits of [`remote`].
    pub(crate) remote: AtomicU32,
    /// Not zero if the scheduler needs the virtual processor back soon.
    pub(crate) poll: AtomicU32,
    pub(crate) inbox_next: AtomicPtr<Self>,
    pub(crate) id: AtomicU64,
    /// CPU time, as sampled and added up by the monitor.
    pub(crate) cpu_ns: AtomicU64,
    /// The id of the holder of the mutex that it waits for, as of the beginning of the wait.
    pub(crate) held_by: AtomicU64,
    /// The first address of the slot, where the guard page is.
    pub(crate) slot: Cell<*mut u8>,
    pub(crate) name: PublishedName,
    /// The step function of a stackless microprocess.
    pub(crate) machine: Cell<Option<Box<dyn Stackless>>>,
    /// Microprocess-local values. Used by the microprocess itself, which removes them before it
    /// ends.
    pub(crate) locals: Cell<Option<Box<Locals>>>,
}

// SAFETY: cells are accessed only by the home's holder (rules above); everything else is atomic or
// has a lock.
unsafe impl Sync for Record {}

const _: () = assert!(
    core::mem::offset_of!(Record, timer) == 64,
    "the fields that a switch uses fit one cache line"
);

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Queued for Record {
    #[inline]
    fn link(&self) -> &Cell<Option<&'static Self>> {
        &self.link
    }
}

impl Linked<Sleeping> for Record {
    #[inline]
    fn links(&self) -> &Links<Self> {
        &self.timer
    }
}

impl Posted for Record {
    #[inline]
    fn bits(&self) -> &AtomicU32 {
        &self.remote
    }

    #[inline]
    fn next(&self) -> &AtomicPtr<Self> {
        &self.inbox_next
    }
}

impl Record {
    /// The record of a free slot.
    pub(crate) const fn new(slot: *mut u8, class: u8) -> Self {
        Self {
            context: Cell::new(Context::NULL),
            link: Cell::new(None),
            state: Published::new(State::Free),
            level: AtomicU8::new(0),
            asked_level: AtomicU8::new(0),
            pin: AtomicUsize::new(ANYWHERE),
            inheritance: Inheritance::new(),
            special: Cell::new(false),
            is_stackless: Cell::new(false),
            in_place: Cell::new(false),
            token: Cell::new(false),
            timed_out: Cell::new(false),
            class: Cell::new(class),
            reason: PublishedReason::new(),
            bound: Cell::new(None),
            timer: Links::new(),
            scheduling: Scheduling::new(),
            completion: Completion {
                lock: SpinLock::new(),
                finished: Cell::new(false),
                finishing: Cell::new(false),
                detached: Cell::new(false),
                joiner: Cell::new(None),
                abandoned: Cell::new(false),
            },
            joins: Cell::new(None),
            is_unwinding: Cell::new(false),
            is_ending: Cell::new(false),
            always_unwinds: Cell::new(false),
            orders: Orders::new(),
            scope: AtomicPtr::new(ptr::null_mut()),
            remote: AtomicU32::new(0),
            poll: AtomicU32::new(0),
            inbox_next: AtomicPtr::new(ptr::null_mut()),
            home: Home::nowhere(),
            id: AtomicU64::new(0),
            switches: Counter::new(),
            cpu_ns: AtomicU64::new(0),
            held_by: AtomicU64::new(0),
            mutexes: Cell::new(0),
            is_prolonged: Cell::new(false),
            slot: Cell::new(slot),
            name: PublishedName::new(),
            machine: Cell::new(None),
            locals: Cell::new(None),
        }
    }

    /// Makes the record of a free slot that of a new microprocess. A message for the last user may
    /// still be in an inbox: `remote` and its link stay as they are, and the message follows the
    /// home.
    #[inline]
    pub(crate) fn renew(&self, home: &'static Vp, id: u64, level: u8, context: Context) {
        let set_home = || self.home.begin_at(home);
        tenure::renew(&self.id, set_home, || self.state.set(State::Runnable));
        self.context.set(context);
        // No microprocess waits for it yet.
        self.asked_level.store(level, Ordering::Relaxed);
        if self.inheritance.level() != 0 {
            self.inheritance.forget();
        }
        self.take_asked_level();
        self.pin.store(ANYWHERE, Ordering::Relaxed);
        self.scheduling.renew();
        self.special.set(false);
        self.is_stackless.set(false);
        self.in_place.set(false);
        self.token.set(false);
        self.timed_out.set(false);
        // A runtime that stopped may have abandoned it while it slept.
        self.timer.forget();
        self.completion.finished.set(false);
        self.completion.finishing.set(false);
        self.completion.detached.set(false);
        self.completion.joiner.set(None);
        self.completion.abandoned.set(false);
        self.is_ending.set(false);
        self.always_unwinds.set(false);
        self.mutexes.set(0);
        self.is_prolonged.set(false);
        self.orders.renew(id);
        self.switches.reset();
        self.cpu_ns.store(0, Ordering::Relaxed);
        self.poll.store(0, Ordering::Relaxed);
        tenure::begin(&self.id, id);
    }

    /// Abandons the microprocess, which never runs again: handles to it become stale. `false` if
    /// the record has no microprocess. Called when its run ends.
    pub(crate) fn abandon(&self) -> bool {
        // The lock is taken in any case: the bias of short locks does not cover the calling thread.
        self.completion.lock.contend();
        let ended = tenure::end(&self.id, self.id());
        self.completion.lock.release();
        ended
    }

    /// Whether microprocess `id` has finished; `None` if the record no longer belongs to it. The
    /// completion's lock must be held.
    #[inline]
    pub(crate) fn has_finished(&self, id: u64) -> Option<bool> {
        tenure::while_it_is(&self.id, id, || self.completion.finished.get())
    }

    /// The virtual processor to which it belongs.
    #[inline]
    pub(crate) fn home(&self) -> &'static Vp {
        // SAFETY: set by `renew` before any other thread knows the record. Virtual processors are
        // never freed.
        unsafe { &*self.home.address() }
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Asked at the end of a time slice: whether the microprocess runs for one more because it
    /// holds a mutex. Never twice in a row.
    ///
    /// A mutex is handed to its first waiter. If the holder stopped here, every microprocess that
    /// runs meanwhile would queue up behind it. From then on each of them would stop at each of its
    /// locks: a convoy, in which a lock costs a switch.
    pub(crate) fn prolongs_slice(&self) -> bool {
        let prolongs = self.mutexes.get() > 0 && !self.is_prolonged.get();
        self.is_prolonged.set(prolongs);
        prolongs
    }

    /// Recomputes `special`, after a change of what it depends on. Call as its home's holder.
    pub(crate) fn refresh_special(&self) {
        let bound = self.bound.get().is_some();
        let leaves = self.destination().is_some();
        self.special.set(bound || leaves || self.is_stackless.get() || self.orders.is_any());
    }

    /// Removes it from the record that it joins, if it joins one; `false` if it is already about to
    /// be woken.
    pub(crate) fn stop_joining(&'static self) -> bool {
        let Some(joined) = self.joins.take() else { return true };
        joined.completion.lock.acquire();
        let registered = joined.completion.joiner.get().is_some_and(|joiner| ptr::eq(joiner, self));
        if registered {
            joined.completion.joiner.set(None);
        }
        joined.completion.lock.release();
        registered
    }

    /// The level of its priority.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// The level that was asked for last. Accessed in one total order with the [donated
    /// level](Inheritance::level).
    pub(crate) fn asked_level(&self) -> u8 {
        self.asked_level.load(Ordering::SeqCst)
    }

    /// Asks for another level. May be called by any thread. The home applies it on the message
    /// [`remote::CHANGED`].
    pub(crate) fn ask_level(&self, level: u8) {
        self.asked_level.store(level, Ordering::SeqCst);
    }

    /// Applies the asked or inherited level. Call as the home's holder; the record is in no run
    /// queue.
    pub(crate) fn take_asked_level(&self) {
        self.level.store(self.effective_level(), Ordering::Relaxed);
    }
}
