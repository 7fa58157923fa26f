//! Regions far apart in a space of 2^64 bytes, on real pages, created at run time by nodes and by
//! their threads.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::{
    BarrierKind, Dsm, DsmError, Error, LockId, Mode, NodeId, NodeThread, PageId, Placement,
    PlacementError, REGIONS_MAX, RegionDifference, RegionFailure, RegionSettings, Scheme,
    SharedArray,
};
use kyocho_sys::memory::PAGE_BYTES;

#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/permitted.rs"]
mod permitted;
use nodes::{MESSAGE_BYTES_MAX, everywhere, local, on_nodes, tcp};
use permitted::permitted;

const LOCK: LockId = LockId(1);
/// Distance between regions, in bytes.
const APART: u64 = 1 << 45;

fn at(address: u64, pages: usize) -> RegionSettings {
    RegionSettings { address: Some(address), ..RegionSettings::of(pages * PAGE_BYTES) }
}

/// Counts under a lock in an array of each of three regions, and writes an own page in each.
/// Returns what the node sees at the end.
fn count_everywhere(mut dsm: Dsm) -> Vec<u64> {
    let near = dsm.allocate::<u64>(4 * 512, Placement::Cyclic).unwrap();
    let far = dsm.region(at(APART, 8)).unwrap();
    let blocks = RegionSettings { placement: Placement::Blocks, ..at(2 * APART, 8) };
    let farther = dsm.region(blocks).unwrap();
    assert_eq!((far.number(), far.address(), farther.address()), (1, APART, 2 * APART));
    let arrays = [near, dsm.array(far, 4 * 512).unwrap(), dsm.array(farther, 4 * 512).unwrap()];
    assert_eq!(arrays[2].pages(512..1024), [PageId(2 * APART / 4096 + 1)]);
    let me = usize::from(dsm.rank());
    for round in 0..20 {
        dsm.acquire(LOCK, Mode::Exclusive).unwrap();
        for array in &arrays {
            let cell = &dsm.cells(array)[3];
            cell.set(cell.get() + round);
        }
        dsm.release(LOCK).unwrap();
    }
    for kind in [BarrierKind::Ordinary, BarrierKind::SingleReadWrite, BarrierKind::SingleReadWrite]
    {
        for array in &arrays {
            let cell = &dsm.cells(array)[(me + 1) * 512];
            cell.set(cell.get() + me as u64 + 1);
        }
        dsm.barrier(kind).unwrap();
    }
    let pages = dsm.pages_at(dsm.addresses(farther)).unwrap();
    let first = 2 * APART / 4096;
    assert_eq!(pages, (first..first + 8).map(PageId).collect::<Vec<_>>(), "all of its pages");
    dsm.move_page(pages[3], NodeId(0)).unwrap();
    dsm.barrier(BarrierKind::Ordinary).unwrap();
    pages.iter().for_each(|page| dsm.fetch(*page).unwrap());
    let places = [3, 512, 1024, 1536];
    let cells = arrays.iter().flat_map(|array| places.map(|place| dsm.cells(array)[place].get()));
    let seen = cells.collect();
    dsm.leave().unwrap();
    seen
}

#[test]
fn objects_in_regions_far_apart_are_shared_as_those_in_the_first() {
    let test = "objects_in_regions_far_apart_are_shared_as_those_in_the_first";
    everywhere(test, 3, count_everywhere, |seen| {
        let one = [3 * (0..20).sum::<u64>(), 3, 6, 9];
        assert_eq!(seen, vec![[one; 3].concat(); 3]);
    });
}

