//! Policies written in Lisp: a Lisp thread decides what the scheduler or the collector leaves open
//! (paper 4, §2, §3.1.2, §3.1.3).
//!
//! ```text
//!  mechanism --question--> policy's thread: (decide question) --orders--> mechanism
//!                            | no answer in time, an error, an invalid order, or the thread's end
//!                            v
//!                          dismissed: its orders are cancelled, the built-in policy decides again
//!
//!  Questions and orders are messages, which are never sent within a switch.
//! ```
//!
//! The mechanism never waits for an answer. There is at most one policy of each kind, and it has at
//! most one question. The watchdog checks how long it has had the question. A policy's thread has a
//! higher priority than all threads except the services, so no other thread delays its answer. It
//! belongs to the user that installed it, and is charged and ended like any other thread.
//!
//! The procedures of the policy's thread are in `thread/policy.rs`.
//!
//! **Lock order:** a slot; then the registry of threads or a thread's `inner`. No function here
//! holds both of these at a time.

use crate::kernel::session::notes::{Notes, Row};
use crate::kernel::session::thread::{LispThread, REQUEST_ABANDON};
use crate::kernel::{Kernel, lock};
use core::fmt;
use core::time::Duration;
use kyocho_heap::heap::Statistics;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::clock::monotonic_ns;
use std::sync::{Arc, Mutex};

/// The subject of a policy's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The priorities at which threads run.
    Scheduler,
    /// When to collect, how much memory to return, how large caches are.
    Collector,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 2] = [Kind::Scheduler, Kind::Collector];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Collector => "collector",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An installed policy.
#[derive(Debug)]
struct Holder {
    thread: Arc<LispThread>,
    /// The time limit for an answer.
    patience_ns: u64,
    /// When the pending question was asked.
    asked_ns: Option<u64>,
}

/// The state of one kind of policy. Without a holder the built-in policy decides.
#[derive(Debug, Default)]
struct PolicySlot {
    holder: Option<Holder>,
    /// Why the last policy was dismissed.
    dismissal: Option<String>,
    /// The scheduler's question, kept until the policy has read it.
    rows: Arc<Vec<Row>>,
    /// The collector's question.
    statistics: Statistics,
}

impl PolicySlot {
    fn holder_if(&mut self, thread: &Arc<LispThread>) -> Option<&mut Holder> {
        self.holder.as_mut().filter(|holder| Arc::ptr_eq(&holder.thread, thread))
    }

    /// Asks the holder its question, unless one is pending.
    fn ask(&mut self) {
        if let Some(holder) = self.holder.as_mut().filter(|holder| holder.asked_ns.is_none()) {
            holder.asked_ns = Some(monotonic_ns());
            holder.thread.wake();
        }
    }
}

/// The question that a policy's thread gets.
pub(crate) enum Question {
    /// None yet.
    None,
    /// Threads with new events.
    Threads(Arc<Vec<Row>>),
    /// A collection has ended.
    Collection(Statistics),
}

/// The policies of both kinds, which the [watchdog](super::watchdog) supervises.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    slots: [Mutex<PolicySlot>; KINDS.len()],
    /// The events for the scheduler's policy.
    pub(crate) notes: Arc<Notes>,
}

impl Policies {
    fn slot(&self, kind: Kind) -> &Mutex<PolicySlot> {
        &self.slots[kind as usize]
    }

    /// The number of the policy's thread, and why the last policy was dismissed.
    pub(crate) fn holder_and_dismissal(&self, kind: Kind) -> (Option<u64>, Option<String>) {
        let slot = lock(self.slot(kind));
        (slot.holder.as_ref().map(|holder| holder.thread.id), slot.dismissal.clone())
    }

    /// Installs a policy whose thread has not begun. Dismisses the one before.
    pub(crate) fn install(
        &self,
        kernel: &Kernel,
        kind: Kind,
        thread: &Arc<LispThread>,
        patience: Duration,
    ) {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let mut slot = lock(self.slot(kind));
        self.vacate(kernel, kind, &mut slot, None);
        thread.make_policy(true);
        slot.holder = Some(Holder { thread: Arc::clone(thread), patience_ns, asked_ns: None });
        slot.dismissal = None;
        match kind {
            Kind::Scheduler => {
                self.notes.want(true);
                kernel.calls.measure(true);
            }
            Kind::Collector => {
                slot.statistics = kernel.heap.statistics();
                slot.ask();
            }
        }
        drop(slot);
        kernel.watchdog.wake();
    }

    /// Restores the built-in policy.
    pub(crate) fn remove(&self, kernel: &Kernel, kind: Kind) {
        self.vacate(kernel, kind, &mut lock(self.slot(kind)), None);
    }

