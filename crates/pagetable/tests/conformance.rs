//! Conformance of every table with an ordered map: the same operations give the same answers, in
//! dense and sparse spaces and at both ends of the 64-bit range.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use kyocho_pagetable::{
    BLOCK_PAGES, BlockNumber, Clustered, ClusteredLine, FrameNumber, Guarded, Hashed, LineSet,
    Linear, MapError, PageNumber, PageTable, Radix, Rights, Translation,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Operation {
    Map(PageNumber, FrameNumber, Rights),
    MapBlock(BlockNumber, FrameNumber, Rights, u16),
    Unmap(PageNumber),
    UnmapRange(PageNumber, PageNumber),
    Protect(PageNumber, PageNumber, Rights),
    Promote(BlockNumber),
    Demote(BlockNumber),
}

fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("52 bits")
}

fn frame(number: u64) -> FrameNumber {
    FrameNumber::new(number).expect("43 bits")
}

/// Pages that often collide: few blocks, near each other, far apart, and at both ends of the
/// table's range.
fn pages(reach: RangeInclusive<PageNumber>) -> impl Strategy<Value = PageNumber> {
    let (first, last) = (reach.start().get(), reach.end().get());
    let spread = ((last - first) / 8) & !0xF;
    prop_oneof![
        4 => (0..64_u64).prop_map(move |offset| page(first + offset)),
        2 => (0..64_u64).prop_map(move |offset| page(last - offset)),
        2 => (0..8_u64, 0..32_u64).prop_map(move |(far, near)| page(first + far * spread + near)),
        1 => (first..=last).prop_map(page),
    ]
}

fn rights() -> impl Strategy<Value = Rights> {
    prop_oneof![Just(Rights::READ), Just(Rights::READ | Rights::WRITE), Just(Rights::NONE)]
}

fn operations(reach: RangeInclusive<PageNumber>) -> impl Strategy<Value = Operation> {
    let near = || pages(reach.clone());
    // Frames that make promotion possible: few runs, at the index of the page.
    let placed = (near(), 0..2_u64, rights())
        .prop_map(|(page, run, rights)| (page, frame(run * 16 + page.get() % 16), rights));
    let any_frame = prop_oneof![Just(FrameNumber::LAST), (0..1000_u64).prop_map(frame)];
    prop_oneof![
        6 => placed.prop_map(|(page, frame, rights)| Operation::Map(page, frame, rights)),
        2 => (near(), any_frame, rights()).prop_map(|(p, f, r)| Operation::Map(p, f, r)),
        2 => (near(), 0..3_u64, rights(), prop_oneof![Just(u16::MAX), any::<u16>()])
            .prop_map(|(p, run, r, mask)| Operation::MapBlock(p.block(), frame(run * 16), r, mask)),
        4 => near().prop_map(Operation::Unmap),
        1 => (near(), near()).prop_map(|(a, b)| Operation::UnmapRange(a.min(b), a.max(b))),
        2 => (near(), near(), rights())
            .prop_map(|(a, b, r)| Operation::Protect(a.min(b), a.max(b), r)),
        2 => near().prop_map(|page| Operation::Promote(page.block())),
        1 => near().prop_map(|page| Operation::Demote(page.block())),
    ]
}

type Model = BTreeMap<PageNumber, Translation>;

/// Whether the pages of a block can be compact, by the definition.
fn can_be_compact(model: &Model, block: BlockNumber) -> bool {
    let all: Vec<_> = model.range(block.page(0)..=block.page(BLOCK_PAGES - 1)).collect();
    let Some((_, first)) = all.first() else { return false };
    all.iter().all(|(page, held)| {
        held.rights == first.rights
            && held.frame.run_start() == first.frame.run_start()
            && held.frame.index_in_run() == page.index_in_block()
    })
}

/// Does one operation on table and model, and compares their answers.
fn apply<T: PageTable>(table: &mut T, model: &mut Model, operation: &Operation) {
    match *operation {
        Operation::Map(page, frame, rights) => {
            let old = model.insert(page, Translation { frame, rights });
            assert_eq!(table.map(page, frame, rights), Ok(old));
        }
        Operation::MapBlock(block, first, rights, mask) => {
            table.map_block(block, first, rights, mask).expect("in reach");
            for index in 0..BLOCK_PAGES {
                model.remove(&block.page(index));
                if mask >> index & 1 == 1 {
                    let frame = frame(first.get() + index as u64);
                    model.insert(block.page(index), Translation { frame, rights });
                }
            }
        }
        Operation::Unmap(page) => assert_eq!(table.unmap(page), model.remove(&page)),
        Operation::UnmapRange(first, last) => {
            let before = model.len();
            model.retain(|page, _| !(first..=last).contains(page));
            assert_eq!(table.unmap_range(first..=last), before - model.len());
        }
        Operation::Protect(first, last, rights) => {
            let meant = model.range_mut(first..=last).map(|(_, held)| held.rights = rights).count();
            assert_eq!(table.protect_range(first..=last, rights), Ok(meant));
        }
        Operation::Promote(block) => {
            let compact = table.promote(block);
            assert_eq!(compact, can_be_compact(model, block), "promotion of {block:?}");
            assert_eq!(table.read(block).as_compact().is_some(), compact);
        }
        Operation::Demote(block) => {
            table.demote(block).expect("there is room");
            assert_eq!(table.read(block).as_compact(), None);
        }
    }
}

