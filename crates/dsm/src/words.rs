//! The latest known write of each word in this epoch, and whether this node made it.
//!
//! The map is dense within a page, because a program that writes to a page mostly writes to much of
//! it. A page with at least one known write costs 12 bytes per word.

use crate::address::{Address, PageId};
use crate::directory::Directory;
use crate::update::Update;

#[derive(Debug)]
struct PageWords {
    /// Time plus one; 0 if nothing is known.
    times: Box<[u64]>,
    values: Box<[u32]>,
    /// One bit per word.
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

    /// Records an update unless one of the same time or later is known. Returns whether it did.
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
    pages: Directory<PageWords>,
}

impl Words {
    pub(crate) fn new(words_a_page: u32) -> Self {
        Self { words_a_page: words_a_page as usize, pages: Directory::new() }
    }

    /// No writes, of pages of the same size.
    pub(crate) fn empty(&self) -> Self {
        Self { words_a_page: self.words_a_page, pages: Directory::new() }
    }

    fn page(&mut self, page: PageId) -> &mut PageWords {
        let words = self.words_a_page;
        self.pages.entry(page, || PageWords::new(words))
    }

    /// Records writes of this node. Nothing that is known is later than these.
    pub(crate) fn record_own(&mut self, page: PageId, updates: &[Update]) {
        let words = self.page(page);
        for update in updates {
            words.times[update.address.word as usize] = 0;
            words.record(update, true);
        }
    }

    /// Records writes of other nodes that are later than what is known. Calls `each` with index and
    /// value of each such word.
    pub(crate) fn record_newer(
        &mut self,
        page: PageId,
        updates: &[Update],
        mut each: impl FnMut(u32, u32),
    ) {
        let words = self.page(page);
        let newer = updates.iter().filter(|update| words.record(update, false));
        newer.for_each(|update| each(update.address.word, update.value));
    }

    /// Whether any write of a page is known.
    pub(crate) fn knows(&self, page: PageId) -> bool {
        self.pages.get(page).is_some()
    }

    /// The known writes of a page, in order.
    pub(crate) fn of_page(&self, page: PageId) -> impl Iterator<Item = (usize, u32)> {
        let words = self.pages.get(page).into_iter();
        words.flat_map(|words| {
            let known = words.times.iter().zip(&words.values).enumerate();
            known.filter(|(_, (time, _))| **time > 0).map(|(word, (_, value))| (word, *value))
        })
    }

    /// All known writes, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Update> {
        self.pages.iter().flat_map(|(page, words)| {
            let known = words.times.iter().zip(&words.values).enumerate();
            known.filter(|(_, (time, _))| **time > 0).map(move |(word, (time, value))| {
                let address = Address { page, word: word as u32 };
                Update { address, time: time - 1, value: *value }
            })
        })
    }

    /// The known writes that this node made, in order, by page.
    pub(crate) fn own(&self) -> impl Iterator<Item = (PageId, impl Iterator<Item = Update>)> {
        let some = self.pages.iter().filter(|(_, words)| words.own.iter().any(|bits| *bits != 0));
        some.map(|(page, words)| {
            let own = (0..words.times.len()).filter(|&word| words.is_own(word));
            let update = move |word: usize| {
                let address = Address { page, word: word as u32 };
                Update { address, time: words.times[word] - 1, value: words.values[word] }
            };
            (page, own.map(update))
        })
    }

    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}
