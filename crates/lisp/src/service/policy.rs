//! Policies written in Lisp: what the scheduler and the collector leave open is decided by a Lisp thread (paper 4, §2, §3.1.2, §3.1.3).
//!
//! ```text
//!  mechanism --question--> policy's thread: (decide question) --orders--> mechanism      as messages, never within a switch
//!                            | no answer in time, an error, what is no order, its end
//!                            v
//!                        dismissed: its orders are taken back, the built-in policy decides again
//! ```
//!
//! Nobody waits for an answer. A seat has one policy at most, which has one question at most; the watchdog looks at how long it has had
//! it. A policy's thread is more urgent than all but the services, so what it is late with, it is late with by itself; it is a thread of
//! whoever installed it, and is charged and ended as any other.
//!
//! **Lock order:** a seat; then the registry of threads; then a thread's `inner`.

mod collector;
mod procedures;
mod scheduler;

pub(crate) use procedures::TABLE;
pub(crate) use scheduler::Notes;

use crate::system::kernel::{Kernel, lock};
use crate::thread::lisp_thread::{LispThread, REQUEST_ABANDON};
use core::fmt;
use core::time::Duration;
use kyocho_heap::heap::Statistics;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::clock::monotonic_ns;
use scheduler::Row;
use std::sync::{Arc, Mutex};

/// What a policy decides about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Which threads run before which.
    Scheduler,
    /// When to collect, what to give back, how large caches are.
    Collector,
}

const KINDS: [Kind; 2] = [Kind::Scheduler, Kind::Collector];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Collector => "collector",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who decides.
#[derive(Debug)]
struct Holder {
    thread: Arc<LispThread>,
    /// How long an answer may take.
    patience_ns: u64,
    /// Since when it has a question.
    asked_ns: Option<u64>,
}

/// Where a policy sits; the built-in one decides where nobody does.
#[derive(Debug, Default)]
struct Seat {
    holder: Option<Holder>,
    /// Why the last one was dismissed.
    dismissal: Option<String>,
    /// The scheduler's question: kept until Lisp has it.
    rows: Arc<Vec<Row>>,
    /// The collector's.
    statistics: Statistics,
}

impl Seat {
    fn holder_if(&mut self, thread: &Arc<LispThread>) -> Option<&mut Holder> {
        self.holder.as_mut().filter(|holder| Arc::ptr_eq(&holder.thread, thread))
    }

    /// Puts the question to who decides, unless he still has one.
    fn ask(&mut self) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.asked_ns.is_none()) {
            holder.asked_ns = Some(monotonic_ns());
            holder.thread.wake();
        }
    }
}

/// What a policy's thread finds when it asks for its question.
enum Question {
    /// None so far.
    None,
    /// Threads that something has happened to.
    Threads(Arc<Vec<Row>>),
    /// A collection is over.
    Collection(Statistics),
}

/// The seats; the [watchdog](super::watchdog) watches over those who sit there.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    seats: [Mutex<Seat>; KINDS.len()],
    /// What threads tell the scheduler's policy.
    pub(crate) notes: Arc<Notes>,
}

impl Policies {
    fn seat(&self, kind: Kind) -> &Mutex<Seat> {
        &self.seats[kind as usize]
    }

    /// Seats a policy; who sat there is dismissed. Its thread has not begun.
    fn install(&self, kernel: &Kernel, kind: Kind, thread: &Arc<LispThread>, patience: Duration) {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let mut seat = lock(self.seat(kind));
        self.vacate(kernel, kind, &mut seat, None);
        thread.make_policy(true);
        seat.holder = Some(Holder { thread: Arc::clone(thread), patience_ns, asked_ns: None });
        seat.dismissal = None;
        match kind {
            Kind::Scheduler => {
                self.notes.want(true);
                kernel.calls.measure(true);
            }
            Kind::Collector => {
                seat.statistics = kernel.heap.statistics();
                seat.ask();
            }
        }
        drop(seat);
        kernel.watchdog.wake();
    }

    /// The built-in policy decides again, where it does not already.
    fn remove(&self, kernel: &Kernel, kind: Kind) {
        self.vacate(kernel, kind, &mut lock(self.seat(kind)), None);
    }