fn check_all<T: PageTable>(table: &T, model: &Model) {
    let mut held = Vec::new();
    table.for_each(table.reach(), |page, translation| held.push((page, translation)));
    let expected: Vec<_> = model.iter().map(|(&page, &translation)| (page, translation)).collect();
    assert_eq!(held, expected);
    for (&page, &translation) in model {
        assert_eq!(table.lookup(page), Some(translation));
        let mut lines = LineSet::default();
        let entry = table.walk(page, &mut lines);
        assert_eq!(entry.frame_at(page.index_in_block()), Some(translation.frame));
        assert!(lines.count() > 0, "a walk must read a cache line");
        if entry.is_compact() {
            let block = table.read(page.block());
            assert_eq!(entry.mask(), block.mask(), "the mask of {page}");
        }
    }
}

fn conforms<T: PageTable>(new: impl Fn() -> T) {
    let reach = new().reach();
    let cases = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    let sequences = proptest::collection::vec(operations(reach.clone()), 1..120);
    let looks = proptest::collection::vec(pages(reach.clone()), 20);
    proptest!(cases, |(sequence in sequences, looks in looks)| {
        let (mut table, mut model) = (new(), Model::new());
        let bytes_at_first = table.bytes();
        for operation in &sequence {
            apply(&mut table, &mut model, operation);
        }
        check_all(&table, &model);
        for page in looks {
            assert_eq!(table.lookup(page), model.get(&page).copied());
        }
        assert_eq!(table.unmap_range(reach.clone()), model.len());
        check_all(&table, &Model::new());
        // The array of a linear table stays backed by memory.
        if core::any::type_name::<T>() != core::any::type_name::<Linear>() {
            assert_eq!(table.bytes(), bytes_at_first, "memory is not freed");
        }
    });
}

#[test]
fn linear_table_conforms() {
    conforms(|| Linear::new(&(page(0x10_0000)..=page(0x10_3fff))));
}

#[test]
fn radix_tree_of_four_levels_conforms() {
    conforms(Radix::<4>::new);
}

#[test]
fn radix_tree_of_six_levels_conforms() {
    conforms(Radix::<6>::new);
}

#[test]
fn hashed_table_conforms() {
    conforms(Hashed::new);
}

#[test]
fn clustered_tables_conform() {
    conforms(Clustered::<4>::new);
    conforms(Clustered::<8>::new);
    conforms(Clustered::<16>::new);
}

#[test]
fn clustered_table_of_lines_conforms() {
    conforms(ClusteredLine::new);
}

#[test]
fn guarded_table_conforms() {
    conforms(Guarded::new);
}

/// Makes thousands of mappings, so that the table grows many times.
fn grows<T: PageTable>(mut table: T) {
    let mut model = Model::new();
    let mut number = 1_u64;
    for count in 0..20_000 {
        // Islands of a few pages each, anywhere.
        if count % 23 == 0 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        }
        let reach = table.reach().end().get() - table.reach().start().get() + 1;
        let page = page(table.reach().start().get() + ((number >> 12) + count % 23) % reach);
        apply(&mut table, &mut model, &Operation::Map(page, frame(count), Rights::READ));
    }
    check_all(&table, &model);
    let doomed: Vec<_> = model.keys().copied().step_by(3).collect();
    for page in doomed {
        apply(&mut table, &mut model, &Operation::Unmap(page));
    }
    check_all(&table, &model);
}

#[test]
fn tables_grow() {
    grows(Linear::new(&(page(1 << 30)..=page((1 << 30) + (1 << 20) - 1))));
    grows(Radix::<4>::new());
    grows(Radix::<6>::new());
    grows(Hashed::new());
    grows(Clustered::<4>::new());
    grows(Clustered::<16>::new());
    grows(ClusteredLine::new());
    grows(Guarded::new());
}

#[test]
fn pages_out_of_reach_are_refused_and_named() {
    let beyond = page(1 << 36);
    let mut radix = Radix::<4>::new();
    assert_eq!(radix.map(beyond, frame(1), Rights::READ), Err(MapError::OutOfReach(beyond)));
    assert_eq!(radix.lookup(beyond), None);
    assert_eq!(radix.read(beyond.block()).mask(), 0);
    let mut linear = Linear::new(&(page(32)..=page(63)));
    let before = page(16);
    assert_eq!(linear.map(before, frame(1), Rights::READ), Err(MapError::OutOfReach(before)));
    assert_eq!(linear.lookup(page(31)), None);
    assert_eq!(linear.lookup(page(64)), None);
}

#[test]
fn block_is_refused_unless_its_frame_starts_a_run() {
    let mut table = ClusteredLine::new();
    let refused = table.map_block(page(0).block(), frame(8), Rights::READ, u16::MAX);
    assert_eq!(refused, Err(MapError::Misaligned(frame(8))));
    assert_eq!(table.lookup(page(0)), None);
}
