//! A node's side of locks: which thread holds which lock, what was written under it, and grants
//! that arrive too late.

use std::collections::VecDeque;

use super::{Granted, HeldLock, NEXT, Node};
use crate::address::{ConditionId, LockId, ThreadId};
use crate::interface::{Call, Outcome, WaitPolicy};
use crate::layout::Scheme;
use crate::lock::Mode;
use crate::log::Log;
use crate::message::Message;
use crate::update::Update;

impl Node {
    /// The locks that a thread holds.
    pub fn held_by(&self, thread: ThreadId) -> impl Iterator<Item = LockId> {
        let held = self.held.iter().filter(move |(_, held)| held.thread == thread);
        held.map(|(lock, _)| *lock)
    }

    pub(super) fn acquire(
        &mut self,
        thread: ThreadId,
        lock: LockId,
        mode: Mode,
        policy: WaitPolicy,
    ) {
        self.end_interval();
        if mode == Mode::Exclusive {
            // Writes under a lock must be recorded.
            self.memory.owned().into_iter().for_each(|page| self.disown(page));
        }
        let seen = self.seen.get(&lock).copied().unwrap_or(0);
        let immediately = policy == WaitPolicy::Try;
        let acquire = Message::Acquire { lock, thread, mode, immediately, seen };
        self.send(self.lock_manager(lock), acquire);
    }

    pub(super) fn release(
        &mut self,
        thread: ThreadId,
        lock: LockId,
        condition: Option<ConditionId>,
    ) {
        self.end_interval();
        let held = self.held.remove(&lock).expect("the call was checked");
        if held.mode == Mode::NonExclusive {
            // A snapshot excludes no other node, so its manager need not know.
            self.done(thread, Outcome::Done);
            return self.next_granted(lock);
        }
        // The node's own writes get the next stamp.
        *self.seen.entry(lock).or_insert(0) += 1;
        let updates = match self.layout.scheme {
            Scheme::LogAtManager => held.writes.since(0),
            Scheme::LogAtLastHolder => {
                let updates_max = self.layout.regions.pages() * self.layout.words_a_page as usize;
                self.logs
                    .entry(lock)
                    .or_default()
                    .append(held.writes.since(0).into_iter(), updates_max);
                Vec::new()
            }
        };
        let (time, seen) = (self.time, self.seen[&lock]);
        let then_wait = condition.map(|condition| (condition, thread));
        let release = Message::Release { lock, time, updates, then_wait, seen };
        self.send(self.lock_manager(lock), release);
        if condition.is_none() {
            self.done(thread, Outcome::Done);
        }
        self.next_granted(lock);
    }

    /// Adds the writes of other nodes that are known here to a lock, for its next holder. Causal
    /// order holds across several holders.
    pub(super) fn publish(&mut self, thread: ThreadId, lock: LockId) {
        self.end_interval();
        let held = self.held.get_mut(&lock).expect("the call was checked");
        held.writes.append(NEXT, self.memory.known());
        self.done(thread, Outcome::Done);
    }

    /// Processes a grant. It waits if another thread of this node holds the lock.
    pub(super) fn granted(&mut self, lock: LockId, granted: Granted) {
        if !self.held.contains_key(&lock) {
            return self.hold(lock, granted);
        }
        let waiting = self.waiting.get(&granted.thread).map(|waiting| waiting.call);
        if matches!(waiting, Some(Call::Acquire(_, _, WaitPolicy::Try))) {
            self.give_back(lock, granted);
        } else {
            self.granted.entry(lock).or_default().push_back(granted);
        }
    }

    /// Gives a released lock to the next thread of this node whose grant has arrived.
    fn next_granted(&mut self, lock: LockId) {
        if let Some(granted) = self.granted.get_mut(&lock).and_then(VecDeque::pop_front) {
            self.hold(lock, granted);
        }
    }

    fn hold(&mut self, lock: LockId, granted: Granted) {
        let Granted { thread, mode, stamp, time, updates } = granted;
        self.end_interval();
        self.time = self.time.max(time + 1);
        self.memory.receive(&updates);
        self.keep_log(lock, &updates);
        self.seen.insert(lock, stamp);
        self.held.insert(lock, HeldLock { thread, mode, writes: Log::default() });
        self.done(thread, Outcome::Done);
    }

    /// Returns a lock whose grant arrived too late.
    fn give_back(&mut self, lock: LockId, granted: Granted) {
        self.keep_log(lock, &granted.updates);
        if granted.mode == Mode::Exclusive {
            let (time, updates, seen) = (granted.time, Vec::new(), 0);
            let release = Message::Release { lock, time, updates, then_wait: None, seen };
            self.send(self.lock_manager(lock), release);
        }
        self.done(granted.thread, Outcome::Busy);
    }

    /// Updates the history of a lock, where the last holder keeps it: this node may be that holder.
    fn keep_log(&mut self, lock: LockId, updates: &[Update]) {
        if self.layout.scheme == Scheme::LogAtLastHolder {
            self.logs.entry(lock).or_default().receive(updates);
        }
    }

    pub(super) fn time_up(&mut self, number: u64) {
        let mut waiting = self.waiting.iter();
        let Some((&thread, waiting)) = waiting.find(|(_, waiting)| waiting.number == number) else {
            return;
        };
        let (Call::Acquire(lock, ..) | Call::WaitOn(lock, _)) = waiting.call else { return };
        if matches!(waiting.call, Call::WaitOn(..)) {
            // The thread acquires the lock again, as after a signal.
            return self.send(self.lock_manager(lock), Message::Awaken(lock, thread));
        }
        let came = self.granted.get_mut(&lock).and_then(|granted| {
            let place = granted.iter().position(|granted| granted.thread == thread);
            place.and_then(|place| granted.remove(place))
        });
        match came {
            Some(granted) => self.give_back(lock, granted),
            None => self.send(self.lock_manager(lock), Message::Cancel(lock, thread)),
        }
    }
}
