//! A node's copies of pages, the masters of those it manages, and what is known of single words since the last barrier.
//!
//! Copies and masters share their contents until one of them is written: a page nobody writes to is there once, and all that were
//! never written share one. Of those, every node has a copy from the beginning.
//!
//! A page is **owned** when this node manages it, alone wrote to it before a single-read-write barrier, and so alone has it. Its
//! writes are not noted: nobody lacks them. Its copy is out of date where the program works elsewhere ([`crate::Action::Own`]),
//! until somebody asks and it is disowned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::{Address, NodeId, PageId};
use crate::directory::Directory;
use crate::interface::Action;
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::update::Update;
use crate::words::Words;

/// There is no copy of this page here: fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent(pub PageId);

/// Updates in runs of one page.
fn by_page(updates: &[Update]) -> impl Iterator<Item = (PageId, &[Update])> {
    let runs = updates.chunk_by(|one, other| one.address.page == other.address.page);
    runs.map(|run| (run[0].address.page, run))
}

/// The words of a page that are others than before, as written at `time`.
fn differing(
    page: PageId,
    before: &Contents,
    now: &Contents,
    time: u64,
) -> impl Iterator<Item = Update> {
    let words = (0..).zip(before.iter().zip(&**now)).filter(|(_, (before, now))| before != now);
    words.map(move |(word, (_, &value))| Update { address: Address { page, word }, time, value })
}

/// The shared memory that one node sees.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What pages are that were never written.
    zeroed: Contents,
    copies: Directory<Contents>,
    masters: Directory<Contents>,
    owned: BTreeSet<PageId>,
    /// Writes since the last synchronisation, in their order.
    dirty: Vec<(Address, u32)>,
    /// Pages written as a whole since then, as they were before.
    whole: BTreeMap<PageId, Contents>,
    /// Managed pages that were written as a whole in the last interval of this epoch, and not before in it: as they were before, and when.
    last: BTreeMap<PageId, (Contents, u64)>,
    latest: Words,
    /// Pages whose copy is another than the program knows.
    changed: BTreeMap<PageId, Changed>,
}

/// What of a copy the program does not know.
#[derive(Debug)]
enum Changed {
    Words(Vec<(u32, u32)>),
    Whole,
}

impl Memory {
    /// No pages; those that are added have so many words.
    pub(crate) fn new(words_a_page: u32) -> Self {
        Self {
            zeroed: vec![0; words_a_page as usize].into(),
            copies: Directory::new(),
            masters: Directory::new(),
            changed: BTreeMap::new(),
            owned: BTreeSet::new(),
            dirty: Vec::new(),
            whole: BTreeMap::new(),
            last: BTreeMap::new(),
            latest: Words::new(words_a_page),
        }
    }

    /// Adds zeroed copies of pages, as nobody has written yet, and masters of those that this node manages.
    pub(crate) fn add(&mut self, pages: impl Iterator<Item = (PageId, NodeId)>, me: NodeId) {
        for (page, manager) in pages {
            self.copies.insert(page, self.zeroed.clone());
            if manager == me {
                self.masters.insert(page, self.zeroed.clone());
            }
        }
    }

    /// Takes the pages of a region away, which nobody has seen.
    pub(crate) fn forget(&mut self, plan: &RegionPlan) {
        for page in (plan.first.0..plan.first.0 + plan.pages).map(PageId) {
            self.copies.remove(page);
            self.masters.remove(page);
        }
        self.owned.retain(|page| !plan.has(*page));
        self.changed.retain(|page, _| !plan.has(*page));
    }

    /// The copy of a page.
    pub(crate) fn copy(&self, page: PageId) -> Result<&Contents, Absent> {
        self.copies.get(page).ok_or(Absent(page))
    }

    /// Writes words of a page, by number and value.
    pub(crate) fn write(&mut self, page: PageId, words: &[(u32, u32)]) -> Result<(), Absent> {
        let copy = self.copies.get_mut(page).ok_or(Absent(page))?;
        let copy = Arc::make_mut(copy);
        words.iter().for_each(|&(word, value)| copy[word as usize] = value);
        if !self.owned.contains(&page) {
            let dirty = words.iter().map(|&(word, value)| (Address { page, word }, value));
            self.dirty.extend(dirty);
        }
        Ok(())
    }

