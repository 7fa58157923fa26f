//! One suite for all ways to detect writes, and for forbidden accesses.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "support/memory.rs"]
mod memory;

use std::sync::Arc;

use kyocho_dsm::PageId;
use kyocho_dsm::watch::{Detection, Pages};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;
use memory::{Memory, PAGES};
use proptest::prelude::*;

impl Memory {
    /// Another region of the same watch, which starts with this page.
    fn beside(&self, first: u64) -> Self {
        let views = Arc::new(TwoViews::new(PAGES * PAGE_BYTES, None).unwrap());
        self.watch(|watch| watch.add(PageId(first), &views).unwrap());
        Self::of(PageId(first), views, self.state.watch.clone())
    }
}

/// Every way that the host permits, from the same beginning: all pages hidden.
fn all(test: &str, body: impl Fn(&Memory)) {
    for detection in Detection::ALL {
        if let Some(memory) = Memory::new(test, detection) {
            body(&memory);
        }
    }
}

#[test]
fn reading_fetches_and_is_no_write() {
    all("reading_fetches_and_is_no_write", |memory| {
        assert_eq!((memory.read(3, 7), memory.read(3, 8), memory.read(5, 0)), (103, 103, 105));
        assert_eq!(*memory.state.fetched.lock().unwrap(), [PageId(3), PageId(5)]);
        assert_eq!(memory.written(), [] as [u64; 0]);
    });
}

#[test]
fn a_written_page_is_reported_once_each_time_it_is_written() {
    all("a_written_page_is_reported_once_each_time_it_is_written", |memory| {
        memory.write(2, 1, 9);
        memory.write(2, 2, 9);
        memory.write(9, 0, 9);
        memory.read(4, 0);
        assert_eq!(memory.written(), [2, 9]);
        assert_eq!(memory.written(), [] as [u64; 0]);
        memory.write(2, 3, 9);
        memory.watch(|watch| watch.show(&[PageId(2), PageId(9)]).unwrap());
        assert_eq!(memory.written(), [] as [u64; 0], "shown again, it begins anew");
        memory.write(2, 3, 8);
        assert_eq!(memory.written(), [2]);
        assert_eq!((memory.read(2, 1), memory.read(2, 3), memory.read(2, 4)), (9, 8, 102));
    });
}

#[test]
fn differences_are_the_words_written() {
    all("differences_are_the_words_written", |memory| {
        memory.read(1, 0);
        let pages = Pages::of(&memory.views, PageId(0));
        let copy = pages.take(PageId(1));
        let last = PAGE_BYTES / 4 - 1;
        for word in [0, 31, 32, last] {
            memory.write(1, word, 5);
        }
        memory.write(1, 40, 101); // as it was
        let mut found = Vec::new();
        assert_eq!(pages.differing(PageId(1), &copy, 4, &mut found), None);
        assert_eq!(found, [(0, 5), (31, 5), (32, 5), (last as u32, 5)]);
        found.clear();
        assert!(
            pages.differing(PageId(1), &copy, 2, &mut found).is_some(),
            "there are more than two"
        );
        assert_eq!(found, [(0, 5), (31, 5), (32, 5)]);
    });
}

#[test]
fn a_hidden_page_is_fetched_again() {
    all("a_hidden_page_is_fetched_again", |memory| {
        memory.write(6, 0, 1);
        memory.watch(|watch| watch.hide(&[PageId(6)]).unwrap());
        assert_eq!(memory.written(), [] as [u64; 0], "what was hidden has nothing to tell");
        assert_eq!(memory.read(6, 0), 106);
        assert_eq!(memory.state.fetched.lock().unwrap().len(), 2);
    });
}

#[test]
fn an_open_page_is_written_unnoted_until_it_is_shown() {
    all("an_open_page_is_written_unnoted_until_it_is_shown", |memory| {
        memory.read(7, 0);
        memory.watch(|watch| watch.open(&[PageId(7), PageId(8)]).unwrap());
        memory.write(7, 0, 1);
        memory.write(8, 0, 2);
        assert_eq!(memory.written(), [] as [u64; 0]);
        assert_eq!(*memory.state.noted.lock().unwrap(), 0, "no fault");
        memory.watch(|watch| watch.show(&[PageId(7), PageId(8)]).unwrap());
        memory.write(8, 0, 3);
        assert_eq!(memory.written(), [8]);
        assert_eq!((memory.read(7, 0), memory.read(8, 0)), (1, 3));
    });
}

