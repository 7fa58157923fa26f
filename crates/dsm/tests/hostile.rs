//! Peers that know the secret and violate the protocol. Each violation is named in an error, and
//! changes nothing.

use std::sync::Arc;

use kyocho_dsm::{
    Action, Address, BarrierKind, Call, ConditionId, DsmError, Event, Layout, LockId, Message,
    Mode, Move, Node, NodeId, PageId, Placement, ProtocolViolation, RegionDifference,
    RegionFailure, RegionMismatch, RegionPlan, Scheme, Subject, ThreadId, Update, WaitPolicy,
    Waiters, wire,
};
use proptest::prelude::*;

const NODES: u16 = 3;
const PAGES: u64 = 3;
/// Where a second region may lie.
const FAR: u64 = 1 << 40;
const LOCKS: u32 = 3;
const WORDS: u32 = 4;
const TAKE: Call = Call::Acquire(LockId(0), Mode::Exclusive, WaitPolicy::Wait);
const CROSS: Call = Call::Barrier(BarrierKind::Ordinary);

/// Node `me` of three. Each node manages the page and the lock of its own rank, and node 0 the
/// barriers.
fn node(me: u16, scheme: Scheme) -> Node {
    let regions = (0..PAGES as u16).map(NodeId).collect::<Vec<_>>().into();
    let layout = Layout { nodes: NODES, regions, words_a_page: WORDS, locks: LOCKS, scheme };
    Node::new(NodeId(me), layout)
}

/// Processes an event, and what the node asks for at once.
fn step(node: &mut Node, event: Event) -> Vec<Action> {
    let mut actions = node.step(event);
    let disowned: Vec<PageId> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Disown(page) => Some(*page),
            _ => None,
        })
        .collect();
    for page in disowned {
        let contents = node.copy(page).expect("it is owned").clone();
        actions.extend(step(node, Event::Disowned(page, contents)));
    }
    actions
}

fn contents() -> Arc<[u32]> {
    vec![7; WORDS as usize].into()
}

fn grant(lock: u32, mode: Mode) -> Message {
    Message::Grant {
        lock: LockId(lock),
        thread: ThreadId::FIRST,
        mode,
        stamp: 1,
        time: 1,
        updates: Vec::new(),
    }
}

fn release(lock: u32) -> Message {
    Message::Release { lock: LockId(lock), time: 1, updates: Vec::new(), then_wait: None, seen: 0 }
}

fn acquire(lock: u32) -> Message {
    Message::Acquire {
        lock: LockId(lock),
        thread: ThreadId::FIRST,
        mode: Mode::Exclusive,
        immediately: false,
        seen: 0,
    }
}

fn arrive() -> Message {
    Message::Arrive {
        time: 1,
        written: Vec::new(),
        held: Vec::new(),
        moves: Vec::new(),
        kind: BarrierKind::Ordinary,
    }
}

/// All nodes have arrived, and hold these locks.
fn go_holding(held: Vec<(LockId, NodeId)>) -> Message {
    let kind = BarrierKind::Ordinary;
    Message::Go { time: 1, written: Vec::new(), held, moves: Vec::new(), kind }
}

/// A node has arrived, and claims to hold these locks.
fn arrive_holding(held: Vec<LockId>) -> Message {
    let kind = BarrierKind::Ordinary;
    Message::Arrive { time: 1, written: Vec::new(), held, moves: Vec::new(), kind }
}

fn go(moves: Vec<Move>) -> Message {
    Message::Go {
        time: 1,
        written: Vec::new(),
        held: Vec::new(),
        moves,
        kind: BarrierKind::Ordinary,
    }
}

fn update(page: u64) -> Update {
    Update { address: Address { page: PageId(page), word: 1 }, time: 1, value: 9 }
}

