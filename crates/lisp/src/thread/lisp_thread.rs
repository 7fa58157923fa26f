//! A Lisp thread: what others know of it, and its machine.
#![expect(unsafe_code, reason = "the machine is reached by the rule that `safepoint` enforces")]

use crate::system::kernel::lock;
use crate::system::lisp_session::LispSession;
use crate::thread::ticket::Ticket;
use core::fmt;
use kyocho_heap::account::Held;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::value::Value;
use kyocho_library::printer::{self, Style};
use kyocho_microprocess::{Microprocess, Priority};
use kyocho_syntax::datum::Span;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_vm::machine::outside::HandOver;
use kyocho_vm::machine::{Machine, trace};
use std::sync::{Arc, Mutex, OnceLock};

/// Somebody wants the thread to end.
pub(crate) const REQUEST_TERMINATE: u32 = 1 << 0;
/// The user wants the evaluation to stop.
pub(crate) const REQUEST_INTERRUPT: u32 = 1 << 1;
/// Every Lisp thread waits for another.
pub(crate) const REQUEST_DEADLOCK: u32 = 1 << 2;
/// Its refill failed even after a collection.
pub(crate) const REQUEST_OUT_OF_MEMORY: u32 = 1 << 3;
/// Its session is over, and it had its time: it ends where it stands.
pub(crate) const REQUEST_ABANDON: u32 = 1 << 4;

/// Somebody wants to know what it is doing.
pub(crate) const REQUEST_BACKTRACE: u32 = 1 << 5;

/// It stands between two steps, and may run.
pub(crate) const STANDING: u8 = 0;
/// It runs a step.
pub(crate) const RUNNING: u8 = 1;
/// It runs a step, and is in a raw kernel call, or in long work, that touches nothing of Lisp.
pub(crate) const SAFE: u8 = 2;
/// It stands, and waits for something.
pub(crate) const WAITING: u8 = 3;

/// It has no request for cells.
pub(crate) const NOT_ASKED: u8 = 0;
/// The system-call thread has its request, and its cell cache.
pub(crate) const ASKED: u8 = 1;
/// It got cells.
pub(crate) const GRANTED: u8 = 2;
/// There were none.
pub(crate) const STARVED: u8 = 3;

/// No policy has placed it.
const UNPLACED: u8 = u8::MAX;

/// How far a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Made, not started: it will call this.
    New(Value),
    /// Started.
    Started,
    /// Nobody handled this; what it does last runs.
    Failing(Value),
    /// It returned this.
    Returned(Value),
    /// Nobody handled this.
    Uncaught(Value),
    /// Somebody ended it.
    Terminated,
}

impl Status {
    pub(crate) fn has_ended(self) -> bool {
        !matches!(self, Self::New(_) | Self::Started | Self::Failing(_))
    }
}

/// The part of a thread that others change.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) status: Status,
    /// The thread as Lisp holds it.
    pub(crate) object: Value,
    pub(crate) name: Value,
    pub(crate) specific: Value,
    pub(crate) joiners: Vec<Arc<LispThread>>,
    /// Who wants to know what it is doing.
    pub(crate) watchers: Vec<Arc<LispThread>>,
    /// What a thread that it watches was doing: who called whom.
    pub(crate) callers: Option<Vec<String>>,
    /// What it waits for, in words; for the report of a deadlock.
    pub(crate) waits_for: Option<&'static str>,
    /// What its user is told when it has ended.
    pub(crate) last_words: Option<String>,
    pub(crate) priority: Priority,
}

