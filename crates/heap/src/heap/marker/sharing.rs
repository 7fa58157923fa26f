//! How a marker is helped: what is passed between markers, and when.
//!
//! The *maker* of a collection at first marks alone. After that, whenever a marker is without work,
//! a marker with work offers half of it: the objects that it found first, because these lead to
//! most others. Helpers mark by the same rules, in parallel: an object is scanned by the marker
//! whose atomic step set its mark. Only the maker handles ephemerons. Helpers report the ephemerons
//! that they have scanned, and the awaited keys that they have marked. The maker examines them when
//! all else is done.
//!
//! A list is followed by one marker, from its head, because its later parts cannot be found in any
//! other way.

use super::{Company, Marker, Marks, Tally, Work};
use crate::heap::ephemerons::{Awaited, Seen};
use crate::heap::pool::{Next, Pool};
use crate::heap::{Heap, Limits};
use core::fmt;
use core::time::Duration;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Scans that the maker makes alone: some milliseconds. A shorter collection wakes no helper.
const SCANS_ALONE: usize = 50_000;

/// Maximum number of objects in a packet.
const PACKET_VALUES: usize = 1024;

/// How long the maker waits for others before it checks for other work.
const PATIENCE: Duration = Duration::from_millis(1);

/// Work that is passed from one marker to another, with what is needed to do it.
#[derive(Debug)]
pub(crate) struct Packet {
    marks: Arc<Marks>,
    base: usize,
    reach: usize,
    stack_max: usize,
    awaited: Arc<Awaited>,
    work: Work,
}

/// What helpers have found since the maker's last query.
#[derive(Debug, Default)]
pub(crate) struct Found {
    tally: Tally,
    seen: Seen,
}

/// Wakes an idle helper.
type Invite = Box<dyn Fn() + Send + Sync>;

/// The markers of one heap.
pub(crate) struct Team {
    pool: Pool<Packet, Found>,
    invite: OnceLock<Invite>,
    scans_alone: usize,
    /// Scans between two checks whether others need work.
    batch: usize,
    /// Bytes that helpers have scanned since the maker got their findings.
    helped_bytes: AtomicUsize,
    pub(crate) faults: crate::heap::faults::Faults,
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl Team {
    /// A maker and helpers.
    pub(crate) fn new(limits: &Limits) -> Self {
        let scans_alone = if limits.torture.is_some() { 0 } else { SCANS_ALONE };
        let batch = limits.shared_every.max(1);
        Self {
            pool: Pool::new(limits.helpers_max),
            invite: OnceLock::new(),
            scans_alone,
            batch,
            helped_bytes: AtomicUsize::new(0),
            faults: crate::heap::faults::Faults::default(),
        }
    }

    fn invite(&self) {
        if let Some(invite) = self.invite.get() {
            invite();
        }
    }
}

/// The role of a marker in its team.
#[derive(Debug)]
pub(super) enum Role {
    Alone,
    Maker { team: Arc<Team>, scans_alone: usize },
    Helper(Arc<Team>),
}

impl Work {
    /// Half of the work, for another marker; `None` if there is too little.
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
    /// The same marker as the maker of a collection. It is helped if there is a team.
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

    /// Bytes that helpers have scanned and not reported yet.
    pub(super) fn helped_bytes(&self) -> usize {
        match &self.role {
            Role::Maker { team, .. } => team.helped_bytes.load(Ordering::Relaxed),
            Role::Alone | Role::Helper(_) => 0,
        }
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

    /// Offers a part of the work to markers that have none.
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

    /// Called when the maker has no work left. Returns `false` if helpers are still busy. Otherwise
    /// the maker has either taken a packet, or all is done, and it has taken over what helpers
    /// found.
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
                team.helped_bytes.store(0, Ordering::Relaxed);
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
        // If the collection is aborted, objects being scanned may be freed as soon as this returns,
        // so stop the helpers first.
        if let (Role::Maker { team, .. }, Company::Beside) = (&self.role, self.company) {
            team.pool.give_up();
        }
    }
}

/// A helper. When it is dropped, even because it is killed, it returns its remaining work.
struct Helper<'a> {
    team: &'a Team,
    marker: Option<Marker>,
}

impl Helper<'_> {
    /// Scans some objects. Returns whether there are more.
    fn go_on(&mut self) -> bool {
        let Some(marker) = &mut self.marker else { return false };
        self.team.faults.step();
        if self.team.pool.is_given_up() {
            return false;
        }
        let scans = marker.batch;
        let before = marker.tally.marked_bytes;
        let has_more = marker.scan_some(scans) == scans || marker.rescan_overflowed();
        let scanned_bytes = marker.tally.marked_bytes - before;
        self.team.helped_bytes.fetch_add(scanned_bytes, Ordering::Relaxed);
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
        // The maker that learns that all is done needs exclusive use of the tables, so the marker
        // is dropped first.
        drop(marker);
        self.team.pool.finish(rest, |found| {
            found.tally.add(tally);
            found.seen.add(seen);
        });
    }
}

impl Heap {
    /// Sets `invite`, which is called when there is work for one more marker. It makes some thread
    /// call [`help`](Self::help).
    pub fn invite_by(&self, invite: Invite) {
        if let Some(team) = &self.team {
            // Each heap has one system, so this is set once.
            let _ = team.invite.set(invite);
        }
    }

    /// Whether a helper would find work now.
    pub fn has_work(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.pool.has_packets())
    }

    /// Helps to mark if there is work. Returns whether there was. `between` is called repeatedly
    /// meanwhile, and may unwind.
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
