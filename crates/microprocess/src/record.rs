//! The control block of a microprocess.
//!
//! A record lies at the top of its own stack slot (see [`slot`](crate::slot)) and is recycled with it, never
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

use core::cell::Cell;
use core::{fmt, ptr};

use kyocho_arch::Context;
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::heap::{Linked, Links, Sleeping};
use crate::inbox::{self, Posted};
use crate::inherit::Inheritance;
use crate::kernel_thread::KernelThread;
use crate::local::Locals;
use crate::orders::Orders;
use crate::run_queue::Queued;
use crate::scheduler::Scheduling;
use crate::shown::{Shown, ShownName, ShownReason};
use crate::spin::SpinLock;
use crate::stackless::Stackless;
use crate::statistics::Counter;
use crate::vp::Vp;

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

/// The names of [`Kind`]s, in order, for debuggers.
pub(crate) const KINDS: &str = "nothing,an unpark,time,the end of,scope,mutex,spin mutex,reader-writer lock,\
    condition variable,semaphore,barrier,send on,receive from,select,input or output on,another process at";

/// Where in a record its level is, for debuggers.
pub(crate) const LEVEL_OFFSET: usize = core::mem::offset_of!(Record, level);

/// What kind of thing a parked microprocess waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// Nothing: it was never parked.
    Nothing,
    /// An `unpark`.
    Park,
    /// A point in time.
    Sleep,
    /// The end of another microprocess.
    Join,
    /// The end of a scope's microprocesses.
    Scope,
    /// A mutex.
    Mutex,
    /// A spin lock whose holder does not run.
    SpinMutex,
    /// A reader-writer lock.
    RwLock,
    /// A condition variable.
    Condvar,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// Room in a channel, or its receiver.
    Send,
    /// A message.
    Receive,
    /// One of several channel operations.
    Select,
    /// Input or output.
    Io,
    /// A word that another process changes.
    Bell,
}

/// What a parked microprocess waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// Its kind.
    pub kind: Kind,
    /// Which one: an address, or the id of a microprocess for [`Kind::Join`]; 0 where there is none.
    pub object: usize,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Nothing => return f.write_str("nothing"),
            Kind::Park => return f.write_str("an unpark"),
            Kind::Sleep => return f.write_str("a point in time"),
            Kind::Join => return write!(f, "the end of microprocess {}", self.object),
            Kind::Scope => "the microprocesses of scope",
            Kind::Mutex => "mutex",
            Kind::SpinMutex => "spin lock",
            Kind::RwLock => "reader-writer lock",
            Kind::Condvar => "condition variable",
            Kind::Semaphore => "semaphore",
            Kind::Barrier => "barrier",
            Kind::Send => "sending on channel",
            Kind::Receive => "receiving from channel",
            Kind::Select => "a select on channel",
            Kind::Io => "input or output on",
            Kind::Bell => "another process, at",
        };
        write!(f, "{what} {:#x}", self.object)
    }
}

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

/// The longest name kept, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 39;

