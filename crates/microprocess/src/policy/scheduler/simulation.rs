//! Drives a user scheduler with random events from a seed. Checks that no entry is lost, picked
//! twice, or picked without having been queued.
//!
//! A simulated microprocess is in one of five states. Every step moves one along an arrow, and
//! advances the time by up to 10 ms:
//!
//! ```text
//!            ┌──────── pick ────────┐
//!   spawn ─► queued ◄─ yield, slice, preempts ─ running ─► ended
//!              ▲ ▲                                │ │
//!              │ └────── wake ── parked ◄─────────┘ │
//!              └──── unblock ── blocked ◄───────────┘
//! ```
//!
//! Queued entries are also changed, moved to another virtual processor, and removed.

use core::fmt;

use super::{Arrival, Bound, Demand, Entry, Event, EventKind, Runs, Scheduler, Slice};
use crate::processor::record::Record;
use crate::processor::slot;
use crate::processor::vp;
use crate::schedule::mask;

/// Simulated microprocesses alive at a time.
const ALIVE_MAX: usize = 40;
const STEP_NS_MAX: u64 = 10_000_000;

/// What a simulation did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Microprocesses spawned.
    pub spawned: usize,
    /// Entries picked.
    pub picked: usize,
    /// Entries moved to another virtual processor.
    pub given: usize,
    /// Running microprocesses preempted by a more urgent one, or at the end of their slice.
    pub preempted: usize,
}

/// A rule that a scheduler broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed that reproduces it.
    pub seed: u64,
    /// The number of steps before it.
    pub step: usize,
    /// The rule that was broken.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, step {}: the scheduler {}", self.seed, self.step, self.what)
    }
}

impl core::error::Error for Violation {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    Running,
    Parked,
    Blocked,
    Ended,
}

/// One simulated microprocess, on virtual processor `home`.
struct Member {
    entry: Entry,
    home: usize,
    state: State,
}

struct Simulation {
    random: Random,
    now_ns: u64,
    schedulers: Vec<Box<dyn Scheduler>>,
    running: Vec<Option<usize>>,
    members: Vec<Member>,
    summary: Summary,
}

/// Drives the schedulers that `make` makes for `virtual_processors` (1 or more) through `steps`
/// random events.
///
/// ```
/// use kyocho_microprocess::scheduler::{RoundRobin, simulate};
///
/// let summary = simulate(42, 2, 1000, |_| Box::new(RoundRobin::new())).unwrap();
/// assert!(summary.picked > 100);
/// ```
///
/// # Errors
/// The first rule that a scheduler broke.
///
/// # Panics
/// Memory for a few records cannot be allocated.
pub fn simulate(
    seed: u64,
    virtual_processors: usize,
    steps: usize,
    make: impl Fn(usize) -> Box<dyn Scheduler>,
) -> Result<Summary, Violation> {
    let mut simulation = Simulation {
        random: Random(seed),
        now_ns: 1,
        schedulers: (0..virtual_processors).map(make).collect(),
        running: vec![None; virtual_processors],
        members: Vec::new(),
        summary: Summary::default(),
    };
    let fail = |step| move |what| Violation { seed, step, what };
    for step in 0..steps {
        simulation.step().map_err(fail(step))?;
        simulation.check().map_err(fail(step))?;
    }
    simulation.drain().map_err(fail(steps))?;
    Ok(simulation.summary)
}

impl Drop for Simulation {
    fn drop(&mut self) {
        for member in &self.members {
            let section = mask();
            slot::give_back(member.entry.record());
            section.leave();
        }
    }
}

type Outcome = Result<(), &'static str>;

impl Simulation {
    fn step(&mut self) -> Outcome {
        self.now_ns += self.random.below(STEP_NS_MAX);
        let processor = self.random.index(self.schedulers.len());
        match self.random.below(10) {
            0 => self.spawn(processor),
            1 | 2 => self.wake(),
            3 => self.change(),
            4 => self.give(processor)?,
            5 if self.random.below(4) == 0 => self.remove(),
            _ => return self.run(processor),
        }
        Ok(())
    }

    fn spawn(&mut self, home: usize) {
        if self.members.iter().filter(|member| member.state != State::Ended).count() >= ALIVE_MAX {
            return;
        }
        let record = self.fresh_record();
        if self.random.below(8) == 0 {
            record.pin_to(home);
        }
        let entry = Entry::of(record);
        self.summary.spawned += 1;
        self.members.push(Member { entry, home, state: State::Ended });
        self.enqueue(self.members.len() - 1, Arrival::Spawned);
    }

