//! Nodes for interpreters: every access is a call, by threads that are named by numbers.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::thread;

use kyocho_dsm::transport::Local;
use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::{
    BarrierKind, CheckedNode, ConditionId, Dsm, DsmError, Error, Layout, LockId, Mode, NodeId,
    PageId, Placement, Scheme, SharedArray, Subject, ThreadId, WaitPolicy, Waiters,
};

const LOCK: LockId = LockId(1);
const FIRST: ThreadId = ThreadId::FIRST;
/// Three words, so some elements lie on two pages.
type Element = [u32; 3];

/// Runs `program` on each of two nodes.
fn on_nodes(program: impl Fn(CheckedNode) + Sync) {
    let regions = (0..16).map(|page| NodeId(page % 2)).collect::<Vec<_>>().into();
    let words_a_page = WORDS_A_PAGE as u32;
    let scheme = Scheme::LogAtManager;
    let layout = &Layout { nodes: 2, regions, words_a_page, locks: 4, scheme };
    thread::scope(|scope| {
        for (network, me) in Local::mesh(2).into_iter().zip(0..) {
            let program = &program;
            scope.spawn(move || {
                let (how, network) = (Some(Detection::Protect), Box::new(network));
                program(Dsm::inside(NodeId(me), layout.clone(), how, network).unwrap().checked());
            });
        }
    });
}

fn acquire(node: &CheckedNode, thread: ThreadId) {
    assert!(node.acquire(thread, LOCK, Mode::Exclusive, WaitPolicy::Wait, &|| false).unwrap());
}

fn count(node: &CheckedNode, thread: ThreadId, array: &SharedArray<Element>) {
    for _ in 0..50 {
        acquire(node, thread);
        let [low, middle, high] = node.get(thread, array, 341).unwrap();
        node.set(thread, array, 341, [low + 1, middle + 2, high + 3]).unwrap();
        node.release(thread, LOCK).unwrap();
    }
}

#[test]
fn threads_of_all_nodes_count_in_an_element_that_lies_on_two_pages() {
    on_nodes(|node| {
        let array = node.allocate::<Element>(FIRST, 700, Placement::Cyclic).unwrap();
        thread::scope(|scope| {
            for number in 1..4 {
                let (node, array) = (&node, &array);
                scope.spawn(move || count(node, ThreadId(number), array));
            }
        });
        let mine = 10 + usize::from(node.rank());
        node.set(FIRST, &array, mine, [7, 8, 9]).unwrap();
        node.barrier(FIRST, BarrierKind::SingleReadWrite).unwrap();
        assert_eq!(node.get(FIRST, &array, 341).unwrap(), [300, 600, 900]);
        for place in [10, 11] {
            assert_eq!(node.get(FIRST, &array, place).unwrap(), [7, 8, 9]);
        }
        node.leave(FIRST).unwrap();
    });
}

#[test]
fn a_thread_waits_on_a_condition_of_another_node() {
    on_nodes(|node| {
        let flag = node.allocate::<Element>(FIRST, 1, Placement::On(NodeId(0))).unwrap();
        acquire(&node, FIRST);
        if node.rank() == 0 {
            node.set(FIRST, &flag, 0, [1, 0, 0]).unwrap();
        }
        while node.get(FIRST, &flag, 0).unwrap()[0] == 0 {
            node.wait(FIRST, LOCK, ConditionId(0), &|| false).unwrap();
        }
        node.release(FIRST, LOCK).unwrap();
        node.signal(FIRST, LOCK, ConditionId(0), Waiters::All).unwrap();
        node.leave(FIRST).unwrap();
    });
}

#[test]
fn waiting_threads_can_give_up() {
    on_nodes(|node| {
        if node.rank() == 0 {
            acquire(&node, FIRST);
        }
        node.barrier(FIRST, BarrierKind::Ordinary).unwrap();
        if node.rank() == 1 {
            let has = node.acquire(FIRST, LOCK, Mode::Exclusive, WaitPolicy::Wait, &|| true);
            assert!(!has.unwrap(), "the other has it");
        }
        // A thread that waits on a condition does not hold the lock meanwhile.
        node.barrier(FIRST, BarrierKind::Ordinary).unwrap();
        if node.rank() == 0 {
            // No thread signals; the waiting thread has the lock again afterwards.
            node.wait(FIRST, LOCK, ConditionId(0), &|| true).unwrap();
            node.release(FIRST, LOCK).unwrap();
        }
        node.leave(FIRST).unwrap();
    });
}

#[test]
fn what_is_lost_with_its_node_is_an_error_and_the_rest_can_be_read() {
    on_nodes(|node| {
        let array = node.allocate::<Element>(FIRST, 700, Placement::On(NodeId(1))).unwrap();
        if node.rank() == 1 {
            node.set(FIRST, &array, 600, [1, 1, 1]).unwrap();
            return node.barrier(FIRST, BarrierKind::Ordinary).unwrap();
        }
        node.barrier(FIRST, BarrierKind::Ordinary).unwrap();
        let dead = node.barrier(FIRST, BarrierKind::Ordinary).unwrap_err();
        assert_eq!(dead.to_string(), "node 1 is dead: the barrier is not available; save and exit");
        let lost = node.get(FIRST, &array, 600).unwrap_err();
        let page = Subject::Page(PageId(1));
        assert!(
            matches!(lost, Error::Protocol(DsmError::PeerLost(NodeId(1), what)) if what == page),
            "{lost}"
        );
        assert_eq!(node.get(FIRST, &array, 0).unwrap(), [0; 3]);
    });
}
