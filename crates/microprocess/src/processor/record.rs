//! The control block of a microprocess.
//!
//! A record lies at the top of its own stack slot (see [`slot`](crate::processor::slot)) and is recycled with it, never
//! unmapped: a reference to one is good for ever, and a stale one meets at worst the next user of the slot.
//! `id` tells the users apart.
//!
//! # Who may touch what
//! * **Cells** belong to the virtual processor in `home`: only its holder touches them, with
//!   events masked. A microprocess changes its home only while it stands in a run queue.
//! * `remote` and `inbox_next` are how everybody else asks for something: a bit is set, and whoever set the first one
//!   links the record into its home's inbox.
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
use crate::processor::scheduler::Scheduling;
use crate::processor::shown::{Shown, ShownName, ShownReason};
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

/// The values of one microprocess, by the number of their key. A value is shared with who looks at it.
pub(crate) type Locals = Vec<Option<Rc<dyn Any>>>;

/// Bits of [`Record::remote`], above [`inbox::LINKED`].
pub(crate) mod remote {
    /// A waker of a synchronisation object chose it.
    pub(crate) const WAKE: u32 = 2;
    /// `Microprocess::unpark` was called.
    pub(crate) const UNPARK: u32 = 4;
    /// It is runnable and comes from another virtual processor, or from the kernel.
    pub(crate) const ARRIVE: u32 = 8;
    /// Its orders have changed.
    pub(crate) const ORDERS: u32 = 16;
    /// Its kernel thread came back from a sleep in the kernel.
    pub(crate) const UNBLOCKED: u32 = 32;
    /// Its priority, its parameter or where it may run was changed.
    pub(crate) const CHANGED: u32 = 64;
}

/// Pinned to no virtual processor.
pub(crate) const ANYWHERE: usize = usize::MAX;

/// Where a microprocess is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Nobody: the slot is free.
    Free,
    /// On a virtual processor, in a run queue, or on the way into one.
    Runnable,
    /// Waits for another microprocess, for I/O of the runtime or for a point in time.
    Parked,
    /// Its kernel thread sleeps in the kernel, or has woken there and not called us since.
    Blocked,
    /// Runnable but for an order to stand still; in no queue.
    Suspended,
    /// Over; the slot waits for its handle.
    Finished,
    /// It never runs again although it has not ended, and somebody may still point into its stack.
    Abandoned,
}

/// The names of [`State`]s, in order, for debuggers.
pub(crate) const STATES: &str = "free runnable parked blocked suspended finished abandoned";

/// Where in a record its level is, for debuggers.
pub(crate) const LEVEL_OFFSET: usize = core::mem::offset_of!(Record, level);

/// The end of a microprocess, and who waits for it.
pub(crate) struct Completion {
    pub(crate) lock: SpinLock,
    /// The result lies in the slot.
    pub(crate) finished: Cell<bool>,
    /// The result lies in the slot, and the microprocess is about to leave its stack.
    pub(crate) finishing: Cell<bool>,
    /// Nobody will ask for the result.
    pub(crate) detached: Cell<bool>,
    pub(crate) joiner: Cell<Option<&'static Record>>,
    /// It was killed where it could not unwind: there is no result, and its slot stays its own.
    pub(crate) abandoned: Cell<bool>,
}

/// A control block. See the module's text for who may touch what.
///
/// What every wait, wake and switch touches comes first and fits one cache line, with the timer in the next: of some hundred
/// microprocesses that take turns the caches hold a few lines each.
#[repr(C, align(64))]
pub(crate) struct Record {
    /// Where it goes on, while it is not running.
    pub(crate) context: Cell<Context>,
    /// Behind it in a run queue, or in a list of free slots.
    pub(crate) link: Cell<Option<&'static Self>>,
    pub(crate) home: Home,
    /// How often it got a virtual processor; advanced by the holder.
    pub(crate) switches: Counter,
    pub(crate) reason: ShownReason,
    /// Mutexes that it holds; touched by itself, masked.
    mutexes: Cell<u32>,
    pub(crate) state: Shown<State>,
    /// What it is queued at: changed by the home's holder.
    level: AtomicU8,
    /// What was asked for: becomes `level` where it is handled.
    asked_level: AtomicU8,
    /// A switch of stacks does not do: stackless, bound to a kernel thread, or to run on another virtual processor.
    pub(crate) special: Cell<bool>,
    pub(crate) is_stackless: Cell<bool>,
    /// Suspends together with its kernel thread: stackless, or [`bound`](crate::schedule::bound()) by itself.
    pub(crate) in_place: Cell<bool>,
    /// An `unpark` came before its `park`.
    pub(crate) token: Cell<bool>,
    /// The last wait ended by its deadline: a wake for it may still be on its way.
    pub(crate) timed_out: Cell<bool>,
    /// It kept the processor at the end of its time slice, because it held a mutex.
    is_prolonged: Cell<bool>,
    pub(crate) timer: Links<Self>,
    /// What others who wait for it give.
    pub(crate) inheritance: Inheritance,
    /// The virtual processor it must run on, or [`ANYWHERE`].
    pin: AtomicUsize,
    /// Size class of its slot.
    pub(crate) class: Cell<u8>,
    /// Whose end it waits for, while it does; the next magazine of free slots.
    pub(crate) joins: Cell<Option<&'static Self>>,
    /// It unwound when it last suspended together with its kernel thread.
    pub(crate) is_unwinding: Cell<bool>,
    /// Past its body: a kill comes too late.
    pub(crate) is_ending: Cell<bool>,
    /// Killed, it goes on to its next kill point, however far that is.
    pub(crate) always_unwinds: Cell<bool>,
    pub(crate) orders: Orders,
    /// The members of the scope that it belongs to, while its body runs.
    pub(crate) scope: AtomicPtr<()>,
    /// The kernel thread that alone can run it, while it is bound to one.
    pub(crate) bound: Cell<Option<&'static KernelThread>>,
    pub(crate) scheduling: Scheduling,
    pub(crate) completion: Completion,
    /// Bits of [`remote`].
    pub(crate) remote: AtomicU32,
    /// Non-zero when the scheduler wants the processor back soon.
    pub(crate) poll: AtomicU32,
    pub(crate) inbox_next: AtomicPtr<Self>,
    pub(crate) id: AtomicU64,
    /// Time it was seen running; added up by the monitor.
    pub(crate) cpu_ns: AtomicU64,
    /// Who held the mutex that it waits for, when the wait began.
    pub(crate) held_by: AtomicU64,
    /// First address of the slot, where the guard is.
    pub(crate) slot: Cell<*mut u8>,
    pub(crate) name: ShownName,
    /// The step function, of a stackless one.
    pub(crate) machine: Cell<Option<Box<dyn Stackless>>>,
    /// Microprocess-local values; touched by the microprocess itself, which takes them out before its end.
    pub(crate) locals: Cell<Option<Box<Locals>>>,
}