    /// Writes a whole page; which words are others than before is found out when somebody must know.
    pub(crate) fn write_page(&mut self, page: PageId, contents: Contents) -> Result<(), Absent> {
        let copy = self.copies.get_mut(page).ok_or(Absent(page))?;
        let before = core::mem::replace(copy, contents);
        if !self.owned.contains(&page) {
            self.whole.entry(page).or_insert(before);
        }
        Ok(())
    }

    /// Puts managed pages aside that were written as a whole since the last synchronisation, of which nothing else is known in this epoch:
    /// if no other node wrote to one, its copy will be its master, and no word of it need be looked at.
    pub(crate) fn put_last_aside(&mut self, time: u64) {
        let noted: BTreeSet<_> = self.dirty.iter().map(|(address, _)| address.page).collect();
        let (masters, latest) = (&self.masters, &self.latest);
        let is_last =
            |page| masters.get(page).is_some() && !latest.knows(page) && !noted.contains(&page);
        let (last, rest): (BTreeMap<_, _>, _) =
            core::mem::take(&mut self.whole).into_iter().partition(|(page, _)| is_last(*page));
        self.last = last.into_iter().map(|(page, before)| (page, (before, time))).collect();
        self.whole = rest;
    }

    /// The pages that were put aside.
    pub(crate) fn last(&self) -> impl Iterator<Item = PageId> {
        self.last.keys().copied()
    }

    /// Makes those of them to which this node `alone` wrote masters; the writes to the others.
    pub(crate) fn take_last(&mut self, alone: impl Fn(PageId) -> bool) -> Vec<Update> {
        let mut updates = Vec::new();
        for (page, (before, time)) in core::mem::take(&mut self.last) {
            let copy = self.copies.get(page).expect("it was written");
            if alone(page) {
                self.masters.insert(page, copy.clone());
            } else {
                updates.extend(differing(page, &before, copy, time));
            }
        }
        updates
    }

    /// The writes since the last call, as made at `time`.
    pub(crate) fn take_dirty(&mut self, time: u64) -> Vec<Update> {
        let dirty = core::mem::take(&mut self.dirty).into_iter();
        let mut updates: Vec<_> =
            dirty.map(|(address, value)| Update { address, time, value }).collect();
        for (page, before) in core::mem::take(&mut self.whole) {
            let copy = self.copies.get(page).expect("it was written");
            updates.extend(differing(page, &before, copy, time));
        }
        by_page(&updates).for_each(|(page, of_page)| self.latest.record_own(page, of_page));
        updates
    }

    /// What this node wrote in this epoch, and nobody later as far as is known here, by page.
    pub(crate) fn written(&self) -> impl Iterator<Item = (PageId, impl Iterator<Item = Update>)> {
        self.latest.own()
    }

    /// The latest write that is known of each word in this epoch, by whomever.
    pub(crate) fn known(&self) -> impl Iterator<Item = Update> {
        self.latest.all()
    }

