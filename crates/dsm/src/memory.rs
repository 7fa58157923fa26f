//! A node's copies of pages, the masters of the pages that it manages, and the latest writes of
//! words since the last barrier.
//!
//! Copies and masters share their contents until one of them is written. A page that no node writes
//! exists once, and all pages that were never written share one. Every node has copies of those
//! from the beginning.
//!
//! A page is **owned** if this node manages it and was its only writer before a single-read-write
//! barrier. Then no other node has a copy, and writes to it are not recorded. The node does not
//! learn of the program's writes ([`crate::Action::Own`]), so the copy here is out of date
//! meanwhile. Ownership ends when another node asks for the page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::{Address, NodeId, PageId};
use crate::directory::Directory;
use crate::interface::Action;
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::update::Update;
use crate::words::Words;

/// There is no copy of this page on this node: it must be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent(pub PageId);

/// Splits updates into runs of one page.
fn by_page(updates: &[Update]) -> impl Iterator<Item = (PageId, &[Update])> {
    let runs = updates.chunk_by(|one, other| one.address.page == other.address.page);
    runs.map(|run| (run[0].address.page, run))
}

/// The words of a page that differ from before, as updates of the time `time`.
fn differing(
    page: PageId,
    before: &Contents,
    now: &Contents,
    time: u64,
) -> impl Iterator<Item = Update> {
    let words = (0..).zip(before.iter().zip(&**now)).filter(|(_, (before, now))| before != now);
    words.map(move |(word, (_, &value))| Update { address: Address { page, word }, time, value })
}

/// Shared memory, as one node sees it.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The contents of a page that was never written.
    zeroed: Contents,
    copies: Directory<Contents>,
    masters: Directory<Contents>,
    owned: BTreeSet<PageId>,
    /// Words written since the last synchronisation, in order.
    dirty: Vec<(Address, u32)>,
    /// Pages written as a whole since the last synchronisation, with their contents before.
    whole: BTreeMap<PageId, Contents>,
    /// Managed pages whose only writes in this epoch were whole-page writes in its last interval:
    /// the contents before, and the time.
    last: BTreeMap<PageId, (Contents, u64)>,
    latest: Words,
    /// Pages whose copy differs from what the program sees.
    changed: BTreeMap<PageId, Changed>,
}

/// What the program does not see of a copy.
#[derive(Debug)]
enum Changed {
    Words(Vec<(u32, u32)>),
    Whole,
}

impl Memory {
    /// An empty memory. Each page that is added has so many words.
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

    /// Adds zeroed copies of pages, and masters of those that this node manages.
    pub(crate) fn add(&mut self, pages: impl Iterator<Item = (PageId, NodeId)>, me: NodeId) {
        for (page, manager) in pages {
            self.copies.insert(page, self.zeroed.clone());
            if manager == me {
                self.masters.insert(page, self.zeroed.clone());
            }
        }
    }

    /// Removes the pages of a region, which the program has never seen.
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

    /// Writes words of a page (index and value).
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

    /// Writes a whole page. Which words differ is computed when it is needed.
    pub(crate) fn write_page(&mut self, page: PageId, contents: Contents) -> Result<(), Absent> {
        let copy = self.copies.get_mut(page).ok_or(Absent(page))?;
        let before = core::mem::replace(copy, contents);
        if !self.owned.contains(&page) {
            self.whole.entry(page).or_insert(before);
        }
        Ok(())
    }

    /// Sets pages aside that this node manages and has written as a whole since the last
    /// synchronisation, and of which nothing else is known in this epoch. If no other node has
    /// written such a page, its copy becomes its master without comparing words.
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

    /// The pages that were set aside.
    pub(crate) fn last(&self) -> impl Iterator<Item = PageId> {
        self.last.keys().copied()
    }

    /// Ends what [`Self::put_last_aside`] began. The copy of a page that only this node has written
    /// (`alone`) becomes its master. Returns the updates of the other pages.
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

    /// The writes since the last call, as updates of the time `time`.
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

    /// What this node wrote in this epoch, by page, except for words with a later write known here.
    pub(crate) fn written(&self) -> impl Iterator<Item = (PageId, impl Iterator<Item = Update>)> {
        self.latest.own()
    }

