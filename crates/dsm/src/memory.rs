//! A node's copies of pages, the masters of those it manages, and what it wrote.

use std::collections::BTreeMap;

use crate::address::{Address, PageId};
use crate::message::Update;

/// There is no copy of this page here: fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent(pub PageId);

/// The shared memory that one node sees.
#[derive(Debug)]
pub(crate) struct Memory {
    copies: BTreeMap<PageId, Vec<u64>>,
    masters: BTreeMap<PageId, Vec<u64>>,
    /// Writes since the last synchronisation.
    dirty: BTreeMap<Address, u64>,
    /// Of each word the latest write in this epoch that is known here.
    latest: BTreeMap<Address, Update>,
}

impl Memory {
    /// Zeroed masters, and their copies, of the pages that the node manages.
    pub(crate) fn new(managed: impl Iterator<Item = PageId>, words_a_page: u32) -> Self {
        let zeroed = || vec![0; words_a_page as usize];
        let masters: BTreeMap<_, _> = managed.map(|page| (page, zeroed())).collect();
        let (dirty, latest) = (BTreeMap::new(), BTreeMap::new());
        Self { copies: masters.clone(), masters, dirty, latest }
    }

    pub(crate) fn read(&self, address: Address) -> Result<u64, Absent> {
        let copy = self.copies.get(&address.page).ok_or(Absent(address.page))?;
        Ok(copy[address.word as usize])
    }

    pub(crate) fn write(&mut self, address: Address, value: u64) -> Result<(), Absent> {
        let copy = self.copies.get_mut(&address.page).ok_or(Absent(address.page))?;
        copy[address.word as usize] = value;
        self.dirty.insert(address, value);
        Ok(())
    }

    /// The writes since the last call, as made at `time`.
    pub(crate) fn take_dirty(&mut self, time: u64) -> Vec<Update> {
        let dirty = core::mem::take(&mut self.dirty).into_iter();
        let updates: Vec<_> =
            dirty.map(|(address, value)| Update { address, time, value }).collect();
        self.latest.extend(updates.iter().map(|update| (update.address, *update)));
        updates
    }

    /// Brings what came with a lock into the copies; keeps it for those that are absent. What is older than what is known
    /// of a word is passed over: a lock may bring what was written under another one held with it, and overwritten since.
    pub(crate) fn receive(&mut self, updates: &[Update]) {
        for update in updates {
            if self.latest.get(&update.address).is_some_and(|known| known.time >= update.time) {
                continue;
            }
            self.latest.insert(update.address, *update);
            if let Some(copy) = self.copies.get_mut(&update.address.page) {
                copy[update.address.word as usize] = update.value;
            }
        }
    }

    /// Puts a fetched page in, with what is known of it since the last barrier.
    pub(crate) fn install(&mut self, page: PageId, mut contents: Vec<u64>) {
        let range = Address { page, word: 0 }..=Address { page, word: u32::MAX };
        for (address, update) in self.latest.range(range) {
            contents[address.word as usize] = update.value;
        }
        self.copies.insert(page, contents);
    }

    /// The master of a managed page.
    pub(crate) fn master(&self, page: PageId) -> Option<&Vec<u64>> {
        self.masters.get(&page)
    }

    /// Ends an epoch at the manager: of each word the latest update wins.
    pub(crate) fn merge(&mut self, updates: impl Iterator<Item = Update>) {
        let mut latest: BTreeMap<Address, Update> = BTreeMap::new();
        for update in updates {
            let known = latest.entry(update.address).or_insert(update);
            if known.time < update.time {
                *known = update;
            }
        }
        for (address, update) in latest {
            let master = self.masters.get_mut(&address.page).expect("updates go to the manager");
            master[address.word as usize] = update.value;
        }
    }

    /// Forgets a copy that is out of date.
    pub(crate) fn drop_copy(&mut self, page: PageId) {
        self.copies.remove(&page);
    }

    /// Forgets single writes: the masters have them now.
    pub(crate) fn end_epoch(&mut self) {
        self.latest.clear();
    }

    /// Makes the copy of a managed page its master again.
    pub(crate) fn refresh(&mut self, page: PageId) {
        if let Some(master) = self.masters.get(&page) {
            self.copies.insert(page, master.clone());
        }
    }

    /// Gives the master of a page away.
    pub(crate) fn give_master(&mut self, page: PageId) -> Option<Vec<u64>> {
        self.masters.remove(&page)
    }

    /// Takes the master of a page over.
    pub(crate) fn take_master(&mut self, page: PageId, contents: Vec<u64>) {
        self.masters.insert(page, contents);
    }
}
