//! Single exchanges on a reliable network: what is sent, what is refused, what moves.

mod ahead;
mod leaving;
mod regions;
mod three;

use kyocho_dsm::{
    Absent, Address, BarrierKind, Call, ConditionId, DsmError, Event, LockId, Message, Mode, Move,
    NodeId, Outcome, PageId, Scheme, Subject, ThreadId, WaitPolicy, Waiters,
};
use three::{CROSS, Cluster, LOCK, PAGE, TAKE, WORD, both};

#[test]
fn the_next_holder_sees_what_was_published_under_a_lock() {
    const OTHER: LockId = LockId(1);
    let take_other = Call::Acquire(OTHER, Mode::Exclusive, WaitPolicy::Wait);
    for mut cluster in both() {
        assert_eq!(
            cluster.call(0, Call::Publish(LOCK)),
            Some(Err(DsmError::NotHeld(LOCK))),
            "no node could be notified"
        );
        cluster.write(0, 7);
        cluster.must(0, TAKE);
        cluster.must(0, Call::Publish(LOCK));
        cluster.must(0, Call::Release(LOCK));
        cluster.must(1, TAKE);
        cluster.must(1, take_other);
        assert_eq!(cluster.read(1), 7, "written before the lock was taken");
        cluster.must(1, Call::Publish(OTHER));
        cluster.must(1, Call::Release(OTHER));
        cluster.must(2, take_other);
        assert_eq!(cluster.read(2), 7, "written by another node");
    }
}

#[test]
fn lock_and_increment_takes_three_messages_by_the_new_scheme_and_four_by_the_old() {
    for (mut cluster, later) in both().into_iter().zip([3, 4]) {
        for node in 0..2 {
            cluster.read(node);
        }
        cluster.messages();
        for turn in 0..6_u32 {
            let node = turn as usize % 2;
            cluster.must(node, TAKE);
            let value = cluster.read(node);
            assert_eq!(value, turn, "what the other wrote");
            cluster.write(node, value + 1);
            cluster.must(node, Call::Release(LOCK));
            assert_eq!(cluster.messages(), if turn == 0 { 3 } else { later });
        }
    }
}

#[test]
fn the_new_scheme_sends_each_update_once_and_the_old_all_of_them() {
    for (mut cluster, expected) in both().into_iter().zip([1, 5]) {
        // The same word four times: overwritten updates are sent too.
        for value in 1..=4 {
            cluster.must(0, TAKE);
            cluster.read(0);
            cluster.nodes[0].write(WORD, value).expect("node 0 manages the page");
            cluster.must(0, Call::Release(LOCK));
            cluster.must(1, TAKE);
            cluster.must(1, Call::Release(LOCK));
        }
        cluster.must(0, TAKE);
        let second = Address { page: PageId(1), word: 0 };
        cluster.nodes[0].write(second, 8).expect("node 0 manages the page");
        cluster.must(0, Call::Release(LOCK));
        cluster.messages();
        cluster.must(1, TAKE);
        let updates = cluster.sent.iter().find_map(|message| match message {
            Message::Grant { updates, .. } => Some(updates.len()),
            _ => None,
        });
        assert_eq!(updates, Some(expected));
    }
}

#[test]
fn writes_without_a_lock_appear_at_the_barrier() {
    for mut cluster in both() {
        assert_eq!(cluster.read(1), 0);
        cluster.write(0, 5);
        assert_eq!(cluster.read(1), 0);
        cluster.barrier();
        assert_eq!((cluster.read(0), cluster.read(1), cluster.read(2)), (5, 5, 5));
        cluster.write(1, 6);
        cluster.barrier();
        assert_eq!(cluster.nodes[0].read(WORD), Ok(6), "a manager has its pages at member");
        assert_eq!(cluster.nodes[2].read(WORD), Ok(6), "the node that used the page has it again");
        assert_eq!(cluster.nodes[1].read(WORD), Ok(6), "its writer has it still");
    }
}

