//! Several threads per node, on real pages: kernel threads, and microprocesses on one virtual
//! processor.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use kyocho_dsm::transport::{Arrival, Local, Transport};
use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::wire;
use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, DsmError, Error, Layout, LockId, Message, Mode, NodeId,
    NodeThread, PageId, Placement, Scheme, SharedArray, Subject, Waiters,
};
use kyocho_microprocess as microprocess;

#[path = "support/permitted.rs"]
mod permitted;
use permitted::permitted;

const LOCK: LockId = LockId(1);
const THREADS: u16 = 3;
const SCHEMES: [Scheme; 2] = [Scheme::LogAtManager, Scheme::LogAtLastHolder];

fn layout(nodes: u16, scheme: Scheme) -> Layout {
    let regions = (0..512).map(|page| NodeId(page % nodes)).collect::<Vec<_>>().into();
    Layout { nodes, regions, words_a_page: WORDS_A_PAGE as u32, locks: 8, scheme }
}

/// Runs `program` on each of two nodes.
fn on_nodes<T: Send>(
    scheme: Scheme,
    detection: Detection,
    program: impl Fn(Dsm) -> T + Sync,
) -> Vec<T> {
    let (layout, program) = (&layout(2, scheme), &program);
    thread::scope(|scope| {
        let nodes = Local::mesh(2).into_iter().zip(0..).map(|(network, me)| {
            scope.spawn(move || {
                let network = Box::new(network);
                program(Dsm::inside(NodeId(me), layout.clone(), Some(detection), network).unwrap())
            })
        });
        let nodes: Vec<_> = nodes.collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

/// Runs `work` on three threads of this node.
fn on_threads(dsm: &mut Dsm, work: impl Fn(NodeThread<'_>) + Sync) {
    thread::scope(|scope| {
        for slot in dsm.thread_slots(THREADS) {
            let work = &work;
            scope.spawn(move || work(slot.take().unwrap()));
        }
    });
}

const TURNS: u32 = 100;
const OWN_PAGES: usize = 150;
const OWN_WORDS: usize = 400;

/// Pages and words that one thread of each node writes without a lock. The words are in page 0,
/// beside a counter.
fn own_page(rank: u16, step: usize) -> usize {
    (1 + usize::from(rank) * OWN_PAGES + step) * WORDS_A_PAGE
}

fn own_word(rank: u16, step: usize) -> usize {
    100 + usize::from(rank) * OWN_WORDS + step
}

/// Writes each word once, and to each page twice, the second time a little later.
fn write_own(member: &NodeThread<'_>, array: &SharedArray<u32>, value: u32) {
    let (cells, rank) = (member.cells(array), member.rank());
    for step in 0..OWN_WORDS {
        cells[own_word(rank, step)].set(value);
        if step < OWN_PAGES {
            cells[own_page(rank, step)].set(value);
        }
        if (2..OWN_PAGES + 2).contains(&step) {
            cells[own_page(rank, step - 2) + 1].set(value);
        }
        core::hint::black_box((0..200).fold(0_u64, |sum, one| core::hint::black_box(sum + one)));
    }
}

/// Two threads of each node count under a lock, in a page where the third writes words without a
/// lock. Meanwhile the calls of the two collect writes and apply those of the other node.
fn count_and_write(mut dsm: Dsm) -> Vec<(u32, Vec<u32>)> {
    let length = (1 + 2 * OWN_PAGES) * WORDS_A_PAGE;
    let array = dsm.allocate::<u32>(length, Placement::Cyclic).unwrap();
    let work = |mut member: NodeThread<'_>, round| {
        if member.number() == 2 {
            return write_own(&member, &array, round);
        }
        for _ in 0..TURNS {
            member.acquire(LOCK, Mode::Exclusive).unwrap();
            let counter = &member.cells(&array)[0];
            counter.set(counter.get() + 1);
            member.release(LOCK).unwrap();
        }
    };
    let rounds = (1..=4).map(|round| {
        on_threads(&mut dsm, |member| work(member, round));
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let words = (0..2).flat_map(|rank| (0..OWN_WORDS).map(move |step| own_word(rank, step)));
        let pages = (0..2).flat_map(|rank| (0..OWN_PAGES).map(move |step| own_page(rank, step)));
        let places = words.chain(pages.flat_map(|first| [first, first + 1]));
        let cells = dsm.cells(&array);
        let seen = (cells[0].get(), places.map(|place| cells[place].get()).collect());
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        seen
    });
    let rounds = rounds.collect();
    dsm.leave().unwrap();
    rounds
}

#[test]
fn what_threads_write_is_neither_lost_nor_overwritten() {
    for detection in permitted("what_threads_write_is_neither_lost_nor_overwritten") {
        for scheme in SCHEMES {
            let seen = on_nodes(scheme, detection, count_and_write);
            let of_round =
                |round| (round * TURNS * 4, vec![round; 2 * (OWN_WORDS + 2 * OWN_PAGES)]);
            let expected: Vec<_> = (1..=4).map(of_round).collect();
            assert!(seen.iter().all(|seen| *seen == expected), "{detection}, {scheme:?}");
        }
    }
}

/// Each thread of all nodes writes a page and then reads that of the next thread. The first thread
/// of each node leaves before the last barrier.
fn write_and_look_around(mut dsm: Dsm) {
    let pages = 2 * usize::from(THREADS);
    let array = dsm.allocate::<u32>(pages * WORDS_A_PAGE, Placement::Cyclic).unwrap();
    on_threads(&mut dsm, |mut member| {
        let mine = usize::from(member.rank() * THREADS + member.number()) * WORDS_A_PAGE;
        let next = (mine + WORDS_A_PAGE) % array.len();
        for round in 1..=5 {
            member.cells(&array)[mine].set(round);
            member.barrier(BarrierKind::SingleReadWrite).unwrap();
            assert_eq!(member.cells(&array)[next].get(), round);
            member.barrier(BarrierKind::SingleReadWrite).unwrap();
        }
        if member.number() > 0 {
            member.barrier(BarrierKind::Ordinary).unwrap();
        }
    });
    dsm.barrier(BarrierKind::Ordinary).unwrap();
    dsm.leave().unwrap();
}

#[test]
fn a_barrier_waits_for_all_threads_of_all_nodes_that_have_not_left() {
    for detection in permitted("a_barrier_waits_for_all_threads_of_all_nodes_that_have_not_left") {
        on_nodes(Scheme::LogAtManager, detection, write_and_look_around);
    }
}

/// The first thread of each node sets its node's flag; the others wait for it.
fn raise_and_wait(mut member: NodeThread<'_>, flags: &SharedArray<u32>) {
    let mine = usize::from(member.rank());
    member.acquire(LOCK, Mode::Exclusive).unwrap();
    if member.number() == 0 {
        member.cells(flags)[mine].set(1);
        member.release(LOCK).unwrap();
        return member.signal(LOCK, ConditionId(0), Waiters::All).unwrap();
    }
    while member.cells(flags)[mine].get() == 0 {
        member.wait(LOCK, ConditionId(0)).unwrap();
    }
    member.release(LOCK).unwrap();
}

#[test]
fn a_thread_waits_on_a_condition_that_another_of_its_node_brings_about() {
    for scheme in SCHEMES {
        on_nodes(scheme, Detection::Protect, |mut dsm: Dsm| {
            let flags = dsm.allocate::<u32>(2, Placement::On(NodeId(0))).unwrap();
            on_threads(&mut dsm, |member| raise_and_wait(member, &flags));
            dsm.leave().unwrap();
        });
    }
}

#[test]
fn all_threads_get_an_error_for_a_dead_node() {
    let dead = |error: &Error| match error {
        Error::Protocol(DsmError::PeerLost(NodeId(1), subject)) => Some(*subject),
        _ => None,
    };
    on_nodes(Scheme::LogAtManager, Detection::Protect, |mut dsm: Dsm| {
        if dsm.rank() == 1 {
            // It holds the locks that the others want, and ends when they have asked for them.
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
            dsm.acquire(LockId(0), Mode::Exclusive).unwrap();
            dsm.barrier(BarrierKind::Ordinary).unwrap();
            return drop(dsm);
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        on_threads(&mut dsm, |mut member| {
            let (waited, subject) = match member.number() {
                0 => (member.acquire(LOCK, Mode::Exclusive), Subject::Lock(LOCK)),
                1 => (member.acquire(LockId(0), Mode::Exclusive), Subject::Lock(LockId(0))),
                _ => (member.barrier(BarrierKind::Ordinary), Subject::Barrier),
            };
            assert_eq!(waited.as_ref().err().and_then(dead), Some(subject), "{waited:?}");
        });
    });
}

/// One thread holds a lock and arrives at a barrier that can no longer be crossed. Another thread,
/// which waits for the lock, gets an error as well.
#[test]
fn all_threads_get_an_error_for_a_node_that_has_left() {
    let left = |error: &Error| match error {
        Error::Protocol(DsmError::PeerLeft(NodeId(1), subject)) => Some(*subject),
        _ => None,
    };
    on_nodes(Scheme::LogAtManager, Detection::Protect, |mut dsm: Dsm| {
        if dsm.rank() == 1 {
            return dsm.leave().unwrap();
        }
        dsm.acquire(LockId(2), Mode::Exclusive).unwrap();
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        on_threads(&mut dsm, |mut member| {
            let (waited, subject) = match member.number() {
                0 => (member.acquire(LockId(2), Mode::Exclusive), Subject::Lock(LockId(2))),
                1 => (member.barrier(BarrierKind::Ordinary), Subject::Barrier),
                // It arrives at no barrier.
                _ => return,
            };
            assert_eq!(waited.as_ref().err().and_then(left), Some(subject), "{waited:?}");
        });
    });
}

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Plays node 1, which answers a request for a page only once another microprocess has run for a
/// while.
fn slow_manager(network: &Local, goes_on: &AtomicU32) {
    let layout = layout(2, Scheme::LogAtManager);
    let until = Instant::now() + WATCHDOG;
    while Instant::now() < until {
        for arrival in network.receive(WATCHDOG) {
            let Arrival::Message(_, bytes) = arrival else { return };
            let (epoch, message) = wire::decode(&bytes, &layout).unwrap();
            let Message::Fetch(page, _) = message else { continue };
            while goes_on.load(Ordering::Acquire) < 1000 && Instant::now() < until {
                thread::park_timeout(Duration::from_millis(1));
            }
            let words = vec![7; WORDS_A_PAGE].into();
            network.send(NodeId(0), &wire::encode(epoch, &Message::Page(page, words)));
        }
    }
}

/// One microprocess reads an absent page, another runs meanwhile. Returns what was read, and how
/// far the other had come by then.
fn read_and_go_on(mut dsm: Dsm, goes_on: &AtomicU32) -> (u32, u32) {
    // The peer wrote to page 1 in the epoch that ends here.
    let array = &dsm.allocate(2 * WORDS_A_PAGE, Placement::Cyclic).unwrap();
    microprocess::scope(|scope| {
        let [reader, other] = dsm.thread_slots(2).try_into().unwrap();
        scope.spawn(move || {
            while goes_on.fetch_add(1, Ordering::AcqRel) < 2000 {
                microprocess::yield_now();
            }
            drop(other);
        });
        let read = scope.spawn(move || {
            let word = reader.take().unwrap().cells(array)[WORDS_A_PAGE].get();
            (word, goes_on.load(Ordering::Acquire))
        });
        read.join().unwrap()
    })
}

#[test]
fn a_microprocess_that_accesses_an_absent_page_blocks_no_other() {
    for detection in permitted("a_microprocess_that_accesses_an_absent_page_blocks_no_other") {
        let goes_on = &AtomicU32::new(0);
        let mut mesh = Local::mesh(2);
        let (peer, network) = (&mesh.pop().unwrap(), mesh.pop().unwrap());
        let arrive = Message::Arrive {
            time: 1,
            written: vec![PageId(1)],
            held: Vec::new(),
            moves: Vec::new(),
            kind: BarrierKind::Ordinary,
        };
        peer.send(NodeId(0), &wire::encode(0, &arrive));
        let node = move || {
            let layout = layout(2, Scheme::LogAtManager);
            let dsm = Dsm::inside(NodeId(0), layout, Some(detection), Box::new(network)).unwrap();
            read_and_go_on(dsm, goes_on)
        };
        let runtime = microprocess::Runtime::builder().virtual_processors(1).build();
        let (word, by_then) = thread::scope(|scope| {
            scope.spawn(|| slow_manager(peer, goes_on));
            scope.spawn(move || runtime.run(node).unwrap()).join().unwrap()
        });
        assert_eq!(word, 7, "{detection}");
        assert!(by_then >= 1000, "the other went on to {by_then} only, {detection}");
    }
}