/// A Lisp thread.
pub(crate) struct LispThread {
    pub(crate) id: u64,
    pub(crate) session: Arc<LispSession>,
    /// Where the text of the procedure that it runs stands.
    origin: Option<Span>,
    pub(crate) requests: AtomicU32,
    /// Somebody has terminated it, and it knows or will; once is enough.
    terminated: AtomicBool,
    pub(crate) state: AtomicU8,
    /// It waits for another thread, and does not count as active.
    pub(crate) parked: AtomicBool,
    /// It is in the one queue of waiters that it waits in; not where it waits for the first of several channels.
    pub(crate) queued: AtomicBool,
    /// How far its wait for the first of several channels is.
    pub(crate) ticket: Ticket,
    pub(crate) microprocess: OnceLock<Microprocess>,
    pub(crate) inner: Mutex<Inner>,
    /// Its place among the threads of its account, while it is started.
    pub(crate) held: Mutex<Option<Held>>,
    machine: UnsafeCell<Option<Box<Machine>>>,
    /// What its step has handed over, while it is outside. Written by the step, before it is `SAFE` and after it has come back.
    handed_over: UnsafeCell<Option<HandOver>>,
    /// How far its request for cells is: `NOT_ASKED`, `ASKED`, `GRANTED` or `STARVED`.
    pub(crate) refill: AtomicU8,
    /// What it has taken, in cells, as of its last refill or shortage.
    pub(crate) taken: AtomicU64,
    /// How long its steps took, raw kernel calls aside; of the process's own threads only while somebody measures.
    pub(crate) ran_ns: AtomicU64,
    /// How long it was in raw kernel calls.
    pub(crate) outside_ns: AtomicU64,
    /// What `ran_ns` was when a policy was last told of it.
    told_ns: AtomicU64,
    /// The level that a policy of the scheduler has placed it at, or `UNPLACED`.
    placed: AtomicU8,
    /// A policy is to be told of it.
    pub(crate) noted: AtomicBool,
    /// Somebody has woken it, and it has not run since.
    pub(crate) woken: AtomicBool,
}

// SAFETY: `machine` and `handed_over` are touched by one kernel thread at a time: by the rule that `Threads` enforces.
unsafe impl Sync for LispThread {}
// SAFETY: as above; everything else is `Send`.
unsafe impl Send for LispThread {}

impl fmt::Debug for LispThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LispThread").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A thread as Lisp holds it.
#[derive(Debug)]
pub(crate) struct ThreadObject(pub(crate) Arc<LispThread>);

