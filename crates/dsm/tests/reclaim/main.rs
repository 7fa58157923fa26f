//! Pages that the host reclaims while a program works: writes to them are reported.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(unsafe_code, reason = "asks the host to reclaim pages")]

mod group;
#[path = "../support/memory.rs"]
mod memory;

use std::path::Path;
use std::process::{Command, Stdio};

use group::Group;
use kyocho_dsm::PageId;
use kyocho_dsm::watch::Detection;
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::pagemap::PageMap;
use kyocho_sys::scheduling::{self, CpuSet};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;
use memory::Memory;

/// Pages in use; the first of them are written.
const USED: usize = 8;
const WRITTEN: [u64; 4] = [0, 1, 2, 3];

/// The group that the child of a test enters.
const GROUP: &str = "KYOCHO_TEST_GROUP";

impl Memory {
    fn reads_all(&self) {
        for page in 0..USED {
            self.read(page, 0);
        }
    }

    /// Reads all pages, and writes to some.
    fn work(&self) {
        self.reads_all();
        WRITTEN.iter().for_each(|page| self.write(*page as usize, 1, 5));
    }

    /// Makes the host reclaim a page from all views. Returns whether it did. The host spares a page
    /// that two page tables map, so each view is paged out while the other does not map the page.
    fn page_out(&self, page: usize) -> bool {
        let (program, runtime) = (self.views.program(), self.views.runtime());
        advise(runtime, page, libc::MADV_DONTNEED);
        advise(program, page, libc::MADV_PAGEOUT);
        // Maps the page in the runtime's view only.
        self.views.read(page * PAGE_BYTES, &mut [0]);
        advise(runtime, page, libc::MADV_PAGEOUT);
        self.are_out(&[page])
    }

    /// Whether none of these pages is mapped in the program's view.
    fn are_out(&self, pages: &[usize]) -> bool {
        let map = PageMap::open().unwrap();
        let entry = |page: &usize| map.entry(self.views.program() + page * PAGE_BYTES).unwrap();
        pages.iter().all(|page| !entry(page).present)
    }
}

fn advise(view: usize, page: usize, advice: i32) {
    let address = core::ptr::with_exposed_provenance_mut(view + page * PAGE_BYTES);
    // SAFETY: one page of our own mapping of a file, whose contents stay.
    let answer = unsafe { libc::madvise(address, PAGE_BYTES, advice) };
    assert_eq!(answer, 0, "madvise: {}", std::io::Error::last_os_error());
}

/// A program works, `reclaim` makes the host reclaim pages and returns whether it did, and the
/// program reads the pages again: all writes are reported.
fn check(test: &str, memory: &Memory, reclaim: impl Fn(&[usize]) -> bool) {
    let used: Vec<usize> = (0..USED).collect();
    memory.work();
    if !reclaim(&used) {
        return skip(
            test,
            "this host reclaimed no shared memory: it has no swap, or spares what was just used",
        );
    }
    memory.reads_all();
    // A trap cannot distinguish a read of a reclaimed page from a write, and counts it as a write.
    let exact = memory.watch(|watch| watch.detection()) == Detection::Scan;
    let written = memory.written();
    assert!(written.starts_with(&WRITTEN) && (written.len() == 4 || !exact), "{written:?}");
    assert_eq!(memory.written(), [] as [u64; 0]);
    memory.write(5, 0, 1);
    reclaim(&[5]);
    assert_eq!(memory.written(), [5], "the question comes before the next access");
    reclaim(&[5]);
    memory.read(5, 0);
    let again = memory.written();
    assert!(!exact || again.is_empty(), "it was reported already: {again:?}");
    memory.write(6, 0, 1);
    reclaim(&[6]);
    memory.read(6, 0);
    memory.watch(|watch| watch.show(&[PageId(6)]).unwrap());
    assert_eq!(memory.written(), [] as [u64; 0], "shown again, it begins anew");
    assert_eq!((memory.read(3, 1), memory.read(5, 0), memory.read(6, 0)), (5, 1, 1));
}

/// A page that was hidden from the program stays hidden when the host swaps it out.
fn check_hidden(memory: &Memory, reclaim: impl Fn(&[usize])) {
    for page in [2, 4] {
        memory.read(page, 0);
        memory.write(page, 0, 7);
    }
    memory.watch(|watch| watch.hide(&[PageId(2), PageId(4)]).unwrap());
    reclaim(&[2, 4]);
    let fetched = || memory.state.fetched.lock().unwrap().len();
    let before = fetched();
    assert_eq!((memory.read(2, 0), memory.read(4, 0)), (102, 104), "what was fetched");
    assert_eq!(fetched(), before + 2);
    memory.written();
    memory.write(4, 0, 9);
    assert_eq!((memory.read(4, 0), memory.written()), (9, vec![4]));
}

fn has_swap() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

/// Every way that the host permits, from the same beginning: all pages hidden.
fn all(test: &str, body: impl Fn(&str, &Memory)) {
    for detection in Detection::ALL {
        if let Some(memory) = Memory::new(test, detection) {
            body(&format!("{test} ({detection})"), &memory);
        }
    }
}

#[test]
fn a_written_page_that_was_paged_out_of_all_views_is_reported() {
    all("a_written_page_that_was_paged_out_of_all_views_is_reported", |test, memory| {
        check(test, memory, |pages| pages.iter().all(|page| memory.page_out(*page)));
    });
}

#[test]
fn a_hidden_page_stays_hidden_when_it_is_swapped_out() {
    let test = "a_hidden_page_stays_hidden_when_it_is_swapped_out";
    if !has_swap() {
        skip(test, "this host has no swap");
    }
    all(test, |_, memory| {
        check_hidden(memory, |pages| {
            for page in pages {
                advise(memory.views.runtime(), *page, libc::MADV_PAGEOUT);
            }
        });
    });
}

#[test]
fn a_written_page_that_a_memory_limit_had_reclaimed_is_reported() {
    let test = "a_written_page_that_a_memory_limit_had_reclaimed_is_reported";
    let group = match Group::new("kyocho-reclaim") {
        Ok(group) => group,
        Err(why) => return skip(test, &why),
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture", "--quiet"]).env(GROUP, group.folder());
    assert!(child.stdin(Stdio::null()).status().unwrap().success());
}

/// The work of a process in a group. Does nothing if no test has named a group.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(GROUP) else { return };
    let test = "a_written_page_that_a_memory_limit_had_reclaimed_is_reported";
    let group = Group::existing(Path::new(&folder)).unwrap();
    if let Err(why) = group.enter() {
        return skip(test, &why);
    }
    // New pages of one CPU are in one batch.
    let one = CpuSet::single(scheduling::current_cpu());
    scheduling::set_affinity(ThreadId::current(), &one).unwrap();
    all(test, |test, memory| {
        check(test, memory, |pages| group.squeeze(|| memory.are_out(pages)));
        check_hidden(memory, |_| _ = group.squeeze(|| false));
    });
}
