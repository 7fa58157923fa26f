//! Nodes that leave properly, and the nodes that stay.

use kyocho_dsm::{
    Call, ConditionId, DsmError, Event, LockId, Message, Mode, NodeId, Outcome, Scheme, Subject,
    ThreadId, WaitPolicy, Waiters,
};

use crate::three::{CROSS, Cluster, LOCK, PAGE, TAKE, both};

fn left(peer: u16, subject: Subject) -> Option<Result<Outcome, DsmError>> {
    Some(Err(DsmError::PeerLeft(NodeId(peer), subject)))
}

/// All nodes cross a barrier, which is the last one of some.
fn all_cross_and_leave(cluster: &mut Cluster, leavers: &[usize]) {
    leavers.iter().for_each(|node| cluster.nodes[*node].next_barrier_is_last());
    cluster.barrier();
}

#[test]
fn what_needs_a_node_that_has_left_is_an_error_that_names_it() {
    let snapshot = Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Wait);
    // Node 2 manages the lock, node 0 the page.
    for (leaver, call, subject) in [
        (2, CROSS, Subject::Barrier),
        (0, CROSS, Subject::Barrier),
        (2, TAKE, Subject::Lock(LOCK)),
        (2, snapshot, Subject::Lock(LOCK)),
        (0, Call::Fetch(PAGE), Subject::Page(PAGE)),
    ] {
        for mut cluster in both() {
            cluster.write(0, 5);
            all_cross_and_leave(&mut cluster, &[leaver]);
            assert_eq!(cluster.call(1, call), left(leaver as u16, subject), "{call:?}");
            // No node can continue afterwards.
            let other = 2 - leaver;
            let later = cluster.call(other, Call::Signal(LockId(1), ConditionId(0), Waiters::All));
            assert_eq!(later, left(leaver as u16, Subject::Lock(LockId(1))), "{call:?}");
        }
    }
}

#[test]
fn a_node_that_leaves_ends_waits_for_signals() {
    for mut cluster in both() {
        let own = LockId(1);
        cluster.barrier();
        cluster.must(1, Call::Acquire(own, Mode::Exclusive, WaitPolicy::Wait));
        assert_eq!(cluster.call(1, Call::WaitOn(own, ConditionId(0))), None);
        let epoch = cluster.nodes[1].epoch();
        cluster.feed(1, Event::Message(NodeId(2), epoch, Message::Left));
        assert_eq!(cluster.returned[1], left(2, Subject::Lock(own)));
    }
}

#[test]
fn a_lock_held_by_a_node_that_leaves_is_free() {
    for mut cluster in both() {
        let lock = LockId(1);
        let take = Call::Acquire(lock, Mode::Exclusive, WaitPolicy::Wait);
        cluster.must(2, take);
        all_cross_and_leave(&mut cluster, &[2]);
        cluster.must(0, take);
    }
}

#[test]
fn nodes_that_leave_at_one_barrier_leave_properly() {
    for mut cluster in both() {
        all_cross_and_leave(&mut cluster, &[0, 2]);
        assert_eq!(cluster.call(1, CROSS), left(0, Subject::Barrier));
    }
    // The node that stays continues while the message that ends the barrier travels to the one that
    // leaves.
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    [0, 2].into_iter().for_each(|node| cluster.nodes[node].next_barrier_is_last());
    (0..3).for_each(|node| {
        cluster.feed(node, Event::Call(ThreadId::FIRST, CROSS));
    });
    let mut held = Vec::new();
    while let Some((to, from, epoch, message)) = cluster.flying.pop_front() {
        if to == 2 && from == NodeId(0) {
            held.push((epoch, message));
        } else {
            cluster.feed(to, Event::Message(from, epoch, message));
        }
    }
    assert_eq!(cluster.call(1, CROSS), left(0, Subject::Barrier));
    for (epoch, message) in held {
        cluster.feed(2, Event::Message(NodeId(0), epoch, message));
    }
    assert_eq!(cluster.returned[2], Some(Ok(Outcome::Done)));
}

#[test]
fn giving_up_a_barrier_ends_waits_for_locks_held_there() {
    for mut cluster in both() {
        all_cross_and_leave(&mut cluster, &[1]);
        cluster.must(0, TAKE);
        assert_eq!(cluster.call(2, TAKE), None, "node 0 has the lock");
        cluster.feed(0, Event::Stranded);
        cluster.deliver_all();
        assert_eq!(cluster.returned[2], left(1, Subject::Lock(LOCK)));
    }
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    cluster.feed(0, Event::Stranded);
    assert_eq!(cluster.messages(), 0, "no node has left");
}

#[test]
fn a_goodbye_without_a_last_barrier_is_a_death() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    cluster.barrier();
    cluster.feed(1, Event::PeerLeft(NodeId(2)));
    let dead = DsmError::PeerLost(NodeId(2), Subject::Barrier);
    assert_eq!(cluster.call(1, CROSS), Some(Err(dead)));
    // And a message of the next epoch is no violation, whether the barrier is crossed here or not.
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    let epoch = cluster.nodes[1].epoch();
    cluster.feed(1, Event::Message(NodeId(2), epoch + 1, Message::Left));
    cluster.feed(1, Event::PeerLeft(NodeId(2)));
    cluster.barrier();
    cluster.feed(1, Event::PeerLeft(NodeId(2)));
    assert_eq!(cluster.nodes[1].lost(Subject::Lock(LockId(1))), None);
    // Nor is one that arrives at a node which has left: it reports no death.
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    all_cross_and_leave(&mut cluster, &[0, 1, 2]);
    cluster.messages();
    cluster.feed(1, Event::PeerLeft(NodeId(2)));
    assert_eq!(cluster.messages(), 0);
}
