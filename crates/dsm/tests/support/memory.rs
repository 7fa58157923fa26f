//! A watched memory that a test accesses like a program.
#![expect(unsafe_code, reason = "touches pages that fault")]

use std::sync::{Arc, Mutex};

use kyocho_dsm::PageId;
use kyocho_dsm::watch::{Answer, Detection, Fault, Faulting, Guarded, Watch};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::skip::skip;
use kyocho_sys::two_views::TwoViews;

pub(crate) const PAGES: usize = 16;

/// Shows absent pages like a node that fetches them, and counts.
pub(crate) struct Fetching {
    first: PageId,
    pub(crate) watch: Arc<Mutex<Watch>>,
    pub(crate) fetched: Mutex<Vec<PageId>>,
    pub(crate) noted: Mutex<usize>,
}

impl Faulting for Fetching {
    fn fault(&self, offset: usize) -> Answer {
        let page = PageId(self.first.0 + (offset / PAGE_BYTES) as u64);
        let mut watch = self.watch.lock().unwrap();
        match watch.fault(page).unwrap() {
            Fault::Absent => {
                watch.at(page).put(page, &vec![page.0 as u32 + 100; PAGE_BYTES / 4]);
                watch.show(&[page]).unwrap();
                self.fetched.lock().unwrap().push(page);
            }
            Fault::Noted => *self.noted.lock().unwrap() += 1,
        }
        Answer::Again
    }
}

pub(crate) struct Memory {
    pub(crate) views: Arc<TwoViews>,
    pub(crate) state: Arc<Fetching>,
    _guarded: Guarded,
}

impl Memory {
    pub(crate) fn new(test: &str, detection: Detection) -> Option<Self> {
        let views = Arc::new(TwoViews::new(PAGES * PAGE_BYTES, None).unwrap());
        let watch = match Watch::new(&views, detection) {
            Ok(watch) => Arc::new(Mutex::new(watch)),
            Err(why) => {
                skip(&format!("{test} ({detection})"), &why.to_string());
                return None;
            }
        };
        Some(Self::of(PageId(0), views, watch))
    }

    pub(crate) fn of(first: PageId, views: Arc<TwoViews>, watch: Arc<Mutex<Watch>>) -> Self {
        let (fetched, noted) = (Mutex::default(), Mutex::default());
        let state = Arc::new(Fetching { first, watch, fetched, noted });
        let guarded = Guarded::new(views.program(), views.bytes(), state.clone()).unwrap();
        Self { views, state, _guarded: guarded }
    }

    fn word(&self, page: usize, word: usize) -> *mut u32 {
        let address = self.views.program() + page * PAGE_BYTES + word * 4;
        core::ptr::with_exposed_provenance_mut(address)
    }

    pub(crate) fn read(&self, page: usize, word: usize) -> u32 {
        // SAFETY: mapped, aligned, this thread's alone; where it may not be read, the handler sees
        // to it.
        unsafe { self.word(page, word).read_volatile() }
    }

    pub(crate) fn write(&self, page: usize, word: usize, value: u32) {
        // SAFETY: as above.
        unsafe { self.word(page, word).write_volatile(value) }
    }

    pub(crate) fn watch<T>(&self, act: impl FnOnce(&mut Watch) -> T) -> T {
        act(&mut self.state.watch.lock().unwrap())
    }

    pub(crate) fn written(&self) -> Vec<u64> {
        self.watch(|watch| watch.take_written().unwrap()).into_iter().map(|page| page.0).collect()
    }
}
