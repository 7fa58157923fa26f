//! A node's side of pages: owned ones that others ask for, and those it asks for before its program does.

use super::Node;
use crate::address::PageId;
use crate::interface::{Action, Call};
use crate::memory::Contents;
use crate::message::Message;

/// Pages asked for at a barrier at most: what credit lets a manager send at once.
const AHEAD_MAX: usize = 256;

impl Node {
    /// The program uses a page whose copy was here already: when a barrier drops that, another one is asked for at once.
    pub fn use_page(&mut self, page: PageId) {
        if self.page_manager(page) != self.me {
            self.used.insert(page);
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

    /// Asks for those pages again that the program has used, of which the barrier that is just crossed has dropped the copies: it will return when they
    /// are here, and their managers, which cross it as well, answer sooner now than while their programs compute.
    pub(super) fn ask_ahead(&mut self, dropped: &[PageId]) {
        let used = dropped.iter().filter(|page| self.used.remove(page));
        let used: Vec<_> = used.copied().collect();
        let elsewhere = used.into_iter().filter(|page| self.page_manager(*page) != self.me);
        self.ahead = elsewhere.take(AHEAD_MAX).collect();
        for page in self.ahead.clone() {
            self.send(self.page_manager(page), Message::Fetch(page));
        }
    }

    /// A page has come.
    pub(super) fn came(&mut self, page: PageId, contents: Contents) {
        if self.ahead.remove(&page) {
            self.memory.install_ahead(page, contents);
            return self.leave_barrier();
        }
        self.memory.install(page, contents);
        self.all_done(|call| call == Call::Fetch(page));
    }

    /// Lets the program go on behind a barrier that is crossed, once the pages that it needs are here.
    pub(super) fn leave_barrier(&mut self) {
        self.crossed = !self.ahead.is_empty();
        if !self.crossed {
            self.all_done(|call| matches!(call, Call::Barrier(_)));
            self.leave_if_last();
        }
    }
}