// SAFETY: cells are touched by the home's holder alone (module text); the rest is atomic or has a lock.
unsafe impl Sync for Record {}

const _: () =
    assert!(core::mem::offset_of!(Record, timer) == 64, "what a switch touches fits a cache line");

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
            state: Shown::new(State::Free),
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
            reason: ShownReason::new(),
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
            name: ShownName::new(),
            machine: Cell::new(None),
            locals: Cell::new(None),
        }
    }

    /// Makes the record of a free slot that of a new microprocess. A message for the last user may
    /// still be in an inbox: `remote` and its link stay as they are, and the message follows the home.
    #[inline]
    pub(crate) fn renew(&self, home: &'static Vp, id: u64, level: u8, context: Context) {
        let set_home = || self.home.begin_at(home);
        tenure::renew(&self.id, set_home, || self.state.set(State::Runnable));
        self.context.set(context);
        // Nobody waits for it yet.
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
        // A runtime that stopped may have abandoned a sleeper.
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

    /// Ends the microprocess, which never runs again: handles to it are stale. `false` if it has none. By who ends its run.
    pub(crate) fn abandon(&self) -> bool {
        // Taken in any case: the bias of short locks says nothing of the calling thread.
        self.completion.lock.contend();
        let ended = tenure::end(&self.id, self.id());
        self.completion.lock.release();
        ended
    }

    /// Whether microprocess `id` has finished; `None` if the record is no longer its. The completion's lock is held.
    #[inline]
    pub(crate) fn has_finished(&self, id: u64) -> Option<bool> {
        tenure::while_it_is(&self.id, id, || self.completion.finished.get())
    }

    /// The virtual processor it belongs to.
    #[inline]
    pub(crate) fn home(&self) -> &'static Vp {
        // SAFETY: set by `renew` before anybody knows the record; virtual processors live for ever.
        unsafe { &*self.home.address() }
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Asked at the end of its time slice: whether it goes on for one more because it holds a mutex. Not twice in a row.
    ///
    /// A mutex is handed to the first that waits. If its holder stopped, all that run meanwhile would queue up behind it, and for ever after
    /// each would stop at each of its locks: a convoy, in which a lock costs a switch.
    pub(crate) fn prolongs_slice(&self) -> bool {
        let prolongs = self.mutexes.get() > 0 && !self.is_prolonged.get();
        self.is_prolonged.set(prolongs);
        prolongs
    }

    /// What a switch to it needs, after a change of what it depends on. By its home's holder.
    pub(crate) fn refresh_special(&self) {
        let bound = self.bound.get().is_some();
        let leaves = self.destination().is_some();
        self.special.set(bound || leaves || self.is_stackless.get() || self.orders.is_any());
    }

    /// Takes it off the list of whom it joins, if it joins; `false` if it is about to be woken already.
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

    /// Its priority's level.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// The level that was asked for last; in one order with what is [given](Inheritance::level).
    pub(crate) fn asked_level(&self) -> u8 {
        self.asked_level.load(Ordering::SeqCst)
    }

    /// Asks for another level, from anywhere: the home takes it over when it is told of [`remote::CHANGED`].
    pub(crate) fn ask_level(&self, level: u8) {
        self.asked_level.store(level, Ordering::SeqCst);
    }

    /// Takes over the level that was asked for, or inherited. By the home's holder; the record is in no run queue.
    pub(crate) fn take_asked_level(&self) {
        self.level.store(self.effective_level(), Ordering::Relaxed);
    }
}
