//! What was written under a lock, as those keep it who tell others.

use std::collections::BTreeMap;

use crate::update::Update;

/// Updates in the order they were made, each with the stamp of the release that brought it. Of each word the last one counts.
///
/// What was overwritten is forgotten whenever there is as much again as was left the last time: so there are never more than twice as many as words were
/// written, and some.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps never fall.
    updates: Vec<(u64, Update)>,
    /// So many were left.
    left: usize,
}

/// So few are not worth looking through.
const FEW: usize = 64;

impl Log {
    /// What was made last of all.
    pub(crate) fn append(&mut self, stamp: u64, updates: impl IntoIterator<Item = Update>) {
        self.updates.extend(updates.into_iter().map(|update| (stamp, update)));
        if self.updates.len() > 2 * self.left + FEW {
            keep_last(&mut self.updates, |(_, update)| *update);
            // Stable: of one stamp they stay in the order of addresses.
            self.updates.sort_by_key(|(stamp, _)| *stamp);
            self.left = self.updates.len();
        }
    }

    /// The last update of each word that was written behind this stamp, ascending by address.
    pub(crate) fn since(&self, stamp: u64) -> Vec<Update> {
        let first = self.updates.partition_point(|(made, _)| *made <= stamp);
        let mut updates: Vec<_> = self.updates[first..].iter().map(|(_, update)| *update).collect();
        keep_last(&mut updates, |update| *update);
        updates
    }

    /// Forgets all, and keeps its room.
    pub(crate) fn clear(&mut self) {
        self.updates.clear();
        self.left = 0;
    }
}

/// Leaves the last of each word, ascending by address. What one release brings mostly is so.
fn keep_last<T>(entries: &mut Vec<T>, update: impl Fn(&T) -> Update) {
    let address = |entry: &T| update(entry).address;
    if !entries.is_sorted_by(|one, next| address(one) < address(next)) {
        entries.reverse();
        entries.sort_by_key(address);
        entries.dedup_by_key(|entry| address(entry));
    }
}

/// Everything that was written under a lock since the last barrier, release by release, as the last holder keeps it and hands it on whole (Paper 3,
/// §3: a word that was written ten times is in it ten times).
///
/// The paper's grows until a barrier. Ours forgets what was overwritten once there are more updates than shared memory has words.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<Update>);

impl History {
    /// What a release brings, `updates_max` in all.
    pub(crate) fn append(&mut self, updates: impl Iterator<Item = Update>, updates_max: usize) {
        self.0.extend(updates);
        if self.0.len() > updates_max {
            let latest: BTreeMap<_, _> =
                self.0.iter().map(|update| (update.address, *update)).collect();
            self.0 = latest.into_values().collect();
        }
    }

    /// What the last holder has handed on: all that this node knew, and more; nothing where it is this node itself.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        if !updates.is_empty() {
            self.0 = updates.to_vec();
        }
    }

    /// All of it, in the order of time.
    pub(crate) fn all(&self) -> Vec<Update> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, History, Log};
    use crate::address::{Address, PageId};
    use crate::update::Update;

    fn update(word: u32, time: u64) -> Update {
        Update { address: Address { page: PageId(0), word }, time, value: time as u32 }
    }

    #[test]
    fn a_log_tells_the_last_of_each_word_behind_a_stamp() {
        let mut log = Log::default();
        log.append(1, [update(3, 0), update(1, 1), update(3, 2)]);
        log.append(2, [update(2, 3)]);
        log.append(3, [update(1, 4)]);
        assert_eq!(log.since(0), [update(1, 4), update(2, 3), update(3, 2)]);
        assert_eq!(log.since(1), [update(1, 4), update(2, 3)]);
        assert_eq!(log.since(2), [update(1, 4)]);
        assert_eq!(log.since(3), []);
        log.clear();
        assert_eq!(log.since(0), []);
    }

    #[test]
    fn a_log_has_at_most_twice_the_words_and_some_and_forgets_none() {
        const WORDS: u32 = 100;
        let mut log = Log::default();
        for time in 0..5_000 {
            // Neither in order nor all of them at the same time.
            log.append(time / 3, [update(time as u32 * 37 % WORDS, time)]);
            assert!(log.updates.len() <= 2 * WORDS as usize + FEW);
        }
        let last = |word: u32| (0..5_000).rev().find(|time| *time as u32 * 37 % WORDS == word);
        let all: Vec<_> = (0..WORDS).map(|word| update(word, last(word).unwrap())).collect();
        assert_eq!(log.since(0), all);
        let late: Vec<_> = all.into_iter().filter(|update| update.time / 3 > 1_640).collect();
        assert!(!late.is_empty() && late.len() < WORDS as usize);
        assert_eq!(log.since(1_640), late);
    }

    #[test]
    fn a_history_keeps_what_was_overwritten_until_there_is_no_room() {
        let mut history = History::default();
        (0..4).for_each(|time| history.append([update(0, time)].into_iter(), 5));
        history.append([update(1, 4)].into_iter(), 5);
        let all: Vec<_> = (0..4).map(|time| update(0, time)).chain([update(1, 4)]).collect();
        assert_eq!(history.all(), all);
        history.append([update(0, 5)].into_iter(), 5);
        assert_eq!(history.all(), [update(0, 5), update(1, 4)]);
    }
}
