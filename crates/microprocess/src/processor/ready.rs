//! The runnable microprocesses of one virtual processor, and the scheduler that chooses among them.
//!
//! ```text
//!   push, pop, outranks … ──┬─ none installed ──► the built-in run queue (a predictable branch)
//!                           └─ installed ──► the user scheduler, its answers checked
//! ```
//!
//! An installed scheduler is code of the program. It is called with events masked and with no other
//! borrow active. Microprocesses that become runnable during a call wait in the built-in queue. The
//! scheduler receives them before it next picks. A broken scheduler is removed: everything that was
//! runnable is found by its `queued` flag, and continues in the built-in queue.
//!
//! **Invariant:** `pop` asks an installed scheduler only while the built-in queue is empty.
//!
//! **Invariant:** `Installed::count` records of this virtual processor have their `queued` flag
//! set.
#![expect(unsafe_code, reason = "passes schedulers through atomic pointers")]

use core::cell::{Cell, RefCell};
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use crate::data::run_queue::RunQueue;
use crate::data::slice::SLICE_NS;
use crate::processor::balance::{self, COUNTED_MAX};
use crate::processor::event::EventKind;
use crate::processor::record::Record;
use crate::processor::scheduler::{Arrival, Demand, Entry, Fault, Runs, Scheduler, Slice};
use crate::processor::slot;

mod user;