#[test]
fn of_a_page_that_its_manager_wrote_whole_the_latest_words_win() {
    for mut cluster in both() {
        // Node 0's time advances, so its writes are later than node 1's.
        cluster.must(0, TAKE);
        cluster.must(0, Call::Release(LOCK));
        cluster.nodes[0].write_page(PAGE, [0, 7, 8, 0].into()).expect("all have zeros");
        cluster.nodes[1].write_words(PAGE, &[(1, 5), (3, 9)]).expect("all have zeros");
        cluster.barrier();
        for node in 0..3 {
            assert_eq!(cluster.read(node), 7, "node {node}");
            assert_eq!(cluster.nodes[node].copy(PAGE).unwrap()[..], [0, 7, 8, 9], "node {node}");
        }
        cluster.nodes[0].write_page(PAGE, [1, 2, 3, 4].into()).expect("it is there");
        cluster.barrier();
        assert_eq!(cluster.read(1), 2, "no other node wrote");
    }
}

#[test]
fn a_page_that_was_used_is_here_again_behind_the_barrier_that_drops_it() {
    let [mut cluster, _] = both();
    cluster.write(0, 1);
    cluster.barrier();
    assert_eq!(cluster.read(1), 1, "fetched");
    cluster.write(0, 2);
    cluster.messages();
    cluster.barrier();
    let fetches =
        |sent: &[Message]| sent.iter().filter(|one| matches!(one, Message::Fetch(..))).count();
    assert_eq!(fetches(&cluster.sent), 1, "only the node that used the page requests it");
    assert_eq!(cluster.nodes[1].read(WORD), Ok(2), "it is here");
    assert_eq!(cluster.nodes[2].read(WORD), Err(Absent(PAGE)));
    // No node used it this time.
    cluster.write(0, 3);
    cluster.messages();
    cluster.barrier();
    assert_eq!(fetches(&cluster.sent), 0);
    assert_eq!(cluster.nodes[1].read(WORD), Err(Absent(PAGE)));
    assert_eq!(cluster.read(1), 3);
}

#[test]
fn a_page_asked_of_its_owner_is_written_only_if_it_is_another_since() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    let cross = |cluster: &mut Cluster| {
        cluster.messages();
        for node in 0..3 {
            cluster.call(node, Call::Barrier(BarrierKind::SingleReadWrite));
        }
        cluster.sent.iter().filter(|one| matches!(one, Message::Fetch(..))).count()
    };
    cluster.write(0, 1);
    cross(&mut cluster);
    assert_eq!(cluster.read(1), 1, "asked of its owner");
    assert_eq!(cross(&mut cluster), 0, "no node wrote: the copy stays");
    assert_eq!(cluster.nodes[1].read(WORD), Ok(1));
    cluster.write(0, 2);
    assert_eq!(cross(&mut cluster), 1, "asked of its owner, before that has left the barrier");
    cluster.write(0, 3);
    cross(&mut cluster);
    assert_eq!(cluster.read(1), 3);
}

/// A cluster that has crossed a barrier, except for node 1: the page that it uses is in transit.
fn on_its_way() -> (Cluster, Event) {
    let [mut cluster, _] = both();
    cluster.write(0, 1);
    cluster.barrier();
    assert_eq!(cluster.read(1), 1);
    cluster.write(0, 2);
    for node in 0..3 {
        cluster.returned[node] = None;
        cluster.feed(node, Event::Call(ThreadId::FIRST, CROSS));
    }
    loop {
        let (to, from, epoch, message) = cluster.flying.pop_front().expect("a page comes");
        let page = matches!(message, Message::Page(..));
        let event = Event::Message(from, epoch, message);
        if page {
            assert_eq!((to, cluster.flying.len()), (1, 0), "last of all");
            return (cluster, event);
        }
        cluster.feed(to, event);
    }
}

#[test]
fn a_barrier_returns_when_the_pages_are_here_that_were_asked_for() {
    let (mut cluster, page) = on_its_way();
    let done = Some(Ok(Outcome::Done));
    assert_eq!(cluster.returned, [done, None, done], "a node that needs no page does not wait");
    cluster.feed(1, page);
    assert_eq!(cluster.returned[1], done);
    assert_eq!(cluster.nodes[1].read(WORD), Ok(2));
}

