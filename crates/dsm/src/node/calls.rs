//! Calls of the program: which are permitted, and how each begins.

use std::collections::BTreeMap;

use super::{BARRIER_MANAGER, End, Loss, Node, PendingCall};
use crate::address::{NodeId, ThreadId};
use crate::interface::{Action, Call, DsmError, Outcome, Subject, Waiters};
use crate::lock::Mode;
use crate::message::{BarrierKind, Message, Move};
use crate::region::{Placement, RegionPlan};
use crate::update::Update;

impl Node {
    pub(super) fn call(&mut self, thread: ThreadId, call: Call) {
        self.calls += 1;
        if let Err(why) = self.check(thread, call) {
            if let DsmError::PeerLeft(peer, _) = why {
                self.lose(Loss { peer, end: End::Left });
            }
            return self.actions.push(Action::Return(thread, Err(why)));
        }
        self.waiting.insert(thread, PendingCall { call, number: self.calls });
        match call {
            Call::Acquire(lock, mode, policy) => self.acquire(thread, lock, mode, policy),
            Call::Release(lock) => self.release(thread, lock, None),
            Call::Publish(lock) => self.publish(thread, lock),
            Call::WaitOn(lock, condition) => self.release(thread, lock, Some(condition)),
            Call::Signal(lock, condition, who) => {
                let all = who == Waiters::All;
                self.send(self.lock_manager(lock), Message::Signal { lock, condition, all });
                self.done(thread, Outcome::Done);
            }
            Call::Barrier(kind) => self.arrive(kind),
            Call::Region(plan, failure) => self.found(plan, failure),
            Call::Move(asked) => {
                self.moves.push(asked);
                self.done(thread, Outcome::Done);
            }
            Call::Fetch(page) => {
                self.use_page(page);
                // One request serves all threads that fetch the page.
                if self.waiting.values().filter(|waiting| waiting.call == call).count() == 1 {
                    self.send(self.page_manager(page), Message::Fetch(page, 0));
                }
            }
        }
    }

    /// Whether a call is permitted.
    fn check(&self, thread: ThreadId, call: Call) -> Result<(), DsmError> {
        let all_must_stand = call.is_barrier() && !self.waiting.is_empty();
        if all_must_stand || self.is_at_barrier() || self.is_waiting(thread) {
            return Err(DsmError::CallOutstanding);
        }
        let subject = call.subject();
        let nodes = self.layout.nodes;
        let known = match subject {
            Subject::Lock(lock) => lock.0 < self.layout.locks,
            Subject::Page(page) => self.layout.regions.has(page),
            Subject::Barrier => true,
            Subject::Node(node) => node.0 < nodes,
        };
        if !known {
            return Err(DsmError::OutOfRange(subject));
        }
        let named = match call {
            Call::Move(Move::Lock(_, to) | Move::Page(_, to)) => Some(to),
            Call::Region(RegionPlan { placement: Placement::On(node), .. }, _) => Some(node),
            _ => None,
        };
        if let Some(node) = named.filter(|node| node.0 >= nodes) {
            return Err(DsmError::OutOfRange(Subject::Node(node)));
        }
        if let Call::Region(plan, None) = call {
            let misplaced = |why| DsmError::Misplaced(plan, why);
            self.layout.regions.check(&plan).map_err(misplaced)?;
        }
        if let Some(lost) = self.lost {
            return Err(lost.of(subject));
        }
        if let Some(peer) = self.needed_by(call) {
            return Err(DsmError::PeerLeft(peer, subject));
        }
        let mode_of = |lock| {
            let held = self.held.get(&lock).filter(|held| held.thread == thread);
            held.map(|held| held.mode)
        };
        match call {
            Call::Acquire(lock, ..) if mode_of(lock).is_some() => Err(DsmError::AlreadyHeld(lock)),
            Call::Release(lock) if mode_of(lock).is_none() => Err(DsmError::NotHeld(lock)),
            Call::WaitOn(lock, _) | Call::Publish(lock)
                if mode_of(lock) != Some(Mode::Exclusive) =>
            {
                Err(DsmError::NotHeld(lock))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn arrive(&mut self, kind: BarrierKind) {
        // No lock will carry these writes, so the words need not be known before all nodes have
        // arrived.
        self.memory.put_last_aside(self.time);
        self.end_interval();
        debug_assert!(self.disowning.is_empty(), "a page is disowned at once");
        let mut pages = core::mem::take(&mut self.unnoted);
        let touched = core::mem::take(&mut self.touched);
        if kind == BarrierKind::SingleReadWrite {
            pages.extend(touched);
        }
        let mut flushes: BTreeMap<NodeId, Vec<Update>> = BTreeMap::new();
        pages.extend(self.memory.last());
        for page in &pages {
            // The page's manager waits for a message from each writer.
            flushes.entry(self.page_manager(*page)).or_default();
        }
        for (page, updates) in self.memory.written() {
            pages.insert(page);
            flushes.entry(self.page_manager(page)).or_default().extend(updates);
        }
        for (manager, updates) in flushes {
            self.send(manager, Message::Flush(updates));
        }
        for held in self.held.values_mut() {
            held.writes.clear();
        }
        let held = self.exclusive().into_iter().collect();
        let moves = core::mem::take(&mut self.moves);
        let arrive = Message::Arrive {
            time: self.time,
            written: pages.into_iter().collect(),
            held,
            moves,
            kind,
        };
        self.send(BARRIER_MANAGER, arrive);
    }
}
