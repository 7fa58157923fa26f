//! A Lisp thread: its state as other threads see it, and its machine.
#![expect(unsafe_code, reason = "access to the machine follows the rule that `safepoint` enforces")]

use crate::kernel::lock;
use crate::kernel::session::LispSession;
use crate::kernel::ticket::Ticket;
use core::fmt;
use kyocho_heap::account::Held;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::raise::{self, Raise};
use kyocho_heap::value::Value;
use kyocho_library::printer::{self, Style};
use kyocho_microprocess::{Microprocess, Priority};
use kyocho_syntax::datum::Span;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_vm::machine::outside::PublishedRoots;
use kyocho_vm::machine::{Machine, trace};
use std::sync::{Arc, Mutex, OnceLock};

/// The thread must terminate.
pub(crate) const REQUEST_TERMINATE: u32 = 1 << 0;
/// The user interrupts the evaluation.
pub(crate) const REQUEST_INTERRUPT: u32 = 1 << 1;
/// Every Lisp thread waits for another.
pub(crate) const REQUEST_DEADLOCK: u32 = 1 << 2;
/// Its refill failed, even after a collection.
pub(crate) const REQUEST_OUT_OF_MEMORY: u32 = 1 << 3;
/// The thread must end at once, without its `dynamic-wind` procedures: its grace period is over, or
/// it belonged to a policy that was removed.
pub(crate) const REQUEST_ABANDON: u32 = 1 << 4;

/// Another thread requests a backtrace.
pub(crate) const REQUEST_BACKTRACE: u32 = 1 << 5;

/// Between two steps, and runnable.
pub(crate) const READY: u8 = 0;
/// Running a step.
pub(crate) const RUNNING: u8 = 1;
/// Running a step, in a raw kernel call or long work that accesses nothing of Lisp.
pub(crate) const SAFE: u8 = 2;
/// Between two steps, waiting.
pub(crate) const WAITING: u8 = 3;

/// No request for cells is pending.
pub(crate) const REFILL_IDLE: u8 = 0;
/// The system-call thread has its request, and exclusive use of its cell cache.
pub(crate) const REFILL_REQUESTED: u8 = 1;
/// The request was served.
pub(crate) const REFILL_SERVED: u8 = 2;
/// The request failed.
pub(crate) const REFILL_FAILED: u8 = 3;

/// No policy has set its priority.
const NO_POLICY_LEVEL: u8 = u8::MAX;

/// The life cycle of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Created and not started; it will call this.
    New(Value),
    /// Started.
    Started,
    /// It raised this without a handler, and runs its `dynamic-wind` procedures.
    Failing(Value),
    /// It returned this.
    Returned(Value),
    /// It raised this without a handler.
    Uncaught(Value),
    /// It was terminated.
    Terminated,
}

impl Status {
    pub(crate) fn has_ended(self) -> bool {
        !matches!(self, Self::New(_) | Self::Started | Self::Failing(_))
    }
}

/// The state of a thread that other threads may change.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) status: Status,
    /// The thread as Lisp refers to it.
    pub(crate) object: Value,
    pub(crate) name: Value,
    pub(crate) specific: Value,
    pub(crate) joiners: Vec<Arc<LispThread>>,
    /// Threads that have requested a backtrace.
    pub(crate) watchers: Vec<Arc<LispThread>>,
    /// The backtrace of a thread, as requested by this one.
    pub(crate) callers: Option<Vec<String>>,
    /// What it waits for, in words for the report of a deadlock.
    pub(crate) waits_for: Option<&'static str>,
    /// A message to its user after its end.
    pub(crate) final_message: Option<String>,
    pub(crate) priority: Priority,
}

/// A Lisp thread.
pub(crate) struct LispThread {
    pub(crate) id: u64,
    pub(crate) session: Arc<LispSession>,
    /// The source position of the procedure that it runs.
    origin: Option<Span>,
    pub(crate) requests: AtomicU32,
    /// It has been terminated. Further requests have no effect.
    terminated: AtomicBool,
    pub(crate) state: AtomicU8,
    /// It waits for another thread, and does not count as active.
    pub(crate) parked: AtomicBool,
    /// It is in the queue of the object that it waits for. Not used while it waits for several
    /// channels.
    pub(crate) queued: AtomicBool,
    /// The state of its wait for the first of several channels.
    pub(crate) ticket: Ticket,
    pub(crate) microprocess: OnceLock<Microprocess>,
    pub(crate) inner: Mutex<Inner>,
    /// Its count among the threads of its account, while it is started.
    pub(crate) held: Mutex<Option<Held>>,
    machine: UnsafeCell<Option<Box<Machine>>>,
    /// The pointers that its step has published while it is outside Lisp. The step writes them
    /// before it is `SAFE`, and after it has returned.
    published_roots: UnsafeCell<Option<PublishedRoots>>,
    /// The state of its request for cells: `REFILL_IDLE`, `REFILL_REQUESTED`, `REFILL_SERVED` or
    /// `REFILL_FAILED`.
    pub(crate) refill: AtomicU8,
    /// Cells taken, as of its last refill or shortage.
    pub(crate) taken: AtomicU64,
    /// The value of `taken` when the thread last got the out-of-memory error.
    pub(crate) taken_at_error: AtomicU64,
    /// Running time of its steps without raw kernel calls. For the process's own threads only while
    /// the times are measured.
    pub(crate) ran_ns: AtomicU64,
    /// Time in raw kernel calls.
    pub(crate) outside_ns: AtomicU64,
    /// The value of `ran_ns` when it was last reported to a policy.
    reported_ns: AtomicU64,
    /// The priority level that a scheduler policy has set, or `NO_POLICY_LEVEL`.
    policy_level: AtomicU8,
    /// Whether an event of it is to be reported to a policy.
    pub(crate) noted: AtomicBool,
    /// It has been woken and has not run since.
    pub(crate) woken: AtomicBool,
}

