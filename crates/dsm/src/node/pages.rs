//! A node's side of pages: owned ones that others ask for, and those it asks for before its program does.

use std::collections::BTreeSet;

use super::Node;
use crate::address::{NodeId, PageId};
use crate::interface::{Action, Call, Outcome};
use crate::message::Message;
use crate::page::Contents;

/// Pages asked for at a barrier at most: what credit lets a manager send at once.
const AHEAD_MAX: usize = 256;

/// Barriers for which a manager is asked to send a page, at most.
const FOLLOWED_MAX: u8 = 64;

/// How the program uses a page of another manager.
#[derive(Debug)]
pub(super) struct Used {
    /// Since its copy came; where the program has it in sight, nobody would notice, and it is taken for granted.
    seen: bool,
    /// Its copy was asked for at the last barrier that changed it, and hidden: being seen proves that it is used again and again.
    proving: bool,
    /// Barriers behind which it comes unasked.
    coming: u8,
    /// For how many it is asked for next time.
    next: u8,
}

impl Default for Used {
    fn default() -> Self {
        Self { seen: false, proving: false, coming: 0, next: 1 }
    }
}

/// How a page comes behind a barrier that has changed it.
struct Ahead {
    /// It is asked for, and for so many barriers in advance.
    ask: Option<u8>,
    in_sight: bool,
}

impl Used {
    /// How the page comes, if it is to come, where so many may be asked for.
    fn ahead(&mut self, room: usize) -> Option<Ahead> {
        if self.coming > 0 {
            self.coming -= 1;
            return Some(Ahead { ask: None, in_sight: true });
        }
        if !self.seen || room == 0 {
            return None;
        }
        self.proving = !self.proving;
        if self.proving {
            self.seen = false;
        } else {
            self.coming = self.next;
            self.next = (2 * self.next).min(FOLLOWED_MAX);
        }
        Some(Ahead { ask: Some(self.coming), in_sight: !self.proving })
    }
}

impl Node {
    /// The program uses a page whose copy was here already: when a barrier drops that, another one is asked for at once.
    pub fn use_page(&mut self, page: PageId) {
        if self.page_manager(page) != self.me {
            self.used.entry(page).or_default().seen = true;
        }
    }

    /// Ends the ownership of a page: its writes are noted again, and may have been made in this epoch.
    pub(super) fn disown(&mut self, page: PageId) {
        if self.memory.is_owned(page) && !self.disowning.contains_key(&page) {
            self.disowning.insert(page, Vec::new());
            self.actions.push(Action::Disown(page));
        }
    }

    pub(super) fn disowned(&mut self, page: PageId, contents: Contents) {
        let Some(asked) = self.disowning.remove(&page) else { return };
        // Who is at the barrier writes no more: what is taken now is the page as that barrier leaves it. And one that is as it was when it
        // was taken into ownership was written by nobody: copies of it may stay.
        let is_as_it_was = self.memory.master(page).is_some_and(|master| *master == contents);
        if !self.is_at_barrier() && !is_as_it_was {
            self.unnoted.insert(page);
        }
        self.memory.disown(page, contents.clone());
        asked.into_iter().for_each(|to| self.send(to, Message::Page(page, contents.clone())));
        self.try_to_end();
    }

    /// A page has another manager: nobody knows of what was agreed with the one before.
    pub(super) fn unfollow(&mut self, page: PageId) {
        self.followers.remove(&page);
        if let Some(used) = self.used.get_mut(&page) {
            used.coming = 0;
        }
    }

    /// Sends a page, which the barrier just crossed has changed, to those who asked for that.
    pub(super) fn send_to_followers(&mut self, page: PageId, writers: &[NodeId]) {
        let Some(mut followers) = self.followers.remove(&page) else { return };
        let master = self.memory.master(page).expect("who is asked for a page manages it").clone();
        // Who alone wrote to it has it.
        for (node, left) in followers.iter_mut().filter(|(node, _)| writers[..] != [**node]) {
            *left -= 1;
            self.send(*node, Message::Page(page, master.clone()));
        }
        followers.retain(|_, left| *left > 0);
        if !followers.is_empty() {
            self.followers.insert(page, followers);
        }
    }

    /// Asks for those pages again that the program has used, of which the barrier that is just crossed has dropped the copies: it will return when they
    /// are here, and their managers, which cross it as well, answer sooner now than while their programs compute.
    ///
    /// A page that is used again and again comes unasked for a while, and the program keeps it in sight: then using it is no fault. In between
    /// it is hidden once, to learn whether it still is used.
    pub(super) fn ask_ahead(&mut self, dropped: &[PageId]) {
        let mut asked = Vec::new();
        for &page in dropped {
            let elsewhere = self.page_manager(page) != self.me;
            let room = AHEAD_MAX.saturating_sub(self.ahead.len());
            let wanted = self.used.get_mut(&page).filter(|_| elsewhere);
            let Some(ahead) = wanted.and_then(|used| used.ahead(room)) else {
                self.used.remove(&page);
                continue;
            };
            self.ahead.insert(page);
            if ahead.in_sight {
                self.in_sight.insert(page);
            }
            asked.extend(ahead.ask.map(|coming| (page, coming)));
        }
        for &page in &self.in_sight {
            self.memory.keep_in_sight(page);
        }
        for (page, coming) in asked {
            self.send(self.page_manager(page), Message::Fetch(page, coming));
        }
    }

    /// A page has come.
    pub(super) fn came(&mut self, page: PageId, contents: Contents) {
        if self.ahead.remove(&page) {
            if self.in_sight.remove(&page) {
                self.memory.install(page, contents);
            } else {
                self.memory.install_ahead(page, contents);
            }
            return self.leave_barrier();
        }
        self.memory.install(page, contents);
        self.all_return(|call| call == Call::Fetch(page), Ok(Outcome::Done));
    }

    /// These pages do not come any more: the program sees none of them as it was.
    pub(super) fn give_up_ahead(&mut self, is_lost: impl Fn(PageId) -> bool) {
        self.ahead.retain(|page| !is_lost(*page));
        let in_sight = core::mem::take(&mut self.in_sight).into_iter();
        let (lost, kept): (BTreeSet<_>, _) = in_sight.partition(|page| is_lost(*page));
        self.in_sight = kept;
        lost.into_iter().for_each(|page| self.memory.drop_copy(page));
    }

    /// Lets the program go on behind a barrier that is crossed, once the pages that it needs are here.
    pub(super) fn leave_barrier(&mut self) {
        self.crossed = !self.ahead.is_empty();
        if !self.crossed {
            let outcome = self.crossing();
            self.all_return(Call::is_barrier, outcome);
            self.leave_if_last();
        }
    }
}
