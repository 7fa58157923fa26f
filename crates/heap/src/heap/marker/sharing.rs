//! How a marker is helped: what goes from one to another, and when.
//!
//! The *maker* of a collection marks alone for a while. From then on, whenever somebody has nothing to do, who has work leaves half of what
//! he has found first, for that leads to most. Helpers mark by the same rules, beside each other: an object is scanned by the one whose step set its mark. What is
//! about ephemerons is the maker's: helpers report those that they have scanned, and the awaited keys that they have marked; he looks at them
//! when all else is done.
//!
//! A list is followed by one marker, from its head: no part of what hangs on nothing else can be found earlier.

use super::{Company, Marker, Marks, Tally, Work};
use crate::heap::ephemerons::{Awaited, Seen};
use crate::heap::pool::{Next, Pool};
use crate::heap::{Heap, Limits};
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, OnceLock};

/// Scans that the maker makes alone: some milliseconds. A collection that is over sooner wakes nobody.
const SCANS_ALONE: usize = 50_000;

/// Objects that change hands at a time, at most.
const PACKET_VALUES: usize = 1024;

/// How long the maker waits for others before it looks at what else there is.
const PATIENCE: Duration = Duration::from_millis(1);

/// Work that goes from one marker to another, and what is needed to do it.
#[derive(Debug)]
pub(crate) struct Packet {
    marks: Arc<Marks>,
    base: usize,
    reach: usize,
    stack_max: usize,
    awaited: Arc<Awaited>,
    work: Work,
}

/// What helpers have found since the maker asked last.
#[derive(Debug, Default)]
pub(crate) struct Found {
    tally: Tally,
    seen: Seen,
}

/// Calls one of those who may help.
type Invite = Box<dyn Fn() + Send + Sync>;

/// The markers of one heap.
pub(crate) struct Team {
    pool: Pool<Packet, Found>,
    invite: OnceLock<Invite>,
    scans_alone: usize,
    /// Scans between two looks at whether others want work.
    batch: usize,
    pub(crate) faults: crate::heap::faults::Faults,
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Team {
    /// A maker and so many helpers at a time.
    pub(crate) fn new(limits: &Limits) -> Self {
        let scans_alone = if limits.torture.is_some() { 0 } else { SCANS_ALONE };
        let batch = limits.shared_every.max(1);
        Self {
            pool: Pool::new(limits.helpers_max),
            invite: OnceLock::new(),
            scans_alone,
            batch,
            faults: crate::heap::faults::Faults::default(),
        }
    }

    fn invite(&self) {
        if let Some(invite) = self.invite.get() {
            invite();
        }
    }
}

/// What a marker is to others.
#[derive(Debug)]
pub(super) enum Role {
    Alone,
    Maker { team: Arc<Team>, scans_alone: usize },
    Helper(Arc<Team>),
}

impl Work {
    /// A part of it, for somebody else; `None` where there is too little.
    fn part(&mut self) -> Option<Self> {
        let count = (self.stack.len() / 2).min(PACKET_VALUES);
        let mut part = Self::default();
        if count > 0 {
            part.stack.extend((0..count).map(|i| self.stack.swap_remove(i)));
        } else if self.partial.len() + self.stack.len() > 1 {
            part.partial.push(self.partial.swap_remove(0));
        } else {
            return None;
        }
        Some(part)
    }
}

impl Marker {
    /// The same, as the maker of a collection; it is helped if there is a team.
    pub(crate) fn with_team(mut self, team: Option<&Arc<Team>>) -> Self {
        if let Some(team) = team {
            self.batch = team.batch;
            self.role = Role::Maker { team: Arc::clone(team), scans_alone: team.scans_alone };
        }
        self
    }

    fn of(packet: Packet, team: Arc<Team>) -> Self {
        let Packet { marks, base, reach, stack_max, awaited, work } = packet;
        let mut marker = Self::new(marks, base, stack_max);
        marker.reach = reach;
        marker.frontier = if awaited.is_empty() { reach } else { 0 };
        marker.ephemerons.await_keys(awaited);
        marker.company = Company::Beside;
        marker.batch = team.batch;
        marker.role = Role::Helper(team);
        marker.adopt(work);
        marker
    }

