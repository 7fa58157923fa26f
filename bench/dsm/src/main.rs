//! What do locks on shared memory cost by the paper's two schemes (paper 3, figures 1 to 3, table 3)? Nodes are threads of this program, connected by
//! TCP over loopback; baseline: the old scheme in the same repeat.
//!
//! ```text
//! dsm [figure-1|figure-2|table-3] [TURNS] [REPEATS]
//! ```
//! Figures 4 and 5 are programs: `kyocho dsm run -n N water`, `kyocho dsm run -n N sor 1024 1536 20 ordinary` and `single`.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use kyocho_dsm::transport::{Cluster, Secret, Tcp, TcpSettings, Traffic};
use kyocho_dsm::watch::WORDS_A_PAGE;
use kyocho_dsm::{BarrierKind, Dsm, Layout, LockId, Mode, NodeId, Placement, Scheme};

const PAGES: u16 = 64;
const LOCKS: u32 = 16;

/// Who increments what under which lock.
#[derive(Clone, Copy)]
struct Work {
    nodes: u16,
    /// By node: the locks that it takes in turn.
    locks_of: fn(u16) -> std::ops::Range<u32>,
    /// The manager of a lock and of its counter's page.
    manager_of: fn(u32) -> u16,
    page_manager_of: fn(u32) -> u16,
}

struct Result {
    time: Duration,
    traffic: Traffic,
}

