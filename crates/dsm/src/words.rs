//! What is known of single words in this epoch: of each the latest write, and whether this node made it.
//!
//! Dense by page, because a program that writes to a page mostly writes to much of it: a page that is known at all costs 12
//! bytes a word.

use std::collections::BTreeMap;

use crate::address::{Address, PageId};
use crate::message::Update;

#[derive(Debug)]
struct PageWords {
    /// Time plus one; 0: nothing is known.
    times: Box<[u64]>,
    values: Box<[u32]>,
    /// A bit a word.
    own: Box<[u64]>,
}

impl PageWords {
    fn new(words: usize) -> Self {
        Self {
            times: vec![0; words].into(),
            values: vec![0; words].into(),
            own: vec![0; words.div_ceil(64)].into(),
        }
    }

    /// Takes an update in unless something at least as late is known; whether it did.
    fn record(&mut self, update: &Update, own: bool) -> bool {
        let word = update.address.word as usize;
        if self.times[word] > update.time {
            return false;
        }
        self.times[word] = update.time + 1;
        self.values[word] = update.value;
        let bit = 1 << (word % 64);
        self.own[word / 64] = self.own[word / 64] & !bit | if own { bit } else { 0 };
        true
    }

    fn is_own(&self, word: usize) -> bool {
        self.own[word / 64] >> (word % 64) & 1 == 1
    }
}

/// The latest writes, by page.
#[derive(Debug)]
pub(crate) struct Words {
    words_a_page: usize,
    pages: BTreeMap<PageId, PageWords>,
}

impl Words {
    pub(crate) fn new(words_a_page: u32) -> Self {
        Self { words_a_page: words_a_page as usize, pages: BTreeMap::new() }
    }

    /// Nothing known yet, of pages of the same size.
    pub(crate) fn empty(&self) -> Self {
        Self { words_a_page: self.words_a_page, pages: BTreeMap::new() }
    }

    fn page(&mut self, page: PageId) -> &mut PageWords {
        self.pages.entry(page).or_insert_with(|| PageWords::new(self.words_a_page))
    }

    /// Notes what this node has written: by its own time nothing is later.
    pub(crate) fn record_own(&mut self, updates: &[Update]) {
        for of_page in updates.chunk_by(|one, other| one.address.page == other.address.page) {
            let words = self.page(of_page[0].address.page);
            for update in of_page {
                words.times[update.address.word as usize] = 0;
                words.record(update, true);
            }
        }
    }

    /// Notes what others have written where that is later than what is known, and calls `each` with it.
    pub(crate) fn record_newer(&mut self, updates: &[Update], mut each: impl FnMut(&Update)) {
        for of_page in updates.chunk_by(|one, other| one.address.page == other.address.page) {
            let words = self.page(of_page[0].address.page);
            of_page.iter().filter(|update| words.record(update, false)).for_each(&mut each);
        }
    }

    /// What is known of a page, in order.
    pub(crate) fn of_page(&self, page: PageId) -> impl Iterator<Item = (usize, u32)> {
        let words = self.pages.get(&page).into_iter();
        words.flat_map(|words| {
            let known = words.times.iter().zip(&words.values).enumerate();
            known.filter(|(_, (time, _))| **time > 0).map(|(word, (_, value))| (word, *value))
        })
    }

    /// What this node wrote last of all, in order.
    pub(crate) fn own(&self) -> impl Iterator<Item = Update> {
        self.pages.iter().flat_map(|(&page, words)| {
            let own = (0..words.times.len()).filter(|&word| words.is_own(word));
            own.map(move |word| {
                let address = Address { page, word: word as u32 };
                Update { address, time: words.times[word] - 1, value: words.values[word] }
            })
        })
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}
