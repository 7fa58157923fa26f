//! The collector's thread (paper 4, §3.1.3).
//!
//! ```text
//!  a thread waits for memory,    the world is stopped, all is marked, the world runs
//!  or the heap is small
//!
//!  a collection is due           the world is stopped, roots are recorded, the world runs
//!                                  marking
//!                                the world is stopped, the rest is marked, the world runs
//!                                  sweeping
//! ```
//!
//! Concurrent marking runs at the normal priority. If threads allocate faster than the collector
//! marks, it runs at the highest priority, except for a fifth of the time. If they take far too
//! much, they wait for it (`heap/pace.rs`).
//!
//! Unreachable Rust objects are dropped when the world runs again. A dropped port writes its buffer
//! as far as possible without blocking.

use super::markers::Markers;
use crate::kernel::session::thread::LispThread;
use crate::kernel::{Kernel, Roots, lock};
use core::time::Duration;
use kyocho_heap::heap::barrier::Haste;
use kyocho_heap::heap::{Cycle, Dead, Pace, Unswept};
use kyocho_microprocess::{Microprocess, Priority, park, park_timeout, sleep};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use kyocho_sys::prim::clock::Instant;
use std::sync::{Arc, Mutex};

/// Objects scanned between two checks for other work: a millisecond or less.
const SCANS: usize = 2_000;

/// How long it works at the highest priority before it rests, and how long it rests.
const URGENT: Duration = Duration::from_millis(4);
const REST: Duration = Duration::from_millis(1);

/// Least time between two collections for resources that ended sessions have left open.
const UNCLOSED_AFTER: Duration = Duration::from_secs(1);

/// The collector thread.
#[derive(Debug)]
pub(crate) struct Collector {
    /// A thread waits for memory.
    wanted: AtomicBool,
    /// A collection is due, for which no thread waits.
    due: AtomicBool,
    /// Resources of an ended session should be closed: a collection is due within
    /// [`UNCLOSED_AFTER`].
    has_unclosed: AtomicBool,
    /// A concurrent collection is in progress.
    is_concurrent: AtomicBool,
    /// The collection in progress should end with the world stopped.
    hurried: Arc<AtomicBool>,
    /// It marks at the highest priority.
    urgent: Arc<AtomicBool>,
    /// Number of collections that will have completed when the current one ends. Without a current
    /// one: that have completed.
    begun: AtomicU64,
    /// Collections whose unreachable Rust objects have been dropped.
    settled: AtomicU64,
    microprocess: Mutex<Option<Microprocess>>,
    /// The helpers.
    pub(crate) markers: Arc<Markers>,
}

/// A collection that is aborted if the collector is killed. The next collector repeats it.
struct Attempt<'a> {
    collector: &'a Collector,
    kernel: &'a Kernel,
}

impl<'a> Attempt<'a> {
    fn begin(collector: &'a Collector, kernel: &'a Kernel) -> Self {
        collector.begun.store(kernel.heap.statistics().collections + 1, Ordering::Release);
        collector.hurried.store(false, Ordering::Release);
        collector.markers.begin();
        let attempt = Self { collector, kernel };
        kernel.heap.step();
        attempt
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Self { collector, kernel } = *self;
        collector.is_concurrent.store(false, Ordering::Release);
        let ended = kernel.heap.statistics().collections;
        if collector.begun.swap(ended, Ordering::AcqRel) > ended {
            kernel.heap.forget_cycle();
            collector.due.store(true, Ordering::Release);
        }
        // The unreachable Rust objects were dropped before this, even if the collector unwinds.
        collector.settled.store(ended, Ordering::Release);
        kernel.threads.release();
    }
}

/// Parks this thread until it is woken, for at most `limit`.
fn rest_for(limit: Option<Duration>) {
    limit.map_or_else(park, park_timeout);
}

/// Sleeps for a moment if the collector has run at the highest priority for long.
fn rest(since: &mut Instant) {
    if since.elapsed() >= URGENT {
        sleep(REST);
        *since = Instant::now();
    }
}

