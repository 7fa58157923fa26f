//! The times of lock and increment, of fetching a page, and of a barrier, each compared with the
//! transport alone.

use std::thread;
use std::time::{Duration, Instant};

use kyocho_dsm::transport::{Arrival, Transport};
use kyocho_dsm::watch::WORDS_A_PAGE;
use kyocho_dsm::{BarrierKind, Dsm, NodeId, Placement, Scheme};

use crate::cluster::{PAGES, on_nodes, transports};
use crate::{figure, node};

const PATIENCE: Duration = Duration::from_secs(60);

/// All figures.
pub fn run(turns: u32) {
    let round_trip = echo(4, turns);
    figure("round-trip-us", micros(round_trip));
    let page_echo = echo(4096, turns);
    figure("echo-us", micros(page_echo));
    let over = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    figure("page-fetch", over(page_fetch(turns), page_echo));
    figure("lock-increment", over(on_two(|dsm| node::lock_increment(dsm, turns)), round_trip));
    figure("barrier", over(on_two(|dsm| node::barrier(dsm, turns)), round_trip));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The round trip of `bytes` bytes.
fn echo(bytes: usize, turns: u32) -> Duration {
    let mut nodes = transports(2);
    let (far, near) = (nodes.pop().expect("two"), nodes.pop().expect("two"));
    let message = vec![7; bytes];
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..turns {
                let came = receive(&far);
                far.send(NodeId(0), &came);
            }
        });
        let begun = Instant::now();
        for _ in 0..turns {
            near.send(NodeId(1), &message);
            assert_eq!(receive(&near), message);
        }
        begun.elapsed() / turns
    })
}

fn receive(transport: &impl Transport) -> Vec<u8> {
    match transport.receive(PATIENCE).pop() {
        Some(Arrival::Message(_, bytes)) => bytes,
        other => panic!("a message was to come, not {other:?}"),
    }
}

/// Fetches of pages: node 0 writes all pages, node 1 reads a word of each.
fn page_fetch(turns: u32) -> Duration {
    const USED: usize = PAGES / 2;
    let rounds = (turns as usize / USED).max(1);
    let times = on_nodes(2, Scheme::LogAtManager, |mut dsm: Dsm| {
        let array =
            dsm.allocate::<u32>(USED * WORDS_A_PAGE, Placement::On(NodeId(0))).expect("room");
        let mut time = Duration::ZERO;
        for round in 1..=rounds as u32 {
            // After the first barrier node 1 still has its copies, and does not use them; after the
            // second it has none.
            for value in [0, round] {
                if dsm.rank() == 0 {
                    dsm.cells(&array).iter().for_each(|cell| cell.set(value));
                }
                dsm.barrier(BarrierKind::Ordinary).expect("all live");
            }
            let begun = Instant::now();
            if dsm.rank() == 1 {
                let words = dsm.cells(&array).iter().step_by(WORDS_A_PAGE);
                assert!(words.map(|cell| cell.get()).eq([round; USED]), "what was written");
            }
            time += begun.elapsed();
            dsm.barrier(BarrierKind::Ordinary).expect("all live");
        }
        dsm.leave().expect("all live");
        time / (rounds * USED) as u32
    });
    times[1]
}

/// The longest that `measure` takes on one of two nodes.
fn on_two(measure: impl Fn(&mut Dsm) -> Duration + Sync) -> Duration {
    let times = on_nodes(2, Scheme::LogAtManager, |mut dsm: Dsm| {
        let time = measure(&mut dsm);
        dsm.leave().expect("all live");
        time
    });
    times[0].max(times[1])
}
