//! Processing of messages from other nodes, whatever this node is to the sender: the manager of a
//! lock, a page or the barriers, the last holder of a lock, or a waiting caller. Also the end of an
//! epoch.

use std::collections::BTreeSet;

use super::{BARRIER_MANAGER, End, Ending, Granted, Loss, Node};
use crate::address::{LockId, NodeId, PageId};
use crate::barrier::Arrival;
use crate::interface::{Action, Outcome, ProtocolViolation};
use crate::layout::Scheme;
use crate::lock::{Lock, Mode, Request};
use crate::log::History;
use crate::message::{BarrierKind, Message, Move};

impl Node {
    /// Processes a message. One of an earlier epoch, or after the last barrier, is ignored. One of
    /// the next epoch waits. One that its sender could not send is a violation, and changes nothing
    /// else.
    pub(super) fn message(&mut self, from: NodeId, epoch: u64, message: Message) {
        let over = epoch < self.epoch && !matches!(message, Message::Lost(_));
        if self.lost.is_some() || self.ended || over {
            return;
        }
        if !self.is_due(from, epoch, &message) {
            let end = End::Broke(ProtocolViolation::IllTimed(message.name()));
            return self.lose(Loss { peer: from, end });
        }
        if epoch > self.epoch && !matches!(message, Message::Lost(_)) {
            self.early.push(from, message);
        } else {
            self.handle(from, message);
        }
    }

    pub(super) fn handle(&mut self, from: NodeId, message: Message) {
        match message {
            Message::Acquire { lock, thread, mode, immediately, seen } => {
                let request = Request { node: from, thread, mode, seen };
                self.asked_for(lock, request, immediately);
            }
            Message::Cancel(lock, thread) => {
                if self.managed(lock).cancel(from, thread) {
                    self.note_waiting(lock);
                    self.send(from, Message::Busy(lock, thread));
                }
            }
            Message::Awaken(lock, thread) => {
                self.managed(lock).awaken(from, thread);
                self.serve(lock);
            }
            Message::Busy(_, thread) => self.done(thread, Outcome::Busy),
            Message::Grant { lock, thread, mode, stamp, time, updates } => {
                self.granted(lock, Granted { thread, mode, stamp, time, updates });
            }
            Message::HandOn { lock, to, thread, mode, time } => {
                let updates = self.logs.get(&lock).map(History::all).unwrap_or_default();
                self.send(to, Message::Grant { lock, thread, mode, stamp: 0, time, updates });
            }
            Message::Release { lock, time, updates, then_wait, seen } => {
                let state = self.managed(lock);
                state.release(from, time, updates);
                if let Some((condition, thread)) = then_wait {
                    let request = Request { node: from, thread, mode: Mode::Exclusive, seen };
                    state.wait(condition, request);
                }
                self.serve(lock);
            }
            Message::Signal { lock, condition, all } => {
                self.managed(lock).signal(condition, all);
                self.serve(lock);
            }
            Message::Flush(updates) => {
                self.flushed.insert(from, updates);
                self.try_to_end();
            }
            Message::Arrive { time, written, held, moves, kind } => {
                let arrival = Arrival { time, written, held, moves, kind };
                self.gathered(from, arrival);
            }
            Message::Go { time, written, held, moves, kind } => {
                let writers = BTreeSet::new();
                let (arriving, merged) = (BTreeSet::new(), false);
                self.go(Ending { time, written, held, moves, writers, arriving, merged, kind });
            }
            Message::Region(plan, failure) => self.gathering.make(from, plan, failure),
            Message::Refuse(why) => self.refused = Some(why),
            Message::Master(page, contents) => {
                self.masters.insert(page, contents);
                self.try_to_end();
            }
            Message::Fetch(page, again) => self.asked_for_page(from, page, again),
            Message::Page(page, contents) => self.came(page, contents),
            Message::Lost(peer) => self.lose(Loss { peer, end: End::Dead }),
            Message::Left => self.left(from),
            Message::Stranded(peer) => self.lose(Loss { peer, end: End::Left }),
        }
    }

