//! Regions created at run time: by all nodes alike, or by none.

use kyocho_dsm::{
    Absent, Action, Address, Call, DsmError, Event, Message, Move, NodeId, PAGES_MAX, PageId,
    Placement, PlacementError, REGIONS_MAX, RegionDifference, RegionFailure, RegionMismatch,
    RegionPlan, Scheme, Subject, ThreadId,
};

use crate::three::{CROSS, Cluster, LOCK, TAKE, both};

const FAR: PageId = PageId(1 << 40);
const PLAN: RegionPlan = RegionPlan { first: FAR, pages: 4, placement: Placement::Cyclic };

/// What each node creates, or `CROSS`. Returns the results of the calls.
fn at_barrier(cluster: &mut Cluster, calls: [Call; 3]) -> Vec<Option<Result<(), DsmError>>> {
    for (node, call) in calls.into_iter().enumerate() {
        cluster.call(node, call);
    }
    cluster.returned.iter().map(|came| came.map(|came| came.map(drop))).collect()
}

fn make(plan: RegionPlan) -> Call {
    Call::Region(plan, None)
}

#[test]
fn a_region_far_away_is_as_the_first_one() {
    for mut cluster in both() {
        let far = Address { page: PageId(FAR.0 + 3), word: 2 };
        assert_eq!(cluster.nodes[1].read(far), Err(Absent(far.page)));
        assert_eq!(at_barrier(&mut cluster, [make(PLAN); 3]), [Some(Ok(())); 3]);
        assert_eq!(cluster.nodes[1].read(far), Ok(0), "all have zeros");
        // The fourth page belongs to node 0, like the first.
        for turn in 1..=4 {
            let node = turn as usize % 3;
            cluster.must(node, TAKE);
            cluster.nodes[node].write(far, turn).expect("no node has dropped it");
            cluster.must(node, Call::Release(LOCK));
        }
        cluster.barrier();
        for node in 0..3 {
            if cluster.nodes[node].read(far).is_err() {
                cluster.must(node, Call::Fetch(far.page));
            }
            assert_eq!(cluster.nodes[node].read(far), Ok(4), "node {node}");
        }
        cluster.must(0, Call::Move(Move::Page(far.page, NodeId(2))));
        cluster.barrier();
        assert_eq!(cluster.nodes[1].layout().regions.manager(far.page), Some(NodeId(2)));
    }
}

#[test]
fn nodes_that_differ_have_no_region_are_named_and_can_continue() {
    let larger = RegionPlan { pages: 5, ..PLAN };
    let elsewhere = RegionPlan { first: PageId(77), ..PLAN };
    let placed = RegionPlan { placement: Placement::Blocks, ..PLAN };
    let host = RegionFailure::Host(12);
    let cases = [
        ([make(PLAN), make(PLAN), make(larger)], 0, 2, RegionDifference::Other(larger)),
        ([make(PLAN), make(elsewhere), make(elsewhere)], 0, 1, RegionDifference::Other(elsewhere)),
        ([make(placed), make(PLAN), make(PLAN)], 0, 1, RegionDifference::Other(PLAN)),
        ([CROSS, make(PLAN), make(PLAN)], 1, 0, RegionDifference::Nothing),
        ([make(PLAN), make(PLAN), CROSS], 0, 2, RegionDifference::Nothing),
        (
            [make(PLAN), Call::Region(PLAN, Some(host)), make(PLAN)],
            0,
            1,
            RegionDifference::Failed(host),
        ),
    ];
    for (calls, by, other, difference) in cases {
        let [mut cluster, _] = both();
        let Call::Region(plan, _) = calls[usize::from(by)] else { panic!("it makes one") };
        let why = RegionMismatch { plan, by: NodeId(by), other: NodeId(other), difference };
        let refused = Some(Err(DsmError::RegionMismatch(why)));
        cluster.nodes[0].write(Address { page: PageId(0), word: 3 }, 5).expect("it is there");
        assert_eq!(at_barrier(&mut cluster, calls), [refused; 3]);
        for node in 0..3 {
            assert_eq!(cluster.nodes[node].epoch(), 1, "the barrier is crossed");
            for first in [FAR, PageId(77)] {
                assert_eq!(cluster.nodes[node].copy(first), Err(Absent(first)));
                let none = Err(DsmError::OutOfRange(Subject::Page(first)));
                assert_eq!(cluster.call(node, Call::Fetch(first)), Some(none));
            }
        }
        // The next region is created as usual.
        assert_eq!(at_barrier(&mut cluster, [make(PLAN); 3]), [Some(Ok(())); 3]);
        cluster.barrier();
    }
}

