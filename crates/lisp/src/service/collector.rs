//! The collector's thread (paper 4, §3.1.3).
//!
//! ```text
//!  somebody waits for memory, or the heap is small     the world is stopped, all is marked, it goes on
//!  a collection is due                                 the world is stopped, roots are noted, it goes on
//!                                                        marking, at the priority of usual threads
//!                                                      it is stopped, what is left is marked, it goes on
//! ```
//!
//! Rust objects that nothing refers to are dropped when it goes on: a port passes on what it has buffered, as far as that is taken at once.

use super::markers::Markers;
use crate::system::kernel::{Kernel, Roots, lock};
use crate::thread::lisp_thread::LispThread;
use core::time::Duration;
use kyocho_heap::heap::{Cycle, Dead};
use kyocho_microprocess::{Microprocess, Priority, park, park_timeout};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use kyocho_sys::prim::clock::Instant;
use std::sync::{Arc, Mutex};

/// Objects that are scanned between two looks at what else there is to do: a millisecond or less.
const SCANS: usize = 10_000;

/// At most so often is there a collection for what sessions leave.
const LEFT_AFTER: Duration = Duration::from_secs(1);

/// The collector thread.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Somebody waits for memory.
    wanted: AtomicBool,
    /// A collection is due; nobody is held up until it is over.
    due: AtomicBool,
    /// What a session has left open shall be closed: one is due within [`LEFT_AFTER`].
    left: AtomicBool,
    /// One goes on beside the threads.
    goes_on: AtomicBool,
    /// It shall end with the world stopped.
    hurried: Arc<AtomicBool>,
    /// How many there will have been when the one that goes on, or the last one, has ended.
    begun: AtomicU64,
    /// Collections whose dead Rust objects have been dropped.
    settled: AtomicU64,
    microprocess: Mutex<Option<Microprocess>>,
    /// Those who help it.
    pub(crate) markers: Arc<Markers>,
}

/// A collection that may be given up, because the collector is killed: the next collector makes it.
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
        collector.goes_on.store(false, Ordering::Release);
        let ended = kernel.heap.statistics().collections;
        if collector.begun.swap(ended, Ordering::AcqRel) > ended {
            kernel.heap.forget_cycle();
            collector.due.store(true, Ordering::Release);
        }
        // What a collection leaves to be dropped is dropped before this, also where its collector unwinds.
        collector.settled.store(ended, Ordering::Release);
        kernel.threads.release();
    }
}

/// Until somebody wakes this thread; for this long at most.
fn rest_for(limit: Option<Duration>) {
    limit.map_or_else(park, park_timeout);
}

impl Collector {
    /// For so many virtual processors.
    pub(crate) fn new(virtual_processors: usize) -> Self {
        Self {
            wanted: AtomicBool::new(false),
            due: AtomicBool::new(false),
            left: AtomicBool::new(false),
            goes_on: AtomicBool::new(false),
            hurried: Arc::default(),
            begun: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            microprocess: Mutex::default(),
            markers: Arc::new(Markers::new(virtual_processors)),
        }
    }

    /// Asks for a collection at once: who asks waits for memory.
    pub(crate) fn request(&self) {
        self.wanted.store(true, Ordering::Release);
        if self.goes_on.load(Ordering::Acquire)
            && let Some(microprocess) = lock(&self.microprocess).as_ref()
        {
            microprocess.set_priority(Priority::HIGHEST);
            self.markers.set_priority(Priority::HIGHEST);
        }
        super::wake(&self.microprocess);
    }

    /// A collection is due, unless one goes on.
    pub(crate) fn request_soon(&self) {
        if !self.goes_on.load(Ordering::Acquire) && !self.due.swap(true, Ordering::AcqRel) {
            super::wake(&self.microprocess);
        }
    }

    /// A session has ended that left ports, sockets or programs: they are closed when they are found to be garbage, which may be long where nobody takes memory.
    pub(crate) fn request_for_left(&self) {
        if !self.left.swap(true, Ordering::AcqRel) {
            super::wake(&self.microprocess);
        }
    }