/// The thread that a context names.
#[inline]
pub(crate) fn lisp_thread(thread: Value) -> Option<&'static Arc<LispThread>> {
    thread.as_foreign::<ThreadObject>().map(|object| &object.0)
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
    pub(crate) fn new(id: u64, session: Arc<LispSession>, thunk: Value, name: Value) -> Self {
        Self {
            id,
            session,
            origin: trace::span_of(thunk),
            held: Mutex::new(None),
            requests: AtomicU32::new(0),
            terminated: AtomicBool::new(false),
            state: AtomicU8::new(STANDING),
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
                last_words: None,
                priority: Priority::NORMAL,
            }),
            machine: UnsafeCell::new(None),
            handed_over: UnsafeCell::new(None),
            refill: AtomicU8::new(NOT_ASKED),
            taken: AtomicU64::new(0),
            ran_ns: AtomicU64::new(0),
            outside_ns: AtomicU64::new(0),
            told_ns: AtomicU64::new(0),
            placed: AtomicU8::new(UNPLACED),
            noted: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        }
    }

    /// The thread's machine.
    ///
    /// # Safety
    /// The caller runs the thread's step between `enter` and `leave`, or has stopped the world and the
    /// thread's step is not outside, or the thread is not started yet; and nobody else has this borrow.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub(crate) unsafe fn machine(&self) -> &mut Option<Box<Machine>> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.machine.get() }
    }

    fn own_name(&self) -> Option<String> {
        let name = lock(&self.inner).name;
        name.is_true().then(|| printer::to_text(name, Style::Display).ok()).flatten()
    }

    /// Its name, for people; its number where it has none.
    pub(crate) fn name(&self) -> String {
        self.own_name().unwrap_or_else(|| self.id.to_string())
    }

    /// The same; where it has none, which text it runs, if that is known.
    pub(crate) fn title(&self) -> String {
        let named = self.own_name().or_else(|| Some(format!("lambda at {}", self.origin?)));
        named.unwrap_or_else(|| "thread".to_owned())
    }

    /// What the host's user knows it by: there all users' threads stand beside each other.
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

    /// Marks what a started thread refers to. The world is stopped.
    pub(crate) fn trace(&self, marker: &mut Marker) {
        self.trace_inner(marker);
        // SAFETY: the world is stopped: the thread is outside, or stands. One that comes back looks at its state alone before it waits.
        let handed_over = unsafe { *self.handed_over.get() };
        if let Some(handed_over) = handed_over {
            // SAFETY: the world is stopped, and the step has not come back.
            unsafe { handed_over.trace(marker) };
            return;
        }
        // SAFETY: the world is stopped, and no step has the machine: it would have handed it over.
        if let Some(machine) = unsafe { self.machine() } {
            machine.trace(marker);
        }
    }

    /// What its step hands over as it goes outside; nothing any more when it has come back.
    ///
    /// # Safety
    /// Called by the thread's own step, while its state is `RUNNING` and the world is not stopped.
    pub(super) unsafe fn hand_over(&self, handed_over: Option<HandOver>) {
        // SAFETY: the collector looks only while the world is stopped.
        unsafe { *self.handed_over.get() = handed_over };
    }

    /// The priority of the policies' threads: only services are more urgent.
    pub(crate) const POLICY: Priority = Priority::new(62).expect("it is below 64");

    /// Whether it is a policy's.
    pub(crate) fn is_policy(&self) -> bool {
        self.placed.load(Ordering::Acquire) == Self::POLICY.level()
    }

    /// It becomes a policy's, or is none any more.
    pub(crate) fn make_policy(&self, is_policy: bool) {
        self.place(is_policy.then_some(Self::POLICY));
    }

    /// Places it at this priority; at its own again where there is none.
    pub(crate) fn place(&self, priority: Option<Priority>) {
        let level = priority.map_or(UNPLACED, Priority::level);
        if self.placed.swap(level, Ordering::AcqRel) != level {
            self.take_place();
        }
    }

    /// The priority that it has before its account's share is looked at: where it was placed, else its own.
    pub(crate) fn standing(&self) -> Priority {
        let placed = Priority::new(self.placed.load(Ordering::Acquire));
        placed.unwrap_or_else(|| lock(&self.inner).priority)
    }

    /// Goes to the queue of its standing.
    pub(crate) fn take_place(&self) {
        if let Some(microprocess) = self.microprocess.get() {
            microprocess.set_priority(self.standing());
        }
    }

    /// How long it has run since this was asked last.
    pub(crate) fn untold_ns(&self) -> u64 {
        let ran_ns = self.ran_ns.load(Ordering::Relaxed);
        ran_ns.saturating_sub(self.told_ns.swap(ran_ns, Ordering::Relaxed))
    }

    /// Whether somebody wants something of it, from Lisp or from outside: what waits in the kernel gives up then, and is made again. That its time
    /// slice is over is no reason: a connection would be begun twice.
    pub(crate) fn has_request(&self) -> bool {
        let is_condemned = || self.microprocess.get().is_some_and(Microprocess::is_condemned);
        self.requests.load(Ordering::SeqCst) != 0 || is_condemned()
    }

    /// Ends the thread, whatever it does. Who does so again and again does not hold up what it does last.
    pub(crate) fn terminate(self: &Arc<Self>) {
        if !self.terminated.swap(true, Ordering::AcqRel) {
            self.request(REQUEST_TERMINATE);
            // One that stands still would never hear of it. One that does not, or has ended, is not touched.
            let _ = self.microprocess.get().map(Microprocess::resume);
        }
    }

    /// Makes the thread look at its requests soon, whatever it does.
    pub(crate) fn request(self: &Arc<Self>, request: u32) {
        self.requests.fetch_or(request, Ordering::Release);
        if let Some(microprocess) = self.microprocess.get() {
            microprocess.poll_word().store(1, Ordering::Release);
            // One that has ended needs to hear nothing.
            let _ = microprocess.want();
        }
        self.wake();
    }

    /// Ends the thread's wait, or its next one.
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