#[test]
fn no_node_crosses_a_barrier_while_pages_of_the_last_one_arrive() {
    let (mut cluster, _) = on_its_way();
    let kind = BarrierKind::Ordinary;
    let go = Message::Go { time: 9, written: vec![], held: vec![], moves: vec![], kind };
    cluster.feed(1, Event::Message(NodeId(0), 2, go));
    assert!(matches!(cluster.returned[1], Some(Err(DsmError::PeerBroke(NodeId(0), ..)))));
}

#[test]
fn a_lock_held_across_a_barrier_stays_held() {
    for mut cluster in both() {
        cluster.must(1, TAKE);
        cluster.write(1, 3);
        cluster.barrier();
        assert_eq!(cluster.call(0, TAKE), None);
        cluster.write(1, 4);
        cluster.must(1, Call::Release(LOCK));
        assert_eq!(cluster.returned[0], Some(Ok(Outcome::Done)));
        assert_eq!(cluster.read(0), 4);
    }
}

#[test]
fn managers_move_at_the_next_barrier() {
    // In the old scheme, the lock's own manager must still ask the last holder.
    for (mut cluster, messages) in both().into_iter().zip([0, 2]) {
        cluster.must(1, TAKE);
        cluster.write(1, 3);
        cluster.must(0, Call::Move(Move::Lock(LOCK, NodeId(0))));
        cluster.must(0, Call::Move(Move::Page(PAGE, NodeId(1))));
        cluster.barrier();
        cluster.must(1, Call::Release(LOCK));
        cluster.messages();
        cluster.must(0, TAKE);
        assert_eq!((cluster.nodes[0].epoch(), cluster.messages()), (1, messages));
        assert_eq!(cluster.read(0), 3);
        // Node 1 has the page now, and needs no other node for it.
        cluster.messages();
        assert_eq!(cluster.read(1), 3);
        assert_eq!(cluster.messages(), 0);
    }
}

#[test]
fn the_single_writer_of_a_page_needs_no_flush_after_a_single_read_write_barrier() {
    for (kind, flushes) in [(BarrierKind::Ordinary, 1), (BarrierKind::SingleReadWrite, 0)] {
        let mut cluster = Cluster::new(Scheme::LogAtManager);
        for turn in 0..3 {
            cluster.write(1, turn);
            cluster.messages();
            for node in 0..3 {
                cluster.call(node, Call::Barrier(kind));
            }
            let is_flush = |message: &&Message| matches!(message, Message::Flush(_));
            let sent = cluster.sent.iter().filter(is_flush).count();
            assert_eq!(sent, if turn == 0 { 1 } else { flushes }, "{kind:?}, barrier {turn}");
        }
        assert_eq!(cluster.read(2), 2);
    }
}

#[test]
fn a_page_asked_of_its_owner_at_the_barrier_has_one_owner_after_it() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    let single = Call::Barrier(BarrierKind::SingleReadWrite);
    let cross = |cluster: &mut Cluster, node| cluster.call(node, single);
    cluster.write(0, 1);
    for node in 0..3 {
        cross(&mut cluster, node);
    }
    // Node 0 owns the page and is at the barrier; node 1 is late.
    assert_eq!(cross(&mut cluster, 0), None);
    cluster.write(1, 2);
    cross(&mut cluster, 1);
    cross(&mut cluster, 2);
    // Now node 1 owns it. Its writes are not recorded, so they cannot be undone.
    cluster.write(1, 3);
    cluster.barrier();
    assert_eq!((cluster.read(1), cluster.read(2), cluster.read(0)), (3, 3, 3));
}

#[test]
fn snapshots_exclude_nobody_and_wait_for_the_holder() {
    for mut cluster in both() {
        let snapshot = Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Wait);
        cluster.must(0, snapshot);
        cluster.must(1, TAKE);
        cluster.write(1, 9);
        cluster.must(0, Call::Release(LOCK));
        assert_eq!(cluster.call(0, snapshot), None, "a node holds the lock");
        cluster.must(1, Call::Release(LOCK));
        assert_eq!(cluster.returned[0], Some(Ok(Outcome::Done)));
        assert_eq!(cluster.read(0), 9);
    }
}