    /// The latest known write of each word in this epoch, by any node.
    pub(crate) fn known(&self) -> impl Iterator<Item = Update> {
        self.latest.all()
    }

    /// Applies the updates that came with a lock to the copies, and keeps those of absent pages. An
    /// update that is older than what is known of the word is skipped: it may have been made under
    /// another lock of the sender, and overwritten since.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        for (page, of_page) in by_page(updates) {
            let mut newer = Vec::new();
            self.latest.record_newer(page, of_page, |word, value| newer.push((word, value)));
            let Some(copy) = self.copies.get_mut(page).filter(|_| !newer.is_empty()) else {
                continue;
            };
            let copy = Arc::make_mut(copy);
            newer.iter().for_each(|&(word, value)| copy[word as usize] = value);
            match self.changed.entry(page).or_insert(Changed::Words(Vec::new())) {
                Changed::Words(words) => words.append(&mut newer),
                Changed::Whole => {}
            }
        }
    }

    /// Installs a fetched page, with the updates of it that are known since the last barrier.
    pub(crate) fn install(&mut self, page: PageId, contents: Contents) {
        self.install_ahead(page, contents);
        self.changed.insert(page, Changed::Whole);
    }

    /// Installs a fetched page, which the program sees only when it accesses it.
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

    /// Merges the updates of an epoch into the masters. The latest update of each word wins.
    pub(crate) fn merge<'a>(&mut self, updates: impl Iterator<Item = &'a [Update]>) {
        let mut latest = self.latest.empty();
        for (page, of_page) in updates.flat_map(by_page) {
            let master = self.masters.get_mut(page).expect("updates go to the manager");
            let master = Arc::make_mut(master);
            latest.record_newer(page, of_page, |word, value| master[word as usize] = value);
        }
    }

    /// Drops a copy that is out of date.
    pub(crate) fn drop_copy(&mut self, page: PageId) {
        self.copies.remove(page);
        self.changed.insert(page, Changed::Whole);
    }

    /// Leaves a page visible whose copy was dropped, until the next copy arrives.
    pub(crate) fn keep_in_sight(&mut self, page: PageId) {
        self.changed.remove(&page);
    }

    /// Forgets the writes of words: they are in the masters.
    pub(crate) fn end_epoch(&mut self) {
        self.latest.clear();
    }

    /// Makes the copy of a managed page equal to its master. The program is shown the page only if
    /// it has changed.
    pub(crate) fn refresh(&mut self, page: PageId) {
        let Some(master) = self.masters.get(page) else { return };
        let is_there = self.copies.get(page).is_some_and(|copy| copy == master);
        self.copies.insert(page, master.clone());
        if !is_there {
            self.changed.insert(page, Changed::Whole);
        }
    }

    /// Removes the master of a page, which another node will manage.
    pub(crate) fn give_master(&mut self, page: PageId) -> Option<Contents> {
        self.masters.remove(page)
    }

    /// Adds the master of a page, which this node manages from now on.
    pub(crate) fn take_master(&mut self, page: PageId, contents: Contents) {
        self.masters.insert(page, contents);
    }

    /// Makes a managed page owned: the program's writes to it are not recorded.
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

    /// Ends the ownership of a page: writes to it are recorded again, against these contents.
    pub(crate) fn disown(&mut self, page: PageId, contents: Contents) {
        self.owned.remove(&page);
        self.masters.insert(page, contents.clone());
        self.copies.insert(page, contents);
    }

    /// The actions that show the program the pages whose copies have changed other than by its own
    /// writes.
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
    fn a_page_is_shown_again_if_its_master_differs_from_the_visible_contents() {
        let pages = || [PageId(0), PageId(1)].into_iter();
        let (mut memory, me) = (Memory::new(2), NodeId(0));
        memory.add(pages().map(|page| (page, me)), me);
        memory.take_master(PageId(1), [0, 1].into());
        pages().for_each(|page| memory.refresh(page));
        assert_eq!(memory.take_changed(), [Action::Show(PageId(1), [0, 1].into())]);
    }
}