/// The message of a refusal.
fn said<T: core::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_impossible_region_is_named_on_all_nodes_and_the_program_continues() {
    let program = |mut dsm: Dsm| {
        let misplaced = |why: Error, expected| match why {
            Error::Protocol(DsmError::Misplaced(_, why)) => assert_eq!(why, expected),
            other => panic!("{other}"),
        };
        let first = dsm.first_region();
        let end = first.address() + first.bytes() as u64;
        misplaced(dsm.region(at(end - 4096, 2)).unwrap_err(), PlacementError::Overlap);
        misplaced(dsm.region(at(APART, 0)).unwrap_err(), PlacementError::Empty);
        misplaced(dsm.region(at(u64::MAX - 4095, 2)).unwrap_err(), PlacementError::Beyond);
        misplaced(dsm.region(RegionSettings::of(usize::MAX)).unwrap_err(), PlacementError::Beyond);
        let odd = "the address of a region must be a multiple of 4096, and 0x200000000001 is not";
        assert_eq!(said(dsm.region(at(APART + 1, 1))), odd);
        let nowhere = RegionSettings { placement: Placement::On(NodeId(3)), ..at(APART, 1) };
        assert_eq!(said(dsm.region(nowhere)), "node 3 is outside of the layout");
        // The address space is as large.
        let large = said(dsm.region(at(APART, 1 << 33)));
        assert!(large.contains("cannot create a region of 35184372088832 bytes"), "{large}");
        assert!(large.contains("Cannot allocate memory"), "{large}");
        // The address is in use on node 1 only.
        let here = (dsm.rank() == 1).then(|| dsm.addresses(first).start);
        let taken = said(dsm.region(RegionSettings { here, ..at(APART, 4) }));
        assert!(taken.starts_with("node 1 cannot create a region of 16384 bytes"), "{taken}");
        assert!(taken.contains("File exists"), "{taken}");
        let here = (dsm.rank() == 2).then_some(4097);
        let crooked = said(dsm.region(RegionSettings { here, ..at(APART, 4) }));
        assert!(crooked.starts_with("node 2 cannot create a region of 16384 bytes"), "{crooked}");
        // Nodes that ask for different regions.
        let pages = if dsm.rank() == 2 { 5 } else { 4 };
        match dsm.region(at(APART, pages)).unwrap_err() {
            Error::Protocol(DsmError::RegionMismatch(why)) => {
                assert_eq!((why.by, why.other), (NodeId(0), NodeId(2)));
                assert!(
                    matches!(why.difference, RegionDifference::Other(other) if other.pages == 5),
                    "{why}"
                );
            }
            other => panic!("{other}"),
        }
        let lacks = match dsm.rank() {
            1 => dsm.barrier(BarrierKind::Ordinary).unwrap_err(),
            _ => dsm.region(at(APART, 4)).unwrap_err(),
        };
        assert!(
            lacks.to_string().contains("node 1 none: all nodes must create the same"),
            "{lacks}"
        );
        assert_eq!(
            said(dsm.fetch(PageId(APART / 4096))),
            "page 8589934592 is outside of the layout"
        );
        // No node has it; all can create it now, and use it up.
        let region = dsm.region(at(APART, 4)).unwrap();
        let array = dsm.array::<u32>(region, 3 * WORDS_A_PAGE + 1).unwrap();
        let full = dsm.array::<u32>(region, 1).unwrap_err();
        assert!(matches!(full, Error::Full { bytes: 4, left: 0 }), "{full}");
        dsm.cells(&array)[WORDS_A_PAGE * usize::from(dsm.rank())].set(7);
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let sum: u32 = dsm.cells(&array).iter().map(|cell| cell.get()).sum();
        dsm.leave().unwrap();
        (region.number(), sum)
    };
    for detection in permitted("a_region_that_cannot_be_is_named_on_all_nodes") {
        let seen = on_nodes(local(3), Scheme::LogAtManager, detection, program);
        assert_eq!(seen, [(1, 21); 3], "{detection}");
    }
}