#[test]
fn an_impossible_message_is_a_violation_and_changes_nothing() {
    let ill_timed = [
        (0, grant(0, Mode::Exclusive), "Grant"),
        (0, Message::Busy(LockId(0), ThreadId::FIRST), "Busy"),
        (0, release(0), "Release"),
        (0, acquire(1), "Acquire"),
        (0, Message::Cancel(LockId(1), ThreadId::FIRST), "Cancel"),
        (0, Message::Awaken(LockId(1), ThreadId::FIRST), "Awaken"),
        (
            0,
            Message::HandOn {
                lock: LockId(1),
                to: NodeId(2),
                thread: ThreadId::FIRST,
                mode: Mode::Exclusive,
                time: 1,
            },
            "HandOn",
        ),
        (0, Message::Flush(vec![update(1)]), "Flush"),
        (0, go(Vec::new()), "Go"),
        (0, Message::Master(PageId(1), contents()), "Master"),
        (0, Message::Fetch(PageId(1), 0), "Fetch"),
        (0, Message::Page(PageId(1), contents()), "Page"),
        (0, Message::Lost(NodeId(0)), "Lost"),
        (0, Message::Stranded(NodeId(0)), "Stranded"),
        // Two barriers ahead.
        (2, arrive(), "Arrive"),
    ];
    for (epoch, message, name) in ill_timed {
        let mut node = node(0, Scheme::LogAtManager);
        let actions = step(&mut node, Event::Message(NodeId(1), epoch, message));
        let is_notice = |action: &Action| {
            matches!(action, Action::Send(NodeId(2), _, Message::Lost(NodeId(1))))
        };
        assert_eq!(actions.len(), 1, "{name}: {actions:?}");
        assert!(is_notice(&actions[0]), "the third node is told of {name}: {actions:?}");
        assert_eq!(node.read(update(0).address), Ok(0), "{name}");
        let error = DsmError::PeerBroke(
            NodeId(1),
            ProtocolViolation::IllTimed(name),
            Subject::Lock(LockId(0)),
        );
        assert_eq!(
            step(&mut node, Event::Call(ThreadId::FIRST, TAKE)),
            [Action::Return(ThreadId::FIRST, Err(error))]
        );
        assert!(error.to_string().contains(&format!("node 1 broke the protocol: it sent {name},")));
    }
}

#[test]
fn a_repeated_message_is_a_violation() {
    let twice =
        [(Message::Flush(vec![update(0)]), "Flush"), (arrive(), "Arrive"), (acquire(0), "Acquire")];
    for (message, name) in twice {
        let mut node = node(0, Scheme::LogAtManager);
        step(&mut node, Event::Message(NodeId(1), 0, message.clone()));
        let actions = step(&mut node, Event::Message(NodeId(1), 0, message));
        assert!(matches!(actions[..], [Action::Send(..)]), "{name}: {actions:?}");
        let breach = ProtocolViolation::IllTimed(name);
        let error = DsmError::PeerBroke(NodeId(1), breach, Subject::Barrier);
        assert_eq!(
            step(&mut node, Event::Call(ThreadId::FIRST, CROSS)),
            [Action::Return(ThreadId::FIRST, Err(error))]
        );
    }
}

#[test]
fn waiting_calls_fail_on_a_violation() {
    let mut node = node(0, Scheme::LogAtManager);
    step(&mut node, Event::Message(NodeId(2), 0, acquire(0)));
    step(&mut node, Event::Call(ThreadId::FIRST, TAKE));
    let actions = step(&mut node, Event::Message(NodeId(1), 0, release(0)));
    let breach = ProtocolViolation::IllTimed("Release");
    let error = DsmError::PeerBroke(NodeId(1), breach, Subject::Lock(LockId(0)));
    assert!(actions.contains(&Action::Return(ThreadId::FIRST, Err(error))), "{actions:?}");
}