/// Far away, or right behind the first region.
#[test]
fn each_region_is_watched_as_the_first() {
    const FAR: u64 = 1 << 31;
    all("each_region_is_watched_as_the_first", |memory| {
        let (far, next) = (memory.beside(FAR), memory.beside(PAGES as u64));
        let last = PAGES - 1;
        memory.write(last, 0, 1);
        next.write(0, 0, 2);
        far.write(5, 0, 3);
        assert_eq!(far.read(6, 0), FAR as u32 + 106, "it was fetched by its number");
        assert_eq!(*far.state.fetched.lock().unwrap(), [PageId(FAR + 5), PageId(FAR + 6)]);
        let [at_last, behind] = [last as u64, PAGES as u64];
        assert_eq!(memory.written(), [at_last, behind, FAR + 5]);
        assert_eq!(memory.watch(|watch| watch.visible_count()), 4);
        // Their numbers are neighbours, their addresses are not.
        let both = [at_last, behind, behind + 1].map(PageId);
        memory.watch(|watch| watch.open(&both).unwrap());
        memory.write(last, 0, 4);
        next.write(1, 0, 5);
        assert_eq!(memory.written(), [] as [u64; 0]);
        memory.watch(|watch| watch.show(&both).unwrap());
        next.write(1, 1, 6);
        assert_eq!(memory.written(), [behind + 1]);
        memory.watch(|watch| watch.hide(&[PageId(FAR + 5)]).unwrap());
        assert!(memory.watch(|watch| !watch.is_visible(PageId(FAR + 5))));
        assert_eq!((memory.read(last, 0), next.read(1, 0)), (4, 5));
        assert_eq!(far.read(5, 0), FAR as u32 + 105, "it is fetched again");
        drop(next);
        memory.watch(|watch| watch.remove(PageId(behind)));
        far.write(6, 0, 7);
        assert_eq!(memory.written(), [FAR + 6]);
        let again = memory.beside(behind);
        assert_eq!(again.read(1, 0), behind as u32 + 101, "nothing is left of what was there");
    });
}

#[test]
fn only_scanning_has_no_fault_for_a_write() {
    all("only_scanning_has_no_fault_for_a_write", |memory| {
        memory.read(0, 0);
        memory.write(0, 0, 1);
        let faults = *memory.state.noted.lock().unwrap();
        let trapless = memory.watch(|watch| watch.detection()) == Detection::Scan;
        assert_eq!(faults, usize::from(!trapless));
    });
}

/// More intervals than any way is kept that is not worth it.
const LONG: u32 = 400;

#[test]
fn a_write_is_a_trap_where_asking_is_mostly_in_vain_until_there_are_many() {
    all("a_write_is_a_trap_where_asking_is_mostly_in_vain_until_there_are_many", |memory| {
        let noted = || *memory.state.noted.lock().unwrap();
        let nothing = [] as [u64; 0];
        for page in [2, 4, 9] {
            memory.read(page, 0);
        }
        (0..LONG).for_each(|_| assert_eq!(memory.written(), nothing));
        let before = noted();
        memory.write(2, 0, 1);
        memory.write(2, 1, 1);
        assert_eq!(noted(), before + 1, "the first write is a trap, the next is none");
        assert_eq!(memory.written(), [2]);
        memory.write(2, 0, 2);
        memory.write(4, 0, 2);
        memory.watch(|watch| watch.open(&[PageId(9)]).unwrap());
        memory.write(9, 0, 2);
        assert_eq!((noted(), memory.written()), (before + 3, vec![2, 4]));
        memory.watch(|watch| watch.hide(&[PageId(4)]).unwrap());
        memory.write(4, 0, 3);
        assert_eq!(memory.state.fetched.lock().unwrap().last(), Some(&PageId(4)));
        assert_eq!(memory.written(), [4]);
        for round in 0..LONG {
            memory.write(2, 0, round);
            memory.write(5, 0, round);
            assert_eq!(memory.written(), [2, 5]);
        }
        let before = noted();
        memory.write(5, 0, LONG);
        memory.write(4, 0, LONG);
        memory.write(9, 0, LONG);
        let trapless = memory.watch(|watch| watch.detection()) == Detection::Scan;
        assert_eq!(noted(), before + if trapless { 0 } else { 2 });
        assert_eq!((memory.written(), memory.written()), (vec![4, 5], vec![]));
    });
}

/// A page that is written between the questions that change the way.
#[test]
fn nothing_is_forgotten_as_the_way_changes() {
    all("nothing_is_forgotten_as_the_way_changes", |memory| {
        for asked in 0..LONG {
            // An open page separates the watched pages.
            memory.watch(|watch| watch.open(&[PageId(3)]).unwrap());
            memory.write(3, 0, asked);
            let expected: &[u64] = if asked % 8 == 0 { &[1, 7] } else { &[] };
            expected.iter().for_each(|page| memory.write(*page as usize, 0, asked));
            assert_eq!(memory.written(), expected, "{asked}");
        }
    });
}

