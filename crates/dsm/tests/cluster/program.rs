//! Programs that keep the rule of IBEC, from a seed. Between two barriers a word belongs to one
//! lock or to one node, or is only read.

use std::collections::BTreeMap;

use kyocho_dsm::{
    Address, BarrierKind, Call, ConditionId, LockId, Mode, Move, NodeId, PAGES_MAX, PageId,
    Placement, RegionPlan, Regions, WaitPolicy, Waiters,
};

use crate::random::Random;

pub(crate) const WORDS_A_PAGE: u32 = 4;

/// What a process does next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Call(Call),
    Read(Address),
    Write(Address, u32),
    /// The host reclaims this page of the process.
    Reclaim(PageId),
    /// Creates a region together with all others; one of them may be unable to.
    Region(RegionPlan, Option<NodeId>),
    /// Under a lock: waits on the condition until the word has this value.
    Await(LockId, ConditionId, Address, u32),
}

impl Step {
    /// Whether it waits for all nodes.
    pub(crate) fn is_barrier(&self) -> bool {
        matches!(self, Self::Region(..) | Self::Call(Call::Barrier(_)))
    }
}

/// Which nodes may access a word between two barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Lock(LockId),
    Private(NodeId),
    ReadOnly,
    /// Written by one node for another, under a lock, or before and published.
    Handed,
}

/// A program of several processes, named like nodes: the steps of each, and for each phase the role
/// of each word.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) processes: u16,
    /// Some sections are non-exclusive.
    snapshots: bool,
    pub(crate) locks: u32,
    /// The managers of the first region's pages.
    pub(crate) page_managers: Vec<NodeId>,
    /// All regions created so far.
    regions: Regions,
    pub(crate) steps: Vec<Vec<Step>>,
    pub(crate) roles: Vec<BTreeMap<Address, Role>>,
    values: u32,
}

impl Program {
    pub(crate) fn generate(
        random: &mut Random,
        processes: u16,
        snapshots: bool,
        phases: usize,
    ) -> Self {
        let pages = 2 + random.below(6);
        let managers = (0..pages).map(|_| NodeId(random.below(u64::from(processes)) as u16));
        let page_managers: Vec<_> = managers.collect();
        let locks = 1 + random.below(4) as u32;
        let steps = vec![Vec::new(); usize::from(processes)];
        let mut program = Self {
            processes,
            snapshots,
            locks,
            regions: page_managers.clone().into(),
            page_managers,
            steps,
            roles: Vec::new(),
            values: 0,
        };
        for phase in 1..=phases {
            program.phase(random);
            let made =
                if phase < phases && random.percent(25) { program.plan(random) } else { None };
            program.end_phase(random, made);
        }
        program
    }

    /// Ends one process after so many barriers, before the others.
    pub(crate) fn cut(&mut self, process: u16, barriers: usize) {
        let steps = &mut self.steps[usize::from(process)];
        let places = steps.iter().enumerate().filter(|(_, step)| step.is_barrier());
        let end = places.map(|(place, _)| place + 1).nth(barriers - 1);
        steps.truncate(end.expect("a process crosses more barriers"));
    }

    fn some_node(&self, random: &mut Random) -> NodeId {
        NodeId(random.below(u64::from(self.processes)) as u16)
    }

    fn some_lock(&self, random: &mut Random) -> LockId {
        LockId(random.below(u64::from(self.locks)) as u32)
    }

    fn phase(&mut self, random: &mut Random) {
        let pages = self.regions.iter().map(|(page, _)| page);
        let words = pages.flat_map(|page| (0..WORDS_A_PAGE).map(move |word| (page, word)));
        let roles: BTreeMap<Address, Role> = words
            .map(|(page, word)| {
                let role = match random.below(10) {
                    0..5 => Role::Lock(self.some_lock(random)),
                    5..8 => Role::Private(self.some_node(random)),
                    _ => Role::ReadOnly,
                };
                (Address { page, word }, role)
            })
            .collect();
        self.roles.push(roles);
        self.hand_over(random);
        for node in (0..self.processes).map(NodeId) {
            for _ in 0..random.below(5) {
                self.something(random, node);
            }
            if random.percent(20) {
                let asked = self.some_move(random);
                self.step(node, Step::Call(Call::Move(asked)));
            }
        }
    }

    /// All processes cross a barrier, at which they may create a region.
    fn end_phase(&mut self, random: &mut Random, made: Option<(RegionPlan, Option<NodeId>)>) {
        let kind =
            if random.percent(30) { BarrierKind::SingleReadWrite } else { BarrierKind::Ordinary };
        let barrier = Step::Call(Call::Barrier(kind));
        let step = made.map_or(barrier, |(plan, hindered)| Step::Region(plan, hindered));
        (0..self.processes).map(NodeId).for_each(|node| self.step(node, step));
        if let Some((plan, None)) = made {
            self.regions.add(&plan, self.processes);
        }
    }

