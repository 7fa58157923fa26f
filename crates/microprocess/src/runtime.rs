//! Starting and ending a runtime.

use core::fmt;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::thread;

use kyocho_sys::prim::atomic::Ordering;

use self::control::Service;
use self::deadlock::waiting_in;
pub use self::deadlock::{Deadlock, Waiting};
use self::life::{Watchers, install_schedulers, set_slices, start_main, start_threads, stop};
#[cfg(feature = "io")]
use crate::calls::io::{Mechanism, mechanism};
use crate::data::detection::Detection;
use crate::data::slice::{SLICE_NS, SLICE_NS_MAX, SLICE_NS_MIN};
use crate::data::statistics::Statistics;
use crate::events::detect;
use crate::policy::scheduler::Factory;
use crate::processor::dispatcher::Dispatcher;
use crate::processor::foreign_locks;
use crate::processor::instruments;

use crate::processor::reflection::{self, Reflection};
use crate::processor::scheduler::Scheduler;
use crate::processor::shared::{Options, Shared, outcome};
use crate::processor::space;
use crate::processor::space::{Limits, OnUnanswered, Reach};
use crate::processor::trace;
use crate::schedule;
use crate::schedule::fork;
use crate::thread::dispatch;
use crate::thread::local;

#[cfg(feature = "control")]
pub mod control;
#[cfg(not(feature = "control"))]
#[path = "runtime/no_control.rs"]
mod control;
mod deadlock;
mod debugger;
mod life;

/// How to start a runtime.
#[derive(Debug, Clone, Default)]
pub struct RuntimeBuilder {
    virtual_processors: Option<usize>,
    virtual_processors_max: Option<usize>,
    detection: Detection,
    cpu_yield_max: Option<Duration>,
    cpu_percent_max: Option<u32>,
    time_slice: Option<Duration>,
    on_unanswered: OnUnanswered,
    reflection: Reflection,
    control: Service,
    scheduler: Option<Factory>,
}

/// The mechanisms that a runtime uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of virtual processors, including retired ones.
    pub virtual_processors: usize,
    /// How it is noticed that a kernel thread sleeps: never [`Detection::Auto`].
    pub detection: Detection,
    /// How input and output are performed.
    #[cfg(feature = "io")]
    pub io: Mechanism,
    /// Among which processes priorities hold.
    pub priorities: Reach,
    /// How the host is informed of priorities: never [`Reflection::Auto`].
    pub reflection: Reflection,
    /// How long a microprocess runs while others of its priority wait, unless a user scheduler
    /// decides.
    pub time_slice: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detection = match self.detection {
            Detection::Auto | Detection::Off => "not detected",
            Detection::Bpf => "told by a BPF program in the host's scheduler",
            Detection::Sentinel => {
                "detected by a sentinel of the idle class on the same core (Detection::Bpf, with CAP_BPF and CAP_PERFMON, is told sooner)"
            }
            Detection::Monitor => "detected by a monitor thread every 0.05 to 1 ms",
        };
        let slice_ms = self.time_slice.as_millis();
        writeln!(f, "virtual processors: {}", self.virtual_processors)?;
        writeln!(f, "sleep in the kernel: {detection}")?;
        writeln!(f, "preemption: by signal, after {slice_ms} ms or for something more urgent")?;
        #[cfg(feature = "io")]
        writeln!(f, "input and output: {}", self.io)?;
        writeln!(f, "priorities: {}", self.priorities)?;
        write!(f, "the host is told of priorities by: {}", self.reflection)
    }
}

impl RuntimeBuilder {
    /// Sets the number of virtual processors. Default: the number of CPUs of the process.
    ///
    /// # Panics
    /// `count` is zero.
    #[must_use]
    pub fn virtual_processors(mut self, count: usize) -> Self {
        assert!(count > 0, "a runtime needs a virtual processor");
        self.virtual_processors = Some(count);
        self
    }

    /// Sets the greatest number of virtual processors for which
    /// [`set_concurrency`](crate::set_concurrency()) may ask. Default, and least value: the number
    /// at the start. Each costs a few kernel threads, which sleep.
    ///
    /// # Panics
    /// `most` is zero.
    #[must_use]
    pub fn virtual_processors_max(mut self, most: usize) -> Self {
        assert!(most > 0, "a runtime needs a virtual processor");
        self.virtual_processors_max = Some(most);
        self
    }

    /// Sets how it is noticed that a kernel thread sleeps.
    #[must_use]
    pub fn detection(mut self, detection: Detection) -> Self {
        self.detection = detection;
        self
    }

    /// Sets how long a virtual processor yields its CPU at a time to a more urgent one of another
    /// process on the same CPU. Default: 1 s. After that it runs for a time slice (5 ms). Zero: it
    /// never yields it.
    #[must_use]
    pub fn cpu_yield_max(mut self, limit: Duration) -> Self {
        self.cpu_yield_max = Some(limit);
        self
    }