    /// The state of a lock that is managed here.
    pub(super) fn managed(&mut self, lock: LockId) -> &mut Lock {
        assert_eq!(self.lock_manager(lock), self.me, "requests for a lock go to its manager");
        self.locks.entry(lock).or_default()
    }

    fn asked_for(&mut self, lock: LockId, request: Request, immediately: bool) {
        let state = self.managed(lock);
        if immediately && state.is_busy() {
            return self.send(request.node, Message::Busy(lock, request.thread));
        }
        state.request(request);
        self.serve(lock);
    }

    fn asked_for_page(&mut self, from: NodeId, page: PageId, again: u8) {
        if again > 0 {
            self.followers.entry(page).or_default().insert(from, again);
        }
        self.disown(page);
        if let Some(asked) = self.disowning.get_mut(&page) {
            return asked.push(from);
        }
        let master = self.memory.master(page).expect("requests for a page go to its manager");
        let contents = master.clone();
        self.send(from, Message::Page(page, contents));
    }

    /// Grants a lock to all requests that can have it now.
    pub(super) fn serve(&mut self, lock: LockId) {
        let scheme = self.layout.scheme;
        let state = self.managed(lock);
        let (mut granted, last) = (Vec::new(), state.last());
        while let Some(Request { node, thread, mode, seen }) = state.next() {
            let (stamp, time) = (state.stamp(), state.time());
            granted.push(match last {
                Some(last) if scheme == Scheme::LogAtLastHolder && last != node => {
                    (last, Message::HandOn { lock, to: node, thread, mode, time })
                }
                _ => {
                    let updates = state.updates_since(seen);
                    (node, Message::Grant { lock, thread, mode, stamp, time, updates })
                }
            });
        }
        self.note_waiting(lock);
        granted.into_iter().for_each(|(to, message)| self.send(to, message));
    }

    /// Updates whether requests wait for a lock that is managed here.
    fn note_waiting(&mut self, lock: LockId) {
        if self.managed(lock).is_awaited() {
            self.awaited.insert(lock);
        } else {
            self.awaited.remove(&lock);
        }
    }

    fn gathered(&mut self, from: NodeId, arrival: Arrival) {
        assert_eq!(self.me, BARRIER_MANAGER, "arrivals go to the manager of barriers");
        let answer = self.gathering.arrive(from, arrival, self.layout.nodes);
        for message in answer.into_iter().flatten() {
            for node in (0..self.layout.nodes).map(NodeId) {
                self.send(node, message.clone());
            }
        }
    }

    /// Begins the end of the epoch: it is now known which messages must arrive first.
    fn go(&mut self, mut ending: Ending) {
        // The manager of barriers forwards what each node claims to hold. The manager of a lock
        // knows whether that is true.
        let mut held = ending.held.iter();
        if let Some((_, peer)) = held.find(|(lock, node)| !self.may_hold(*node, *lock)) {
            let end = End::Broke(ProtocolViolation::IllTimed("Arrive"));
            return self.lose(Loss { peer: *peer, end });
        }
        let manager = |page: &PageId| self.page_manager(*page);
        let here = ending.written.iter().filter(|(page, _)| manager(page) == self.me);
        ending.writers = here.flat_map(|(_, writers)| writers.clone()).collect();
        let moves = ending.moves.iter().filter_map(|asked| match *asked {
            Move::Page(page, to) => Some((page, to)),
            Move::Lock(..) => None,
        });
        let (arriving, others): (Vec<_>, Vec<_>) = moves.partition(|(_, to)| *to == self.me);
        let arriving = arriving.into_iter().map(|(page, _)| page);
        ending.arriving = arriving.filter(|page| manager(page) != self.me).collect();
        self.ending = Some(ending);
        others.into_iter().for_each(|(page, _)| self.disown(page));
        self.try_to_end();
    }

