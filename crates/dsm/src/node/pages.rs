//! A node's side of pages: owned pages that others ask for, and pages that are requested before the
//! program needs them.

use std::collections::BTreeSet;

use super::Node;
use crate::address::{NodeId, PageId};
use crate::interface::{Action, Call, Outcome};
use crate::message::Message;
use crate::page::Contents;

/// Pages requested ahead at a barrier, at most: a manager's credit lets it send so many at once.
const AHEAD_MAX: usize = 256;

/// Barriers for which a manager is asked to send a page, at most.
const FOLLOWED_MAX: u8 = 64;

/// How the program uses a page of another manager.
#[derive(Debug)]
pub(super) struct PageUse {
    /// The program has used the page since its copy arrived. For a page in sight, whose use is not
    /// noticed, this is assumed.
    seen: bool,
    /// The copy was requested at the last barrier that changed it, and hidden. If the program uses
    /// it, it uses the page repeatedly.
    proving: bool,
    /// Number of barriers after which the page still arrives unasked.
    coming: u8,
    /// For how many barriers the page is requested the next time.
    next: u8,
}

impl Default for PageUse {
    fn default() -> Self {
        Self { seen: false, proving: false, coming: 0, next: 1 }
    }
}

/// How a page arrives after a barrier that has changed it.
struct Advance {
    /// The page is requested, for so many barriers in advance.
    ask: Option<u8>,
    in_sight: bool,
}

impl PageUse {
    /// How the page is to arrive, if at most `room` more pages may be requested.
    fn ahead(&mut self, room: usize) -> Option<Advance> {
        if self.coming > 0 {
            self.coming -= 1;
            return Some(Advance { ask: None, in_sight: true });
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
        Some(Advance { ask: Some(self.coming), in_sight: !self.proving })
    }
}

impl Node {
    /// Records that the program uses a page whose copy was present. When a barrier drops the copy,
    /// the page is requested at once.
    pub fn use_page(&mut self, page: PageId) {
        if self.page_manager(page) != self.me {
            self.used.entry(page).or_default().seen = true;
        }
    }

    /// Ends the ownership of a page: its writes are recorded again, and may have been made in this
    /// epoch.
    pub(super) fn disown(&mut self, page: PageId) {
        if self.memory.is_owned(page) && !self.disowning.contains_key(&page) {
            self.disowning.insert(page, Vec::new());
            self.actions.push(Action::Disown(page));
        }
    }

    pub(super) fn disowned(&mut self, page: PageId, contents: Contents) {
        let Some(asked) = self.disowning.remove(&page) else { return };
        // A program at a barrier does not write, so these are the contents that the barrier leaves.
        // If the contents have not changed since the node became the owner, other copies stay
        // valid.
        let is_as_it_was = self.memory.master(page).is_some_and(|master| *master == contents);
        if !self.is_at_barrier() && !is_as_it_was {
            self.unnoted.insert(page);
        }
        self.memory.disown(page, contents.clone());
        asked.into_iter().for_each(|to| self.send(to, Message::Page(page, contents.clone())));
        self.try_to_end();
    }

    /// A page has another manager, which knows of no request in advance.
    pub(super) fn unfollow(&mut self, page: PageId) {
        self.followers.remove(&page);
        if let Some(used) = self.used.get_mut(&page) {
            used.coming = 0;
        }
    }

    /// Sends a page that the barrier has changed to the nodes that asked for it in advance.
    pub(super) fn send_to_followers(&mut self, page: PageId, writers: &[NodeId]) {
        let Some(mut followers) = self.followers.remove(&page) else { return };
        let master =
            self.memory.master(page).expect("followers exist only for managed pages").clone();
        // The only writer of the page has its contents.
        for (node, left) in followers.iter_mut().filter(|(node, _)| writers[..] != [**node]) {
            *left -= 1;
            self.send(*node, Message::Page(page, master.clone()));
        }
        followers.retain(|_, left| *left > 0);
        if !followers.is_empty() {
            self.followers.insert(page, followers);
        }
    }

    /// Requests the pages that the program has used and whose copies the barrier has dropped. The
    /// barrier returns when they have arrived. Their managers cross the same barrier, so they
    /// answer sooner than while their programs compute.
    ///
    /// A page that is used repeatedly arrives unasked for some barriers, and stays in the program's
    /// sight; then its use costs no fault. Now and then it is hidden once, to learn whether it is
    /// still used.
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

    /// A page has arrived.
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

    /// Gives up requested pages. The program no longer sees their old contents.
    pub(super) fn give_up_ahead(&mut self, is_lost: impl Fn(PageId) -> bool) {
        self.ahead.retain(|page| !is_lost(*page));
        let in_sight = core::mem::take(&mut self.in_sight).into_iter();
        let (lost, kept): (BTreeSet<_>, _) = in_sight.partition(|page| is_lost(*page));
        self.in_sight = kept;
        lost.into_iter().for_each(|page| self.memory.drop_copy(page));
    }

    /// Returns from a barrier that is crossed, once the requested pages have arrived.
    pub(super) fn leave_barrier(&mut self) {
        self.crossed = !self.ahead.is_empty();
        if !self.crossed {
            let outcome = self.crossing();
            self.all_return(Call::is_barrier, outcome);
            self.leave_if_last();
        }
    }
}
