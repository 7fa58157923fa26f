//! Pages in the runtime's view: comparing them with copies, reading and writing contents.
#![expect(unsafe_code, reason = "reads and writes mapped memory")]

use core::fmt;
use core::ops::Range;
use core::ptr;

use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::atomic::unmodelled::{AtomicU32, Ordering};
use kyocho_sys::two_views::TwoViews;

use crate::address::PageId;
use crate::page::{Contents, WORDS_A_PAGE};

/// Words compared at a time: 128 bytes.
const WIDE: usize = 32;

/// The pages of a memory, in the runtime's view.
#[derive(Clone, Copy)]
pub struct Pages<'a> {
    views: &'a TwoViews,
    first: PageId,
}

impl fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("views", self.views).finish()
    }
}

impl<'a> Pages<'a> {
    /// The pages of `views`, numbered from `first` on.
    #[must_use]
    pub fn of(views: &'a TwoViews, first: PageId) -> Self {
        Self { views, first }
    }

    fn place(self, page: PageId) -> usize {
        (page.0 - self.first.0) as usize
    }

    /// The words of a page, by index. They are relaxed atomics: the program may write at the same
    /// time, and the runtime reads old words or new ones.
    fn words(self, page: usize) -> &'a [AtomicU32] {
        let offset = page * PAGE_BYTES;
        assert!(offset < self.views.bytes(), "the page lies in the memory");
        let address = ptr::with_exposed_provenance(self.views.runtime() + offset);
        // SAFETY: mapped readable and writable as long as the views live, aligned, and touched by
        // atomics alone from this view.
        unsafe { core::slice::from_raw_parts(address, WORDS_A_PAGE) }
    }

    /// The contents of a page.
    #[must_use]
    pub fn take(self, page: PageId) -> Contents {
        self.now(page)[..].into()
    }

    fn now(self, page: PageId) -> [u32; WORDS_A_PAGE] {
        let mut words = [0; WORDS_A_PAGE];
        self.views.read(self.place(page) * PAGE_BYTES, &mut words);
        words
    }

    /// Writes the contents of a page.
    ///
    /// # Panics
    /// They end beyond the memory.
    pub fn put(self, page: PageId, contents: &[u32]) {
        self.views.write(self.place(page) * PAGE_BYTES, contents);
    }

    /// Writes some words of a page.
    pub fn put_words(self, page: PageId, values: &[(u32, u32)]) {
        let words = self.words(self.place(page));
        for &(word, value) in values {
            words[word as usize].store(value, Ordering::Relaxed);
        }
    }

    /// Adds the words of a page that differ from `copy` to `found`, as index and value. Once
    /// `found` has more than `words_max` entries, returns the whole page instead; `found` is then
    /// incomplete.
    pub fn differing(
        self,
        page: PageId,
        copy: &[u32],
        words_max: usize,
        found: &mut Vec<(u32, u32)>,
    ) -> Option<Contents> {
        let words = self.now(page);
        for (chunk, (now, before)) in words.chunks(WIDE).zip(copy.chunks(WIDE)).enumerate() {
            // One pass without branches tells whether to look closer.
            let pairs = now.iter().zip(before);
            if pairs.fold(0, |seen, (now, before)| seen | now ^ before) == 0 {
                continue;
            }
            let pairs = now.iter().zip(before).enumerate();
            let differ = pairs.filter(|(_, (now, before))| now != before);
            found.extend(differ.map(|(place, (now, _))| ((chunk * WIDE + place) as u32, *now)));
            if found.len() > words_max {
                return Some(words[..].into());
            }
        }
        None
    }

    /// Makes pages exist that were never touched, by index.
    pub(super) fn make_exist(self, pages: Range<usize>) {
        for page in pages {
            self.words(page)[0].load(Ordering::Relaxed);
        }
    }
}
