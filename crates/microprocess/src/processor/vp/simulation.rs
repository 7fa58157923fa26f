//! Random events from a seed, against virtual processors and the built-in run queue. The checks: no
//! microprocess is lost or runs twice; the most urgent runs first; equal ones run first come, first
//! served, except for *leads*.
//!
//! With a lead, a microprocess that slept goes before its equals. Each lead is paid for with two
//! switches. In half of the seeds all microprocesses sleep at each of their turns, so that only
//! half of them can pay.
//!
//! The code is real from the inbox on: messages are posted, served and forwarded; microprocesses
//! are queued, given away, taken over from idle virtual processors, and set on timers. There are no
//! kernel threads: the test says when one sleeps, returns or is preempted. A naive model tracks
//! where each microprocess is:
//!
//! ```text
//!   queued ── pop ──► running ── parks ──► parked ── wake, unpark, timer ──► queued
//!     ▲  ▲                │  └── sleeps in the kernel ──► blocked ── unblocked ──┐
//!     │  └─ preempted ────┘                                                      │
//!     └──────────────────────────────────────────────────────────────────────────┘
//! ```

#![expect(unsafe_code, reason = "makes tokens for virtual processors without threads")]

use std::collections::VecDeque;

use super::timers::LEADS_MAX;
use super::{Masked, Vp};
use crate::data::priority::Priority;
use crate::policy::scheduler::simulation::Random;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::{Kind, Reason, Record, State, remote};
use crate::processor::scheduler::{Arrival, Slice};
use crate::processor::slot;
use crate::schedule::mask;

mod messages;

const MEMBERS: usize = 24;
const STEPS: usize = 400;
/// Up to the normal priority: a message for a more urgent microprocess wakes the monitor, and a
/// simulation has none.
const LEVELS: u64 = Priority::NORMAL.level() as u64 + 1;
const SEEDS: u64 = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    /// In a run queue, at this place among its equals.
    Queued {
        order: i64,
    },
    Running,
    Parked,
    Blocked,
    /// Sent to another virtual processor; its message is on the way.
    Moving,
}

struct Member {
    record: &'static Record,
    home: usize,
    place: MemberState,
    level: u8,
    token: bool,
    /// The requests to it that were not handled yet.
    asked: u32,
    /// When its timer is due, while it is set.
    due_ns: u64,
}

struct Processor {
    vp: Masked<'static>,
    running: Option<usize>,
    /// It sleeps because it has no work.
    rests: bool,
    /// Members with messages, in the order in which these came.
    inbox: VecDeque<usize>,
    timer_leads: Purse,
    unblocked_leads: Purse,
}

/// The price of a lead, in switches.
const PRICE: u64 = 2;

/// What pays for leads of one kind. Each switch adds one, and at most [`LEADS_MAX`] leads can be
/// saved.
struct Purse {
    switches: u64,
    price: u64,
}

impl Purse {
    const fn new(price: u64) -> Self {
        Self { switches: 0, price }
    }

    fn put_in(&mut self) {
        self.switches = (self.switches + 1).min(PRICE * LEADS_MAX);
    }

    fn pay(&mut self) -> bool {
        let paid = self.switches >= self.price;
        if paid {
            self.switches -= self.price;
        }
        paid
    }
}

/// What running microprocesses do, and how they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Anything,
    SleepInTheKernel,
    SleepUntil,
    /// Without a deadline, so that virtual processors become idle.
    Park,
}

const HABITS: [Habit; 4] =
    [Habit::Anything, Habit::SleepInTheKernel, Habit::SleepUntil, Habit::Park];

struct Simulation {
    random: Random,
    habit: Habit,
    /// A microprocess ran before an equal that had come before it, without having paid for that.
    is_unfair: bool,
    /// How often a microprocess was taken over from an idle virtual processor.
    taken_over: u32,
    now_ns: u64,
    order: i64,
    processors: Vec<Processor>,
    members: Vec<Member>,
}

impl Simulation {
    fn new(seed: u64, price: u64) -> Self {
        let processor = |index| {
            let vp: &'static Vp = Box::leak(Box::new(Vp::new(index, core::ptr::null_mut())));
            // The kernel thread that a message for an idle virtual processor wakes.
            let holder = Box::leak(Box::new(KernelThread::new(core::ptr::null_mut())));
            vp.holder.store(holder, kyocho_sys::prim::atomic::Ordering::Release);
            // SAFETY: the simulation has one thread, which holds it.
            let vp = unsafe { Masked::assume(vp) };
            let (timer_leads, unblocked_leads) = (Purse::new(price), Purse::new(price));
            let inbox = VecDeque::new();
            Processor { vp, running: None, rests: false, inbox, timer_leads, unblocked_leads }
        };
        let mut simulation = Self {
            random: Random(seed),
            habit: HABITS[seed as usize % HABITS.len()],
            is_unfair: false,
            taken_over: 0,
            now_ns: 1,
            order: 0,
            processors: (0..2).map(processor).collect(),
            members: Vec::new(),
        };
        (0..MEMBERS).for_each(|number| simulation.spawn(number));
        simulation
    }

