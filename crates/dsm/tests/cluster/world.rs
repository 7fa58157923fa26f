//! A cluster in one thread: nodes, links, an unreliable network, and programs, all from one seed.

mod memory;

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kyocho_dsm::{
    Action, Address, Call, DsmError, Event, Frame, Layout, Link, LinkSettings, Message, Mode, Move,
    Node, NodeId, Outcome, Placement, RegionDifference, RegionFailure, RegionPlan, Scheme, Subject,
    ThreadId, WaitPolicy, wire,
};

use crate::flight::{Envelope, FrameInTransit};
use crate::mutant::Mutant;
use crate::oracle::Oracle;
use crate::program::{Program, Step, WORDS_A_PAGE};
use crate::random::Random;
use crate::view::View;

const LINKS: LinkSettings = LinkSettings { window: 8, resend_after: 32, deadline: 3000 };
const POLL_EVERY: u64 = 16;
const TICKS_MAX: u64 = 400_000;

/// How unreliable the network and the nodes are, in per cent and ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultRates {
    pub(crate) loss: u64,
    pub(crate) repeat: u64,
    pub(crate) delay_max: u64,
    /// One node that is this many times slower.
    pub(crate) slow: u64,
    /// A node dies at this tick.
    pub(crate) crash_at: Option<u64>,
}

/// Why a node cannot create a region.
const CANNOT: RegionFailure = RegionFailure::Host(12);

/// The state of a virtual process, which is a thread of a node.
#[derive(Debug, Default)]
struct Progress {
    at: usize,
    phase: usize,
    calling: Option<Call>,
    calls: u64,
    next_tick: u64,
    modes: BTreeMap<u32, Mode>,
    ended: Option<Result<(), DsmError>>,
}

/// The result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) ended: Vec<Option<Result<(), DsmError>>>,
    pub(crate) messages: u64,
    pub(crate) ticks: u64,
    pub(crate) reads: u64,
    /// Pages asked for, and pages sent.
    pub(crate) asked: u64,
    pub(crate) brought: u64,
    /// Regions that a node created, and regions that it did not because another could not.
    pub(crate) regions: u64,
    pub(crate) refused: u64,
    /// Pages that were reclaimed after a write, and used again.
    pub(crate) readmitted: u64,
    pub(crate) crashed: Option<usize>,
}

pub(crate) struct World {
    program: Program,
    /// Number of threads per node. Process P is thread P modulo this number, of node P divided by
    /// it.
    threads: usize,
    /// By node: number of calls, and of threads at the barrier.
    calls: Vec<u64>,
    meeting: Vec<usize>,
    trouble: FaultRates,
    random: Random,
    nodes: Vec<Node>,
    /// By node: its program's view of memory.
    views: Vec<View>,
    /// The regions that each node had when it last crossed a barrier.
    crossed_with: Vec<Layout>,
    links: BTreeMap<(usize, usize), Link<Envelope>>,
    network: BinaryHeap<Reverse<FrameInTransit>>,
    progress: Vec<Progress>,
    oracle: Oracle,
    mutant: Mutant,
    now: u64,
    flights: u64,
    slow: usize,
    report: Report,
}

impl World {
    pub(crate) fn new(
        mut random: Random,
        program: Program,
        threads: u16,
        scheme: Scheme,
        trouble: FaultRates,
        mutant: Mutant,
    ) -> Self {
        assert!(program.processes.is_multiple_of(threads), "nodes have equally many threads");
        let managers = program.page_managers.iter().map(|process| NodeId(process.0 / threads));
        let layout = Layout {
            nodes: program.processes / threads,
            regions: managers.collect::<Vec<_>>().into(),
            words_a_page: WORDS_A_PAGE,
            locks: program.locks,
            scheme,
        };
        let count = usize::from(layout.nodes);
        let nodes = (0..layout.nodes).map(|rank| Node::new(NodeId(rank), layout.clone())).collect();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let links = pairs.filter(|(from, to)| from != to).map(|pair| (pair, Link::new(LINKS, 0)));
        Self {
            links: links.collect(),
            nodes,
            views: (0..count).map(|_| View::default()).collect(),
            crossed_with: vec![layout; count],
            progress: (0..program.processes).map(|_| Progress::default()).collect(),
            threads: usize::from(threads),
            calls: vec![0; count],
            meeting: vec![0; count],
            slow: random.below(count as u64) as usize,
            program,
            trouble,
            random,
            network: BinaryHeap::new(),
            oracle: Oracle::default(),
            mutant,
            now: 0,
            flights: 0,
            report: Report::default(),
        }
    }