    /// A region in free space: far away, beside another, or at the end of the space; and the node
    /// that cannot create it.
    fn plan(&self, random: &mut Random) -> Option<(RegionPlan, Option<NodeId>)> {
        let pages = 1 + random.below(4);
        let last = self.regions.iter().last()?.0;
        let first = match random.below(3) {
            0 => (1 + random.below(4)) << 40,
            1 => last.0 + 1,
            _ => PAGES_MAX - pages,
        };
        let placement = match random.below(3) {
            0 => Placement::On(self.some_node(random)),
            1 => Placement::Blocks,
            _ => Placement::Cyclic,
        };
        let hindered = random.percent(25).then(|| self.some_node(random));
        let plan = RegionPlan { first: PageId(first), pages, placement };
        self.regions.check(&plan).is_ok().then_some((plan, hindered))
    }

    fn something(&mut self, random: &mut Random, node: NodeId) {
        match random.below(10) {
            0..6 => {
                let lock = self.some_lock(random);
                self.section(random, node, lock);
            }
            6..9 => self.touch(random, node, |role| role == Role::Private(node), true),
            _ => self.touch(random, node, |role| role == Role::ReadOnly, false),
        }
    }

    fn some_move(&self, random: &mut Random) -> Move {
        if random.percent(50) {
            return Move::Lock(self.some_lock(random), self.some_node(random));
        }
        let place = random.below(self.regions.pages() as u64) as usize;
        let (page, _) = self.regions.iter().nth(place).expect("there are so many");
        Move::Page(page, self.some_node(random))
    }

    fn step(&mut self, node: NodeId, step: Step) {
        self.steps[usize::from(node.0)].push(step);
    }

    /// Words that only this node may access in this phase. With snapshots nothing is published,
    /// because that changes them (`docs/dsm-model.md`).
    fn published(&self, node: NodeId) -> Vec<Address> {
        let roles = self.roles.last().expect("a phase has begun").iter();
        let own = roles.filter(|(_, role)| **role == Role::Private(node)).map(|(word, _)| *word);
        own.take(if self.snapshots { 0 } else { 3 }).collect()
    }

    /// One node waits until another has written a word. Then it reads what that node wrote before
    /// without a lock, and published.
    fn hand_over(&mut self, random: &mut Random) {
        let lock = self.some_lock(random);
        let (from, to) = (self.some_node(random), self.some_node(random));
        let roles = self.roles.last_mut().expect("a phase has begun");
        let Some((&word, role)) = roles.iter_mut().find(|(_, role)| **role == Role::Lock(lock))
        else {
            return;
        };
        if from == to || !random.percent(40) {
            return;
        }
        // No other node accesses the word in this phase.
        *role = Role::Handed;
        let published = self.published(from);
        for &word in &published {
            self.roles.last_mut().expect("a phase has begun").insert(word, Role::Handed);
            self.values += 1;
            self.step(from, Step::Write(word, self.values));
        }
        self.values += 1;
        let (value, condition) = (self.values, ConditionId(random.below(2) as u32));
        let exclusive = Call::Acquire(lock, Mode::Exclusive, WaitPolicy::Wait);
        let publish = (!published.is_empty()).then_some(Step::Call(Call::Publish(lock)));
        let section = [Step::Call(exclusive), Step::Write(word, value)].into_iter().chain(publish);
        let end = [
            Step::Call(Call::Release(lock)),
            Step::Call(Call::Signal(lock, condition, Waiters::All)),
        ];
        section.chain(end).for_each(|step| self.step(from, step));
        for step in [
            Step::Call(exclusive),
            Step::Await(lock, condition, word, value),
            Step::Call(Call::Release(lock)),
        ] {
            self.step(to, step);
        }
        published.into_iter().for_each(|word| self.step(to, Step::Read(word)));
    }

    /// Accesses to some words of a role.
    fn touch(
        &mut self,
        random: &mut Random,
        node: NodeId,
        wanted: impl Fn(Role) -> bool,
        may_write: bool,
    ) {
        let roles = self.roles.last().expect("a phase has begun");
        let words: Vec<Address> =
            roles.iter().filter(|(_, role)| wanted(**role)).map(|(word, _)| *word).collect();
        if words.is_empty() {
            return;
        }
        for _ in 0..1 + random.below(4) {
            let word = words[random.below(words.len() as u64) as usize];
            if may_write && random.percent(50) {
                self.values += 1;
                self.step(node, Step::Write(word, self.values));
            } else {
                self.step(node, Step::Read(word));
            }
            let is_reclaimed = random.percent(25);
            if is_reclaimed {
                // Mostly a page that was just used; it may be used again or not.
                self.step(node, Step::Reclaim(word.page));
            }
            if is_reclaimed && random.percent(50) {
                self.step(node, Step::Read(word));
            }
        }
    }

    /// A section under one lock; sometimes with a nested section of a lock with a greater number.
    fn section(&mut self, random: &mut Random, node: NodeId, lock: LockId) {
        let mode =
            if random.percent(30) && self.snapshots { Mode::NonExclusive } else { Mode::Exclusive };
        let policy = if random.percent(15) { WaitPolicy::Try } else { WaitPolicy::Wait };
        self.step(node, Step::Call(Call::Acquire(lock, mode, policy)));
        let writes = mode == Mode::Exclusive;
        self.touch(random, node, |role| role == Role::Lock(lock), writes);
        if lock.0 + 1 < self.locks && random.percent(25) {
            self.section(random, node, LockId(lock.0 + 1));
            self.touch(random, node, |role| role == Role::Lock(lock), writes);
        }
        self.step(node, Step::Call(Call::Release(lock)));
    }
}