    fn spawn(&mut self, number: usize) {
        let section = mask();
        let record = slot::make(slot::STACKLESS).expect("memory for a record");
        section.leave();
        let (home, level) = (self.random.index(2), self.random.below(LEVELS) as u8);
        let vp = self.processors[home].vp;
        record.renew(vp.vp(), number as u64 + 1, level, kyocho_arch::Context::NULL);
        vp.queue().push(record, Arrival::Spawned);
        let place = self.behind();
        self.members.push(Member { record, home, place, level, token: false, asked: 0, due_ns: 0 });
    }

    /// A place behind its equals.
    fn behind(&mut self) -> MemberState {
        self.order += 1;
        MemberState::Queued { order: self.order }
    }

    /// A place before its equals.
    fn before(&mut self) -> MemberState {
        self.order += 1;
        MemberState::Queued { order: -self.order }
    }

    fn woken(&mut self, leads: bool) -> MemberState {
        if leads { self.before() } else { self.behind() }
    }

    fn step(&mut self) {
        self.now_ns += 1 + self.random.below(1000);
        let (member, processor) = (self.random.index(MEMBERS), self.random.index(2));
        match (self.habit, self.random.below(12)) {
            (Habit::SleepInTheKernel, 0..4) => self.unblock(member),
            (Habit::SleepUntil, 0..6) => self.fire(processor),
            (Habit::Park, 2..6) => self.run(processor),
            (Habit::Park, 10..12) => self.rest(processor),
            (_, event) => self.meet(event, member, processor),
        }
    }

    fn meet(&mut self, event: u64, member: usize, processor: usize) {
        match event {
            0 => self.post_from_somewhere(member, remote::WAKE),
            1 => self.post_from_somewhere(member, remote::UNPARK),
            2 => {
                self.members[member].record.ask_level(self.random.below(LEVELS) as u8);
                self.post(member, remote::CHANGED);
            }
            3 => self.unblock(member),
            4 => self.give(processor),
            5 => self.fire(processor),
            6 | 7 => self.serve(processor),
            8 => self.rest(processor),
            _ => self.run(processor),
        }
    }

    /// Gives one away.
    fn give(&mut self, from: usize) {
        self.rise(from);
        let Some(record) = self.processors[from].vp.queue().give() else { return };
        let index = self.taken(from, record);
        let to = 1 - from;
        self.members[index].place = MemberState::Moving;
        self.members[index].home = to;
        record.home.change(&self.processors[from].vp, self.processors[to].vp.vp());
        record.post(remote::ARRIVE);
        self.expect(index, remote::ARRIVE);
    }

    /// The member that a virtual processor took out of its queue.
    fn taken(&self, processor: usize, record: &'static Record) -> usize {
        let found = self.members.iter().position(|member| core::ptr::eq(member.record, record));
        let index = found.expect("the record belongs to a member");
        let member = &self.members[index];
        assert_eq!(member.home, processor, "the removed member was on this virtual processor");
        assert!(
            matches!(member.place, MemberState::Queued { .. }),
            "the removed member was queued"
        );
        assert_eq!(record.state.get(), State::Runnable);
        index
    }

    /// The running microprocess does something, or one begins to run.
    fn run(&mut self, processor: usize) {
        self.rise(processor);
        let Some(index) = self.processors[processor].running else { return self.pop(processor) };
        let vp = self.processors[processor].vp;
        let record = self.members[index].record;
        let does = match self.habit {
            Habit::Anything => self.random.below(5),
            Habit::SleepInTheKernel => 0,
            Habit::SleepUntil | Habit::Park => 1,
        };
        match does {
            0 => {
                record.state.set(State::Blocked);
                self.members[index].place = MemberState::Blocked;
            }
            1 => self.park(index, vp),
            2 if vp.queue().outranks(record, Slice::Left) => {
                vp.queue().push(record, Arrival::Outranked);
                self.members[index].place = self.before();
            }
            3 if vp.queue().outranks(record, Slice::Over) => {
                vp.queue().push(record, Arrival::SliceOver);
                self.members[index].place = self.behind();
            }
            4 if vp.queue().may_follow(record) => {
                vp.queue().push(record, Arrival::Yielded);
                self.members[index].place = self.behind();
            }
            _ => return,
        }
        vp.current.set(None);
        self.processors[processor].running = None;
        self.pop(processor);
    }

    fn park(&mut self, index: usize, vp: Masked<'static>) {
        let record = self.members[index].record;
        let kind = if self.random.below(2) == 0 { Kind::Park } else { Kind::Mutex };
        if kind == Kind::Park && record.token.replace(false) {
            assert!(
                core::mem::take(&mut self.members[index].token),
                "an early unpark is kept once"
            );
            vp.queue().push(record, Arrival::Woken);
            self.members[index].place = self.behind();
            return;
        }
        record.reason.set(Reason { kind, object: 0 });
        record.state.set(State::Parked);
        let sleeps = match self.habit {
            Habit::SleepUntil => true,
            Habit::Park => false,
            _ => self.random.below(2) == 0,
        };
        if sleeps {
            // No two timers are due at the same time.
            let due_ns = (self.now_ns + self.random.below(5000)) / 32 * 32 + index as u64;
            self.members[index].due_ns = due_ns;
            vp.own().timers.insert(record, due_ns);
        }
        self.members[index].place = MemberState::Parked;
    }