    /// Sets how the host is informed which microprocesses are urgent. Then their priorities also
    /// count against programs that do not use Kyocho. It matters only for priorities other than
    /// [`Priority::NORMAL`](crate::Priority::NORMAL).
    #[must_use]
    pub fn reflection(mut self, reflection: Reflection) -> Self {
        self.reflection = reflection;
        self
    }

    /// Sets the user scheduler. `make` is called with the index of each virtual processor, and
    /// makes its scheduler. Default: the built-in fixed priorities.
    #[must_use]
    pub fn scheduler(
        mut self,
        make: impl Fn(usize) -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.scheduler = Some(Factory::new(make));
        self
    }

    /// Limits the CPU time of all kernel threads of the process together, in percent of one CPU, in
    /// windows of 100 ms. Default: no limit. The runtime enforces it at time slices. Needs the
    /// shared file ([`Reach::Processes`]).
    ///
    /// # Panics
    /// `percent` is zero.
    #[must_use]
    pub fn cpu_percent_max(mut self, percent: u32) -> Self {
        assert!(percent > 0, "a process needs some CPU time");
        self.cpu_percent_max = Some(percent);
        self
    }

    /// Sets how long a microprocess runs while others of its priority wait, unless a user scheduler
    /// decides. Default: 5 ms. With a shorter time slice others wait less, at the cost of more
    /// switches.
    ///
    /// # Panics
    /// `slice` is below 1 ms or above 1 s.
    #[must_use]
    pub fn time_slice(mut self, slice: Duration) -> Self {
        let bounds = Duration::from_nanos(SLICE_NS_MIN)..=Duration::from_nanos(SLICE_NS_MAX);
        assert!(bounds.contains(&slice), "a time slice lasts from 1 ms to 1 s");
        self.time_slice = Some(slice);
        self
    }

    /// Sets the action against a virtual processor that uses 0.5 s of CPU time without answering an
    /// event. Default: a line on standard error.
    #[must_use]
    pub fn on_unanswered(mut self, action: OnUnanswered) -> Self {
        self.on_unanswered = action;
        self
    }

    /// Builds the runtime.
    #[must_use]
    pub fn build(self) -> Runtime {
        let cpus = || thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let virtual_processors = self.virtual_processors.unwrap_or_else(cpus);
        let cpu_yield_max = self.cpu_yield_max.unwrap_or(CPU_YIELD_MAX);
        let most = self.virtual_processors_max.unwrap_or(0).max(virtual_processors);
        Runtime {
            concurrency: virtual_processors,
            virtual_processors: most,
            detection: detect::settle(self.detection),
            limits: Limits {
                cpu_yield_max_ns: u64::try_from(cpu_yield_max.as_nanos()).unwrap_or(u64::MAX),
                cpu_percent_max: self.cpu_percent_max,
                on_unanswered: self.on_unanswered,
            },
            slice_ns: self.time_slice.map_or(SLICE_NS, |slice| slice.as_nanos() as u64),
            reflection: self.reflection,
            control: self.control.settle(),
            scheduler: self.scheduler,
        }
    }
}

/// The functions of higher layers that virtual processors call.
static DISPATCHER: Dispatcher = Dispatcher {
    enter: detect::enter,
    dispatch: dispatch::run,
    leave: detect::leave,
    conclude_abandoned: dispatch::conclude_abandoned,
};

/// By default, how long a virtual processor yields its CPU at a time.
const CPU_YIELD_MAX: Duration = Duration::from_secs(1);

