//! Nodes inside this program, connected by TCP.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use kyocho_dsm::transport::{Cluster, Secret, Tcp, TcpSettings};
use kyocho_dsm::watch::WORDS_A_PAGE;
use kyocho_dsm::{Dsm, Layout, NodeId, Scheme};

/// Pages of shared memory.
pub const PAGES: usize = 256;
/// Locks.
pub const LOCKS: u32 = 16;

/// Connects `nodes` nodes.
pub fn transports(nodes: u16) -> Vec<Tcp> {
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
                let (me, layout) = (NodeId(me), [0; 4]);
                let cluster = Cluster { me, addresses, secret, layout, join_within: limit };
                let listener = &listeners[usize::from(me.0)];
                scope.spawn(move || {
                    Tcp::join_by(&cluster, settings, listener).expect("all are here")
                })
            })
            .collect();
        joining.into_iter().map(|node| node.join().expect("no panic")).collect()
    })
}

/// Runs `program` on each of `nodes` nodes and returns its results. At first node 0 manages all
/// pages.
pub fn on_nodes<T: Send>(nodes: u16, scheme: Scheme, program: impl Fn(Dsm) -> T + Sync) -> Vec<T> {
    let regions = vec![NodeId(0); PAGES].into();
    let words_a_page = WORDS_A_PAGE as u32;
    let layout = Layout { nodes, regions, words_a_page, locks: LOCKS, scheme };
    thread::scope(|scope| {
        let running: Vec<_> = transports(nodes)
            .into_iter()
            .zip(0..)
            .map(|(transport, me)| {
                let (layout, program) = (layout.clone(), &program);
                scope.spawn(move || {
                    let dsm = Dsm::inside(NodeId(me), layout, None, Box::new(transport));
                    program(dsm.expect("it starts"))
                })
            })
            .collect();
        running.into_iter().map(|node| node.join().expect("no panic")).collect()
    })
}
