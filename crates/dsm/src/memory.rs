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

use crate::address::{Address, PageId};
use crate::message::Update;
use crate::words::Words;

/// The words of a page.
pub type Contents = Arc<[u32]>;

/// There is no copy of this page here: fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent(pub PageId);

/// The shared memory that one node sees.
#[derive(Debug)]
pub(crate) struct Memory {
    copies: BTreeMap<PageId, Contents>,
    masters: BTreeMap<PageId, Contents>,
    owned: BTreeSet<PageId>,
    /// Writes since the last synchronisation, in their order.
    dirty: Vec<(Address, u32)>,
    latest: Words,
    /// Pages whose copy is another than the program knows.
    changed: BTreeSet<PageId>,
}

impl Memory {
    /// Zeroed copies of all pages, as nobody has written yet, and masters of those that the node manages.
    pub(crate) fn new(
        pages: impl Iterator<Item = PageId>,
        managed: impl Iterator<Item = PageId>,
        words_a_page: u32,
    ) -> Self {
        let zeroed: Contents = vec![0; words_a_page as usize].into();
        let zeroes = |page| (page, zeroed.clone());
        let masters = managed.map(zeroes).collect();
        Self {
            copies: pages.map(zeroes).collect(),
            changed: BTreeSet::new(),
            masters,
            owned: BTreeSet::new(),
            dirty: Vec::new(),
            latest: Words::new(words_a_page),
        }
    }

    /// The copy of a page.
    pub(crate) fn copy(&self, page: PageId) -> Result<&Contents, Absent> {
        self.copies.get(&page).ok_or(Absent(page))
    }

    pub(crate) fn write(&mut self, address: Address, value: u32) -> Result<(), Absent> {
        let copy = self.copies.get_mut(&address.page).ok_or(Absent(address.page))?;
        Arc::make_mut(copy)[address.word as usize] = value;
        if !self.owned.contains(&address.page) {
            self.dirty.push((address, value));
        }
        Ok(())
    }

    /// The writes since the last call, as made at `time`.
    pub(crate) fn take_dirty(&mut self, time: u64) -> Vec<Update> {
        let dirty = core::mem::take(&mut self.dirty).into_iter();
        let updates: Vec<_> =
            dirty.map(|(address, value)| Update { address, time, value }).collect();
        self.latest.record_own(&updates);
        updates
    }

    /// What this node wrote in this epoch, and nobody later as far as is known here.
    pub(crate) fn written(&self) -> impl Iterator<Item = Update> {
        self.latest.own()
    }

    /// Brings what came with a lock into the copies; keeps it for those that are absent. What is older than what is known
    /// of a word is passed over: a lock may bring what was written under another one held with it, and overwritten since.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        let (copies, changed) = (&mut self.copies, &mut self.changed);
        self.latest.record_newer(updates, |update| {
            if let Some(copy) = copies.get_mut(&update.address.page) {
                Arc::make_mut(copy)[update.address.word as usize] = update.value;
                changed.insert(update.address.page);
            }
        });
    }

    /// Puts a fetched page in, with what is known of it since the last barrier.
    pub(crate) fn install(&mut self, page: PageId, mut contents: Contents) {
        for (word, value) in self.latest.of_page(page) {
            Arc::make_mut(&mut contents)[word] = value;
        }
        self.copies.insert(page, contents);
        self.changed.insert(page);
    }

    /// The master of a managed page.
    pub(crate) fn master(&self, page: PageId) -> Option<&Contents> {
        self.masters.get(&page)
    }

    /// Ends an epoch at the manager: of each word the latest update wins.
    pub(crate) fn merge<'a>(&mut self, updates: impl Iterator<Item = &'a [Update]>) {
        let mut latest = self.latest.empty();
        let masters = &mut self.masters;
        for of_node in updates {
            latest.record_newer(of_node, |update| {
                let master =
                    masters.get_mut(&update.address.page).expect("updates go to the manager");
                Arc::make_mut(master)[update.address.word as usize] = update.value;
            });
        }
    }

    /// Forgets a copy that is out of date.
    pub(crate) fn drop_copy(&mut self, page: PageId) {
        self.copies.remove(&page);
        self.changed.insert(page);
    }

    /// Forgets single writes: the masters have them now.
    pub(crate) fn end_epoch(&mut self) {
        self.latest.clear();
    }

    /// Makes the copy of a managed page its master again.
    pub(crate) fn refresh(&mut self, page: PageId) {
        if let Some(master) = self.masters.get(&page) {
            self.copies.insert(page, master.clone());
            self.changed.insert(page);
        }
    }

    /// Gives the master of a page away.
    pub(crate) fn give_master(&mut self, page: PageId) -> Option<Contents> {
        self.masters.remove(&page)
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

    /// The pages whose copy has changed otherwise than by the program's writes, each with its new copy if there is one.
    pub(crate) fn take_changed(&mut self) -> Vec<(PageId, Option<Contents>)> {
        let changed = core::mem::take(&mut self.changed).into_iter();
        changed.map(|page| (page, self.copies.get(&page).cloned())).collect()
    }
}