impl Collector {
    /// The collector of a system with this many virtual processors.
    pub(crate) fn new(virtual_processors: usize) -> Self {
        Self {
            wanted: AtomicBool::new(false),
            due: AtomicBool::new(false),
            has_unclosed: AtomicBool::new(false),
            is_concurrent: AtomicBool::new(false),
            hurried: Arc::default(),
            urgent: Arc::default(),
            begun: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            microprocess: Mutex::default(),
            markers: Arc::new(Markers::new(virtual_processors)),
        }
    }

    /// Requests a collection at once, for a thread that waits for memory.
    pub(crate) fn request(&self) {
        self.wanted.store(true, Ordering::Release);
        if self.is_concurrent.load(Ordering::Acquire)
            && let Some(microprocess) = lock(&self.microprocess).as_ref()
        {
            microprocess.set_priority(Priority::HIGHEST);
            self.markers.set_priority(Priority::HIGHEST);
        }
        super::wake(&self.microprocess);
    }

    /// Makes a collection due, unless one is in progress.
    pub(crate) fn request_soon(&self) {
        if !self.is_concurrent.load(Ordering::Acquire) && !self.due.swap(true, Ordering::AcqRel) {
            super::wake(&self.microprocess);
        }
    }

    /// Raises the collector to the highest priority, because threads allocate faster than it marks.
    pub(crate) fn hasten(&self) {
        if self.is_concurrent.load(Ordering::Acquire)
            && !self.urgent.swap(true, Ordering::AcqRel)
            && let Some(microprocess) = lock(&self.microprocess).as_ref()
        {
            microprocess.set_priority(Priority::HIGHEST);
            self.markers.set_priority(Priority::HIGHEST);
        }
    }

    /// Called when a session with open ports, sockets or programs has ended. A collection finds and
    /// closes them. Without this call it could be long until the next one if no thread allocates.
    pub(crate) fn request_for_unclosed(&self) {
        if !self.has_unclosed.swap(true, Ordering::AcqRel) {
            super::wake(&self.microprocess);
        }
    }

    /// Requests collections until this number has completed.
    pub(crate) fn request_until(&self, collections: u64) {
        if self.begun.load(Ordering::Acquire) < collections {
            self.due.store(true, Ordering::Release);
            super::wake(&self.microprocess);
        }
    }

    /// The number of completed collections once one that begins from now on has ended.
    pub(crate) fn next(&self) -> u64 {
        self.begun.load(Ordering::Acquire) + 1
    }