// SAFETY: one kernel thread at a time accesses `machine` and `published_roots`; `Threads` enforces
// this.
unsafe impl Sync for LispThread {}
// SAFETY: as above; everything else is `Send`.
unsafe impl Send for LispThread {}

impl fmt::Debug for LispThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LispThread").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A thread object of Lisp.
#[derive(Debug)]
pub(crate) struct ThreadObject(pub(crate) Arc<LispThread>);

/// The thread of a context.
#[inline]
pub(crate) fn lisp_thread(thread: Value) -> Option<&'static Arc<LispThread>> {
    thread.as_foreign::<ThreadObject>().map(|object| &object.0)
}

/// The thread in this argument.
pub(crate) fn thread_of(
    who: &'static str,
    place: usize,
    value: Value,
) -> raise::Result<&'static Arc<LispThread>> {
    let thread = value.as_foreign::<ThreadObject>().map(|object| &object.0);
    thread.ok_or_else(|| Raise::wrong_type(who, place, "thread", value))
}

impl ForeignObject for ThreadObject {
    fn held_bytes(&self) -> usize {
        size_of::<LispThread>()
    }

    fn trace(&self, marker: &mut Marker) {
        self.0.trace_inner(marker);
    }
}

impl LispThread {
    /// Cells taken since it last got the out-of-memory error.
    pub(crate) fn taken_since_error(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        taken.saturating_sub(self.taken_at_error.load(Ordering::Relaxed))
    }

    pub(crate) fn new(id: u64, session: Arc<LispSession>, thunk: Value, name: Value) -> Self {
        Self {
            id,
            session,
            origin: trace::span_of(thunk),
            held: Mutex::new(None),
            requests: AtomicU32::new(0),
            terminated: AtomicBool::new(false),
            state: AtomicU8::new(READY),
            parked: AtomicBool::new(false),
            queued: AtomicBool::new(false),
            ticket: Ticket::default(),
            microprocess: OnceLock::new(),
            inner: Mutex::new(Inner {
                status: Status::New(thunk),
                object: Value::FALSE,
                name,
                specific: Value::UNSPECIFIED,
                joiners: Vec::new(),
                watchers: Vec::new(),
                callers: None,
                waits_for: None,
                final_message: None,
                priority: Priority::NORMAL,
            }),
            machine: UnsafeCell::new(None),
            published_roots: UnsafeCell::new(None),
            refill: AtomicU8::new(REFILL_IDLE),
            taken: AtomicU64::new(0),
            taken_at_error: AtomicU64::new(0),
            ran_ns: AtomicU64::new(0),
            outside_ns: AtomicU64::new(0),
            reported_ns: AtomicU64::new(0),
            policy_level: AtomicU8::new(NO_POLICY_LEVEL),
            noted: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        }
    }

    /// The thread's machine.
    ///
    /// # Safety
    /// One of these conditions holds:
    /// - the caller runs the thread's step, between `enter` and `leave`;
    /// - the caller has stopped the world, and the thread's step is not outside;
    /// - the thread has not started.
    ///
    /// No other borrow of the machine exists.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's contract")]
    pub(crate) unsafe fn machine(&self) -> &mut Option<Box<Machine>> {
        // SAFETY: by the caller's contract.
        unsafe { &mut *self.machine.get() }
    }

    fn own_name(&self) -> Option<String> {
        let name = lock(&self.inner).name;
        name.is_true().then(|| printer::to_text(name, Style::Display).ok()).flatten()
    }

    /// Its name for people; its number if it has no name.
    pub(crate) fn name(&self) -> String {
        self.own_name().unwrap_or_else(|| self.id.to_string())
    }

    /// As [`Self::name`]; without a name, the position of its procedure if known.
    pub(crate) fn title(&self) -> String {
        let named = self.own_name().or_else(|| Some(format!("lambda at {}", self.origin?)));
        named.unwrap_or_else(|| "thread".to_owned())
    }

    /// Its name for the host's user, who sees the threads of all users together.
    pub(crate) fn name_outside(&self) -> String {
        let name = self.own_name().unwrap_or_else(|| format!("thread {}", self.id));
        match self.session.id {
            0 => name,
            _ => format!("{}: {name}", self.session.account.name()),
        }
    }