    /// Ends the epoch if all messages have arrived: merges updates into masters, sends masters to
    /// new managers, then starts the next epoch.
    pub(super) fn try_to_end(&mut self) {
        let Some(mut ending) = self.ending.take() else { return };
        let merges = !ending.merged && self.disowning.is_empty();
        if merges && ending.writers.iter().all(|writer| self.flushed.contains_key(writer)) {
            let flushed = core::mem::take(&mut self.flushed);
            let alone: BTreeSet<_> = ending
                .written
                .iter()
                .filter(|(_, nodes)| nodes[..] == [self.me])
                .map(|(page, _)| *page)
                .collect();
            let last = self.memory.take_last(|page| alone.contains(&page));
            self.memory.merge(flushed.values().chain([&last]).map(Vec::as_slice));
            ending.merged = true;
            self.give_masters(&ending.moves);
        }
        let complete = ending.arriving.iter().all(|page| self.masters.contains_key(page));
        if ending.merged && complete {
            self.end_epoch(ending);
        } else {
            self.ending = Some(ending);
        }
    }

    /// Sends the masters of pages that get another manager.
    fn give_masters(&mut self, moves: &[Move]) {
        for asked in moves {
            let Move::Page(page, to) = *asked else { continue };
            if self.page_manager(page) == self.me && to != self.me {
                let master = self.memory.give_master(page).expect("its manager has it");
                self.send(to, Message::Master(page, master));
            }
        }
    }

    fn end_epoch(&mut self, ending: Ending) {
        for asked in &ending.moves {
            match *asked {
                Move::Lock(lock, to) => drop(self.moved_locks.insert(lock, to)),
                Move::Page(page, to) if self.page_manager(page) != to => {
                    self.layout.regions.set_manager(page, to);
                    self.unfollow(page);
                }
                Move::Page(..) => {}
            }
        }
        let mut masters = core::mem::take(&mut self.masters);
        for page in ending.arriving {
            let contents =
                masters.remove(&page).expect("the epoch ends when all masters have arrived");
            self.memory.take_master(page, contents);
            self.memory.refresh(page);
        }
        let others = ending.written.iter().filter(|(_, writers)| writers[..] != [self.me]);
        let dropped: Vec<_> = others.map(|(page, _)| *page).collect();
        dropped.iter().for_each(|page| self.memory.drop_copy(*page));
        ending.written.iter().for_each(|(page, _)| self.memory.refresh(*page));
        self.take_ownership(&ending.written, ending.kind);
        self.memory.end_epoch();
        self.time = self.time.max(ending.time) + 1;
        self.seen.clear();
        self.logs.clear();
        self.locks.retain(|_, lock| lock.begin_epoch());
        self.awaited.clear();
        for (lock, holder) in ending.held {
            if self.lock_manager(lock) == self.me {
                self.locks.insert(lock, Lock::held_by(holder));
            }
        }
        self.epoch += 1;
        self.begun.append(&mut self.early.take());
        ending.written.iter().for_each(|(page, writers)| self.send_to_followers(*page, writers));
        self.ask_ahead(&dropped);
        self.settle();
        self.leave_barrier();
    }

    /// After a single-read-write barrier, takes ownership of the pages that this node manages and
    /// that only it has written: there are no other copies.
    fn take_ownership(&mut self, written: &[(PageId, Vec<NodeId>)], kind: BarrierKind) {
        let excludes = self.held.values().any(|held| held.mode == Mode::Exclusive);
        if kind == BarrierKind::Ordinary || excludes {
            return;
        }
        for (page, writers) in written {
            let single = self.page_manager(*page) == self.me && writers[..] == [self.me];
            // A follower has a copy, which only a recorded write will renew.
            if single && !self.followers.contains_key(page) {
                self.memory.own(*page);
                self.actions.push(Action::Own(*page));
            }
        }
    }
}