    /// Sees that there will have been so many collections.
    pub(crate) fn request_until(&self, collections: u64) {
        if self.begun.load(Ordering::Acquire) < collections {
            self.due.store(true, Ordering::Release);
            super::wake(&self.microprocess);
        }
    }

    /// How many collections there will have been when one that begins from now on has ended.
    pub(crate) fn next(&self) -> u64 {
        self.begun.load(Ordering::Acquire) + 1
    }

    /// How many collections are over: what they found to be dropped is dropped.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Who collects.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system is booted")
    }

    /// The thread's body: collects when asked, until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        let mut rests_until = Instant::now();
        loop {
            let rest = rests_until.saturating_duration_since(Instant::now());
            let left = self.left.load(Ordering::Acquire);
            let due = self.due.swap(false, Ordering::AcqRel) || left && rest.is_zero();
            let wanted = self.wanted.swap(false, Ordering::AcqRel);
            if !due && !wanted {
                rest_for(left.then_some(rest));
                continue;
            }
            self.left.store(false, Ordering::Release);
            let attempt = Attempt::begin(self, kernel);
            let (stood, dead) = if wanted || !kernel.heap.collects_beside() {
                let begin = Instant::now();
                let dead = kernel.threads.stop_the_world(|threads| collect(kernel, threads));
                (begin.elapsed(), dead)
            } else {
                self.collect_beside(kernel)
            };
            drop(dead);
            drop(attempt);
            rests_until = Instant::now() + LEFT_AFTER;
            kernel.policies.collected(kernel, stood);
        }
    }

    fn is_hurried(&self) -> bool {
        self.wanted.load(Ordering::Acquire) || self.hurried.load(Ordering::Acquire)
    }

    /// A collection beside the threads; how long the world stood still, and what is to be dropped.
    fn collect_beside(&self, kernel: &Kernel) -> (Duration, Dead) {
        let mut marks = kernel.heap.empty_marks();
        let mut parts = Vec::new();
        let me = Microprocess::current();
        self.goes_on.store(true, Ordering::Release);
        let begin = Instant::now();
        let mut cycle = kernel.threads.stop_the_world(|threads| {
            let (hurried, markers) = (Arc::clone(&self.hurried), Arc::clone(&self.markers));
            let hurry = move || {
                hurried.store(true, Ordering::Release);
                me.set_priority(Priority::HIGHEST);
                markers.set_priority(Priority::HIGHEST);
            };
            kernel.heap.begin_cycle(&mut marks, Box::new(hurry), |marker| {
                parts = kernel.note_roots(threads, marker);
            })
        });
        let stood = begin.elapsed();
        kernel.heap.step();
        me.set_priority(Priority::NORMAL);
        self.markers.set_priority(Priority::NORMAL);
        for part in &mut parts {
            begin_part(&mut cycle, part);
            while !self.is_hurried() && !cycle.mark_some(SCANS) {
                super::give_way(&me);
            }
            if self.is_hurried() {
                break;
            }
            part.end(cycle.known_bytes());
        }
        me.set_priority(Priority::HIGHEST);
        self.markers.set_priority(Priority::HIGHEST);
        let begin = Instant::now();
        let dead =
            kernel.threads.stop_the_world(|threads| self.finish(kernel, threads, cycle, parts));
        (stood + begin.elapsed(), dead)
    }

    fn finish(
        &self,
        kernel: &Kernel,
        threads: &[Arc<LispThread>],
        mut cycle: Cycle<'_>,
        mut parts: Vec<Roots>,
    ) -> Dead {
        for part in parts.iter_mut().filter(|part| !part.has_ended()) {
            begin_part(&mut cycle, part);
            cycle.mark_all();
            part.end(cycle.known_bytes());
        }
        let (_, dead) = cycle.finish();
        kernel.heap.step();
        kernel.settle(parts);
        if self.wanted.swap(false, Ordering::AcqRel) {
            // Who waits for memory needs what has become garbage meanwhile, too.
            return dead.and(collect(kernel, threads));
        }
        dead
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
