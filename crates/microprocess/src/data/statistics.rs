//! Event counts of virtual processors.

use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

/// A count that one kernel thread at a time increments, and that any thread may read.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds one and returns the new count. No atomic read-modify-write: there is one writer at a
    /// time.
    #[inline(always)]
    pub(crate) fn bump(&self) -> u64 {
        let count = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(count, Ordering::Relaxed);
        count
    }

    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The events counted on one virtual processor.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) switches: Counter,
    pub(crate) spawned: Counter,
    pub(crate) ended: Counter,
    pub(crate) blocked: Counter,
    pub(crate) unblocked: Counter,
    pub(crate) resumed: Counter,
    pub(crate) preempted: Counter,
    pub(crate) shared: Counter,
    pub(crate) gathered: Counter,
    pub(crate) travels: Counter,
    pub(crate) completed: Counter,
    pub(crate) timers: Counter,
    pub(crate) cpu_yields: Counter,
    /// How often the attention word was served. Only the watchdog reads this.
    pub(crate) served: Counter,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            switches: Counter::new(),
            spawned: Counter::new(),
            ended: Counter::new(),
            blocked: Counter::new(),
            unblocked: Counter::new(),
            resumed: Counter::new(),
            preempted: Counter::new(),
            shared: Counter::new(),
            gathered: Counter::new(),
            travels: Counter::new(),
            completed: Counter::new(),
            timers: Counter::new(),
            cpu_yields: Counter::new(),
            served: Counter::new(),
        }
    }

    /// Counts from 0 again.
    pub(crate) fn reset(&self) {
        let Self { switches, spawned, ended, blocked, unblocked, resumed, preempted, .. } = self;
        let Self { shared, gathered, travels, completed, timers, cpu_yields, served, .. } = self;
        for counter in [switches, spawned, ended, blocked, unblocked, resumed, preempted] {
            counter.reset();
        }
        for counter in [shared, gathered, travels, completed, timers, cpu_yields, served] {
            counter.reset();
        }
    }

    /// What has been counted so far.
    pub(crate) fn read(&self) -> Statistics {
        Statistics {
            switches: self.switches.get(),
            spawned: self.spawned.get(),
            ended: self.ended.get(),
            blocked: self.blocked.get(),
            unblocked: self.unblocked.get(),
            resumed: self.resumed.get(),
            preempted: self.preempted.get(),
            shared: self.shared.get(),
            gathered: self.gathered.get(),
            travels: self.travels.get(),
            completed: self.completed.get(),
            timers: self.timers.get(),
            cpu_yields: self.cpu_yields.get(),
            ..Statistics::default()
        }
    }
}

/// Counts of events since the runtime started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "control", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Switches to a microprocess on a virtual processor.
    pub switches: u64,
    /// Microprocesses created.
    pub spawned: u64,
    /// Microprocesses that ended.
    pub ended: u64,
    /// Blocked: a kernel thread slept in the kernel, and its virtual processor went to another one.
    pub blocked: u64,
    /// Unblocked: such a thread woke up and asked for a virtual processor.
    pub unblocked: u64,
    /// Resumed: a kernel thread of the pool received a virtual processor.
    pub resumed: u64,
    /// Preempted: a microprocess was stopped in code that does not call the runtime.
    pub preempted: u64,
    /// Runnable microprocesses moved to an idle virtual processor.
    pub shared: u64,
    /// How often a virtual processor moved all its microprocesses to another one, because both kept
    /// using the same channels and locks.
    pub gathered: u64,
    /// How often a channel or lock was used by another virtual processor than the last time.
    pub travels: u64,
    /// Completed operations of input or output: see [`io::Route`](crate::calls::io::Route).
    pub completed: u64,
    /// Timers that expired, of a sleep or of a wait with a time limit.
    pub timers: u64,
    /// How often a virtual processor yielded its CPU to a more urgent one of another process.
    pub cpu_yields: u64,
    /// Preempted by the host, which took the CPU from a kernel thread that held a virtual
    /// processor. Only [`Detection::Bpf`] counts these.
    ///
    /// [`Detection::Bpf`]: crate::Detection::Bpf
    pub host_preempted: u64,
    /// Resumed by the host: such a thread received a CPU again.
    pub host_resumed: u64,
}

impl core::ops::Add for Statistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            switches: self.switches + other.switches,
            spawned: self.spawned + other.spawned,
            ended: self.ended + other.ended,
            blocked: self.blocked + other.blocked,
            unblocked: self.unblocked + other.unblocked,
            resumed: self.resumed + other.resumed,
            preempted: self.preempted + other.preempted,
            shared: self.shared + other.shared,
            gathered: self.gathered + other.gathered,
            travels: self.travels + other.travels,
            completed: self.completed + other.completed,
            timers: self.timers + other.timers,
            cpu_yields: self.cpu_yields + other.cpu_yields,
            host_preempted: self.host_preempted + other.host_preempted,
            host_resumed: self.host_resumed + other.host_resumed,
        }
    }
}