#[test]
fn a_failed_try_or_time_limit_leaves_the_lock() {
    for mut cluster in both() {
        cluster.must(1, TAKE);
        let attempt = Call::Acquire(LOCK, Mode::Exclusive, WaitPolicy::Try);
        assert_eq!(cluster.call(0, attempt), Some(Ok(Outcome::Busy)));
        assert_eq!(cluster.call(0, TAKE), None);
        cluster.feed(0, Event::TimeUp(1));
        cluster.deliver_all();
        assert_eq!(cluster.returned[0], None, "that was another call");
        cluster.feed(0, Event::TimeUp(2));
        cluster.deliver_all();
        assert_eq!(cluster.returned[0], Some(Ok(Outcome::Busy)));
        cluster.must(1, Call::Release(LOCK));
        cluster.must(0, TAKE);
    }
}

#[test]
fn a_manager_knows_whether_its_locks_are_waited_for() {
    for mut cluster in both() {
        let is_awaited = |cluster: &Cluster| cluster.nodes[2].is_awaited();
        let mut awaits = |node: usize, call: Call, awaited: bool| {
            cluster.call(node, call);
            assert_eq!(is_awaited(&cluster), awaited, "node {node}: {call:?}");
        };
        awaits(1, TAKE, false);
        awaits(0, TAKE, true);
        awaits(1, Call::Release(LOCK), false);
        awaits(1, TAKE, true);
        awaits(0, Call::WaitOn(LOCK, ConditionId(0)), false);
        // It acquires the lock again.
        awaits(2, Call::Signal(LOCK, ConditionId(0), Waiters::All), true);
        awaits(1, Call::Release(LOCK), false);
        awaits(1, TAKE, true);
        cluster.feed(1, Event::TimeUp(5));
        cluster.deliver_all();
        assert!(!is_awaited(&cluster), "it does without");
    }
}

#[test]
fn a_signal_wakes_one_or_all() {
    for mut cluster in both() {
        let condition = ConditionId(0);
        for node in 0..2 {
            cluster.must(node, TAKE);
            assert_eq!(cluster.call(node, Call::WaitOn(LOCK, condition)), None);
        }
        cluster.must(2, Call::Signal(LOCK, ConditionId(1), Waiters::All));
        assert_eq!(cluster.returned[..2], [None, None], "another condition");
        cluster.must(2, Call::Signal(LOCK, condition, Waiters::One));
        assert_eq!(
            cluster.returned[..2],
            [Some(Ok(Outcome::Done)), None],
            "the signal wakes the node that waited longest"
        );
        cluster.must(2, Call::Signal(LOCK, condition, Waiters::All));
        assert_eq!(cluster.returned[1], None, "node 0 holds the lock");
        cluster.must(0, Call::Release(LOCK));
        assert_eq!(cluster.returned[1], Some(Ok(Outcome::Done)));
    }
}

#[test]
fn bad_calls_are_named_and_change_nothing() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    let refused = |cluster: &mut Cluster, call| match cluster.call(0, call) {
        Some(Err(why)) => why,
        other => panic!("{call:?} came to {other:?}"),
    };
    let beyond = LockId(3);
    let acquire = Call::Acquire(beyond, Mode::Exclusive, WaitPolicy::Wait);
    assert_eq!(refused(&mut cluster, acquire), DsmError::OutOfRange(Subject::Lock(beyond)));
    let page = Subject::Page(PageId(2));
    assert_eq!(refused(&mut cluster, Call::Fetch(PageId(2))), DsmError::OutOfRange(page));
    let nowhere = Call::Move(Move::Page(PAGE, NodeId(3)));
    let node = Subject::Node(NodeId(3));
    assert_eq!(refused(&mut cluster, nowhere), DsmError::OutOfRange(node));
    assert_eq!(refused(&mut cluster, Call::Release(LOCK)), DsmError::NotHeld(LOCK));
    cluster.must(0, Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Wait));
    let wait = Call::WaitOn(LOCK, ConditionId(0));
    assert_eq!(refused(&mut cluster, wait), DsmError::NotHeld(LOCK));
    assert_eq!(refused(&mut cluster, TAKE), DsmError::AlreadyHeld(LOCK));
    assert_eq!(cluster.call(0, CROSS), None);
    assert_eq!(refused(&mut cluster, CROSS), DsmError::CallOutstanding);
    cluster.returned[0] = None;
    for node in 1..3 {
        cluster.call(node, CROSS);
    }
    assert_eq!(cluster.returned[0], Some(Ok(Outcome::Done)));
}