#[test]
fn a_refused_region_is_reported_with_its_name_and_both_nodes() {
    let mismatch = |difference| {
        let why = RegionMismatch { plan: PLAN, by: NodeId(0), other: NodeId(2), difference };
        DsmError::RegionMismatch(why).to_string()
    };
    let plan = "a region of 16384 bytes at 0x10000000000000 (Cyclic)";
    let same = "all nodes must create the same regions in the same order";
    assert_eq!(
        mismatch(RegionDifference::Nothing),
        format!("node 0 creates {plan}, node 2 none: {same}")
    );
    let other = mismatch(RegionDifference::Other(RegionPlan { pages: 1, ..PLAN }));
    let another = "a region of 4096 bytes at 0x10000000000000 (Cyclic)";
    assert_eq!(other, format!("node 0 creates {plan}, node 2 {another}: {same}"));
    let cannot = mismatch(RegionDifference::Failed(RegionFailure::Host(12)));
    let words = "Cannot allocate memory (os error 12)";
    assert_eq!(cannot, format!("node 2 cannot create {plan}: {words}"));
}

#[test]
fn an_impossible_region_is_refused_before_any_message_is_sent() {
    let [mut cluster, _] = both();
    let at = |first, pages| RegionPlan { first: PageId(first), pages, ..PLAN };
    for (plan, why) in [
        (at(1, 1), PlacementError::Overlap),
        (at(0, 0), PlacementError::Empty),
        (at(PAGES_MAX - 1, 2), PlacementError::Beyond),
        (at(u64::MAX, u64::MAX), PlacementError::Beyond),
    ] {
        let refused = Err(DsmError::Misplaced(plan, why));
        assert_eq!(cluster.call(1, make(plan)), Some(refused), "{plan}");
    }
    let nowhere = RegionPlan { placement: Placement::On(NodeId(3)), ..PLAN };
    let refused = Err(DsmError::OutOfRange(Subject::Node(NodeId(3))));
    assert_eq!(cluster.call(1, make(nowhere)), Some(refused));
    assert_eq!(cluster.messages(), 0);
    for page in 0..REGIONS_MAX as u64 - 1 {
        assert_eq!(at_barrier(&mut cluster, [make(at(10 + page, 1)); 3]), [Some(Ok(())); 3]);
    }
    let refused = Err(DsmError::Misplaced(PLAN, PlacementError::TooMany));
    assert_eq!(cluster.call(2, make(PLAN)), Some(refused));
}

#[test]
fn a_peer_that_is_ahead_and_speaks_of_a_region_that_was_refused_breaks_the_protocol() {
    let [mut cluster, _] = both();
    cluster.feed(1, Event::Call(ThreadId::FIRST, make(PLAN)));
    // As if node 2 had crossed the barrier with it.
    let page = PageId(FAR.0 + 1);
    cluster.feed(1, Event::Message(NodeId(2), 1, Message::Fetch(page, 0)));
    cluster.call(2, CROSS);
    let came = cluster.call(0, CROSS);
    assert!(matches!(came, Some(Err(DsmError::RegionMismatch(_)))), "{came:?}");
    let came = cluster.returned[1];
    assert!(matches!(came, Some(Err(DsmError::PeerBroke(NodeId(2), ..)))), "{came:?}");
}

#[test]
fn what_a_dead_node_leaves_undecided_is_not_there() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    cluster.feed(1, Event::Call(ThreadId::FIRST, make(PLAN)));
    cluster.feed(1, Event::PeerLost(NodeId(2)));
    let dead = DsmError::PeerLost(NodeId(2), Subject::Barrier);
    assert_eq!(cluster.returned[1], Some(Err(dead)));
    assert_eq!(cluster.nodes[1].copy(FAR), Err(Absent(FAR)));
}

#[test]
fn repeated_or_foreign_announcements_of_regions_are_violations() {
    let said = |message: &Message, node: usize, before: &[Message]| {
        let mut cluster = Cluster::new(Scheme::LogAtManager);
        for message in before.iter().chain([message]) {
            cluster.feed(node, Event::Message(NodeId(2), 0, message.clone()));
        }
        let call = cluster.nodes[node].step(Event::Call(ThreadId::FIRST, TAKE));
        call.iter().any(|action| matches!(action, Action::Return(_, Err(DsmError::PeerBroke(..)))))
    };
    let region = Message::Region(PLAN, None);
    let why = RegionMismatch {
        plan: PLAN,
        by: NodeId(0),
        other: NodeId(1),
        difference: RegionDifference::Nothing,
    };
    assert!(!said(&region, 0, &[]), "node 0 gathers them");
    assert!(said(&region, 0, core::slice::from_ref(&region)), "twice");
    assert!(said(&region, 1, &[]), "node 1 does not");
    assert!(said(&Message::Refuse(why), 1, &[]), "node 2 does not manage barriers");
}
