use std::collections::HashSet;

use proptest::prelude::*;

use kyocho_sys::memory::PAGE_BYTES;

use super::{CLASSES, FreeLists, MAGAZINE, WARM_MAX, shrink};
use crate::processor::record::Record;
use crate::schedule::mask;

fn address(record: &'static Record) -> usize {
    core::ptr::from_ref(record).addr()
}

/// A slot that was taken is not given out again until it is put back, in any order and by any
/// virtual processor.
fn slots_are_given_out_once(class: u8, moves: &[Move]) {
    let section = mask();
    let lists = [FreeLists::new(), FreeLists::new()];
    let mut taken: Vec<&'static Record> = Vec::new();
    let mut given = HashSet::new();
    for &Move { takes, list, times } in moves {
        for _ in 0..times {
            if takes {
                let record = lists[list].take(class).expect("there is memory");
                assert!(given.insert(address(record)), "a slot was given out twice");
                taken.push(record);
            } else if let Some(record) = taken.pop() {
                given.remove(&address(record));
                let _surplus = lists[list].put(record);
            }
        }
    }
    taken.into_iter().for_each(|record| {
        let _surplus = lists[0].put(record);
    });
    lists.iter().for_each(FreeLists::give_all_back);
    section.leave();
}

/// This many takes or puts in a row, at one virtual processor.
#[derive(Debug, Clone)]
struct Move {
    takes: bool,
    list: usize,
    times: u32,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (any::<bool>(), 0..2_usize, 0..4 * MAGAZINE);
    prop::collection::vec(one.prop_map(|(takes, list, times)| Move { takes, list, times }), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn nobody_is_given_to_two(moves in moves()) {
        // Of a class that no other test uses.
        slots_are_given_out_once(2, &moves);
    }
}

#[test]
fn spawning_here_and_ending_there_needs_bounded_slots() {
    let section = mask();
    let (here, there) = (FreeLists::new(), FreeLists::new());
    let mut seen = HashSet::new();
    for _ in 0..100 * MAGAZINE {
        let record = here.take(3).expect("there is memory");
        seen.insert(address(record));
        let _surplus = there.put(record);
    }
    here.give_all_back();
    there.give_all_back();
    section.leave();
    // Two magazines here, two there, and one in the depot.
    assert!(seen.len() <= 5 * MAGAZINE as usize, "{}", seen.len());
}

/// Whether the page at `address` occupies memory.
#[expect(unsafe_code, reason = "asks the host about a page")]
fn is_resident(address: *mut u8) -> bool {
    let mut answer = 0;
    // SAFETY: writes one byte for one page.
    let asked = unsafe { libc::mincore(address.cast(), PAGE_BYTES, &raw mut answer) };
    assert_eq!(asked, 0);
    answer & 1 != 0
}

/// A page in the middle of the stack.
fn page(record: &'static Record) -> *mut u8 {
    record.slot.get().wrapping_add(PAGE_BYTES * 8)
}

#[test]
#[expect(unsafe_code, reason = "touches a page of a stack")]
fn stacks_go_back_to_the_host_after_a_peak() {
    // Of a class of which no other test uses so many.
    const CLASS: u8 = CLASSES as u8 - 2;
    let bound = (WARM_MAX[usize::from(CLASS)] + 4) * MAGAZINE;
    let peak = 4 * bound;
    let lists = FreeLists::new();
    let section = mask();
    let all: Vec<_> = (0..peak).map(|_| lists.take(CLASS).expect("there is memory")).collect();
    for record in &all {
        // SAFETY: the slot belongs to this test, and the page is in its stack.
        unsafe { page(record).write_volatile(1) };
    }
    all.iter().for_each(|record| {
        let _surplus = lists.put(record);
    });
    lists.give_all_back();
    section.leave();
    shrink();
    let resident = all.iter().filter(|record| is_resident(page(record))).count();
    assert!(resident <= bound as usize, "{resident} of {peak} stacks occupy memory");
    // The slots can be used again.
    let section = mask();
    let again: Vec<_> = (0..peak).map(|_| lists.take(CLASS).expect("there is memory")).collect();
    for record in &again {
        // SAFETY: as above.
        unsafe { page(record).write_volatile(2) };
        let _surplus = lists.put(record);
    }
    lists.give_all_back();
    section.leave();
}