/// A node waits for a lock that it manages: no other node grants or refuses it.
#[test]
fn a_lock_manager_accepts_grants_from_no_other_node() {
    for scheme in [Scheme::LogAtManager, Scheme::LogAtLastHolder] {
        let answers = [
            (grant(0, Mode::Exclusive), "Grant"),
            (Message::Busy(LockId(0), ThreadId::FIRST), "Busy"),
        ];
        for (message, name) in answers {
            let mut node = node(0, scheme);
            step(&mut node, Event::Call(ThreadId::FIRST, TAKE));
            step(&mut node, Event::Call(ThreadId::FIRST, Call::WaitOn(LockId(0), ConditionId(0))));
            let actions = step(&mut node, Event::Message(NodeId(1), 0, message));
            let error = DsmError::PeerBroke(
                NodeId(1),
                ProtocolViolation::IllTimed(name),
                Subject::Lock(LockId(0)),
            );
            assert!(
                actions.contains(&Action::Return(ThreadId::FIRST, Err(error))),
                "{scheme:?}: {actions:?}"
            );
        }
    }
}

#[test]
fn messages_of_the_next_epoch_are_bounded() {
    let mut node = node(0, Scheme::LogAtManager);
    let signal = Message::Signal { lock: LockId(0), condition: ConditionId(0), all: false };
    let mut sent = 0;
    while step(&mut node, Event::Message(NodeId(1), 1, signal.clone())).is_empty() {
        sent += 1;
        assert!(sent <= 1 << 16, "there is no bound");
    }
    assert_eq!(sent, 1 << 16);
}

#[test]
fn bytes_of_the_next_epoch_are_bounded() {
    const MANY: usize = 1 << 16;
    /// What may wait, at most; twice as much shows whether there is a bound.
    const BYTES_MAX: usize = 1 << 25;
    let flush = Message::Flush(vec![update(0); MANY]);
    let flushes_max = BYTES_MAX / (MANY * size_of::<Update>());
    let mut node = node(0, Scheme::LogAtManager);
    let waits = |_: &usize| step(&mut node, Event::Message(NodeId(1), 1, flush.clone())).is_empty();
    let flushes = (0..2 * flushes_max).take_while(waits).count();
    assert!((1..=flushes_max).contains(&flushes), "{flushes} wait, of {flushes_max} at most");
}

#[test]
fn what_one_peer_sends_too_early_leaves_room_for_another() {
    let mut node = node(0, Scheme::LogAtManager);
    let signal = Message::Signal { lock: LockId(0), condition: ConditionId(0), all: false };
    for _ in 0..1 << 16 {
        assert!(step(&mut node, Event::Message(NodeId(1), 1, signal.clone())).is_empty());
    }
    assert!(step(&mut node, Event::Message(NodeId(2), 1, signal)).is_empty(), "its first one");
}

/// The actions of node `me`, whose program waits at a barrier, when this message arrives from a
/// peer.
fn actions_at_barrier(me: u16, from: u16, message: Message) -> Vec<Action> {
    let mut node = node(me, Scheme::LogAtManager);
    step(&mut node, Event::Call(ThreadId::FIRST, CROSS));
    step(&mut node, Event::Message(NodeId(from), 0, message))
}

#[test]
fn a_lock_that_a_peer_cannot_hold_at_a_barrier_is_a_breach_of_that_peer() {
    let cases = [
        // Lock 0, which node 0 has not granted.
        (0, 1, arrive_holding(vec![LockId(0)]), 1, "Arrive"),
        (0, 1, arrive_holding(vec![LockId(1), LockId(1)]), 1, "Arrive"),
        // Node 0 forwards the claim of node 2 about lock 1, which node 1 has granted to no node.
        (1, 0, go_holding(vec![(LockId(1), NodeId(2))]), 2, "Arrive"),
        // Node 1 has not claimed it.
        (1, 0, go_holding(vec![(LockId(0), NodeId(1))]), 0, "Go"),
    ];
    for (me, from, message, broke, name) in cases {
        let breach = ProtocolViolation::IllTimed(name);
        let error = DsmError::PeerBroke(NodeId(broke), breach, Subject::Barrier);
        let actions = actions_at_barrier(me, from, message.clone());
        let returned = Action::Return(ThreadId::FIRST, Err(error));
        assert!(actions.contains(&returned), "{message:?}: {actions:?}");
    }
}