/// A user scheduler that is installed, or about to be.
pub(crate) struct Installed {
    /// `None` represents the built-in scheduler.
    scheduler: RefCell<Option<Box<dyn Scheduler>>>,
    /// How many entries were enqueued and not picked yet.
    count: Cell<usize>,
    /// The running microprocess, and the time up to which it was charged.
    ran: Cell<Option<(&'static Record, u64)>>,
    /// The next one in the list of retired schedulers.
    next: AtomicPtr<Self>,
}

impl Installed {
    pub(crate) fn new(scheduler: Option<Box<dyn Scheduler>>) -> Box<Self> {
        Box::new(Self {
            scheduler: RefCell::new(scheduler),
            count: Cell::new(0),
            ran: Cell::new(None),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Charges the running microprocess for the time it used until `now_ns`.
    fn charge(&self, scheduler: &mut dyn Scheduler, now_ns: u64) {
        if let Some((record, since_ns)) = self.ran.get() {
            scheduler.charge(Entry::of(record), now_ns.saturating_sub(since_ns), now_ns);
            self.ran.set(Some((record, now_ns)));
        }
    }

    /// The same; the microprocess no longer runs.
    fn settle(&self, scheduler: &mut dyn Scheduler, now_ns: u64) {
        self.charge(scheduler, now_ns);
        self.ran.set(None);
    }
}

/// Schedulers that were installed and are no longer used. [`free_retired`] frees them: nothing is
/// freed while events are masked.
static RETIRED: AtomicPtr<Installed> = AtomicPtr::new(ptr::null_mut());

fn retire(installed: *mut Installed) {
    let mut head = RETIRED.load(Ordering::Relaxed);
    loop {
        // SAFETY: the caller removed it from its place, so nothing else refers to it. Only
        // `free_retired` frees it.
        unsafe { &(*installed).next }.store(head, Ordering::Relaxed);
        match RETIRED.compare_exchange_weak(head, installed, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Frees the schedulers that were replaced. Events must not be masked.
pub(crate) fn free_retired() {
    let mut at = RETIRED.swap(ptr::null_mut(), Ordering::Acquire);
    while !at.is_null() {
        // SAFETY: made by `Box::into_raw`. The swap took the only list that contains it.
        let installed = unsafe { Box::from_raw(at) };
        at = installed.next.load(Ordering::Relaxed);
    }
}

/// The parts of a ready queue that any thread may read, or write for its holder.
pub(crate) struct QueueControl {
    /// The user scheduler to install at the next scheduling point.
    incoming: AtomicPtr<Installed>,
    /// 0, or one more than the [`Fault`] of the last scheduler that was removed.
    fault: AtomicU8,
    /// The time slice of the running microprocess.
    slice_ns: AtomicU64,
    /// The default time slice, if no user scheduler sets another.
    default_slice_ns: AtomicU64,
    seeks_work: AtomicBool,
}

/// The runnable microprocesses of one virtual processor. Used by its holder, except for the
/// [`QueueControl`].
pub(crate) struct ReadyQueue {
    built_in: RunQueue<Record>,
    /// Null: only the built-in queue is used.
    user: Cell<*mut Installed>,
    control: QueueControl,
}

impl QueueControl {
    /// Whether this virtual processor asks others for work when it becomes idle.
    pub(crate) fn seeks_work(&self) -> bool {
        self.seeks_work.load(Ordering::Relaxed)
    }

    /// How long a microprocess may run while others wait, by default.
    pub(crate) fn default_slice_ns(&self) -> u64 {
        self.default_slice_ns.load(Ordering::Relaxed)
    }

    /// Sets the default time slice. Call before anything runs.
    pub(crate) fn set_usual_slice(&self, slice_ns: u64) {
        self.default_slice_ns.store(slice_ns, Ordering::Relaxed);
        self.slice_ns.store(slice_ns, Ordering::Relaxed);
    }

    pub(crate) fn slice_ns(&self) -> u64 {
        self.slice_ns.load(Ordering::Relaxed)
    }

    /// Leaves a scheduler for the holder to install. May be called by any thread, with events
    /// unmasked.
    pub(crate) fn offer(&self, installed: Box<Installed>) {
        let replaced = self.incoming.swap(Box::into_raw(installed), Ordering::AcqRel);
        if !replaced.is_null() {
            retire(replaced);
        }
    }

    /// Why the last user scheduler was removed, if one was.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let faults = [Fault::NotRunnable, Fault::Lost, Fault::Panicked];
        let code = usize::from(self.fault.load(Ordering::Relaxed));
        code.checked_sub(1).and_then(|index| faults.get(index).copied())
    }
}

impl ReadyQueue {
    pub(crate) const fn new() -> Self {
        Self {
            built_in: RunQueue::new(),
            user: Cell::new(ptr::null_mut()),
            control: QueueControl {
                incoming: AtomicPtr::new(ptr::null_mut()),
                fault: AtomicU8::new(0),
                slice_ns: AtomicU64::new(SLICE_NS),
                default_slice_ns: AtomicU64::new(SLICE_NS),
                seeks_work: AtomicBool::new(false),
            },
        }
    }

    pub(crate) const fn control(&self) -> &QueueControl {
        &self.control
    }

    /// Whether a user scheduler is installed.
    #[inline]
    pub(crate) fn has_user(&self) -> bool {
        !self.user.get().is_null()
    }

    /// Adds `record` behind those of its priority, or before them if it was [`Arrival::Outranked`].
    #[inline]
    pub(crate) fn push(&self, record: &'static Record, arrival: Arrival) {
        if self.has_user() {
            return self.user_push(record, arrival);
        }
        if arrival == Arrival::Outranked {
            self.built_in.push_first(record, record.level());
        } else {
            self.built_in.push(record, record.level());
        }
    }

    /// Adds `record`, before those of its priority unless a user scheduler decides.
    pub(crate) fn push_leader(&self, record: &'static Record, arrival: Arrival) {
        if self.has_user() {
            return self.user_push(record, arrival);
        }
        self.built_in.push_first(record, record.level());
    }

    /// Removes and returns the microprocess that runs next.
    #[inline]
    pub(crate) fn pop(&self) -> Option<&'static Record> {
        if self.has_user() {
            return self.user_pop();
        }
        self.built_in.pop()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.built_in.is_empty() && self.installed().is_none_or(|user| user.count.get() == 0)
    }

    /// The number of runnable microprocesses, or `most` if there are more.
    pub(crate) fn count_up_to(&self, most: usize) -> usize {
        let users = self.installed().map_or(0, |user| user.count.get());
        (users + self.built_in.count_up_to(most)).min(most)
    }

    /// The level of the most urgent runnable microprocess.
    pub(crate) fn highest(&self) -> Option<u8> {
        if self.has_user() {
            let best = self.call(|_, scheduler, _| scheduler.best());
            return best.flatten().map(|best| best.level()).max(self.built_in.highest());
        }
        self.built_in.highest()
    }

    /// Whether a waiting microprocess should run instead of `running`.
    pub(crate) fn outranks(&self, running: &'static Record, slice: Slice) -> bool {
        let preempts = self.call(|user, scheduler, now_ns| {
            if slice == Slice::Over {
                user.charge(scheduler, now_ns);
            }
            let waits = user.count.get() > 0;
            let preempts = waits && scheduler.preempts(Entry::of(running), slice, now_ns);
            // If the scheduler has lost its waiting entries, the running microprocess would never
            // be preempted.
            let has_lost = waits && slice == Slice::Over && scheduler.best().is_none();
            if has_lost { Err(Fault::Lost) } else { Ok(preempts) }
        });
        match preempts {
            Some(Ok(preempts)) => return preempts,
            Some(Err(fault)) => self.fail(fault),
            None => {}
        }
        let best = self.built_in.highest();
        best.is_some_and(|best| {
            let is_over = || slice == Slice::Over && !running.prolongs_slice();
            best > running.level() || best == running.level() && is_over()
        })
    }

    /// Whether a waiting microprocess may run when `running` yields.
    #[inline]
    pub(crate) fn may_follow(&self, running: &'static Record) -> bool {
        if self.has_user() {
            return !self.is_empty();
        }
        self.built_in.highest().is_some_and(|best| best >= running.level())
    }

    /// Removes `record`, which is queued at `level` if at all; returns whether it was here.
    pub(crate) fn remove(&self, record: &'static Record, level: u8) -> bool {
        let Some(user) = self.installed().filter(|_| record.scheduling.is_queued()) else {
            return self.built_in.remove(record, level);
        };
        record.scheduling.set_queued(false);
        user.count.set(user.count.get() - 1);
        self.call(|_, scheduler, _| scheduler.remove(Entry::of(record)));
        true
    }

    /// How many microprocesses to move to `idle` virtual processors.
    pub(crate) fn surplus(&self, idle: usize, runs: Runs) -> usize {
        let runnable = self.count_up_to(COUNTED_MAX);
        if self.has_user() {
            let demand = Demand { runnable, idle, runs };
            return self.call(|_, user, _| user.surplus(demand)).unwrap_or(0).min(runnable);
        }
        balance::share(runnable, idle, runs)
    }

    /// Removes and returns a microprocess that may move to another virtual processor.
    pub(crate) fn give(&self) -> Option<&'static Record> {
        if !self.has_user() {
            return self.built_in.take_first(COUNTED_MAX, |record| !record.is_pinned());
        }
        let given = self.call(|_, scheduler, now_ns| scheduler.give(now_ns))??;
        let record = self.check(given)?;
        if record.is_pinned() {
            record.scheduling.set_queued(true);
            self.fail(Fault::NotRunnable);
            return None;
        }
        Some(record)
    }

    /// Removes and returns a microprocess that is bound to a kernel thread, if one is queued,
    /// whatever its rank. Takes time in proportion to the runnable microprocesses, or to all
    /// records if a user scheduler is installed.
    pub(crate) fn take_bound(&self) -> Option<&'static Record> {
        let is_bound = |record: &'static Record| record.bound.get().is_some();
        if !self.has_user() {
            return self.built_in.take_first(usize::MAX, is_bound);
        }
        let is_queued = |record: &&'static Record| record.scheduling.is_queued();
        let found =
            slot::all().filter(is_queued).find(|record| self.is_of(record) && is_bound(record))?;
        self.remove(found, found.level()).then_some(found)
    }

    // ----- events --------------------------------------------------------------------------------

    /// Reports an event on virtual processor `index` to the user scheduler.
    #[inline]
    pub(crate) fn tell(&self, kind: EventKind, index: usize, bound: Option<&'static Record>) {
        if self.has_user() {
            self.user_tell(kind, index, bound);
        }
    }

    // ----- installing ----------------------------------------------------------------------------

    /// Installs the offered scheduler, if there is one. Call as the holder, with events masked.
    pub(crate) fn install(&self) {
        let incoming = self.control.incoming.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or made by `Box::into_raw` and owned by this thread since the swap.
        let Some(fresh) = (unsafe { incoming.as_ref() }) else { return };
        let was = self.user.get();
        let moving = RunQueue::<Record>::new();
        // Moved in the order in which they would have run. A scheduler that fails here leaves the
        // rest to the built-in queue.
        while let Some(record) = self.pop() {
            moving.push(record, 0);
        }
        if !self.user.replace(ptr::null_mut()).is_null() {
            retire(was);
        }
        let (is_built_in, seeks_work) = match &*fresh.scheduler.borrow() {
            None => (true, false),
            Some(scheduler) => (false, scheduler.seeks_work()),
        };
        self.control.slice_ns.store(self.control.default_slice_ns(), Ordering::Relaxed);
        self.control.seeks_work.store(seeks_work, Ordering::Relaxed);
        if is_built_in {
            retire(incoming);
        } else {
            self.control.fault.store(0, Ordering::Relaxed);
            self.user.set(incoming);
        }
        while let Some(record) = moving.pop() {
            record.scheduling.reset();
            self.push(record, Arrival::Moved);
        }
    }

    /// Removes all schedulers after the runtime has stopped.
    pub(crate) fn clear(&self) {
        for installed in [
            self.user.replace(ptr::null_mut()),
            self.control.incoming.swap(ptr::null_mut(), Ordering::AcqRel),
        ] {
            if !installed.is_null() {
                retire(installed);
            }
        }
        self.built_in.clear();
        self.control.fault.store(0, Ordering::Relaxed);
        self.control.seeks_work.store(false, Ordering::Relaxed);
    }

    /// The name of the user scheduler. Call as the holder, with events masked.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.call(|_, scheduler, _| scheduler.name())
    }
}