/// A name, inside the record: setting it allocates nothing, reading it follows no pointer.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    bytes_used: u8,
    bytes: [u8; NAME_BYTES_MAX],
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Name {
    pub(crate) const NONE: Self = Self { bytes_used: 0, bytes: [0; NAME_BYTES_MAX] };

    /// `text`, cut after the last character that fits.
    pub(crate) fn new(text: &str) -> Self {
        let mut end = text.len().min(NAME_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = Self::NONE;
        name.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        name.bytes_used = end as u8;
        name
    }

    /// Its bytes, the number of those used in the last.
    pub(crate) fn to_bytes(self) -> [u8; NAME_BYTES_MAX + 1] {
        let mut all = [0; NAME_BYTES_MAX + 1];
        all[..NAME_BYTES_MAX].copy_from_slice(&self.bytes);
        all[NAME_BYTES_MAX] = self.bytes_used;
        all
    }

    /// What [`to_bytes`](Self::to_bytes) gave.
    pub(crate) fn from_bytes(all: [u8; NAME_BYTES_MAX + 1]) -> Self {
        let mut name = Self::NONE;
        name.bytes.copy_from_slice(&all[..NAME_BYTES_MAX]);
        name.bytes_used = all[NAME_BYTES_MAX];
        name
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self.bytes.get(..usize::from(self.bytes_used)) {
            None | Some([]) => None,
            Some(bytes) => core::str::from_utf8(bytes).ok(),
        }
    }
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
    pub(crate) home: AtomicPtr<Vp>,
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
    /// Suspends together with its kernel thread: stackless, or [`bound`](crate::bound()) by itself.
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
    /// Whose end it waits for, while it does.
    pub(crate) joins: Cell<Option<&'static Self>>,
    /// It unwound when it last suspended together with its kernel thread.
    pub(crate) is_unwinding: Cell<bool>,
    /// Past its body: a kill comes too late.
    pub(crate) is_ending: Cell<bool>,
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
            orders: Orders::new(),
            scope: AtomicPtr::new(ptr::null_mut()),
            remote: AtomicU32::new(0),
            poll: AtomicU32::new(0),
            inbox_next: AtomicPtr::new(ptr::null_mut()),
            home: AtomicPtr::new(ptr::null_mut()),
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
    /// still be in an inbox: `remote` and its link stay as they are.
    #[inline]
    pub(crate) fn renew(&self, home: &'static Vp, id: u64, level: u8, context: Context) {
        self.context.set(context);
        self.state.set(State::Runnable);
        self.ask_level(level);
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
        self.mutexes.set(0);
        self.is_prolonged.set(false);
        self.orders.renew(id);
        self.switches.reset();
        self.cpu_ns.store(0, Ordering::Relaxed);
        self.poll.store(0, Ordering::Relaxed);
        self.home.store(ptr::from_ref(home).cast_mut(), Ordering::Relaxed);
        self.id.store(id, Ordering::Relaxed);
    }

    /// The virtual processor it belongs to.
    #[inline]
    pub(crate) fn home(&self) -> &'static Vp {
        let home = self.home.load(Ordering::Acquire);
        // SAFETY: set by `renew` before anybody knows the record; virtual processors live for ever.
        unsafe { &*home }
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

    /// The level that was asked for last.
    pub(crate) fn asked_level(&self) -> u8 {
        self.asked_level.load(Ordering::Relaxed)
    }

    /// Asks for another level, from anywhere: the home takes it over when it is told of [`remote::CHANGED`].
    pub(crate) fn ask_level(&self, level: u8) {
        self.asked_level.store(level, Ordering::Relaxed);
    }

    /// Takes over the level that was asked for, or inherited. By the home's holder; the record is in no run queue.
    pub(crate) fn take_asked_level(&self) {
        self.level.store(self.effective_level(), Ordering::Relaxed);
    }

    /// Pins it to virtual processor `index`, or lets it run [`ANYWHERE`], from anywhere: as with levels.
    pub(crate) fn pin_to(&self, index: usize) {
        self.pin.store(index, Ordering::Relaxed);
    }

    /// The virtual processor it is pinned to, or [`ANYWHERE`].
    pub(crate) fn pin(&self) -> usize {
        self.pin.load(Ordering::Relaxed)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pin() != ANYWHERE
    }

    /// The virtual processor that it must go to: the one it is pinned to, if that runs; any that runs, if its home is retired.
    pub(crate) fn destination(&self) -> Option<&'static Vp> {
        let (pin, home) = (self.pin(), self.home());
        if pin == home.index || pin == ANYWHERE && !home.is_retired() {
            return if home.is_retired() { self.refuge(home) } else { None };
        }
        let pinned_to = home.shared().vp(pin);
        pinned_to.or_else(|| if home.is_retired() { self.refuge(home) } else { None })
    }

    /// The virtual processor for it while `home` is retired: the same at every look, and all of them about equally often.
    #[cold]
    fn refuge(&self, home: &Vp) -> Option<&'static Vp> {
        let shared = home.shared();
        shared.vp(self.id() as usize % shared.concurrency())
    }

    /// Sends it to `vp`, where it will be runnable. It stands in no queue, and its stack was left.
    pub(crate) fn send_to(&'static self, vp: &'static Vp) {
        self.home.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
        self.refresh_special();
        self.post(remote::ARRIVE);
    }

    /// Leaves a message for the holder of its home, from the holder of `vp`.
    ///
    /// If it is parked and its home idle, it moves to `vp` instead: waking an idle processor takes a thousand times as long as switching
    /// on a busy one. Who owns the `LINKED` bit alone decides about it then: its home is asleep, and its stack was left before that.
    pub(crate) fn post_from(&'static self, vp: &'static Vp, bits: u32) {
        if !inbox::ask(self, bits) {
            return;
        }
        let home = self.home();
        let may_move = !vp.is_foreign()
            && home.is_idle()
            && ptr::eq(home.shared(), vp.shared())
            && self.state.get() == State::Parked
            && self.bound.get().is_none()
            && !self.is_pinned()
            && !self.timer.is_set();
        if may_move {
            self.home.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
            vp.handle(self);
        } else {
            home.receive(self);
        }
    }

    /// Leaves a message for the holder of its home, from anywhere.
    pub(crate) fn post(&'static self, bits: u32) {
        if inbox::ask(self, bits) {
            self.home().receive(self);
        }
    }
}

/// A reference to a microprocess that is known to be alive: one that waits, or the current one.
#[derive(Clone, Copy)]
pub(crate) struct MicroprocessRef(pub(crate) &'static Record);

impl fmt::Debug for MicroprocessRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for MicroprocessRef {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for MicroprocessRef {}

impl MicroprocessRef {
    /// The caller.
    ///
    /// # Panics
    /// Called outside a microprocess.
    #[inline]
    pub(crate) fn current() -> Self {
        Self(crate::schedule::current())
    }

    /// Whether it never runs again although it has not ended.
    #[inline]
    pub(crate) fn is_abandoned(self) -> bool {
        self.0.state.get() == State::Abandoned
    }

    /// Its level.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        self.0.level()
    }

    pub(crate) fn id(self) -> u64 {
        self.0.id()
    }

    /// Counts a mutex that the caller, this one, has got.
    #[inline]
    pub(crate) fn holds_one_more(self) {
        self.0.mutexes.set(self.0.mutexes.get() + 1);
    }

    /// Counts a mutex that the caller, this one, gives up: perhaps not one that it counted, if the program breaks the rules.
    #[inline]
    pub(crate) fn holds_one_less(self) {
        self.0.mutexes.set(self.0.mutexes.get().saturating_sub(1));
    }
}
