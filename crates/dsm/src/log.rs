//! Logs of what was written under a lock.

use std::collections::BTreeMap;

use crate::update::Update;

/// Updates in the order in which they were made, each with the stamp of the release that brought
/// it. Only the last update of each word counts.
///
/// The log is compacted whenever it has doubled since the last time. So it has at most twice as
/// many updates as words were written, plus a constant.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Stamps never decrease.
    updates: Vec<(u64, Update)>,
    /// Number of updates after the last compaction.
    left: usize,
}

/// A log of so few updates is not compacted.
const FEW: usize = 64;

impl Log {
    /// Appends updates, which are the latest.
    pub(crate) fn append(&mut self, stamp: u64, updates: impl IntoIterator<Item = Update>) {
        self.updates.extend(updates.into_iter().map(|update| (stamp, update)));
        if self.updates.len() > 2 * self.left + FEW {
            keep_last(&mut self.updates, |(_, update)| *update);
            // The sort is stable: updates of one stamp stay in the order of addresses.
            self.updates.sort_by_key(|(stamp, _)| *stamp);
            self.left = self.updates.len();
        }
    }

    /// The last update of each word that was released after this stamp, ascending by address.
    pub(crate) fn since(&self, stamp: u64) -> Vec<Update> {
        let first = self.updates.partition_point(|(made, _)| *made <= stamp);
        let mut updates: Vec<_> = self.updates[first..].iter().map(|(_, update)| *update).collect();
        keep_last(&mut updates, |update| *update);
        updates
    }

    /// Removes all updates, and keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.updates.clear();
        self.left = 0;
    }
}

/// Keeps the last update of each word, ascending by address. The updates of one release mostly are
/// in that order already.
fn keep_last<T>(entries: &mut Vec<T>, update: impl Fn(&T) -> Update) {
    let address = |entry: &T| update(entry).address;
    if !entries.is_sorted_by(|one, next| address(one) < address(next)) {
        entries.reverse();
        entries.sort_by_key(address);
        entries.dedup_by_key(|entry| address(entry));
    }
}

/// All updates made under a lock since the last barrier, release by release. The last holder keeps
/// them, and passes all of them on. (Paper 3, §3: a word that was written ten times is in it ten
/// times.)
///
/// The paper's history grows until a barrier. This one drops overwritten updates once it has more
/// updates than shared memory has words.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<Update>);

impl History {
    /// Appends the updates of a release; keeps about `updates_max` in all.
    pub(crate) fn append(&mut self, updates: impl Iterator<Item = Update>, updates_max: usize) {
        self.0.extend(updates);
        if self.0.len() > updates_max {
            let latest: BTreeMap<_, _> =
                self.0.iter().map(|update| (update.address, *update)).collect();
            self.0 = latest.into_values().collect();
        }
    }

    /// Replaces the history by what the last holder has passed on, which includes all that this
    /// node knew. An empty list changes nothing: this node was the last holder, or there are no
    /// updates.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        if !updates.is_empty() {
            self.0 = updates.to_vec();
        }
    }

    /// All updates. Those of one word are in the order of the releases.
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
    fn a_log_returns_the_last_update_of_each_word_after_a_stamp() {
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
            // Neither in order nor all at the same time.
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