    fn pop(&mut self, processor: usize) {
        let vp = self.processors[processor].vp;
        let queued = |member: &&Member| {
            member.home == processor && matches!(member.place, MemberState::Queued { .. })
        };
        let Some(record) = vp.queue().pop() else {
            assert_eq!(self.members.iter().filter(queued).count(), 0, "no member is lost");
            return;
        };
        let index = self.taken(processor, record);
        let level = self.members[index].level;
        assert_eq!(record.level(), level);
        let mut first = i64::MAX;
        for other in self.members.iter().filter(queued) {
            assert!(other.level <= level, "the most urgent first");
            if let MemberState::Queued { order } = other.place
                && other.level == level
            {
                first = first.min(order);
            }
        }
        let MemberState::Queued { order } = self.members[index].place else { unreachable!() };
        self.is_unfair |= order != first;
        let here = &mut self.processors[processor];
        here.timer_leads.put_in();
        here.unblocked_leads.put_in();
        here.running = Some(index);
        self.members[index].place = MemberState::Running;
        vp.current.set(Some(record));
        vp.counters.switches.bump();
    }

    fn check(&self) {
        for member in &self.members {
            let expected = match member.place {
                MemberState::Parked => State::Parked,
                MemberState::Blocked => State::Blocked,
                MemberState::Queued { .. } | MemberState::Running | MemberState::Moving => {
                    State::Runnable
                }
            };
            assert_eq!(member.record.state.get(), expected);
            assert_eq!(member.record.token.get(), member.token);
        }
        for processor in &self.processors {
            assert_eq!(
                processor.vp.is_idle(),
                processor.rests,
                "idle exactly while no attention bit is set"
            );
        }
    }

    /// Runs all queued microprocesses until none is left.
    fn empty(&mut self, processor: usize) {
        loop {
            if let Some(index) = self.processors[processor].running.take() {
                self.members[index].place = MemberState::Parked;
                self.members[index].record.state.set(State::Parked);
            }
            self.processors[processor].vp.current.set(None);
            self.pop(processor);
            if self.processors[processor].running.is_none() {
                return;
            }
        }
    }

    /// Runs every microprocess that can run.
    fn finish(mut self) {
        // Forwarded messages arrive in the second round.
        (0..2).for_each(|_| (0..2).for_each(|processor| self.serve(processor)));
        (0..2).for_each(|processor| self.empty(processor));
        self.check();
        let waits =
            |member: &Member| matches!(member.place, MemberState::Parked | MemberState::Blocked);
        assert!(self.members.iter().all(waits), "every runnable member has run");
        for Member { record, home, .. } in &self.members {
            if record.timer.is_set() {
                self.processors[*home].vp.own().timers.remove(record);
            }
            let section = mask();
            slot::give_back(record);
            section.leave();
        }
    }
}

/// The outcome of one seed.
struct Played {
    /// The order was first come, first served, except for leads that were paid for.
    is_fair: bool,
    taken_over: u32,
}

/// Runs one seed, beside a model in which a lead costs `price`.
fn simulate(seed: u64, price: u64) -> Played {
    let mut simulation = Simulation::new(seed, price);
    for _ in 0..STEPS {
        simulation.step();
        simulation.check();
    }
    let played = Played { is_fair: !simulation.is_unfair, taken_over: simulation.taken_over };
    simulation.finish();
    played
}

/// Runs one seed; returns how many microprocesses were taken over from idle virtual processors. A
/// failure names the seed.
fn play(seed: u64) -> u32 {
    let played = std::panic::catch_unwind(|| {
        let played = simulate(seed, PRICE);
        assert!(played.is_fair, "first come, first served");
        played.taken_over
    });
    played.unwrap_or_else(|_| panic!("seed {seed}: set KYOCHO_SEED={seed} to play it alone"))
}

#[test]
fn random_events_lose_no_microprocess_and_keep_the_order() {
    match std::env::var("KYOCHO_SEED") {
        Ok(seed) => {
            play(seed.parse().expect("KYOCHO_SEED is a number"));
        }
        Err(_) => {
            let taken_over: u32 = (0..SEEDS).map(play).sum();
            assert!(
                taken_over > 1000,
                "too few microprocesses were taken from idle virtual processors: {taken_over}"
            );
        }
    }
}

/// A mutant: a model in which a lead has another price. Its order must then differ from the real
/// one, for either kind of sleep.
#[test]
fn a_lead_at_another_price_is_caught() {
    for price in [0, 1, 3] {
        for habit in 1..3 {
            let mut seeds = (habit..SEEDS).step_by(HABITS.len());
            let all_fair = seeds.all(|seed| simulate(seed, price).is_fair);
            assert!(!all_fair, "{price} switches for a lead");
        }
    }
}