    fn packet(&self, work: Work) -> Packet {
        let (marks, awaited) = (Arc::clone(&self.marks), self.ephemerons.awaited());
        let &Self { base, reach, stack_max, .. } = self;
        Packet { marks, base, reach, stack_max, awaited, work }
    }

    fn adopt(&mut self, work: Work) {
        work.stack.into_iter().for_each(|value| self.push(value));
        self.work.partial.extend(work.partial);
        self.work.overflowed.extend(work.overflowed);
    }

    /// Leaves a part of the work to others, if there are any without.
    pub(super) fn share(&mut self) {
        let team = match &mut self.role {
            Role::Alone => return,
            Role::Maker { scans_alone, .. } if *scans_alone > 0 => {
                *scans_alone = scans_alone.saturating_sub(self.batch);
                return;
            }
            Role::Maker { team, .. } | Role::Helper(team) => team,
        };
        if team.pool.wants_work() {
            let team = Arc::clone(team);
            self.share_with(&team);
        }
    }

    #[cold]
    fn share_with(&mut self, team: &Team) {
        let Some(part) = self.work.part() else { return };
        match team.pool.give(self.packet(part)) {
            Ok(()) => {
                self.company = Company::Beside;
                team.invite();
            }
            Err(packet) => self.adopt(packet.work),
        }
    }

    /// The maker has scanned what it had: whether nobody else is at it, or it has new work; what helpers have found is its own then.
    pub(super) fn is_quiet(&mut self) -> bool {
        let Role::Maker { team, .. } = &self.role else { return true };
        if self.company == Company::Alone {
            return true;
        }
        match team.pool.next_or_done(PATIENCE) {
            Next::NotYet => return false,
            Next::Work(packet) => {
                let work = packet.work;
                self.adopt(work);
            }
            Next::Done(Found { tally, seen }) => {
                self.company = Company::Alone;
                self.tally.add(tally);
                self.tally.helped_bytes += tally.marked_bytes;
                self.ephemerons.see(seen);
            }
        }
        true
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.overflows += other.overflows;
        self.marked_bytes += other.marked_bytes;
        self.held_bytes += other.held_bytes;
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // A collection that is given up: what is being scanned may be gone as soon as this returns.
        if let (Role::Maker { team, .. }, Company::Beside) = (&self.role, self.company) {
            team.pool.give_up();
        }
    }
}

/// One who helps, until it is dropped: also where it is killed, it leaves what it has not done.
struct Helper<'a> {
    team: &'a Team,
    marker: Option<Marker>,
}

impl Helper<'_> {
    /// Scans some; whether there is more.
    fn go_on(&mut self) -> bool {
        let Some(marker) = &mut self.marker else { return false };
        self.team.faults.step();
        if self.team.pool.is_given_up() {
            return false;
        }
        let scans = marker.batch;
        let has_more = marker.scan_some(scans) == scans || marker.rescan_overflowed();
        if has_more {
            marker.share();
        }
        has_more
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        let Some(mut marker) = self.marker.take() else { return };
        let work = core::mem::take(&mut marker.work);
        let rest = (!work.is_empty()).then(|| marker.packet(work));
        let (tally, seen) = (marker.tally, marker.ephemerons.take_seen());
        // Who is told that all is done has the tables for himself.
        drop(marker);
        self.team.pool.finish(rest, |found| {
            found.tally.add(tally);
            found.seen.add(seen);
        });
    }
}

impl Heap {
    /// `invite` is called where there is work for one more marker: it has somebody call [`help`](Self::help).
    pub fn invite_by(&self, invite: Invite) {
        if let Some(team) = &self.team {
            // There is one system a heap.
            let _ = team.invite.set(invite);
        }
    }

    /// Whether somebody could help now.
    pub fn has_work(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.pool.has_packets())
    }

    /// Helps to mark, if there is work; whether there was. `between` is called again and again meanwhile, and may unwind.
    pub fn help(&self, mut between: impl FnMut()) -> bool {
        let Some(team) = &self.team else { return false };
        let Some(packet) = team.pool.take() else { return false };
        let mut helper = Helper { team, marker: Some(Marker::of(packet, Arc::clone(team))) };
        while helper.go_on() {
            between();
        }
        true
    }
}

#[cfg(test)]
mod tests;
