//! Pages that arrive before the program needs them. Pages that are used repeatedly arrive unasked,
//! and are tested for use now and then.

use kyocho_dsm::{Action, BarrierKind, Call, Event, Message, Move, NodeId, ThreadId};

use crate::three::{CROSS, Cluster, LOCK, PAGE, both};

/// Requests for pages and pages sent, at one barrier.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Brought {
    asked: usize,
    came: usize,
}

/// Node 0, the manager, writes the page; all nodes cross a barrier.
fn written_and_crossed(cluster: &mut Cluster, value: u32, kind: BarrierKind) -> Brought {
    cluster.write(0, value);
    cluster.messages();
    for node in 0..3 {
        cluster.call(node, Call::Barrier(kind));
    }
    assert!(cluster.returned.iter().all(|returned| matches!(returned, Some(Ok(_)))));
    let count = |is: fn(&&Message) -> bool| cluster.sent.iter().filter(is).count();
    Brought {
        asked: count(|message| matches!(message, Message::Fetch(..))),
        came: count(|message| matches!(message, Message::Page(..))),
    }
}

/// The same, and node 1 reads the page: directly if it is in sight, otherwise by a fault.
fn used(cluster: &mut Cluster, value: u32, kind: BarrierKind) -> Brought {
    let brought = written_and_crossed(cluster, value, kind);
    assert_eq!(cluster.read(1), value);
    cluster.nodes[1].use_page(PAGE);
    brought
}

/// All nodes cross a barrier; no pages are sent.
fn crossed_without_pages(cluster: &mut Cluster) {
    cluster.messages();
    cluster.barrier();
    let pages = cluster.sent.iter().filter(|message| matches!(message, Message::Page(..)));
    assert_eq!(pages.count(), 0);
}

#[test]
fn a_page_used_behind_every_barrier_is_asked_for_ever_less_often() {
    for kind in [BarrierKind::Ordinary, BarrierKind::SingleReadWrite] {
        for mut cluster in both() {
            let mut asked = Vec::new();
            for turn in 1..400 {
                let Brought { asked: times, came } = used(&mut cluster, turn, kind);
                assert!(turn <= 2 || came == 1, "turn {turn}: node 1 alone uses it: {came}");
                asked.push(times);
            }
            let first: usize = asked[..100].iter().sum();
            let last: usize = asked[300..].iter().sum();
            assert!(first >= 10 && last <= 4, "{kind:?}: asked {first} times, and later {last}");
        }
    }
}

#[test]
fn a_page_that_is_used_no_more_stops_coming() {
    let [mut cluster, _] = both();
    for turn in 1..300 {
        used(&mut cluster, turn, BarrierKind::Ordinary);
    }
    // A page in sight counts as used until it is hidden once.
    let turns =
        (300..500).map(|turn| written_and_crossed(&mut cluster, turn, BarrierKind::Ordinary));
    let came: Vec<_> = turns.map(|brought| brought.came).collect();
    assert!(came[..70].contains(&0), "{came:?}");
    assert_eq!(came[70..].iter().sum::<usize>(), 0, "{came:?}");
    assert_eq!(cluster.read(1), 499);
}

#[test]
fn a_page_that_is_not_written_is_not_sent_and_is_still_due() {
    let [mut cluster, _] = both();
    for turn in 1..100 {
        let Brought { came, .. } = used(&mut cluster, turn, BarrierKind::Ordinary);
        assert!(turn <= 2 || came == 1, "turn {turn}");
        crossed_without_pages(&mut cluster);
    }
}

#[test]
fn requests_in_advance_are_forgotten_when_a_page_moves() {
    let [mut cluster, _] = both();
    for turn in 1..100 {
        used(&mut cluster, turn, BarrierKind::Ordinary);
        let to = NodeId((turn / 7 % 3) as u16);
        cluster.must(2, Call::Move(Move::Page(PAGE, to)));
        cluster.must(2, Call::Move(Move::Lock(LOCK, to)));
        assert_eq!(cluster.read(0), turn);
    }
}

#[test]
fn its_own_writer_gets_no_page_that_it_follows() {
    let [mut cluster, _] = both();
    for turn in 1..60 {
        used(&mut cluster, turn, BarrierKind::Ordinary);
        // Now only node 1 writes, and keeps its copy.
        cluster.write(1, 1000 + turn);
        crossed_without_pages(&mut cluster);
        assert_eq!((cluster.read(0), cluster.read(1)), (1000 + turn, 1000 + turn));
    }
}

#[test]
fn a_page_in_sight_that_arrives_no_more_is_hidden() {
    let [mut cluster, _] = both();
    // After the third barrier it is in sight for the first time.
    for turn in 1..4 {
        used(&mut cluster, turn, BarrierKind::Ordinary);
    }
    cluster.write(0, 4);
    (0..3).for_each(|node| cluster.feed(node, Event::Call(ThreadId::FIRST, CROSS)));
    while let Some((to, from, epoch, message)) = cluster.flying.pop_front() {
        if !matches!(message, Message::Page(..)) {
            cluster.feed(to, Event::Message(from, epoch, message));
        }
    }
    let actions = cluster.nodes[1].step(Event::PeerLost(NodeId(0)));
    assert!(actions.contains(&Action::Hide(PAGE)), "{actions:?}");
    assert!(cluster.nodes[1].copy(PAGE).is_err());
}
