use std::collections::HashSet;

use proptest::prelude::*;

use super::{FreeLists, MAGAZINE};
use crate::record::Record;
use crate::schedule::mask;

fn address(record: &'static Record) -> usize {
    core::ptr::from_ref(record).addr()
}

/// Who is taken is nobody's until it is put back, whatever the order and whoever does it.
fn nobody_is_given_twice(class: u8, moves: &[Move]) {
    let section = mask();
    let lists = [FreeLists::new(), FreeLists::new()];
    let mut taken: Vec<&'static Record> = Vec::new();
    let mut given = HashSet::new();
    for &Move { takes, list, times } in moves {
        for _ in 0..times {
            if takes {
                let record = lists[list].take(class).expect("there is memory");
                assert!(given.insert(address(record)), "given twice");
                taken.push(record);
            } else if let Some(record) = taken.pop() {
                given.remove(&address(record));
                lists[list].put(record);
            }
        }
    }
    taken.into_iter().for_each(|record| lists[0].put(record));
    lists.iter().for_each(FreeLists::give_all_back);
    section.leave();
}

/// So many in a row, at one virtual processor.
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
        // Of a size that no other test uses.
        nobody_is_given_twice(2, &moves);
    }
}

#[test]
fn whoever_spawns_here_and_ends_there_needs_no_more_and_more() {
    let section = mask();
    let (here, there) = (FreeLists::new(), FreeLists::new());
    let mut seen = HashSet::new();
    for _ in 0..100 * MAGAZINE {
        let record = here.take(3).expect("there is memory");
        seen.insert(address(record));
        there.put(record);
    }
    here.give_all_back();
    there.give_all_back();
    section.leave();
    // Two magazines here and two there, and one on the way.
    assert!(seen.len() <= 5 * MAGAZINE as usize, "{}", seen.len());
}