#[test]
fn a_region_that_this_node_cannot_make_is_refused_before_the_barrier_ends() {
    let mut node = node(1, Scheme::LogAtManager);
    let plan = RegionPlan { first: PageId(FAR), pages: 1, placement: Placement::Cyclic };
    let make = Call::Region(plan, Some(RegionFailure::Threads));
    step(&mut node, Event::Call(ThreadId::FIRST, make));
    let actions = step(&mut node, Event::Message(NodeId(0), 0, go(Vec::new())));
    let breach = ProtocolViolation::IllTimed("Go");
    let error = DsmError::PeerBroke(NodeId(0), breach, Subject::Barrier);
    assert!(actions.contains(&Action::Return(ThreadId::FIRST, Err(error))), "{actions:?}");
}

#[test]
fn a_lock_that_this_node_holds_is_not_forgotten_at_a_barrier() {
    let mut node = node(1, Scheme::LogAtManager);
    let take = Call::Acquire(LockId(1), Mode::Exclusive, WaitPolicy::Wait);
    step(&mut node, Event::Call(ThreadId::FIRST, take));
    step(&mut node, Event::Call(ThreadId::FIRST, CROSS));
    let actions = step(&mut node, Event::Message(NodeId(0), 0, go(Vec::new())));
    let breach = ProtocolViolation::IllTimed("Go");
    let error = DsmError::PeerBroke(NodeId(0), breach, Subject::Barrier);
    assert!(actions.contains(&Action::Return(ThreadId::FIRST, Err(error))), "{actions:?}");
}

#[test]
fn a_lock_that_a_peer_holds_at_a_barrier_is_its_own_behind_it() {
    let mut node = node(0, Scheme::LogAtManager);
    step(&mut node, Event::Message(NodeId(1), 0, acquire(0)));
    step(&mut node, Event::Call(ThreadId::FIRST, CROSS));
    for (peer, held) in [(1, vec![LockId(0)]), (2, Vec::new())] {
        step(&mut node, Event::Message(NodeId(peer), 0, arrive_holding(held)));
    }
    assert_eq!(node.epoch(), 1, "the barrier is crossed");
    step(&mut node, Event::Message(NodeId(1), 1, release(0)));
    let taken = step(&mut node, Event::Call(ThreadId::FIRST, TAKE));
    assert!(taken.iter().any(|action| matches!(action, Action::Return(_, Ok(_)))), "{taken:?}");
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::NonExclusive)]
}

fn lock() -> impl Strategy<Value = LockId> {
    (0..LOCKS).prop_map(LockId)
}

fn thread() -> impl Strategy<Value = ThreadId> {
    (0..3_u16).prop_map(ThreadId)
}

/// A page of the first region, or of one that may be created.
fn page() -> impl Strategy<Value = PageId> {
    prop_oneof![4 => (0..PAGES).prop_map(PageId), 1 => (FAR..FAR + 2).prop_map(PageId)]
}

fn plan() -> impl Strategy<Value = RegionPlan> {
    (1..3_u64).prop_map(|pages| RegionPlan {
        first: PageId(FAR),
        pages,
        placement: Placement::Cyclic,
    })
}

fn peer() -> impl Strategy<Value = NodeId> {
    (0..NODES).prop_map(NodeId)
}

fn kind() -> impl Strategy<Value = BarrierKind> {
    prop_oneof![Just(BarrierKind::Ordinary), Just(BarrierKind::SingleReadWrite)]
}

fn updates() -> impl Strategy<Value = Vec<Update>> {
    let one = (page(), 0..WORDS, 0..9_u64).prop_map(|(page, word, time)| Update {
        address: Address { page, word },
        time,
        value: 1,
    });
    prop::collection::vec(one, 0..3)
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        (lock(), peer()).prop_map(|(lock, to)| Move::Lock(lock, to)),
        (page(), peer()).prop_map(|(page, to)| Move::Page(page, to)),
    ];
    prop::collection::vec(one, 0..3)
}