/// Another thread writes to each page once, while the asking thread reaches the change of its way.
#[test]
fn a_write_in_the_middle_of_a_change_is_reported() {
    for attempt in 0..300_usize {
        let name = "a_write_in_the_middle_of_a_change_is_reported";
        let Some(memory) = Memory::new(name, Detection::Scan) else { return };
        for page in 0..PAGES {
            memory.read(page, 0);
        }
        let mut reported = Vec::new();
        (0..LONG / 2).for_each(|_| reported.append(&mut memory.written()));
        std::thread::scope(|scope| {
            let write = |page| {
                (0..attempt * 8).for_each(|_| core::hint::spin_loop());
                memory.write(page, 1, 5);
            };
            let writer = scope.spawn(move || (0..PAGES).for_each(write));
            while !writer.is_finished() {
                reported.append(&mut memory.written());
            }
        });
        reported.append(&mut memory.written());
        // Some are reported twice, if the question came between the fault and the write.
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(reported, (0..PAGES as u64).collect::<Vec<_>>(), "attempt {attempt}");
    }
}

#[test]
fn names_are_those_of_the_ways() {
    for detection in Detection::ALL {
        assert_eq!(detection.to_string().parse(), Ok(detection));
    }
    let unknown = "magic".parse::<Detection>().unwrap_err();
    assert!(unknown.to_string().contains("magic"));
}

/// What a program and its runtime do to a page.
#[derive(Debug, Clone)]
enum Step {
    Read(usize),
    Write(usize),
    Show(Vec<usize>),
    Hide(usize),
    Open(usize),
    Ask,
    AskForLong,
    WriteForLong(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..PAGES;
    prop_oneof![
        page.clone().prop_map(Step::Read),
        page.clone().prop_map(Step::Write),
        page.clone().prop_map(Step::Write),
        prop::collection::btree_set(page.clone(), 1..6)
            .prop_map(|pages| Step::Show(pages.into_iter().collect())),
        page.clone().prop_map(Step::Hide),
        page.clone().prop_map(Step::Open),
        Just(Step::Ask),
        Just(Step::AskForLong),
        page.prop_map(Step::WriteForLong),
    ]
}

/// Written pages are reported.
fn clear_written(model: &mut [Option<(bool, bool)>]) {
    for state in model.iter_mut().filter(|state| **state == Some((true, true))) {
        *state = Some((true, false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn all_ways_tell_the_same(steps in prop::collection::vec(step(), 1..60)) {
        for detection in Detection::ALL {
            let Some(memory) = Memory::new("all_ways_tell_the_same", detection) else { continue };
            // By page: `None` if hidden, otherwise whether it was written since it was shown. Open
            // pages are never reported.
            let mut model: [Option<(bool, bool)>; PAGES] = [None; PAGES];
            let mut value = 1000;
            for step in &steps {
                match step {
                    Step::Read(page) => {
                        memory.read(*page, 0);
                        model[*page] = model[*page].or(Some((true, false)));
                    }
                    Step::Write(page) => {
                        value += 1;
                        memory.write(*page, 1, value);
                        let (watched, written) = model[*page].unwrap_or((true, false));
                        model[*page] = Some((watched, written || watched));
                        prop_assert_eq!(memory.read(*page, 1), value);
                    }
                    Step::Show(pages) => {
                        let pages: Vec<_> = pages.iter().map(|page| PageId(*page as u64)).collect();
                        memory.watch(|watch| watch.show(&pages).unwrap());
                        pages.iter().for_each(|page| model[page.0 as usize] = Some((true, false)));
                    }
                    Step::Hide(page) => {
                        memory.watch(|watch| watch.hide(&[PageId(*page as u64)]).unwrap());
                        model[*page] = None;
                    }
                    Step::Open(page) => {
                        memory.watch(|watch| watch.open(&[PageId(*page as u64)]).unwrap());
                        model[*page] = Some((false, false));
                    }
                    Step::WriteForLong(page) => {
                        memory.watch(|watch| watch.show(&[PageId(*page as u64)]).unwrap());
                        memory.written();
                        for value in 0..LONG {
                            memory.write(*page, 2, value);
                            prop_assert_eq!(memory.written(), [*page as u64]);
                        }
                        clear_written(&mut model);
                        model[*page] = Some((true, false));
                    }
                    Step::AskForLong => {
                        memory.written();
                        (0..LONG).for_each(|_| assert_eq!(memory.written(), [] as [u64; 0]));
                        clear_written(&mut model);
                    }
                    Step::Ask => {
                        let expected: Vec<u64> = (0..PAGES)
                            .filter(|page| model[*page] == Some((true, true)))
                            .map(|page| page as u64)
                            .collect();
                        prop_assert_eq!(memory.written(), expected);
                        clear_written(&mut model);
                    }
                }
            }
        }
    }
}