    fn fresh_record(&mut self) -> &'static Record {
        let section = mask();
        let record = slot::make(slot::STACKLESS).expect("memory for a record");
        section.leave();
        let level = self.random.below(64) as u8;
        let id = self.members.len() as u64;
        record.renew(&vp::FOREIGN, id, level, kyocho_arch::Context::NULL);
        record.scheduling.reset();
        record.scheduling.set_parameter(self.random.below(40));
        record
    }

    fn enqueue(&mut self, index: usize, arrival: Arrival) {
        let member = &mut self.members[index];
        member.state = State::Queued;
        self.schedulers[member.home].enqueue(member.entry, arrival, self.now_ns);
    }

    fn tell(&mut self, kind: EventKind, processor: usize, index: Option<usize>) {
        let bound = index.map(|index| Bound::new(self.members[index].entry.record()));
        let event = Event { kind, virtual_processor: processor, bound };
        self.schedulers[processor].event(&event, self.now_ns);
    }

    /// A random member in `state`.
    fn any(&mut self, state: State) -> Option<usize> {
        let all: Vec<usize> =
            (0..self.members.len()).filter(|&i| self.members[i].state == state).collect();
        (!all.is_empty()).then(|| all[self.random.index(all.len())])
    }

    fn wake(&mut self) {
        if let Some(index) = self.any(State::Parked) {
            self.enqueue(index, Arrival::Woken);
        } else if let Some(index) = self.any(State::Blocked) {
            self.tell(EventKind::Unblocked, self.members[index].home, Some(index));
            self.enqueue(index, Arrival::Unblocked);
        }
    }

    fn change(&mut self) {
        let state = [State::Queued, State::Running, State::Parked][self.random.index(3)];
        let Some(index) = self.any(state) else { return };
        let Member { entry, home, .. } = self.members[index];
        if state == State::Queued {
            self.schedulers[home].remove(entry);
        }
        entry.record().ask_level(self.random.below(64) as u8);
        entry.record().take_asked_level();
        entry.record().scheduling.set_parameter(self.random.below(40));
        self.tell(EventKind::Changed, home, Some(index));
        if state == State::Queued {
            self.enqueue(index, Arrival::Changed);
        }
    }

    fn remove(&mut self) {
        if let Some(index) = self.any(State::Queued) {
            let member = &mut self.members[index];
            member.state = State::Ended;
            self.schedulers[member.home].remove(member.entry);
        }
    }

    fn queued_on(&self, processor: usize) -> usize {
        let on = |member: &&Member| member.home == processor && member.state == State::Queued;
        self.members.iter().filter(on).count()
    }

    fn give(&mut self, from: usize) -> Outcome {
        let runnable = self.queued_on(from);
        let to = self.random.index(self.schedulers.len());
        if to == from {
            return Ok(());
        }
        let runs = if self.random.below(2) == 0 { Runs::Long } else { Runs::Short };
        let scheduler = &mut self.schedulers[from];
        let surplus = scheduler.surplus(Demand { runnable, idle: 1, runs });
        for _ in 0..surplus.min(runnable) {
            let Some(entry) = self.schedulers[from].give(self.now_ns) else { return Ok(()) };
            if entry.is_pinned() {
                return Err("gave a pinned entry away");
            }
            let index = self.take(from, entry)?;
            self.members[index].home = to;
            self.summary.given += 1;
            self.enqueue(index, Arrival::Moved);
        }
        Ok(())
    }

    /// The member of an entry that the scheduler removed.
    fn take(&mut self, processor: usize, entry: Entry) -> Result<usize, &'static str> {
        let index = self.members.iter().position(|member| {
            member.entry == entry && member.home == processor && member.state == State::Queued
        });
        index.ok_or("removed an entry that is not queued there")
    }

    fn pick(&mut self, processor: usize) -> Outcome {
        let queued = self.queued_on(processor);
        let Some(entry) = self.schedulers[processor].pick(self.now_ns) else {
            return if queued == 0 {
                Ok(())
            } else {
                Err("picked no entry although some are queued")
            };
        };
        let index = self.take(processor, entry)?;
        self.members[index].state = State::Running;
        self.running[processor] = Some(index);
        self.summary.picked += 1;
        if self.schedulers[processor].slice_ns(entry) == 0 {
            return Err("returned a time slice of zero");
        }
        Ok(())
    }

    /// Lets the microprocess running on `processor` do something, or picks one if none runs.
    fn run(&mut self, processor: usize) -> Outcome {
        let Some(index) = self.running[processor] else { return self.pick(processor) };
        let entry = self.members[index].entry;
        let ran_ns = self.random.below(STEP_NS_MAX);
        let what = self.random.below(6);
        if what < 2 {
            let slice = if what == 0 { Slice::Over } else { Slice::Left };
            if !self.schedulers[processor].preempts(entry, slice, self.now_ns) {
                return Ok(());
            }
            if self.queued_on(processor) == 0 {
                return Err("preempts although no entry is queued");
            }
        }
        self.running[processor] = None;
        self.schedulers[processor].charge(entry, ran_ns, self.now_ns);
        match what {
            0 | 1 => {
                self.tell(EventKind::Preempted, processor, Some(index));
                self.summary.preempted += 1;
                let arrival = if what == 0 { Arrival::SliceOver } else { Arrival::Outranked };
                self.enqueue(index, arrival);
            }
            2 => self.enqueue(index, Arrival::Yielded),
            3 => self.members[index].state = State::Parked,
            4 => {
                self.members[index].state = State::Blocked;
                self.tell(EventKind::Blocked, processor, Some(index));
                self.tell(EventKind::Resumed, processor, None);
            }
            _ => self.members[index].state = State::Ended,
        }
        self.pick(processor)
    }

    fn check(&self) -> Outcome {
        for (processor, scheduler) in self.schedulers.iter().enumerate() {
            if scheduler.best().is_some() != (self.queued_on(processor) > 0) {
                return Err(
                    "reports a best priority although no entry is queued, or none although some are",
                );
            }
        }
        Ok(())
    }

    /// Picks until all queues are empty.
    fn drain(&mut self) -> Outcome {
        for processor in 0..self.schedulers.len() {
            while self.queued_on(processor) > 0 {
                self.pick(processor)?;
            }
            if self.schedulers[processor].pick(self.now_ns).is_some() {
                return Err("picked an entry although none is queued");
            }
        }
        Ok(())
    }
}

/// `SplitMix64` (Steele, Lea and Flood, 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }
}