#[test]
fn a_dead_node_ends_what_waits_and_what_follows() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    cluster.must(1, TAKE);
    assert_eq!(cluster.call(0, TAKE), None);
    cluster.feed(2, Event::PeerLost(NodeId(1)));
    cluster.deliver_all();
    let lost = |subject| Some(Err(DsmError::PeerLost(NodeId(1), subject)));
    assert_eq!(cluster.returned[0], lost(Subject::Lock(LOCK)));
    assert_eq!(cluster.call(0, CROSS), lost(Subject::Barrier));
    assert_eq!(cluster.nodes[0].read(WORD), Ok(0), "what is here can be saved");
}

const SECOND: (usize, ThreadId) = (0, ThreadId(1));
const THIRD: (usize, ThreadId) = (0, ThreadId(2));

#[test]
fn a_lock_has_one_holder_among_the_threads_of_a_node_in_any_mode() {
    for mut cluster in both() {
        let snapshot = Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Wait);
        cluster.must(0, snapshot);
        assert_eq!(cluster.call_by(SECOND, TAKE), None, "it came, and the first reads");
        let attempt = Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Try);
        assert_eq!(cluster.call_by(THIRD, attempt), Some(Ok(Outcome::Busy)));
        let not_held = Err(DsmError::NotHeld(LOCK));
        assert_eq!(cluster.call_by(THIRD, Call::Release(LOCK)), Some(not_held));
        assert_eq!(cluster.call(1, TAKE), None, "the second has it, as others see it");
        cluster.must(0, Call::Release(LOCK));
        assert_eq!(cluster.others[&SECOND], Ok(Outcome::Done));
        cluster.write(0, 4);
        assert_eq!(cluster.call_by(SECOND, Call::Release(LOCK)), Some(Ok(Outcome::Done)));
        assert_eq!(cluster.returned[1], Some(Ok(Outcome::Done)));
        assert_eq!(cluster.read(1), 4);
    }
}

#[test]
fn a_lock_granted_too_late_for_a_thread_is_released() {
    for mut cluster in both() {
        cluster.must(1, TAKE);
        cluster.write(1, 3);
        cluster.must(1, Call::Release(LOCK));
        cluster.must(0, Call::Acquire(LOCK, Mode::NonExclusive, WaitPolicy::Wait));
        assert_eq!(cluster.call_by(SECOND, TAKE), None);
        cluster.feed(0, Event::TimeUp(2));
        cluster.deliver_all();
        assert_eq!(cluster.others[&SECOND], Ok(Outcome::Busy));
        cluster.must(2, TAKE);
        assert_eq!(cluster.read(2), 3, "the log was not lost on the way");
    }
}

#[test]
fn threads_of_a_node_fetch_a_page_once_and_wait_by_themselves() {
    let mut cluster = Cluster::new(Scheme::LogAtManager);
    cluster.write(0, 5);
    cluster.barrier();
    cluster.must(2, TAKE);
    let (reader, waiter) = ((1, ThreadId(1)), (1, ThreadId(2)));
    assert_eq!(cluster.call_by(waiter, TAKE), None);
    cluster.messages();
    cluster.feed(1, Event::Call(ThreadId::FIRST, Call::Fetch(PAGE)));
    cluster.feed(1, Event::Call(reader.1, Call::Fetch(PAGE)));
    cluster.deliver_all();
    assert_eq!(cluster.messages(), 2, "asked for once, and sent once");
    assert_eq!(cluster.others[&reader], Ok(Outcome::Done));
    assert_eq!(cluster.nodes[1].read(WORD), Ok(5));
    // At a barrier no thread may have a call outstanding, and then none may begin one.
    assert_eq!(cluster.call(1, CROSS), Some(Err(DsmError::CallOutstanding)));
    cluster.must(2, Call::Release(LOCK));
    assert_eq!(cluster.others[&waiter], Ok(Outcome::Done));
    assert_eq!(cluster.call(1, CROSS), None);
    assert_eq!(cluster.call_by(reader, TAKE), Some(Err(DsmError::CallOutstanding)));
}