    /// Runs until every program has ended.
    pub(crate) fn run(mut self) -> Result<Report, String> {
        while self.now < TICKS_MAX {
            self.now += 1;
            if self.trouble.crash_at == Some(self.now) {
                self.report.crashed = Some(self.random.below(self.nodes.len() as u64) as usize);
            }
            self.deliver()?;
            if self.now.is_multiple_of(POLL_EVERY) {
                let pairs: Vec<_> = self.links.keys().copied().collect();
                pairs.into_iter().try_for_each(|(from, to)| self.poll(from, to))?;
            }
            (0..self.progress.len()).try_for_each(|process| self.advance(process))?;
            let over = |process: usize| {
                !self.alive(process / self.threads) || self.progress[process].ended.is_some()
            };
            if (0..self.progress.len()).all(over) {
                self.report.ticks = self.now;
                self.report.readmitted = self.views.iter().map(|view| view.readmitted).sum();
                self.report.ended = self.progress.iter().map(|progress| progress.ended).collect();
                return Ok(self.report);
            }
        }
        let stuck: Vec<_> =
            self.progress.iter().map(|progress| (progress.at, progress.calling)).collect();
        Err(format!("no end after {TICKS_MAX} ticks: {stuck:?}"))
    }

    fn alive(&self, node: usize) -> bool {
        self.report.crashed != Some(node)
    }

    fn deliver(&mut self) -> Result<(), String> {
        while self.network.peek().is_some_and(|Reverse(flight)| flight.due <= self.now) {
            let Some(Reverse(FrameInTransit { from, to, frame, .. })) = self.network.pop() else {
                break;
            };
            if !self.alive(to) {
                continue;
            }
            let link = self.links.get_mut(&(to, from)).ok_or("no such link")?;
            for (epoch, message) in link.receive(frame, self.now) {
                let from = NodeId(from as u16);
                // The connection's goodbye directly follows the message that announces it.
                let goodbye = (message == Message::Left).then_some(Event::PeerLeft(from));
                self.arrive(to, from, epoch, message)?;
                goodbye.map_or(Ok(()), |goodbye| self.feed(to, goodbye))?;
            }
            self.poll(to, from)?;
        }
        Ok(())
    }

    /// Checks that a message from outside names nothing that the node does not know.
    fn arrive(
        &mut self,
        to: usize,
        from: NodeId,
        epoch: u64,
        message: Message,
    ) -> Result<(), String> {
        let layout = match self.mutant {
            Mutant::LateRegion => &self.crossed_with[to],
            _ => self.nodes[to].layout(),
        };
        let event = match wire::check(epoch, &message, layout) {
            Ok(()) => Event::Message(from, epoch, message),
            Err(why) => Event::InvalidMessage(from, why),
        };
        self.feed(to, event)
    }

    /// Sends what a link has to send.
    fn poll(&mut self, from: usize, to: usize) -> Result<(), String> {
        if !self.alive(from) {
            return Ok(());
        }
        let link = self.links.get_mut(&(from, to)).ok_or("no such link")?;
        let Ok(frames) = link.poll(self.now) else {
            self.links.insert((from, to), Link::new(LINKS, u64::MAX / 2));
            return self.feed(from, Event::PeerLost(NodeId(to as u16)));
        };
        for frame in frames {
            self.report.messages += u64::from(frame.payload.is_some());
            let copies = 1 + u64::from(self.random.percent(self.trouble.repeat));
            (0..copies).for_each(|_| self.fly(from, to, frame.clone()));
        }
        Ok(())
    }

    /// Sends a frame over the network, which may lose it.
    fn fly(&mut self, from: usize, to: usize, frame: Frame<Envelope>) {
        if self.random.percent(self.trouble.loss) {
            return;
        }
        self.flights += 1;
        let due = self.now + 1 + self.random.below(self.trouble.delay_max);
        self.network.push(Reverse(FrameInTransit { due, number: self.flights, from, to, frame }));
    }

