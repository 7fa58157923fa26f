//! What each organisation of a TLB holds, in small cases.

use kyocho_pagetable::placement::{AddressSpace, Policy};
use kyocho_pagetable::tlb::{Organisation, Outcome, Tlb};
use kyocho_pagetable::trace::Trace;
use kyocho_pagetable::{Clustered, PageNumber, PageTable};

fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("52 bits")
}

/// Touches the pages in order and returns the result of each access.
fn outcomes(
    organisation: Organisation,
    entries: usize,
    policy: Policy,
    pages: &[u64],
) -> Vec<Outcome> {
    let mut space = AddressSpace::new(Clustered::<16>::new(), policy);
    let mut tlb = Tlb::new(organisation, entries);
    let mut access = |&number: &u64| {
        space.touch(page(number)).expect("in reach");
        tlb.access(page(number), space.table(), &mut ())
    };
    pages.iter().map(&mut access).collect()
}

use Outcome::{Hit, Miss, SubblockMiss, Unmapped};

#[test]
fn least_recently_used_entry_is_replaced_first() {
    let found = outcomes(Organisation::Pages, 2, Policy::Scattered, &[1, 2, 1, 3, 1, 2]);
    assert_eq!(found, [Miss, Miss, Hit, Miss, Hit, Miss]);
}

#[test]
fn a_pair_holds_both_neighbours() {
    let found = outcomes(Organisation::Pairs, 1, Policy::Scattered, &[4, 5, 4, 6, 4, 5, 4]);
    // Page 5 was not mapped when 4 was loaded; later both are.
    assert_eq!(found, [Miss, SubblockMiss, Hit, Miss, Miss, Hit, Hit]);
}

#[test]
fn superpage_is_loaded_as_one_entry_after_promotion() {
    let policy = Policy::Superpages { promote_at: 3 };
    let found = outcomes(Organisation::Superpages, 4, policy, &[0, 1, 2, 3, 15, 0, 16]);
    assert_eq!(found, [Miss, Miss, Miss, Hit, Hit, Hit, Miss]);
}

#[test]
fn complete_sub_block_loads_one_page_or_all_mapped_pages() {
    let pages = [0, 1, 0, 1, 32, 1, 0];
    let one_by_one = outcomes(Organisation::CompleteSubblocks, 1, Policy::Scattered, &pages);
    assert_eq!(one_by_one, [Miss, SubblockMiss, Hit, Hit, Miss, Miss, SubblockMiss]);
    let all = outcomes(Organisation::CompleteSubblocksPrefetched, 1, Policy::Scattered, &pages);
    assert_eq!(all, [Miss, SubblockMiss, Hit, Hit, Miss, Miss, Hit]);
}

#[test]
fn a_partial_sub_block_needs_a_run_of_frames() {
    let pages = [0, 1, 0, 1, 32, 1, 0];
    let placed = Policy::Subblocks { placed_percent: 100 };
    let found = outcomes(Organisation::PartialSubblocks, 1, placed, &pages);
    assert_eq!(found, [Miss, SubblockMiss, Hit, Hit, Miss, Miss, Hit]);
    let nowhere = Policy::Subblocks { placed_percent: 0 };
    let found = outcomes(Organisation::PartialSubblocks, 1, nowhere, &pages);
    assert_eq!(found, [Miss, Miss, Miss, Miss, Miss, Miss, Miss]);
}

#[test]
fn unmapped_pages_are_not_loaded() {
    let mut tlb = Tlb::new(Organisation::Pages, 4);
    let table = Clustered::<16>::new();
    assert_eq!(tlb.access(page(7), &table, &mut ()), Unmapped);
    assert_eq!(tlb.access(page(7), &table, &mut ()), Unmapped);
    assert_eq!(table.lookup(page(7)), None);
}

/// A trace of a real program, `ls -l /` under lackey: 1,166,498 touches of 319 pages, recorded by
/// `bench/pagetable`.
#[test]
fn a_real_program_ranks_the_organisations_as_published() {
    let bytes = include_bytes!("traces/ls.trace");
    let trace = Trace::new(bytes).expect("a recording");
    assert_eq!(trace.references(), 1_166_498);
    let pages: Vec<u64> = trace.map(|page| page.expect("undamaged").get()).collect();
    let misses = |organisation, policy| {
        let found = outcomes(organisation, 64, policy, &pages);
        found.iter().filter(|&&outcome| outcome != Hit).count()
    };
    let base = misses(Organisation::Pages, Policy::Scattered);
    let superpages = misses(Organisation::Superpages, Policy::Superpages { promote_at: 1 });
    let partial = misses(Organisation::PartialSubblocks, Policy::Subblocks { placed_percent: 100 });
    let complete = misses(Organisation::CompleteSubblocks, Policy::Scattered);
    assert_eq!((base, superpages, partial, complete), (2344, 44, 319, 319));
}
