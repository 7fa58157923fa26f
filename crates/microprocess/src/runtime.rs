//! Starting and ending a runtime.

use core::fmt;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::ffi::OsStr;
use std::panic::{catch_unwind, resume_unwind};
use std::{env, thread};

use kyocho_sys::prim::atomic::Ordering;

use self::life::{Watchers, install_schedulers, set_slices, start_main, start_threads, stop};
use crate::calls::io::{Mechanism, mechanism};
use crate::data::detection::Detection;
use crate::data::slice::{SLICE_NS, SLICE_NS_MAX, SLICE_NS_MIN};
use crate::data::statistics::Statistics;
use crate::events::detect;
use crate::policy::scheduler::Factory;
use crate::processor::dispatcher::Dispatcher;
use crate::processor::foreign_locks;
use crate::processor::instruments;
use crate::processor::record::{Reason, State};
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
use crate::wait::sync;

pub mod control;
mod debugger;
mod life;

/// How to start a runtime.
#[derive(Debug, Clone, Default)]
pub struct RuntimeBuilder {
    virtual_processors: Option<usize>,
    virtual_processors_max: Option<usize>,
    detection: Detection,
    aside_max: Option<Duration>,
    cpu_percent_max: Option<u32>,
    time_slice: Option<Duration>,
    on_unanswered: OnUnanswered,
    reflection: Reflection,
    control: Option<bool>,
    scheduler: Option<Factory>,
}

/// What a runtime makes use of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many virtual processors there are.
    pub virtual_processors: usize,
    /// What notices that a kernel thread sleeps: never [`Detection::Auto`].
    pub detection: Detection,
    /// What carries out input and output.
    pub io: Mechanism,
    /// How far priorities reach.
    pub priorities: Reach,
    /// How the host is told of them: never [`Reflection::Auto`].
    pub reflection: Reflection,
    /// How long a microprocess runs while equals wait, where no user scheduler says otherwise.
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
        writeln!(f, "input and output: {}", self.io)?;
        writeln!(f, "priorities: {}", self.priorities)?;
        write!(f, "the host is told of priorities by: {}", self.reflection)
    }
}

impl RuntimeBuilder {
    /// Sets the number of virtual processors; as many as the process has CPUs when not called.
    ///
    /// # Panics
    /// `count` is zero.
    #[must_use]
    pub fn virtual_processors(mut self, count: usize) -> Self {
        assert!(count > 0, "a runtime needs a virtual processor");
        self.virtual_processors = Some(count);
        self
    }

    /// Sets how many virtual processors [`set_concurrency`](crate::set_concurrency()) may ask for: at least as many as there are to begin
    /// with, which it is when not called. Each costs a few kernel threads, asleep.
    ///
    /// # Panics
    /// `most` is zero.
    #[must_use]
    pub fn virtual_processors_max(mut self, most: usize) -> Self {
        assert!(most > 0, "a runtime needs a virtual processor");
        self.virtual_processors_max = Some(most);
        self
    }

    /// Sets how sleeping in the kernel is noticed.
    #[must_use]
    pub fn detection(mut self, detection: Detection) -> Self {
        self.detection = detection;
        self
    }

    /// Sets how long a virtual processor stands aside at a time for a more urgent one of another process on the same CPU; 1 s when not
    /// called. Then it runs for a time slice (5 ms). Zero: it never stands aside.
    #[must_use]
    pub fn stand_aside_max(mut self, limit: Duration) -> Self {
        self.aside_max = Some(limit);
        self
    }

    /// Sets how the host is told which microprocesses are urgent, so that they also get their CPU before and after programs that are not
    /// Kyocho's. Only priorities other than [`Priority::NORMAL`](crate::Priority::NORMAL) make a difference.
    #[must_use]
    pub fn reflection(mut self, reflection: Reflection) -> Self {
        self.reflection = reflection;
        self
    }

    /// Lets other processes of the user list, stop, resume and end the microprocesses, by a control socket: see [`control`](crate::control). Not when
    /// not called, unless the environment variable `KYOCHO_CONTROL` is `1`; `KYOCHO_CONTROL=0` forbids it in any case.
    #[must_use]
    pub fn control(mut self, served: bool) -> Self {
        self.control = Some(served);
        self
    }

    /// Sets the user scheduler: `make` makes one for each virtual processor, by its number. The built-in fixed priorities when not
    /// called.
    #[must_use]
    pub fn scheduler(
        mut self,
        make: impl Fn(usize) -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.scheduler = Some(Factory::new(make));
        self
    }

    /// Bounds the CPU time of the process, all its kernel threads together, to so many percent of one CPU, in windows of 100 ms; without
    /// bound when not called. Enforced by the runtime upon itself, at time slices; it needs the shared file ([`Reach::Processes`]).
    ///
    /// # Panics
    /// `percent` is zero.
    #[must_use]
    pub fn cpu_percent_max(mut self, percent: u32) -> Self {
        assert!(percent > 0, "a process needs some CPU time");
        self.cpu_percent_max = Some(percent);
        self
    }