    /// Removes the holder and cancels its orders. The thread reports `why` when it ends, and
    /// `(policies)` returns it.
    fn vacate(&self, kernel: &Kernel, kind: Kind, slot: &mut PolicySlot, why: Option<String>) {
        let Some(Holder { thread, .. }) = slot.holder.take() else { return };
        thread.make_policy(false);
        slot.rows = Arc::default();
        match kind {
            Kind::Scheduler => {
                self.notes.want(false);
                kernel.calls.measure(false);
                let placed =
                    kernel.threads.started().into_iter().filter(|other| !other.is_policy());
                placed.for_each(|other| other.set_policy_priority(None));
            }
            Kind::Collector => kernel.heap.take_orders_back(),
        }
        lock(&thread.inner).final_message = why
            .as_ref()
            .map(|why| format!("{kind} policy: {why}; the built-in policy decides again"));
        slot.dismissal = why;
        // Ended at once: a thread that does not answer gets no time for its `dynamic-wind`
        // procedures.
        thread.request(REQUEST_ABANDON);
        let _ = thread.microprocess.get().map(Microprocess::resume);
    }

    /// Called when a thread has ended that may be a policy's.
    pub(crate) fn ended(&self, kernel: &Kernel, thread: &Arc<LispThread>) {
        for kind in KINDS {
            let mut slot = lock(self.slot(kind));
            if slot.holder_if(thread).is_some() {
                self.vacate(kernel, kind, &mut slot, Some("its thread has ended".to_owned()));
            }
        }
    }

    /// The question for the thread; `None` if it is not the policy's thread.
    pub(crate) fn question(&self, kind: Kind, thread: &Arc<LispThread>) -> Option<Question> {
        let mut slot = lock(self.slot(kind));
        let holder = slot.holder_if(thread)?;
        if holder.asked_ns.is_none() {
            return Some(Question::None);
        }
        if kind == Kind::Collector {
            return Some(Question::Collection(slot.statistics));
        }
        if slot.rows.is_empty() {
            slot.rows = Arc::new(self.notes.take());
        }
        Some(Question::Threads(Arc::clone(&slot.rows)))
    }

    /// Records that the policy has read the question.
    pub(crate) fn record_read(&self, kind: Kind) {
        lock(self.slot(kind)).rows = Arc::default();
    }

    /// Carries out the thread's answer; `false` if no question was pending.
    pub(crate) fn answer(
        &self,
        kind: Kind,
        thread: &Arc<LispThread>,
        carry_out: impl FnOnce(),
    ) -> bool {
        let mut slot = lock(self.slot(kind));
        let asked = slot.holder_if(thread).and_then(|holder| holder.asked_ns.take());
        if asked.is_some() {
            carry_out();
        }
        asked.is_some()
    }

    /// Called at intervals: asks the scheduler's policy about threads with events.
    pub(super) fn tick(&self, kernel: &Kernel) {
        if self.notes.are_wanted() && !self.notes.is_empty() {
            lock(self.slot(Kind::Scheduler)).ask();
            kernel.watchdog.wake();
        }
    }

    /// Called after a collection that stopped the world for `stopped_for`. That time does not count
    /// against an answer.
    pub(super) fn collected(&self, kernel: &Kernel, stopped_for: Duration) {
        let stopped_ns = stopped_for.as_nanos() as u64;
        for kind in KINDS {
            let mut slot = lock(self.slot(kind));
            let Some(holder) = &mut slot.holder else { continue };
            holder.asked_ns = holder.asked_ns.map(|since_ns| since_ns.saturating_add(stopped_ns));
            if kind == Kind::Collector {
                slot.statistics = kernel.heap.statistics();
                slot.ask();
                kernel.watchdog.wake();
            }
        }
    }

    /// Dismisses policies that are late. Returns the next time limit.
    pub(super) fn watch(&self, kernel: &Kernel) -> Option<u64> {
        KINDS.into_iter().filter_map(|kind| self.watch_over(kernel, kind)).min()
    }

    fn watch_over(&self, kernel: &Kernel, kind: Kind) -> Option<u64> {
        let mut slot = lock(self.slot(kind));
        let holder = slot.holder.as_ref()?;
        let ends_ns = holder.asked_ns?.saturating_add(holder.patience_ns);
        if monotonic_ns() < ends_ns {
            return Some(ends_ns);
        }
        let patience = Duration::from_nanos(holder.patience_ns);
        self.vacate(kernel, kind, &mut slot, Some(format!("no answer within {patience:?}")));
        None
    }
}