/// Virtual processors for one address space, or for a part of it.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// The number of virtual processors that run at the start.
    concurrency: usize,
    /// The number of virtual processors that exist; the others are retired at the start.
    virtual_processors: usize,
    detection: Detection,
    limits: Limits,
    slice_ns: u64,
    reflection: Reflection,
    control: Service,
    scheduler: Option<Factory>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Runtime {
    /// A builder for a runtime.
    #[must_use]
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Runs `main` as the first microprocess, and returns its result.
    ///
    /// When `main` returns, the runtime stops, and microprocesses that have not ended are
    /// abandoned. Their stacks are reused without running destructors. A kernel thread that one of
    /// them occupies, in the kernel or preempted in foreign code, sleeps until the process ends.
    ///
    /// # Errors
    /// Nothing is runnable, no timer is set, no I/O is pending, and `main` has not returned.
    ///
    /// # Panics
    /// `main` panicked, or the host gives no memory or kernel threads for the start. Also if the
    /// process was forked from one in which a runtime ran. Until such a process calls `exec` or
    /// `_exit`, it may only do what a signal handler may.
    pub fn run<F, T>(&self, main: F) -> Result<T, Deadlock>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let (mut main, mut result) = (Some(main), None);
        self.run_main(&mut || {
            let main = main.take().expect("main runs once");
            result = Some(catch_unwind(AssertUnwindSafe(main)));
        })?;
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("main stores its result before it ends the run"),
        }
    }

    /// [`run`](Self::run) without its types, so that it is compiled once.
    fn run_main(&self, main: &mut (dyn FnMut() + Send)) -> Result<(), Deadlock> {
        assert!(
            !fork::is_orphaned(),
            "a process that was forked while a runtime ran cannot start one: call exec first"
        );
        let (detection, map_entries) = match self.detection {
            Detection::Bpf => match detect::take_map_entries(self.virtual_processors) {
                Some(map_entries) => (Detection::Bpf, map_entries),
                None => (Detection::Sentinel, Vec::new()),
            },
            other => (other, Vec::new()),
        };
        let pins = matches!(detection, Detection::Bpf | Detection::Sentinel);
        let mut cpus = if pins { detect::allowed_cpus() } else { Vec::new() };
        space::spread(&mut cpus);
        let concurrency = self.concurrency;
        let (reflection, permissions) = reflection::settle(self.reflection);
        let limits = self.limits;
        let options = Options { detection, limits, reflection, permissions, concurrency };
        let shared = Shared::take(self.virtual_processors, cpus, options, &DISPATCHER);
        set_slices(shared, self.slice_ns);
        if let Some(factory) = &self.scheduler {
            install_schedulers(shared, factory);
        }
        let body = move || {
            main();
            local::end(schedule::current());
            instruments::release(shared);
            // This section is never left. With events unmasked, the microprocess could be preempted
            // after the end of the run and before its own end. Then it would be abandoned there,
            // together with its kernel thread and the shared part of this run.
            let _until_it_is_gone = schedule::mask();
            shared.end(outcome::FINISHED);
        };
        start_main(shared, body);
        trace::begin_run(self.virtual_processors, self.detection);
        debugger::keep();
        let mut watchers = Watchers::new(map_entries);
        if let Err(errno) = start_threads(shared, &mut watchers) {
            stop(shared, watchers);
            shared.keep();
            panic!("no kernel threads to start a runtime: {errno}");
        }
        let how = self.control.serve_during(|| {
            let how = foreign_locks::without_own_locks(|| shared.await_end());
            instruments::acquire(shared);
            how
        });
        let deadlock = (how == outcome::DEADLOCK).then(|| Deadlock { waiting: waiting_in(shared) });
        trace::end_run(deadlock.is_some());
        let threads_left = stop(shared, watchers);
        shared.put_back(threads_left);
        deadlock.map_or(Ok(()), Err)
    }
}

/// Runs `main` as the first microprocess of a runtime with as many virtual processors as the
/// process has CPUs.
///
/// ```
/// let sum: u64 = kyocho_microprocess::run(|| {
///     let handles: Vec<_> = (0..10).map(|i| kyocho_microprocess::spawn(move || i * i)).collect();
///     handles.into_iter().map(|handle| handle.join().unwrap()).sum()
/// })
/// .unwrap();
/// assert_eq!(sum, 285);
/// ```
///
/// # Errors
/// As for [`Runtime::run`].
///
/// # Panics
/// As for [`Runtime::run`].
pub fn run<F, T>(main: F) -> Result<T, Deadlock>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    Runtime::default().run(main)
}

impl Shared {
    /// The counts of all virtual processors together.
    pub(crate) fn statistics(&self) -> Statistics {
        let of_vps = self.vps().iter().map(|vp| vp.counters.read());
        let of_host = detect::observer_of(self).into_iter().flat_map(|observer| {
            self.vps().iter().map(|vp| observer.counted(vp.map_entry.load(Ordering::Relaxed)))
        });
        of_vps.chain(of_host).fold(Statistics::default(), |a, b| a + b)
    }
}

/// The counts of the caller's runtime so far.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn statistics() -> Statistics {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    shared.statistics()
}

/// The mechanisms that the caller's runtime uses.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn report() -> Report {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    Report {
        virtual_processors: shared.vps().len(),
        detection: shared.detection,
        #[cfg(feature = "io")]
        io: mechanism(),
        priorities: space::reach(),
        reflection: shared.reflection,
        time_slice: Duration::from_nanos(shared.vps()[0].queue_control().default_slice_ns()),
    }
}

/// How many virtual processors of the caller's runtime run microprocesses.
///
/// # Panics
/// The caller is not a microprocess.
#[must_use]
pub fn concurrency() -> usize {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    shared.concurrency()
}

#[cfg(test)]
mod tests;