#[test]
fn as_many_regions_as_promised_are_shared() {
    let program = |mut dsm: Dsm| {
        let mut words = Vec::new();
        for _ in 1..REGIONS_MAX {
            let region = dsm.region(RegionSettings::of(1)).unwrap();
            words.push(dsm.array::<u32>(region, 1).unwrap());
        }
        let many = said(dsm.region(RegionSettings::of(1)));
        assert!(many.contains("there are 1024 regions already"), "{many}");
        for (place, word) in (0..).zip(&words) {
            if place % 2 == u32::from(dsm.rank()) {
                dsm.cells(word)[0].set(place);
            }
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let right = (0..).zip(&words).all(|(place, word)| dsm.cells(word)[0].get() == place);
        dsm.leave().unwrap();
        right
    };
    let test = "as_many_regions_as_promised_are_shared";
    for detection in permitted(test) {
        let seen = on_nodes(local(2), Scheme::LogAtManager, detection, program);
        assert_eq!(seen, [true; 2], "{detection}");
    }
}

/// Runs `work` on three threads of this node.
fn on_threads(dsm: &mut Dsm, work: impl Fn(NodeThread<'_>) + Sync) {
    std::thread::scope(|scope| {
        for slot in dsm.thread_slots(3) {
            let work = &work;
            scope.spawn(move || work(slot.take().unwrap()));
        }
    });
}

/// Threads create a region after some failed attempts: on one node a thread asked for another
/// region, or for none.
fn make_together(mut member: NodeThread<'_>) {
    let odd = member.rank() == 1 && member.number() == 2;
    let other = member.region(at(APART, if odd { 5 } else { 6 })).unwrap_err();
    let none = match odd {
        true => member.barrier(BarrierKind::Ordinary).unwrap_err(),
        false => member.region(at(APART, 6)).unwrap_err(),
    };
    for error in [other, none] {
        let Error::Protocol(DsmError::RegionMismatch(why)) = error else { panic!("{error}") };
        let differ = why.difference == RegionDifference::Failed(RegionFailure::Threads);
        let other = matches!(why.difference, RegionDifference::Other(_));
        assert!(why.other == NodeId(1) && (differ || other), "{why}");
    }
    let region = member.region(at(APART, 6)).unwrap();
    assert_eq!((region.number(), region.address()), (1, APART));
}

/// Each thread writes a page of its own, and reads the pages of all.
fn write_and_add_up(mut member: NodeThread<'_>, array: &SharedArray<u32>) {
    let mine = usize::from(member.rank() * 3 + member.number()) * WORDS_A_PAGE;
    member.cells(array)[mine].set(1);
    member.barrier(BarrierKind::Ordinary).unwrap();
    let sum: u32 = member.cells(array).iter().map(|cell| cell.get()).sum();
    assert_eq!(sum, 6);
}

#[test]
fn threads_of_a_node_make_a_region_together() {
    for detection in permitted("threads_of_a_node_make_a_region_together") {
        on_nodes(local(2), Scheme::LogAtManager, detection, |mut dsm: Dsm| {
            on_threads(&mut dsm, make_together);
            let region = dsm.numbered(1).unwrap();
            let array = dsm.array::<u32>(region, 6 * WORDS_A_PAGE).unwrap();
            on_threads(&mut dsm, |member| write_and_add_up(member, &array));
            dsm.leave().unwrap();
        });
    }
}

/// A message with a whole region is larger than messages could be before.
#[test]
fn messages_may_be_as_large_as_all_regions_want() {
    const PAGES: usize = 2 * MESSAGE_BYTES_MAX / PAGE_BYTES;
    let program = |mut dsm: Dsm| {
        let region = dsm.region(at(APART, PAGES)).unwrap();
        let array = dsm.array::<u32>(region, PAGES * WORDS_A_PAGE).unwrap();
        for turn in 0..2 {
            if dsm.rank() == turn {
                dsm.acquire(LOCK, Mode::Exclusive).unwrap();
                let cells = dsm.cells(&array).iter().enumerate();
                cells.for_each(|(place, cell)| cell.set(cell.get() + place as u32));
                dsm.release(LOCK).unwrap();
            }
            dsm.barrier(BarrierKind::Ordinary).unwrap();
        }
        let is_right = dsm.cells(&array).iter().enumerate();
        let is_right = is_right.step_by(97).all(|(place, cell)| cell.get() == 2 * place as u32);
        dsm.leave().unwrap();
        is_right
    };
    let seen = on_nodes(tcp(2), Scheme::LogAtManager, Detection::Protect, program);
    assert_eq!(seen, [true; 2]);
}

#[test]
fn a_region_that_was_not_made_here_is_refused() {
    let mut one = on_nodes(local(1), Scheme::LogAtManager, Detection::Protect, |mut dsm: Dsm| {
        dsm.region(at(APART, 1)).unwrap()
    });
    let region = one.remove(0);
    let refused = on_nodes(local(1), Scheme::LogAtManager, Detection::Protect, |mut dsm: Dsm| {
        dsm.region(at(2 * APART, 1)).unwrap();
        catch_unwind(AssertUnwindSafe(|| drop(dsm.array::<u32>(region, 1)))).is_err()
    });
    assert_eq!(refused, [true]);
}
