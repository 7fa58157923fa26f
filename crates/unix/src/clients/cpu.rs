//! Processor time of an instance, and its limit.
//!
//! The host keeps no account of a tree of processes that an ordinary user could have. So the server
//! looks at all processes from time to time and makes two sums. Each misses something that the
//! other includes, and the greater of the two counts:
//!
//! - *billed*: the time of live processes, and of children whose statuses were taken. The host adds
//!   the latter up at the parent, or at the warden for orphans.
//! - *seen*: the time of each process when it was last looked at.
//!
//! Neither includes a process that lives less than [`LOOK_EVERY`] and whose parent ignores its end.

use crate::clients::tree::{is_client, processes};
use core::time::Duration;
use std::collections::HashMap;

/// How long an instance can exceed its limit before that is noticed.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Ticks of the host's clock (`USER_HZ`).
type Ticks = u64;

/// One process, as `/proc/ID/stat` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessTimes {
    /// Distinguishes it from a later process with the same number.
    born: Ticks,
    own: Ticks,
    /// The time of its children whose statuses were taken.
    children: Ticks,
}

impl ProcessTimes {
    fn of(process: u32) -> Option<Self> {
        Self::read(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        // The fields after the name, which may contain anything: 3 to 52 of proc(5).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<Ticks>().ok();
        let [user, system, users, systems] = [ticks(14)?, ticks(15)?, ticks(16)?, ticks(17)?];
        Some(Self { born: ticks(22)?, own: user + system, children: users + systems })
    }
}

/// The account of an instance.
#[derive(Debug, Default)]
pub(crate) struct Account {
    live: HashMap<u32, ProcessTimes>,
    gone: Ticks,
}

impl Account {
    /// Looks at all processes. Returns the time that the instance has used.
    pub(crate) fn look(&mut self, warden: u32) -> Duration {
        let clients = processes().filter(|process| is_client(*process));
        let bills: HashMap<u32, ProcessTimes> =
            clients.filter_map(|process| Some((process, ProcessTimes::of(process)?))).collect();
        let orphans = ProcessTimes::of(warden).map_or(0, |bill| bill.children);
        let used = self.take(bills, orphans);
        Duration::from_secs_f64(used as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Adds the result of one look. Returns the ticks used.
    fn take(&mut self, bills: HashMap<u32, ProcessTimes>, orphans: Ticks) -> Ticks {
        let before = core::mem::replace(&mut self.live, bills);
        let is_same = |id: &u32, bill: &ProcessTimes| {
            self.live.get(id).is_some_and(|later| later.born == bill.born)
        };
        let ended = before.iter().filter(|(id, bill)| !is_same(id, bill));
        self.gone += ended.map(|(_, bill)| bill.own).sum::<Ticks>();
        let live = self.live.values();
        let billed = live.clone().map(|bill| bill.own + bill.children).sum::<Ticks>() + orphans;
        let seen = live.map(|bill| bill.own).sum::<Ticks>() + self.gone;
        billed.max(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, ProcessTimes, Ticks};

    fn bill(own: Ticks, children: Ticks) -> ProcessTimes {
        ProcessTimes { born: 1, own, children }
    }

    #[test]
    fn a_bill_is_read_behind_a_name_with_parentheses_and_spaces() {
        let stat = "7 (a ) 1 2) S 1 7 7 0 -1 4194304 90 0 0 0 11 22 33 44 20 0 1 0 5555 1 2 3";
        assert_eq!(
            ProcessTimes::read(stat),
            Some(ProcessTimes { born: 5555, own: 33, children: 77 })
        );
        assert_eq!(ProcessTimes::read("7 (a) S 1 7"), None);
    }

    #[test]
    fn what_a_waited_child_used_counts_once() {
        let mut account = Account::default();
        assert_eq!(account.take([(1, bill(5, 0)), (2, bill(10, 0))].into(), 0), 15);
        assert_eq!(account.take([(1, bill(5, 12))].into(), 0), 17);
    }

    #[test]
    fn what_nobody_waited_for_counts_as_it_was_last_seen() {
        let mut account = Account::default();
        assert_eq!(account.take([(1, bill(0, 0)), (2, bill(10, 0))].into(), 0), 10);
        // Another process with the same number.
        let later = ProcessTimes { born: 2, own: 4, children: 0 };
        assert_eq!(account.take([(1, bill(0, 0)), (2, later)].into(), 0), 14);
        assert_eq!(account.take([(1, bill(0, 0))].into(), 0), 14);
    }

    #[test]
    fn orphans_are_billed_to_the_warden() {
        assert_eq!(Account::default().take([(1, bill(1, 2))].into(), 30), 33);
    }
}