fn transports(nodes: u16) -> Vec<Tcp> {
    let listeners: Vec<_> =
        (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses: Vec<_> =
        listeners.iter().map(|l| l.local_addr().expect("it is bound")).collect();
    let secret = Secret::random().expect("random numbers");
    let limit = Duration::from_secs(60);
    let settings =
        TcpSettings { deadline: limit, message_bytes_max: 1 << 26, queue_bytes_max: 1 << 27 };
    thread::scope(|scope| {
        let joining: Vec<_> = (0..nodes)
            .map(|me| {
                let (addresses, secret) = (addresses.clone(), secret.clone());
                let cluster = Cluster {
                    me: NodeId(me),
                    addresses,
                    secret,
                    layout: [0; 4],
                    join_within: limit,
                };
                let listener = &listeners[usize::from(me)];
                scope.spawn(move || {
                    Tcp::join_by(&cluster, settings, listener).expect("all are here")
                })
            })
            .collect();
        joining.into_iter().map(|node| node.join().expect("no panic")).collect()
    })
}

fn run(work: Work, scheme: Scheme, turns: u32) -> Result {
    let page_managers = vec![NodeId(0); usize::from(PAGES)];
    let layout = Layout {
        nodes: work.nodes,
        page_managers,
        words_a_page: WORDS_A_PAGE as u32,
        locks: LOCKS,
        scheme,
    };
    thread::scope(|scope| {
        let running: Vec<_> = transports(work.nodes)
            .into_iter()
            .zip(0..)
            .map(|(transport, me)| {
                let layout = layout.clone();
                scope.spawn(move || {
                    let dsm = Dsm::inside(NodeId(me), layout, None, Box::new(transport))
                        .expect("it starts");
                    node(dsm, work, turns)
                })
            })
            .collect();
        let results = running.into_iter().map(|node| node.join().expect("no panic"));
        results.reduce(|one, other| Result {
            time: one.time.max(other.time),
            traffic: Traffic {
                messages_sent: one.traffic.messages_sent + other.traffic.messages_sent,
                bytes_sent: one.traffic.bytes_sent + other.traffic.bytes_sent,
                ..one.traffic
            },
        })
    })
    .expect("there are nodes")
}

fn node(mut dsm: Dsm, work: Work, turns: u32) -> Result {
    let me = dsm.rank();
    let all = || (0..work.nodes).flat_map(work.locks_of);
    let counters: Vec<_> = (0..LOCKS)
        .map(|lock| {
            dsm.allocate::<u64>(1, Placement::On(NodeId((work.page_manager_of)(lock))))
                .expect("room")
        })
        .collect();
    for lock in (0..LOCKS).map(LockId) {
        dsm.move_lock(lock, NodeId((work.manager_of)(lock.0))).expect("in range");
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let (before, begun) = (dsm.statistics().traffic, Instant::now());
    for _ in 0..turns {
        for lock in (work.locks_of)(me) {
            dsm.acquire(LockId(lock), Mode::Exclusive).expect("all live");
            let counter = &dsm.cells(&counters[lock as usize])[0];
            counter.set(counter.get() + 1);
            dsm.release(LockId(lock)).expect("it is held");
        }
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let (time, after) = (begun.elapsed(), dsm.statistics().traffic);
    for lock in 0..LOCKS {
        let expected = u64::from(turns) * all().filter(|taken| *taken == lock).count() as u64;
        assert_eq!(dsm.cells(&counters[lock as usize])[0].get(), expected, "lock {lock}");
    }
    dsm.leave().expect("all live");
    let traffic = Traffic {
        messages_sent: after.messages_sent - before.messages_sent,
        bytes_sent: after.bytes_sent - before.bytes_sent,
        ..Traffic::default()
    };
    Result { time, traffic }
}

/// Old and new scheme in turn; medians, and the least and greatest ratio of one repeat.
fn compare(name: &str, work: Work, turns: u32, repeats: usize) {
    let mut pairs: Vec<_> = (0..repeats)
        .map(|_| {
            [Scheme::LogAtLastHolder, Scheme::LogAtManager].map(|scheme| run(work, scheme, turns))
        })
        .collect();
    let operations: u64 =
        (0..work.nodes).map(|node| (work.locks_of)(node).len() as u64 * u64::from(turns)).sum();
    pairs.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    let [old, new] = &pairs[repeats / 2];
    let micros = |result: &Result| result.time.as_secs_f64() * 1e6 / operations as f64;
    println!(
        "{name}: old {:.1} us, new {:.1} us an operation; new {:.2} times as fast ({:.2} to {:.2}); \
         messages {} and {}, bytes {} and {}",
        micros(old),
        micros(new),
        ratio(&pairs[repeats / 2]),
        ratio(&pairs[0]),
        ratio(&pairs[repeats - 1]),
        old.traffic.messages_sent,
        new.traffic.messages_sent,
        old.traffic.bytes_sent,
        new.traffic.bytes_sent,
    );
}

fn ratio(pair: &[Result; 2]) -> f64 {
    pair[0].time.as_secs_f64() / pair[1].time.as_secs_f64()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual: usize| {
        words.get(place).map_or(usual, |word| word.parse().expect("a number"))
    };
    let (turns, repeats) = (number(1, 1000) as u32, number(2, 5).max(1));
    let wanted = |name: &str| words.first().is_none_or(|word| word == name);
    let two_workers = |node: u16| if node < 2 { 0..1 } else { 0..0 };
    if wanted("figure-1") {
        let own =
            Work { nodes: 2, locks_of: two_workers, manager_of: |_| 0, page_manager_of: |_| 0 };
        compare("figure 1 (1), a worker manages", own, turns, repeats);
        let other = Work { nodes: 3, manager_of: |_| 2, ..own };
        compare("figure 1 (2), another node manages", other, turns, repeats);
    }
    if wanted("figure-2") {
        let single =
            Work { nodes: 8, locks_of: |_| 0..8, manager_of: |_| 0, page_manager_of: |_| 0 };
        compare("figure 2, one node manages all", single, turns / 10, repeats);
        let spread = Work { manager_of: |lock| lock as u16 % 8, ..single };
        compare("figure 2, managers by lock", spread, turns / 10, repeats);
    }
    if wanted("table-3") {
        // Pairs of nodes share a lock and its counter, as pc9 and pc10 did.
        let single = Work {
            nodes: 8,
            locks_of: |node| u32::from(node / 2)..u32::from(node / 2) + 1,
            manager_of: |lock| (2 * lock % 8) as u16,
            page_manager_of: |_| 0,
        };
        compare("table 3, one page manager", single, turns / 2, repeats);
        let spread = Work { page_manager_of: |lock| (2 * lock % 8) as u16, ..single };
        compare("table 3, page managers where they are used", spread, turns / 2, repeats);
    }
}
