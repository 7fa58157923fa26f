use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{PAGES_MAX, Placement, PlacementError, REGIONS_MAX, RegionPlan, Regions};
use crate::address::{NodeId, PageId};

const NODES: u16 = 3;

/// Runs at both ends of the space and far from them; some touch or overlap.
fn plan() -> impl Strategy<Value = RegionPlan> {
    let first = prop_oneof![0..40_u64, 1 << 40..(1 << 40) + 40_u64, PAGES_MAX - 40..PAGES_MAX];
    let placement = prop_oneof![
        (0..NODES).prop_map(|node| Placement::On(NodeId(node))),
        Just(Placement::Blocks),
        Just(Placement::Cyclic),
    ];
    (first, 0..12_u64, placement).prop_map(|(first, pages, placement)| RegionPlan {
        first: PageId(first),
        pages,
        placement,
    })
}

/// Whether a region could be added, by a model that has every page.
fn fits(plan: &RegionPlan, model: &BTreeMap<u64, NodeId>) -> Result<(), PlacementError> {
    let end = plan.first.0 + plan.pages;
    match plan.pages {
        0 => Err(PlacementError::Empty),
        _ if end > PAGES_MAX => Err(PlacementError::Beyond),
        _ if model.range(plan.first.0..end).next().is_some() => Err(PlacementError::Overlap),
        _ => Ok(()),
    }
}

proptest! {
    #[test]
    fn they_are_as_a_map_of_all_pages(
        first in 0..5_usize,
        plans in prop::collection::vec((plan(), any::<bool>()), 1..30),
    ) {
        let mut regions = Regions::from(vec![NodeId(1); first]);
        let mut model: BTreeMap<u64, NodeId> = (0..first as u64).map(|page| (page, NodeId(1))).collect();
        for (plan, stays) in plans {
            let can = fits(&plan, &model);
            prop_assert_eq!(regions.check(&plan), can);
            if can.is_err() {
                continue;
            }
            regions.add(&plan, NODES);
            if !stays {
                regions.remove(plan.first);
                continue;
            }
            for place in 0..plan.pages {
                let manager = plan.placement.manager(place as usize, plan.pages as usize, NODES);
                model.insert(plan.first.0 + place, manager);
            }
            let last = PageId(plan.first.0 + plan.pages - 1);
            regions.set_manager(last, NodeId(2));
            model.insert(last.0, NodeId(2));
        }
        prop_assert_eq!(regions.pages(), model.len());
        let all: Vec<_> = regions.iter().map(|(page, manager)| (page.0, manager)).collect();
        prop_assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
        let around = model.keys().flat_map(|page| [page.saturating_sub(1), *page, page + 1]);
        for page in around.chain([PAGES_MAX, u64::MAX]) {
            prop_assert_eq!(regions.manager(PageId(page)), model.get(&page).copied(), "{}", page);
            prop_assert_eq!(regions.has(PageId(page)), model.contains_key(&page), "{}", page);
        }
        let free = regions.free(7).expect("the space is large");
        let plan = RegionPlan { first: free, pages: 7, placement: Placement::Cyclic };
        prop_assert_eq!(regions.check(&plan), Ok(()));
    }
}

#[test]
fn there_is_a_bound_on_their_number_and_on_the_space() {
    let mut regions = Regions::from(vec![NodeId(0); 2]);
    for _ in 1..REGIONS_MAX {
        let first = regions.free(1).expect("the space is large");
        regions.add(&RegionPlan { first, pages: 1, placement: Placement::Blocks }, NODES);
    }
    let one = RegionPlan { first: PageId(1 << 30), pages: 1, placement: Placement::Blocks };
    assert_eq!(regions.check(&one), Err(PlacementError::TooMany));
    assert_eq!((regions.pages(), regions.free(1)), (REGIONS_MAX + 1, Some(PageId(1025))));
    let rest = PAGES_MAX - 1025;
    assert_eq!((regions.free(rest), regions.free(rest + 1)), (Some(PageId(1025)), None));
    assert_eq!(regions.free(u64::MAX), None);
    let endless = RegionPlan { first: PageId(u64::MAX), pages: u64::MAX, ..one };
    assert_eq!(regions.check(&endless), Err(PlacementError::Beyond));
}

#[test]
fn a_plan_prints_its_address() {
    let plan = RegionPlan { first: PageId(1 << 40), pages: 2, placement: Placement::Cyclic };
    assert_eq!(plan.to_string(), "a region of 8192 bytes at 0x10000000000000 (Cyclic)");
}