    /// Sets how long a microprocess runs while equals wait, where no user scheduler says otherwise; 5 ms when not called. Shorter ones let an
    /// equal wait less, and cost a switch each.
    ///
    /// # Panics
    /// It is below 1 ms, or above 1 s.
    #[must_use]
    pub fn time_slice(mut self, slice: Duration) -> Self {
        let bounds = Duration::from_nanos(SLICE_NS_MIN)..=Duration::from_nanos(SLICE_NS_MAX);
        assert!(bounds.contains(&slice), "a time slice lasts from 1 ms to 1 s");
        self.time_slice = Some(slice);
        self
    }

    /// Sets what is done about a virtual processor that uses 0.5 s of CPU time without answering an event; a line on standard error when
    /// not called.
    #[must_use]
    pub fn on_unanswered(mut self, action: OnUnanswered) -> Self {
        self.on_unanswered = action;
        self
    }

    /// The runtime.
    #[must_use]
    pub fn build(self) -> Runtime {
        let cpus = || thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let virtual_processors = self.virtual_processors.unwrap_or_else(cpus);
        let aside_max = self.aside_max.unwrap_or(ASIDE_MAX);
        let control = control_is_wanted(self.control, env::var_os("KYOCHO_CONTROL").as_deref());
        let most = self.virtual_processors_max.unwrap_or(0).max(virtual_processors);
        Runtime {
            concurrency: virtual_processors,
            virtual_processors: most,
            detection: detect::settle(self.detection),
            limits: Limits {
                aside_max_ns: u64::try_from(aside_max.as_nanos()).unwrap_or(u64::MAX),
                cpu_percent_max: self.cpu_percent_max,
                on_unanswered: self.on_unanswered,
            },
            slice_ns: self.time_slice.map_or(SLICE_NS, |slice| slice.as_nanos() as u64),
            reflection: self.reflection,
            control,
            scheduler: self.scheduler,
        }
    }
}

/// Whether the control socket is served, from what the program and its user say.
fn control_is_wanted(program: Option<bool>, user: Option<&OsStr>) -> bool {
    match user.and_then(OsStr::to_str) {
        Some("0") => false,
        Some("1") => true,
        _ => program == Some(true),
    }
}

/// What virtual processors call in the layers above them.
static DISPATCHER: Dispatcher = Dispatcher {
    enter: detect::enter,
    dispatch: dispatch::run,
    leave: detect::leave,
    conclude_abandoned: dispatch::conclude_abandoned,
};

/// How long a virtual processor stands aside at a time when nobody says otherwise.
const ASIDE_MAX: Duration = Duration::from_secs(1);

/// Virtual processors for one address space, or for a part of it.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// How many run to begin with, and how many there are.
    concurrency: usize,
    virtual_processors: usize,
    detection: Detection,
    limits: Limits,
    slice_ns: u64,
    reflection: Reflection,
    control: bool,
    scheduler: Option<Factory>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Nothing was runnable, nothing pending, and `main` had not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The microprocesses that waited, oldest first.
    pub waiting: Vec<Waiting>,
}

/// A microprocess in a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub id: u64,
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// Its priority's level.
    pub level: u8,
    /// What it waited for.
    pub reason: Reason,
    /// The id of the microprocess that held it, where it was a mutex.
    pub held_by: Option<u64>,
}

/// How many of those who wait are listed in text.
const LISTED_MAX: usize = 100;

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deadlock: nothing is runnable and nothing pending; {} wait:",
            self.waiting.len()
        )?;
        for Waiting { id, name, level, reason, held_by } in self.waiting.iter().take(LISTED_MAX) {
            let name = name.as_deref().unwrap_or("(no name)");
            write!(f, "\n  microprocess {id} {name}, priority {level}, waits for {reason}")?;
            if let Some(holder) = held_by {
                write!(f, ", held by microprocess {holder}")?;
            }
        }
        if self.waiting.len() > LISTED_MAX {
            write!(f, "\n  and {} more", self.waiting.len() - LISTED_MAX)?;
        }
        Ok(())
    }
}

impl core::error::Error for Deadlock {}

