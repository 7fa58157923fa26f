//! Programs on real pages: several nodes in this process, over all transports that need no MPI job,
//! with every way to detect writes.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::sync::Barrier;

use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, DsmError, Error, LockId, Mode, NodeId, PageId, Placement,
    Scheme, Settings, Subject, Waiters,
};
use kyocho_sys::memory::PAGE_BYTES;

#[path = "programs/backpressure.rs"]
mod backpressure;
#[path = "programs/heartbeats.rs"]
mod heartbeats;
#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/permitted.rs"]
mod permitted;
use nodes::{everywhere, local, on_nodes, shm, tcp};
use permitted::permitted;

const LOCK: LockId = LockId(1);

#[test]
fn increments_under_a_lock_all_count() {
    let program = |mut dsm: Dsm| {
        let counters = dsm.allocate::<u64>(3000, Placement::Cyclic).unwrap();
        for round in 0..40 {
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
            for place in [0, 1500, 2999] {
                let cell = &dsm.cells(&counters)[place];
                cell.set(cell.get() + round);
            }
            dsm.release(LOCK).unwrap();
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let cells = dsm.cells(&counters);
        let sums = [0, 1, 1500, 2999].map(|place| cells[place].get());
        dsm.leave().unwrap();
        sums
    };
    everywhere("increments_under_a_lock_all_count", 3, program, |sums| {
        let sum = 3 * (0..40).sum::<u64>();
        assert_eq!(sums, vec![[sum, 0, sum, sum]; 3]);
    });
}

/// Some rounds of a stencil whose rows are divided among the nodes. Returns what each node sees at
/// its end.
fn stencil(mut dsm: Dsm, kind: BarrierKind) -> (Vec<f64>, u64) {
    const ROWS: usize = 32;
    const COLUMNS: usize = PAGE_BYTES / size_of::<f64>();
    let grids = [(); 2].map(|()| dsm.allocate::<f64>(ROWS * COLUMNS, Placement::Blocks).unwrap());
    let (me, nodes) = (usize::from(dsm.rank()), usize::from(dsm.nodes()));
    let mine = (ROWS * me / nodes).max(1)..(ROWS * (me + 1) / nodes).min(ROWS - 1);
    if me == 0 {
        (0..COLUMNS).for_each(|column| dsm.cells(&grids[0])[column].set(column as f64));
        (0..COLUMNS).for_each(|column| dsm.cells(&grids[1])[column].set(column as f64));
    }
    dsm.barrier(kind).unwrap();
    for round in 0..12 {
        let (from, to) = (dsm.cells(&grids[round % 2]), dsm.cells(&grids[1 - round % 2]));
        for place in mine.clone().flat_map(|row| (1..COLUMNS - 1).map(move |c| row * COLUMNS + c)) {
            let around = [place - COLUMNS, place - 1, place + 1, place + COLUMNS];
            to[place].set(around.iter().map(|place| from[*place].get()).sum::<f64>() / 4.0);
        }
        dsm.barrier(kind).unwrap();
    }
    let words = dsm.statistics().words_written;
    let result = dsm.cells(&grids[0]).iter().map(|cell| cell.get()).collect();
    dsm.leave().unwrap();
    (result, words)
}

#[test]
fn divided_grids_are_computed_as_on_one_node() {
    let one = on_nodes(local(1), Scheme::LogAtManager, Detection::Protect, |dsm| {
        stencil(dsm, BarrierKind::Ordinary).0
    });
    for kind in [BarrierKind::Ordinary, BarrierKind::SingleReadWrite] {
        let program = |dsm: Dsm| stencil(dsm, kind);
        everywhere("divided_grids_are_computed_as_on_one_node", 3, program, |grids| {
            assert!(grids.iter().all(|(grid, _)| *grid == one[0]), "{kind:?}");
        });
    }
}

#[test]
fn single_read_write_barriers_leave_own_pages_unwatched() {
    for detection in permitted("single_read_write_barriers_leave_own_pages_unwatched") {
        let words = [BarrierKind::Ordinary, BarrierKind::SingleReadWrite].map(|kind| {
            let transports = local(2);
            let nodes =
                on_nodes(transports, Scheme::LogAtManager, detection, |dsm| stencil(dsm, kind).1);
            nodes.iter().sum::<u64>()
        });
        assert!(words[1] * 2 < words[0], "{detection}: {words:?} words were found written");
    }
}

#[test]
fn a_write_of_the_same_value_counts_at_a_single_read_write_barrier() {
    let program = |mut dsm: Dsm| {
        let array = dsm.allocate::<u32>(2 * WORDS_A_PAGE, Placement::Blocks).unwrap();
        let mine = usize::from(dsm.rank()) * WORDS_A_PAGE;
        let mut compared = Vec::new();
        for _ in 0..4 {
            dsm.cells(&array)[mine..][..WORDS_A_PAGE].iter().for_each(|cell| cell.set(0));
            dsm.barrier(BarrierKind::SingleReadWrite).unwrap();
            compared.push(dsm.statistics().pages_compared);
        }
        dsm.leave().unwrap();
        compared
    };
    let test = "a_write_of_the_same_value_counts_at_a_single_read_write_barrier";
    everywhere(test, 2, program, |compared| assert_eq!(compared, vec![vec![1; 4]; 2]));
}

#[test]
fn writes_to_owned_pages_are_detected_again_under_a_lock() {
    let program = |mut dsm: Dsm| {
        let array = dsm.allocate::<u32>(WORDS_A_PAGE, Placement::On(NodeId(0))).unwrap();
        let me = dsm.rank();
        for _ in 0..2 {
            if me == 1 {
                dsm.cells(&array).iter().for_each(|cell| cell.set(cell.get() + 1));
            }
            dsm.barrier(BarrierKind::SingleReadWrite).unwrap();
        }
        // Node 1 owns the page now. Both nodes count in it under a lock.
        for _ in 0..10 {
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
            let cell = &dsm.cells(&array)[7];
            cell.set(cell.get() + 1);
            dsm.release(LOCK).unwrap();
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let seen = [6, 7].map(|word| dsm.cells(&array)[word].get());
        dsm.leave().unwrap();
        seen
    };
    everywhere("writes_to_owned_pages_are_detected_again_under_a_lock", 2, program, |seen| {
        assert_eq!(seen, vec![[2, 22]; 2]);
    });
}

#[test]
fn snapshots_conditions_tries_and_moves_work_on_pages() {
    let program = |mut dsm: Dsm| {
        let flag = dsm.allocate::<u32>(1, Placement::On(NodeId(0))).unwrap();
        dsm.move_lock(LOCK, NodeId(0)).unwrap();
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        if dsm.rank() == 0 {
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
            while dsm.cells(&flag)[0].get() == 0 {
                dsm.wait(LOCK, ConditionId(0)).unwrap();
            }
            dsm.release(LOCK).unwrap();
        } else {
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
            dsm.cells(&flag)[0].set(9);
            dsm.release(LOCK).unwrap();
            dsm.signal(LOCK, ConditionId(0), Waiters::All).unwrap();
        }
        dsm.acquire(LOCK, Mode::NonExclusive).unwrap();
        let seen = dsm.cells(&flag)[0].get();
        dsm.release(LOCK).unwrap();
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        if dsm.rank() == 0 {
            dsm.acquire(LOCK, Mode::Exclusive).unwrap();
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        if dsm.rank() == 1 {
            assert!(!dsm.try_acquire(LOCK, Mode::Exclusive).unwrap());
            let moment = Duration::from_millis(5);
            assert!(!dsm.acquire_within(LOCK, Mode::Exclusive, moment).unwrap());
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        if dsm.rank() == 0 {
            dsm.release(LOCK).unwrap();
        }
        dsm.leave().unwrap();
        seen
    };
    everywhere("snapshots_conditions_tries_and_moves_work_on_pages", 2, program, |seen| {
        assert_eq!(seen, [9, 9]);
    });
}

#[test]
fn discarded_writes_reach_no_node() {
    let program = |mut dsm: Dsm| {
        let array = dsm.allocate::<u32>(2 * WORDS_A_PAGE, Placement::Cyclic).unwrap();
        // All nodes do the same; only node 1's writes are to count.
        let me = u32::from(dsm.rank());
        dsm.cells(&array).iter().for_each(|cell| cell.set(me + 5));
        if me != 1 {
            dsm.forget_writes().unwrap();
            assert_eq!(dsm.cells(&array)[0].get(), 0);
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let counts = dsm.cells(&array).iter().all(|cell| cell.get() == 6);
        dsm.leave().unwrap();
        counts
    };
    everywhere("discarded_writes_reach_no_node", 3, program, |counts| {
        assert_eq!(counts, [true; 3]);
    });
}

#[test]
fn mistakes_of_a_program_are_named() {
    let program = |mut dsm: Dsm| {
        let said = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert_eq!(said(dsm.release(LOCK)), "lock 1 is not held: acquire it first");
        assert_eq!(
            said(dsm.acquire(LockId(8), Mode::Exclusive)),
            "lock 8 is outside of the layout"
        );
        assert_eq!(said(dsm.fetch(PageId(64))), "page 64 is outside of the layout");
        assert_eq!(said(dsm.move_page(PageId(0), NodeId(1))), "node 1 is outside of the layout");
        assert_eq!(said(dsm.move_lock(LOCK, NodeId(7))), "node 7 is outside of the layout");
        dsm.acquire(LOCK, Mode::NonExclusive).unwrap();
        let not_exclusive = said(dsm.wait(LOCK, ConditionId(0)));
        assert!(not_exclusive.contains("lock 1 is not held"), "{not_exclusive}");
        assert!(said(dsm.acquire(LOCK, Mode::Exclusive)).contains("held already"));
        let full = dsm.allocate::<u64>(1 << 20, Placement::Blocks).unwrap_err();
        assert!(matches!(full, Error::Full { bytes: 8_388_608, left: 262_144 }), "{full}");
        let full = dsm.allocate::<u64>(usize::MAX, Placement::Blocks).unwrap_err();
        assert!(matches!(full, Error::Full { .. }), "{full}");
        dsm.leave().unwrap();
    };
    on_nodes(local(1), Scheme::LogAtManager, Detection::Protect, program);
    for memory_bytes in [0, usize::MAX] {
        let why = Dsm::join(Settings { memory_bytes, locks: 1 }).unwrap_err();
        assert!(matches!(why, Error::Size { .. }), "{why}");
    }
}

#[test]
fn a_placement_on_no_node_is_refused_on_all() {
    let program = |mut dsm: Dsm| {
        let nowhere = dsm.allocate::<u32>(1, Placement::On(NodeId(3))).unwrap_err();
        assert_eq!(nowhere.to_string(), "node 3 is outside of the layout");
        let array = dsm.allocate::<u32>(1, Placement::On(NodeId(2))).unwrap();
        let page = array.pages(0..1)[0];
        dsm.leave().unwrap();
        page
    };
    let pages = on_nodes(local(3), Scheme::LogAtManager, Detection::Protect, program);
    assert_eq!(pages, [PageId(0); 3], "nothing was given out");
}

fn lost(error: &Error) -> Option<Subject> {
    match error {
        Error::Protocol(DsmError::PeerLost(NodeId(2), subject)) => Some(*subject),
        _ => None,
    }
}

#[test]
fn a_dead_node_is_named_in_errors_and_local_copies_can_be_saved() {
    for transports in [local, tcp, shm] {
        let together = Barrier::new(3);
        on_nodes(transports(3), Scheme::LogAtManager, Detection::Protect, |mut dsm: Dsm| {
            let array = dsm.allocate::<u32>(4 * WORDS_A_PAGE, Placement::On(NodeId(2))).unwrap();
            if dsm.rank() == 2 {
                dsm.cells(&array).iter().for_each(|cell| cell.set(7));
            }
            dsm.barrier(BarrierKind::Ordinary).unwrap();
            assert_eq!(dsm.cells(&array)[0].get(), 7);
            if dsm.rank() == 2 {
                dsm.acquire(LOCK, Mode::Exclusive).unwrap();
                together.wait();
                return drop(dsm);
            }
            together.wait();
            let waited = match dsm.rank() {
                0 => dsm.acquire(LOCK, Mode::Exclusive),
                _ => dsm.barrier(BarrierKind::Ordinary),
            };
            let expected = if dsm.rank() == 0 { Subject::Lock(LOCK) } else { Subject::Barrier };
            assert_eq!(waited.as_ref().err().and_then(lost), Some(expected), "{waited:?}");
            // Its writer manages it: no other node has had a copy.
            let page = array.pages(2 * WORDS_A_PAGE..2 * WORDS_A_PAGE + 1)[0];
            let fetched = dsm.fetch(page).unwrap_err();
            assert_eq!(lost(&fetched), Some(Subject::Page(page)));
            assert_eq!(dsm.cells(&array)[0].get(), 7, "what is here can be saved");
        });
    }
}

/// Each node writes a page of its own: in some rounds words, in some the whole page, in some
/// nothing, and for a while never. It reads all pages, then some of them, and now and then adds up
/// under a lock. So pages become watched, compared, kept in sight and sent unasked.
#[test]
fn no_write_is_missed_when_habits_change() {
    const ROUNDS: u32 = 120;
    let is_written =
        |round: u32, by: u32| !matches!(round, 40..60) && !(round + by).is_multiple_of(5);
    let expected = |owner: u32, round: u32, word: u32| {
        let written = |round: &u32| is_written(*round, owner);
        let last = (1..=round).rev().find(written).unwrap_or(0);
        let last_whole = (1..=last).rev().find(|round| written(round) && round.is_multiple_of(3));
        match last {
            0 => 0,
            _ if word < 4 => last * 10 + owner,
            _ => last_whole.map_or(0, |round| round * 10 + owner),
        }
    };
    let program = |mut dsm: Dsm| {
        let nodes = u32::from(dsm.nodes());
        let kind = |round: u32| match round / 30 % 2 {
            0 => BarrierKind::SingleReadWrite,
            _ => BarrierKind::Ordinary,
        };
        let words = WORDS_A_PAGE as u32;
        let array = dsm.allocate::<u32>(nodes as usize * WORDS_A_PAGE, Placement::Cyclic).unwrap();
        let total = dsm.allocate::<u32>(1, Placement::On(NodeId(0))).unwrap();
        let me = u32::from(dsm.rank());
        for round in 1..=ROUNDS {
            let is_mine =
                |word: &u32| is_written(round, me) && (*word < 4 || round.is_multiple_of(3));
            let mine = (0..words).filter(is_mine);
            for word in mine {
                dsm.cells(&array)[(me * words + word) as usize].set(round * 10 + me);
            }
            if round % 7 == me {
                dsm.acquire(LOCK, Mode::Exclusive).unwrap();
                let cell = &dsm.cells(&total)[0];
                cell.set(cell.get() + 1);
                dsm.release(LOCK).unwrap();
            }
            dsm.barrier(kind(round)).unwrap();
            let seen = (0..nodes).filter(|owner| round < 80 || *owner == (me + 1) % nodes);
            let places = seen.flat_map(|owner| [0, 3, 4, words - 1].map(|word| (owner, word)));
            for (owner, word) in places {
                let found = dsm.cells(&array)[(owner * words + word) as usize].get();
                let expected = expected(owner, round, word);
                assert_eq!(found, expected, "node {me}, round {round}: {owner}, word {word}");
            }
            dsm.barrier(kind(round)).unwrap();
        }
        let sum = dsm.cells(&total)[0].get();
        dsm.leave().unwrap();
        sum
    };
    everywhere("habits", 3, program, |sums| {
        let turns = (1..=ROUNDS).filter(|round| round % 7 < 3).count() as u32;
        assert_eq!(sums, [turns; 3]);
    });
}