/// Any message about names that a layout may have.
fn message() -> impl Strategy<Value = Message> {
    let held = prop::collection::vec(lock(), 0..2);
    let holders = prop::collection::vec((lock(), peer()), 0..2);
    let pages = prop::collection::vec(page(), 0..3);
    let writers = prop::collection::vec((page(), prop::collection::vec(peer(), 0..3)), 0..3);
    let number = 0..9_u64;
    prop_oneof![
        (lock(), thread(), mode(), any::<bool>(), number.clone()).prop_map(
            |(lock, thread, mode, immediately, seen)| Message::Acquire {
                lock,
                thread,
                mode,
                immediately,
                seen
            }
        ),
        (lock(), thread()).prop_map(|(lock, thread)| Message::Cancel(lock, thread)),
        (lock(), thread()).prop_map(|(lock, thread)| Message::Awaken(lock, thread)),
        (lock(), thread()).prop_map(|(lock, thread)| Message::Busy(lock, thread)),
        (lock(), thread(), mode(), number.clone(), updates()).prop_map(
            |(lock, thread, mode, time, updates)| {
                Message::Grant { lock, thread, mode, stamp: time, time, updates }
            }
        ),
        (lock(), peer(), thread(), mode(), number.clone()).prop_map(
            |(lock, to, thread, mode, time)| Message::HandOn { lock, to, thread, mode, time }
        ),
        (lock(), number.clone(), updates(), any::<bool>()).prop_map(
            |(lock, time, updates, waits)| Message::Release {
                lock,
                time,
                updates,
                then_wait: waits.then_some((ConditionId(0), ThreadId(1))),
                seen: time,
            }
        ),
        (lock(), any::<bool>()).prop_map(|(lock, all)| Message::Signal {
            lock,
            condition: ConditionId(0),
            all
        }),
        updates().prop_map(Message::Flush),
        (number.clone(), pages, held, moves(), kind()).prop_map(
            |(time, written, held, moves, kind)| Message::Arrive {
                time,
                written,
                held,
                moves,
                kind
            }
        ),
        (number, writers, holders, moves(), kind()).prop_map(
            |(time, written, held, moves, kind)| Message::Go { time, written, held, moves, kind }
        ),
        page().prop_map(|page| Message::Master(page, contents())),
        page().prop_map(|page| Message::Fetch(page, 0)),
        page().prop_map(|page| Message::Page(page, contents())),
        peer().prop_map(Message::Lost),
        peer().prop_map(Message::Stranded),
        plan().prop_map(|plan| Message::Region(plan, None)),
        (plan(), peer(), peer()).prop_map(|(plan, by, other)| {
            Message::Refuse(RegionMismatch {
                plan,
                by,
                other,
                difference: RegionDifference::Nothing,
            })
        }),
        Just(Message::Left),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        (lock(), mode()).prop_map(|(lock, mode)| Call::Acquire(lock, mode, WaitPolicy::Wait)),
        lock().prop_map(Call::Release),
        lock().prop_map(|lock| Call::WaitOn(lock, ConditionId(0))),
        lock().prop_map(Call::Publish),
        lock().prop_map(|lock| Call::Signal(lock, ConditionId(0), Waiters::All)),
        kind().prop_map(Call::Barrier),
        plan().prop_map(|plan| Call::Region(plan, None)),
        page().prop_map(Call::Fetch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    /// A node that keeps to the protocol, with peers that send anything in any order.
    #[test]
    fn no_message_breaks_a_node(
        holder in any::<bool>(),
        me in 0..2_u16,
        steps in prop::collection::vec((thread(), call(), 1..NODES, 0..2_u64, message()), 1..40),
    ) {
        let scheme = if holder { Scheme::LogAtLastHolder } else { Scheme::LogAtManager };
        let mut node = node(me, scheme);
        for (thread, call, from, ahead, message) in steps {
            step(&mut node, Event::Call(thread, call));
            if let Ok(word) = node.read(update(0).address) {
                node.write(update(0).address, word + 1).expect("it was read");
            }
            let (from, epoch) = (NodeId((me + from) % NODES), node.epoch() + ahead);
            let event = match wire::check(epoch, &message, node.layout()) {
                Ok(()) => Event::Message(from, epoch, message),
                Err(why) => Event::InvalidMessage(from, why),
            };
            step(&mut node, event);
        }
    }
}