    fn trace_inner(&self, marker: &mut Marker) {
        let inner = lock(&self.inner);
        marker.mark(inner.object);
        marker.mark(inner.name);
        marker.mark(inner.specific);
        match inner.status {
            Status::New(value)
            | Status::Failing(value)
            | Status::Returned(value)
            | Status::Uncaught(value) => marker.mark(value),
            Status::Started | Status::Terminated => {}
        }
    }

    /// Marks the values of a started thread. The world is stopped.
    pub(crate) fn trace(&self, marker: &mut Marker) {
        self.trace_inner(marker);
        // SAFETY: the world is stopped, so the thread is outside or between steps. A step that
        // returns from outside waits for the world before it changes its roots.
        let published_roots = unsafe { *self.published_roots.get() };
        if let Some(published_roots) = published_roots {
            // SAFETY: the world is stopped, and the step has not returned.
            unsafe { published_roots.trace(marker) };
            return;
        }
        // SAFETY: the world is stopped, and no step uses the machine: it would have published its
        // pointers.
        if let Some(machine) = unsafe { self.machine() } {
            machine.trace(marker);
        }
    }

    /// Publishes the pointers of its step before it goes outside; `None` withdraws them after it
    /// has returned.
    ///
    /// # Safety
    /// Called by the thread's own step, while its state is `RUNNING` and the world is not stopped.
    pub(crate) unsafe fn publish_roots(&self, published_roots: Option<PublishedRoots>) {
        // SAFETY: the collector reads this only while the world is stopped.
        unsafe { *self.published_roots.get() = published_roots };
    }

    /// The priority of policies' threads. Only services have a higher one.
    pub(crate) const POLICY: Priority = Priority::new(62).expect("it is below 64");

    /// Whether it belongs to a policy.
    pub(crate) fn is_policy(&self) -> bool {
        self.policy_level.load(Ordering::Acquire) == Self::POLICY.level()
    }

    /// Sets whether it belongs to a policy.
    pub(crate) fn make_policy(&self, is_policy: bool) {
        self.set_policy_priority(is_policy.then_some(Self::POLICY));
    }

    /// Sets its priority by order of a policy; `None` restores its own.
    pub(crate) fn set_policy_priority(&self, priority: Option<Priority>) {
        let level = priority.map_or(NO_POLICY_LEVEL, Priority::level);
        if self.policy_level.swap(level, Ordering::AcqRel) != level {
            self.apply_priority();
        }
    }

    /// Its priority before its account's share is considered: the one set by a policy, otherwise
    /// its own.
    pub(crate) fn base_priority(&self) -> Priority {
        let placed = Priority::new(self.policy_level.load(Ordering::Acquire));
        placed.unwrap_or_else(|| lock(&self.inner).priority)
    }

    /// Moves it to the queue of its base priority.
    pub(crate) fn apply_priority(&self) {
        if let Some(microprocess) = self.microprocess.get() {
            microprocess.set_priority(self.base_priority());
        }
    }

    /// Its running time since the last call.
    pub(crate) fn take_unreported_ns(&self) -> u64 {
        let ran_ns = self.ran_ns.load(Ordering::Relaxed);
        ran_ns.saturating_sub(self.reported_ns.swap(ran_ns, Ordering::Relaxed))
    }

    /// Whether there is a request for it, from Lisp or from outside. A wait in the kernel then
    /// ends, and is repeated later. The end of a time slice is not a request, because a repeated
    /// wait would start a connection twice.
    pub(crate) fn has_request(&self) -> bool {
        let is_kill_pending = || self.microprocess.get().is_some_and(Microprocess::is_kill_pending);
        self.requests.load(Ordering::SeqCst) != 0 || is_kill_pending()
    }

    /// Terminates the thread, whatever it does. Repeated calls do not delay its `dynamic-wind`
    /// procedures.
    pub(crate) fn terminate(self: &Arc<Self>) {
        if !self.terminated.swap(true, Ordering::AcqRel) {
            self.request(REQUEST_TERMINATE);
            // A suspended thread must be resumed to notice. Other threads are not affected.
            let _ = self.microprocess.get().map(Microprocess::resume);
        }
    }

    /// Makes the thread check its requests soon, whatever it does.
    pub(crate) fn request(self: &Arc<Self>, request: u32) {
        self.requests.fetch_or(request, Ordering::Release);
        if let Some(microprocess) = self.microprocess.get() {
            microprocess.poll_word().store(1, Ordering::Release);
            // A thread that has ended needs no request.
            let _ = microprocess.want();
        }
        self.wake();
    }

    /// Ends the thread's current wait, or its next one.
    pub(crate) fn wake(self: &Arc<Self>) {
        if self.session.notes.are_wanted() {
            self.woken.store(true, Ordering::Release);
            self.session.notes.note(self);
        }
        if self.parked.swap(false, Ordering::AcqRel) {
            self.session.activate();
        }
        if let Some(microprocess) = self.microprocess.get() {
            microprocess.unpark();
        }
    }
}