    fn feed(&mut self, node: usize, event: Event) -> Result<(), String> {
        for action in self.nodes[node].step(event) {
            self.views[node].follow(&action);
            match action {
                Action::Send(to, epoch, message) => self.send(node, to, epoch, message)?,
                Action::Return(thread, result) => self.ended(node, thread, result)?,
                Action::Disown(page) => {
                    let copy = self.nodes[node].copy(page).map_err(|_| "owned, and not here")?;
                    let contents = copy.clone();
                    self.feed(node, Event::Disowned(page, contents))?;
                }
                Action::Show(..) | Action::Update(..) | Action::Hide(_) | Action::Own(_) => {}
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        from: usize,
        to: NodeId,
        epoch: u64,
        message: Message,
    ) -> Result<(), String> {
        match message {
            Message::Fetch(..) => self.report.asked += 1,
            Message::Page(..) => self.report.brought += 1,
            _ => {}
        }
        let (to, message) = self.mutant.change(to, message, self.nodes[from].layout());
        let to = usize::from(to.0);
        if to == from {
            return self.feed(from, Event::Message(NodeId(from as u16), epoch, message));
        }
        let link = self.links.get_mut(&(from, to)).ok_or("no such link")?;
        link.send((epoch, message));
        self.poll(from, to)
    }

    /// Makes the next step of a process, if its last call has returned.
    fn advance(&mut self, process: usize) -> Result<(), String> {
        if !self.alive(process / self.threads) || self.progress[process].next_tick > self.now {
            return Ok(());
        }
        let pace = if process / self.threads == self.slow { self.trouble.slow } else { 1 };
        self.progress[process].next_tick = self.now + 1 + self.random.below(8 * pace);
        if self.progress[process].ended.is_some() {
            return Ok(());
        }
        if let Some(Call::Acquire(..) | Call::WaitOn(..)) = self.progress[process].calling {
            if self.random.percent(2) {
                let call = self.progress[process].calls;
                self.feed(process / self.threads, Event::TimeUp(call))?;
            }
            return Ok(());
        }
        if self.progress[process].calling.is_some() {
            return Ok(());
        }
        let Some(&step) = self.program.steps[process].get(self.progress[process].at) else {
            self.progress[process].ended = Some(Ok(()));
            return Ok(());
        };
        match step {
            Step::Call(call) => self.call(process, call),
            Step::Region(plan, hindered) => {
                let is_me =
                    |other: NodeId| usize::from(other.0) / self.threads == process / self.threads;
                let failure = hindered.filter(|other| is_me(*other)).map(|_| CANNOT);
                self.call(process, Call::Region(plan, failure))
            }
            Step::Reclaim(page) => {
                self.progress[process].at += 1;
                self.views[process / self.threads].reclaim(page);
                Ok(())
            }
            Step::Read(word) => match self.read(process / self.threads, word) {
                Ok(value) => {
                    self.progress[process].at += 1;
                    // Sometimes the page is treated as if it had not been shown before.
                    if self.random.percent(50) {
                        self.nodes[process / self.threads].use_page(word.page);
                    }
                    self.saw(process, word, value)
                }
                Err(absent) => self.call(process, Call::Fetch(absent.0)),
            },
            Step::Write(word, value) => match self.write(process / self.threads, word, value) {
                Ok(()) => {
                    self.progress[process].at += 1;
                    self.oracle.wrote(word, value);
                    Ok(())
                }
                Err(absent) => self.call(process, Call::Fetch(absent.0)),
            },
            Step::Await(lock, condition, word, value) => {
                match self.read(process / self.threads, word) {
                    Ok(found) if found == value => {
                        self.progress[process].at += 1;
                        Ok(())
                    }
                    Ok(_) => self.call(process, Call::WaitOn(lock, condition)),
                    Err(absent) => self.call(process, Call::Fetch(absent.0)),
                }
            }
        }
    }

    fn saw(&mut self, process: usize, word: Address, value: u32) -> Result<(), String> {
        self.report.reads += 1;
        let phase = self.progress[process].phase;
        self.oracle.read(&self.program, phase, NodeId(process as u16), word, value)
    }

    fn call(&mut self, process: usize, call: Call) -> Result<(), String> {
        let (name, phase) = (NodeId(process as u16), self.progress[process].phase);
        match call {
            Call::Acquire(lock, ..) => self.oracle.asks(&self.program, phase, name, lock),
            Call::Release(lock) | Call::WaitOn(lock, _) => {
                let mode = self.progress[process].modes.remove(&lock.0).ok_or("not held")?;
                self.oracle.releases(&self.program, phase, name, lock, mode);
            }
            _ => {}
        }
        self.progress[process].calling = Some(call);
        let node = process / self.threads;
        if matches!(call, Call::Barrier(_) | Call::Region(..)) {
            // The last thread of a node to arrive represents all.
            self.meeting[node] += 1;
            if self.meeting[node] < self.threads {
                return Ok(());
            }
            self.meeting[node] = 0;
            if self.progress[process].at + 1 == self.program.steps[process].len() {
                self.nodes[node].next_barrier_is_last();
            }
        }
        if !matches!(call, Call::Fetch(_) | Call::Move(_) | Call::Signal(..)) {
            self.collect(node)?;
        }
        self.calls[node] += 1;
        self.progress[process].calls = self.calls[node];
        let thread = ThreadId((process % self.threads) as u16);
        self.feed(node, Event::Call(thread, self.on_nodes(call)))
    }

    /// A call that moves managers between nodes.
    fn on_nodes(&self, call: Call) -> Call {
        let node = |process: NodeId| NodeId(process.0 / self.threads as u16);
        match call {
            Call::Move(Move::Lock(lock, to)) => Call::Move(Move::Lock(lock, node(to))),
            Call::Move(Move::Page(page, to)) => Call::Move(Move::Page(page, node(to))),
            Call::Region(plan @ RegionPlan { placement: Placement::On(on), .. }, failure) => {
                Call::Region(RegionPlan { placement: Placement::On(node(on)), ..plan }, failure)
            }
            other => other,
        }
    }

    /// A call of a thread has returned; at a barrier, for all threads of its node.
    fn ended(
        &mut self,
        node: usize,
        thread: ThreadId,
        result: Result<Outcome, DsmError>,
    ) -> Result<(), String> {
        let processes = node * self.threads..(node + 1) * self.threads;
        let process = processes.start + usize::from(thread.0);
        if !matches!(self.progress[process].calling, Some(Call::Barrier(_) | Call::Region(..))) {
            return self.returned(process, result);
        }
        self.crossed_with[node] = self.nodes[node].layout().clone();
        processes.into_iter().try_for_each(|process| self.returned(process, result))
    }

    fn returned(
        &mut self,
        process: usize,
        result: Result<Outcome, DsmError>,
    ) -> Result<(), String> {
        let (name, phase) = (NodeId(process as u16), self.progress[process].phase);
        let call = self.progress[process].calling.take().ok_or("a return without a call")?;
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(DsmError::RegionMismatch(why)) => {
                let step = self.program.steps[process][self.progress[process].at];
                let Step::Region(_, Some(hindered)) = step else {
                    return Err(format!("{name:?} all make the same: {why}"));
                };
                let is_named = usize::from(why.other.0) == usize::from(hindered.0) / self.threads;
                if !is_named || why.difference != RegionDifference::Failed(CANNOT) {
                    return Err(format!("{name:?} {hindered:?} was hindered: {why}"));
                }
                self.report.refused += 1;
                Outcome::Done
            }
            Err(why @ DsmError::PeerBroke(..)) => return Err(format!("{name:?} {why}")),
            Err(why) => {
                self.progress[process].ended = Some(Err(why));
                return Ok(());
            }
        };
        match (call, outcome) {
            (Call::Fetch(_), _) => return Ok(()),
            (Call::WaitOn(lock, _), _) => {
                self.progress[process].modes.insert(lock.0, Mode::Exclusive);
                return self.oracle.acquired(phase, name, lock, Mode::Exclusive);
            }
            (Call::Acquire(lock, mode, _), Outcome::Done) => {
                self.progress[process].modes.insert(lock.0, mode);
                self.oracle.acquired(phase, name, lock, mode)?;
            }
            (Call::Acquire(lock, _, policy), Outcome::Busy) => {
                if policy == WaitPolicy::Wait && self.awaits(process, lock) {
                    return Ok(()); // asks again
                }
                return self.skip_section(process, lock);
            }
            (Call::Barrier(_), _) => self.progress[process].phase += 1,
            (Call::Region(plan, _), _) => {
                self.progress[process].phase += 1;
                let is_made = self.nodes[process / self.threads].layout().regions.has(plan.first);
                self.report.regions += u64::from(is_made);
            }
            _ => {}
        }
        self.progress[process].at += 1;
        Ok(())
    }

    /// Whether the section that starts here must not be skipped, because another process waits for
    /// what it does.
    fn awaits(&self, process: usize, lock: kyocho_dsm::LockId) -> bool {
        let rest = &self.program.steps[process][self.progress[process].at..];
        let end = rest
            .iter()
            .position(|step| matches!(step, Step::Call(Call::Release(held)) if *held == lock));
        let Some(end) = end else { return false };
        let awaits = |step: &Step| matches!(step, Step::Await(..));
        rest[..end].iter().any(awaits)
            || matches!(rest.get(end + 1), Some(Step::Call(Call::Signal(..))))
    }

    /// Continues after the release of a lock that was not available.
    fn skip_section(&mut self, process: usize, lock: kyocho_dsm::LockId) -> Result<(), String> {
        let rest = &self.program.steps[process][self.progress[process].at..];
        let end = rest
            .iter()
            .position(|step| matches!(step, Step::Call(Call::Release(held)) if *held == lock));
        self.progress[process].at += end.ok_or("a section without an end")? + 1;
        Ok(())
    }
}

/// Whether an error reports the death of this node, and what the error concerns.
pub(crate) fn tells_of(error: DsmError, node: usize) -> Option<Subject> {
    match error {
        DsmError::PeerLost(lost, subject) if usize::from(lost.0) == node => Some(subject),
        _ => None,
    }
}