    /// Brings what came with a lock into the copies; keeps it for those that are absent. What is older than what is known
    /// of a word is passed over: a lock may bring what was written under another one held with it, and overwritten since.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        for (page, of_page) in by_page(updates) {
            let mut news = Vec::new();
            self.latest.record_newer(page, of_page, |word, value| news.push((word, value)));
            let Some(copy) = self.copies.get_mut(page).filter(|_| !news.is_empty()) else {
                continue;
            };
            let copy = Arc::make_mut(copy);
            news.iter().for_each(|&(word, value)| copy[word as usize] = value);
            match self.changed.entry(page).or_insert(Changed::Words(Vec::new())) {
                Changed::Words(words) => words.append(&mut news),
                Changed::Whole => {}
            }
        }
    }

    /// Puts a fetched page in, with what is known of it since the last barrier.
    pub(crate) fn install(&mut self, page: PageId, contents: Contents) {
        self.install_ahead(page, contents);
        self.changed.insert(page, Changed::Whole);
    }

    /// The same, and the program is shown it when it wants it.
    pub(crate) fn install_ahead(&mut self, page: PageId, mut contents: Contents) {
        for (word, value) in self.latest.of_page(page) {
            Arc::make_mut(&mut contents)[word] = value;
        }
        self.copies.insert(page, contents);
    }

    /// The master of a managed page.
    pub(crate) fn master(&self, page: PageId) -> Option<&Contents> {
        self.masters.get(page)
    }

    /// Ends an epoch at the manager: of each word the latest update wins.
    pub(crate) fn merge<'a>(&mut self, updates: impl Iterator<Item = &'a [Update]>) {
        let mut latest = self.latest.empty();
        for (page, of_page) in updates.flat_map(by_page) {
            let master = self.masters.get_mut(page).expect("updates go to the manager");
            let master = Arc::make_mut(master);
            latest.record_newer(page, of_page, |word, value| master[word as usize] = value);
        }
    }

    /// Forgets a copy that is out of date.
    pub(crate) fn drop_copy(&mut self, page: PageId) {
        self.copies.remove(page);
        self.changed.insert(page, Changed::Whole);
    }

    /// The program keeps seeing a page whose copy was dropped, until another one comes.
    pub(crate) fn keep_in_sight(&mut self, page: PageId) {
        self.changed.remove(&page);
    }

    /// Forgets single writes: the masters have them now.
    pub(crate) fn end_epoch(&mut self) {
        self.latest.clear();
    }

    /// Makes the copy of a managed page its master again. Where it is that already, the program sees what it is to see.
    pub(crate) fn refresh(&mut self, page: PageId) {
        let Some(master) = self.masters.get(page) else { return };
        let is_there = self.copies.get(page).is_some_and(|copy| copy == master);
        self.copies.insert(page, master.clone());
        if !is_there {
            self.changed.insert(page, Changed::Whole);
        }
    }

    /// Gives the master of a page away.
    pub(crate) fn give_master(&mut self, page: PageId) -> Option<Contents> {
        self.masters.remove(page)
    }

    /// Takes the master of a page over.
    pub(crate) fn take_master(&mut self, page: PageId, contents: Contents) {
        self.masters.insert(page, contents);
    }

    /// Lets the program write to a managed page unnoted.
    pub(crate) fn own(&mut self, page: PageId) {
        self.owned.insert(page);
        self.changed.remove(&page);
    }

    /// Whether a page is owned.
    pub(crate) fn is_owned(&self, page: PageId) -> bool {
        self.owned.contains(&page)
    }

    /// The owned pages.
    pub(crate) fn owned(&self) -> Vec<PageId> {
        self.owned.iter().copied().collect()
    }

    /// From now on writes to a page are noted again, against these contents.
    pub(crate) fn disown(&mut self, page: PageId, contents: Contents) {
        self.owned.remove(&page);
        self.masters.insert(page, contents.clone());
        self.copies.insert(page, contents);
    }

    /// What the program is to see of the pages whose copy has changed otherwise than by its own writes.
    pub(crate) fn take_changed(&mut self) -> Vec<Action> {
        let changed = core::mem::take(&mut self.changed).into_iter();
        let action = |(page, changed)| match (changed, self.copies.get(page)) {
            (_, None) => Action::Hide(page),
            (Changed::Whole, Some(copy)) => Action::Show(page, copy.clone()),
            (Changed::Words(words), Some(_)) => Action::Update(page, words),
        };
        changed.map(action).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;
    use crate::address::{NodeId, PageId};
    use crate::interface::Action;

    #[test]
    fn a_page_is_shown_anew_where_its_master_is_another_than_what_is_seen() {
        let pages = || [PageId(0), PageId(1)].into_iter();
        let (mut memory, me) = (Memory::new(2), NodeId(0));
        memory.add(pages().map(|page| (page, me)), me);
        memory.take_master(PageId(1), [0, 1].into());
        pages().for_each(|page| memory.refresh(page));
        assert_eq!(memory.take_changed(), [Action::Show(PageId(1), [0, 1].into())]);
    }
}