    /// Takes the seat, and all orders back. `why` is told by the thread as it ends, and by `(policies)`.
    fn vacate(&self, kernel: &Kernel, kind: Kind, seat: &mut Seat, why: Option<String>) {
        let Some(Holder { thread, .. }) = seat.holder.take() else { return };
        thread.make_policy(false);
        seat.rows = Arc::default();
        match kind {
            Kind::Scheduler => {
                self.notes.want(false);
                kernel.calls.measure(false);
                let placed =
                    kernel.threads.started().into_iter().filter(|other| !other.is_policy());
                placed.for_each(|other| other.place(None));
            }
            Kind::Collector => kernel.heap.take_orders_back(),
        }
        lock(&thread.inner).last_words = why
            .as_ref()
            .map(|why| format!("{kind} policy: {why}; the built-in policy decides again"));
        seat.dismissal = why;
        // Where it stands: one that does not answer is not given time to do something last.
        thread.request(REQUEST_ABANDON);
        let _ = thread.microprocess.get().map(Microprocess::resume);
    }

    /// A policy's thread has ended, however.
    pub(crate) fn ended(&self, kernel: &Kernel, thread: &Arc<LispThread>) {
        for kind in KINDS {
            let mut seat = lock(self.seat(kind));
            if seat.holder_if(thread).is_some() {
                self.vacate(kernel, kind, &mut seat, Some("its thread has ended".to_owned()));
            }
        }
    }

    /// What the thread is to decide; `None` where it is none of the policies.
    fn question(&self, kind: Kind, thread: &Arc<LispThread>) -> Option<Question> {
        let mut seat = lock(self.seat(kind));
        let holder = seat.holder_if(thread)?;
        if holder.asked_ns.is_none() {
            return Some(Question::None);
        }
        if kind == Kind::Collector {
            return Some(Question::Collection(seat.statistics));
        }
        if seat.rows.is_empty() {
            seat.rows = Arc::new(self.notes.take());
        }
        Some(Question::Threads(Arc::clone(&seat.rows)))
    }

    /// Lisp has the question.
    fn told(&self, kind: Kind) {
        lock(self.seat(kind)).rows = Arc::default();
    }

    /// Carries out what the thread has decided; `false` where it was not asked.
    fn answer(&self, kind: Kind, thread: &Arc<LispThread>, carry_out: impl FnOnce()) -> bool {
        let mut seat = lock(self.seat(kind));
        let asked = seat.holder_if(thread).and_then(|holder| holder.asked_ns.take());
        if asked.is_some() {
            carry_out();
        }
        asked.is_some()
    }

    /// Some time has passed: threads that something has happened to are told of.
    pub(super) fn tick(&self, kernel: &Kernel) {
        if self.notes.are_wanted() && !self.notes.is_empty() {
            lock(self.seat(Kind::Scheduler)).ask();
            kernel.watchdog.wake();
        }
    }

    /// The world stood still for so long, and goes on. Nobody could answer meanwhile.
    pub(super) fn collected(&self, kernel: &Kernel, stood: Duration) {
        let stood_ns = stood.as_nanos() as u64;
        for kind in KINDS {
            let mut seat = lock(self.seat(kind));
            let Some(holder) = &mut seat.holder else { continue };
            holder.asked_ns = holder.asked_ns.map(|since_ns| since_ns.saturating_add(stood_ns));
            if kind == Kind::Collector {
                seat.statistics = kernel.heap.statistics();
                seat.ask();
                kernel.watchdog.wake();
            }
        }
    }

    /// Dismisses who is late; until when who has a question may answer.
    pub(super) fn watch(&self, kernel: &Kernel) -> Option<u64> {
        KINDS.into_iter().filter_map(|kind| self.watch_over(kernel, kind)).min()
    }

    fn watch_over(&self, kernel: &Kernel, kind: Kind) -> Option<u64> {
        let mut seat = lock(self.seat(kind));
        let holder = seat.holder.as_ref()?;
        let ends_ns = holder.asked_ns?.saturating_add(holder.patience_ns);
        if monotonic_ns() < ends_ns {
            return Some(ends_ns);
        }
        let patience = Duration::from_nanos(holder.patience_ns);
        self.vacate(kernel, kind, &mut seat, Some(format!("no answer within {patience:?}")));
        None
    }
}