    /// Number of completed collections whose unreachable objects have been dropped.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// The collector's microprocess.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system has booted")
    }

    /// The thread's body: collects on request until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        let mut rests_until = Instant::now();
        loop {
            let rest = rests_until.saturating_duration_since(Instant::now());
            let has_unclosed = self.has_unclosed.load(Ordering::Acquire);
            let due = self.due.swap(false, Ordering::AcqRel) || has_unclosed && rest.is_zero();
            let wanted = self.wanted.swap(false, Ordering::AcqRel);
            if !due && !wanted {
                rest_for(has_unclosed.then_some(rest));
                continue;
            }
            self.has_unclosed.store(false, Ordering::Release);
            let attempt = Attempt::begin(self, kernel);
            let (stopped_for, dead) = if wanted || !kernel.heap.collects_concurrently() {
                let begin = Instant::now();
                let dead = kernel.threads.stop_the_world(|threads| collect(kernel, threads));
                (begin.elapsed(), dead)
            } else {
                self.collect_concurrently(kernel)
            };
            drop(dead);
            drop(attempt);
            rests_until = Instant::now() + UNCLOSED_AFTER;
            kernel.policies.collected(kernel, stopped_for);
        }
    }

    fn is_hurried(&self) -> bool {
        self.wanted.load(Ordering::Acquire) || self.hurried.load(Ordering::Acquire)
    }

    /// A concurrent collection. Returns how long the world was stopped, and the objects to drop.
    fn collect_concurrently(&self, kernel: &Kernel) -> (Duration, Dead) {
        let mut marks = kernel.heap.empty_marks();
        let mut parts = Vec::new();
        let me = Microprocess::current();
        self.is_concurrent.store(true, Ordering::Release);
        let begin = Instant::now();
        let mut cycle = kernel.threads.stop_the_world(|threads| {
            let [hurried, urgent] = [&self.hurried, &self.urgent].map(Arc::clone);
            let markers = Arc::clone(&self.markers);
            let hurry = move |haste| {
                hurried.fetch_or(haste == Haste::Now, Ordering::Release);
                urgent.store(true, Ordering::Release);
                me.set_priority(Priority::HIGHEST);
                markers.set_priority(Priority::HIGHEST);
            };
            kernel.heap.begin_cycle(&mut marks, Box::new(hurry), |marker| {
                parts = kernel.note_roots(threads, marker);
            })
        });
        let stopped_for = begin.elapsed();
        kernel.heap.step();
        self.mark_concurrently(kernel, &mut cycle, &mut parts);
        me.set_priority(Priority::HIGHEST);
        self.markers.set_priority(Priority::HIGHEST);
        let begin = Instant::now();
        let (unswept, dead) =
            kernel.threads.stop_the_world(|threads| self.finish(kernel, threads, cycle, parts));
        let stopped_for = stopped_for + begin.elapsed();
        if let Some(mut unswept) = unswept {
            let mut since = Instant::now();
            while unswept.sweep_some() {
                rest(&mut since);
            }
            unswept.finish();
        }
        (stopped_for, dead)
    }

    /// Marks everything while threads run, or returns early when it is hurried.
    fn mark_concurrently(&self, kernel: &Kernel, cycle: &mut Cycle<'_>, parts: &mut [Roots]) {
        let mut since = Instant::now();
        self.lower_priority();
        for part in parts {
            begin_part(cycle, part);
            while !self.is_hurried() && !cycle.mark_some(SCANS) {
                self.keep_pace(kernel, &mut since);
            }
            if self.is_hurried() {
                return;
            }
            part.end(cycle.known_bytes());
        }
        while !self.is_hurried() && !cycle.is_all_marked(SCANS) {
            self.keep_pace(kernel, &mut since);
        }
    }

    /// Lowers the collector to the normal priority, until it is hastened.
    fn lower_priority(&self) {
        Microprocess::current().set_priority(Priority::NORMAL);
        self.markers.set_priority(Priority::NORMAL);
        // Last: a call of `hasten` before this has no effect, and is repeated at the next refill.
        self.urgent.store(false, Ordering::Release);
    }

    /// Called between two slices of marking. `since` is when the collector last yielded.
    fn keep_pace(&self, kernel: &Kernel, since: &mut Instant) {
        let pace = kernel.heap.pace();
        if pace >= Pace::Behind {
            self.hasten();
        }
        let is_urgent = self.urgent.load(Ordering::Acquire);
        if is_urgent && pace > Pace::Ahead {
            rest(since);
            return;
        }
        if is_urgent {
            self.lower_priority();
        }
        super::yield_if_due(&Microprocess::current());
        *since = Instant::now();
    }

    /// Does the rest with the world stopped. The sweep comes after the stop, unless it is hurried.
    fn finish<'a>(
        &self,
        kernel: &Kernel,
        threads: &[Arc<LispThread>],
        mut cycle: Cycle<'a>,
        mut parts: Vec<Roots>,
    ) -> (Option<Unswept<'a>>, Dead) {
        let is_hurried = self.is_hurried();
        for part in parts.iter_mut().filter(|part| !part.has_ended()) {
            begin_part(&mut cycle, part);
            cycle.mark_all();
            part.end(cycle.known_bytes());
        }
        if !is_hurried {
            let (unswept, dead) = cycle.end();
            kernel.heap.step();
            kernel.settle(parts);
            return (Some(unswept), dead);
        }
        let (_, dead) = cycle.finish();
        kernel.heap.step();
        kernel.settle(parts);
        if self.wanted.swap(false, Ordering::AcqRel) {
            // A thread that waits for memory also needs what has become garbage during the
            // collection.
            return (None, dead.and(collect(kernel, threads)));
        }
        (None, dead)
    }
}

fn begin_part(cycle: &mut Cycle<'_>, part: &mut Roots) {
    part.begin(cycle.known_bytes());
    cycle.mark(&part.values);
}

fn collect(kernel: &Kernel, threads: &[Arc<LispThread>]) -> Dead {
    let (_, dead) = kernel.heap.collect_stopped(|marker| kernel.trace(threads, marker));
    dead
}