impl Runtime {
    /// How to start one.
    #[must_use]
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Runs `main` as the first microprocess, and returns what it returns.
    ///
    /// When `main` returns, the runtime stops: microprocesses that have not ended are abandoned. Their stacks are taken
    /// back without running destructors; a kernel thread that one of them holds in the kernel, or that was preempted in the middle of
    /// foreign code, sleeps until the process ends.
    ///
    /// # Errors
    /// Nothing is runnable, no timer is set, no I/O is pending, and `main` has not returned.
    ///
    /// # Panics
    /// `main` panicked, the system gives no memory or kernel threads to start with, or the process was forked from one in which a
    /// runtime ran: until it calls `exec` or `_exit`, such a process may only do what a signal handler may. Using
    /// microprocesses ends it.
    pub fn run<F, T>(&self, main: F) -> Result<T, Deadlock>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        assert!(
            !fork::is_orphaned(),
            "a process forked while a runtime ran starts none: exec first"
        );
        let (detection, seats) = match self.detection {
            Detection::Bpf => match detect::take_seats(self.virtual_processors) {
                Some(seats) => (Detection::Bpf, seats),
                None => (Detection::Sentinel, Vec::new()),
            },
            other => (other, Vec::new()),
        };
        let pins = matches!(detection, Detection::Bpf | Detection::Sentinel);
        let mut cpus = if pins { detect::allowed_cpus() } else { Vec::new() };
        space::spread(&mut cpus);
        let concurrency = self.concurrency;
        let (reflection, means) = reflection::settle(self.reflection);
        let limits = self.limits;
        let options = Options { detection, limits, reflection, means, concurrency };
        let shared = Shared::take(self.virtual_processors, cpus, options, &DISPATCHER);
        set_slices(shared, self.slice_ns);
        if let Some(factory) = &self.scheduler {
            install_schedulers(shared, factory);
        }
        let (mut main, mut result) = (Some(main), None);
        let (main, place) = (&mut main, &mut result);
        let body = move || {
            let main = main.take().expect("main runs once");
            *place = Some(catch_unwind(AssertUnwindSafe(main)));
            local::end(schedule::current());
            instruments::release(shared);
            // Never left: with events unmasked, it could be preempted between the end of the run and its
            // own. It would be abandoned there, with its kernel thread and this run's shared part.
            let _until_it_is_gone = schedule::mask();
            shared.end(outcome::FINISHED);
        };
        start_main(shared, body);
        trace::start_if_wanted();
        debugger::keep();
        let detected = self.detection;
        tracing::debug!(virtual_processors = self.virtual_processors, ?detected, "runtime starts");
        let mut watchers = Watchers::new(seats);
        if let Err(errno) = start_threads(shared, &mut watchers) {
            stop(shared, watchers);
            shared.keep();
            panic!("no kernel threads to start with: {errno}");
        }
        let serving = self
            .control
            .then(control::serve)
            .map(|served| served.inspect_err(|error| tracing::warn!(%error, "no control socket")));
        let how = foreign_locks::without_own_locks(|| shared.await_end());
        instruments::acquire(shared);
        drop(serving);
        tracing::debug!(deadlock = how == outcome::DEADLOCK, "runtime ends");
        let deadlock = (how == outcome::DEADLOCK).then(|| Deadlock { waiting: waiting_in(shared) });
        trace::write_file();
        let threads_left = stop(shared, watchers);
        shared.put_back(threads_left);
        match (deadlock, result) {
            (Some(deadlock), _) => Err(deadlock),
            (None, Some(Ok(value))) => Ok(value),
            (None, Some(Err(panic))) => resume_unwind(panic),
            (None, None) => unreachable!("main ends the run after it left its result"),
        }
    }
}

/// Runs `main` as the first microprocess of a runtime with as many virtual processors as the process has CPUs.
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

/// Who waits for what, in a runtime where nothing runs.
fn waiting_in(shared: &'static Shared) -> Vec<Waiting> {
    let parked = shared.records().filter(|record| record.state.get() == State::Parked);
    let mut waiting: Vec<Waiting> = parked
        .map(|record| Waiting {
            id: record.id(),
            name: record.name.get().as_str().map(str::to_owned),
            level: record.level(),
            reason: record.reason.get(),
            held_by: sync::holder_of(record.reason.get()),
        })
        .collect();
    waiting.sort_by_key(|waiting| waiting.id);
    waiting
}

impl Shared {
    /// What happened on all virtual processors.
    pub(crate) fn statistics(&self) -> Statistics {
        let of_vps = self.vps().iter().map(|vp| vp.counters.read());
        let of_host = detect::observer_of(self).into_iter().flat_map(|observer| {
            self.vps().iter().map(|vp| observer.counted(vp.seat.load(Ordering::Relaxed)))
        });
        of_vps.chain(of_host).fold(Statistics::default(), |a, b| a + b)
    }
}

/// What has happened in the caller's runtime so far.
///
/// # Panics
/// The caller is no microprocess.
#[must_use]
pub fn statistics() -> Statistics {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    shared.statistics()
}

/// What the caller's runtime makes use of.
///
/// # Panics
/// The caller is no microprocess.
#[must_use]
pub fn report() -> Report {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    Report {
        virtual_processors: shared.vps().len(),
        detection: shared.detection,
        io: mechanism(),
        priorities: space::reach(),
        reflection: shared.reflection,
        time_slice: Duration::from_nanos(shared.vps()[0].queue_control().usual_slice_ns()),
    }
}

/// How many virtual processors of the caller's runtime run microprocesses.
///
/// # Panics
/// The caller is no microprocess.
#[must_use]
pub fn concurrency() -> usize {
    let section = schedule::mask();
    let shared = section.vp.shared();
    section.leave();
    shared.concurrency()
}

#[cfg(test)]
mod tests;
