//! The messages and timers of the simulation, and sleep without work: what the real code does with
//! them, and what the model expects.

use super::{MEMBERS, Member, MemberState, Simulation};
use crate::processor::record::{Kind, remote};
use crate::processor::vp::attention;

impl Simulation {
    /// A kernel thread returns from its sleep: that of the first blocked member, counted from
    /// `start`.
    pub(super) fn unblock(&mut self, start: usize) {
        let mut members = (start..MEMBERS).chain(0..start);
        if let Some(member) = members.find(|&at| self.members[at].place == MemberState::Blocked) {
            self.post(member, remote::UNBLOCKED);
        }
    }

    pub(super) fn post(&mut self, index: usize, bits: u32) {
        let member = &mut self.members[index];
        // Its kernel thread returns once.
        if member.asked & bits & remote::UNBLOCKED != 0 {
            return;
        }
        member.record.post(bits);
        self.expect(index, bits);
    }

    /// A message for a member is on the way, and wakes its home.
    pub(super) fn expect(&mut self, index: usize, bits: u32) {
        let member = &mut self.members[index];
        if member.asked == 0 {
            let home = &mut self.processors[member.home];
            home.inbox.push_back(index);
            home.rests = false;
        }
        member.asked |= bits;
    }

    /// Posts from outside, or from the holder of the virtual processor that is not the member's
    /// home.
    pub(super) fn post_from_somewhere(&mut self, index: usize, bits: u32) {
        if self.random.below(2) == 0 {
            return self.post(index, bits);
        }
        let Member { record, home, place, asked, .. } = self.members[index];
        let poster = 1 - home;
        self.rise(poster);
        let moves = self.processors[home].rests
            && asked == 0
            && place == MemberState::Parked
            && !record.timer.is_set();
        record.post_from(self.processors[poster].vp, bits);
        if moves {
            self.taken_over += 1;
            self.members[index].home = poster;
            self.members[index].asked = bits;
            self.answer(index);
        } else {
            self.expect(index, bits);
        }
    }

    /// A virtual processor that has nothing to do falls asleep.
    pub(super) fn rest(&mut self, processor: usize) {
        let queued = |member: &Member| {
            member.home == processor && matches!(member.place, MemberState::Queued { .. })
        };
        let here = &mut self.processors[processor];
        let has_work = here.running.is_some() || !here.inbox.is_empty();
        if has_work || here.rests || self.members.iter().any(queued) {
            return;
        }
        // Serves bits that were set for nothing, or by a timer.
        here.vp.serve();
        here.rests = attention::rest(&here.vp.attention, attention::IDLE);
        assert!(here.rests, "nothing was raised since");
    }

    /// Its holder wakes, if it sleeps.
    pub(super) fn rise(&mut self, processor: usize) {
        let here = &mut self.processors[processor];
        if core::mem::take(&mut here.rests) {
            attention::rise(&here.vp.attention, attention::IDLE);
        }
    }

    pub(super) fn serve(&mut self, processor: usize) {
        self.rise(processor);
        self.processors[processor].vp.serve();
        for _ in 0..self.processors[processor].inbox.len() {
            let Some(index) = self.processors[processor].inbox.pop_front() else { break };
            let home = self.members[index].home;
            if home == processor {
                self.answer(index);
            } else {
                self.processors[home].inbox.push_back(index);
                self.processors[home].rests = false;
            }
        }
    }

    /// Applies the messages of a member to the model, in the order in which one record's messages
    /// are handled.
    pub(super) fn answer(&mut self, index: usize) {
        let asked = core::mem::take(&mut self.members[index].asked);
        let is = |simulation: &Self, place| simulation.members[index].place == place;
        if asked & remote::ARRIVE != 0 {
            self.members[index].place = self.behind();
        }
        if asked & remote::UNBLOCKED != 0 {
            let home = self.members[index].home;
            let leads = self.processors[home].unblocked_leads.pay();
            self.members[index].place = self.woken(leads);
        }
        if asked & remote::WAKE != 0 && is(self, MemberState::Parked) {
            self.members[index].place = self.behind();
        }
        if asked & remote::UNPARK != 0 {
            let parks = self.members[index].record.reason.get().kind == Kind::Park;
            if is(self, MemberState::Parked) && parks {
                self.members[index].place = self.behind();
            } else {
                self.members[index].token = true;
            }
        }
        if asked & remote::CHANGED != 0 {
            self.members[index].level = self.members[index].record.asked_level();
            if matches!(self.members[index].place, MemberState::Queued { .. }) {
                self.members[index].place = self.behind();
            }
        }
    }

    /// Timers that are due make their sleepers runnable.
    pub(super) fn fire(&mut self, processor: usize) {
        self.rise(processor);
        let vp = self.processors[processor].vp;
        let is_set = |member: &Member| member.home == processor && member.record.timer.is_set();
        let mut due: Vec<usize> = (0..MEMBERS).filter(|&at| is_set(&self.members[at])).collect();
        due.sort_by_key(|&at| self.members[at].due_ns);
        vp.fire(self.now_ns);
        let mut may_lead = true;
        for index in due {
            if !self.members[index].record.timer.is_set() {
                let leads = may_lead && self.processors[processor].timer_leads.pay();
                may_lead &= !leads;
                self.members[index].place = self.woken(leads);
            }
        }
    }
}
