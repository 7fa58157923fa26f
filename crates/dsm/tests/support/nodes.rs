//! Several nodes in this process, over all transports that need no MPI job.

use core::time::Duration;
use std::net::TcpListener;
use std::thread;

use kyocho_dsm::transport::{Cluster, Local, Secret, Shared, Shm, Tcp, TcpSettings, Transport};
use kyocho_dsm::watch::{Detection, WORDS_A_PAGE};
use kyocho_dsm::{Dsm, Layout, NodeId, Scheme};

use crate::permitted::permitted;

/// Bytes of a message, at most, before a region is created.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 21;

fn layout(nodes: u16, scheme: Scheme) -> Layout {
    let regions = (0..64).map(|page| NodeId(page % nodes)).collect::<Vec<_>>().into();
    Layout { nodes, regions, words_a_page: WORDS_A_PAGE as u32, locks: 8, scheme }
}

pub(crate) fn tcp(nodes: u16) -> Vec<Box<dyn Transport>> {
    joined(nodes, |cluster, settings, listener| {
        Box::new(Tcp::join_by(cluster, settings, listener).unwrap())
    })
}

pub(crate) fn shm(nodes: u16) -> Vec<Box<dyn Transport>> {
    let shared = Shared::new(nodes).unwrap();
    joined(nodes, move |cluster, settings, listener| {
        let shared = shared.try_clone().unwrap();
        Box::new(Shm::join_by(cluster, settings, listener, shared).unwrap())
    })
}

/// Nodes that join at once, each by `join`.
fn joined(
    nodes: u16,
    join: impl Fn(&Cluster, TcpSettings, &TcpListener) -> Box<dyn Transport> + Sync,
) -> Vec<Box<dyn Transport>> {
    let join = &join;
    let listeners: Vec<_> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(|socket| socket.local_addr().unwrap()).collect();
    let secret = Secret::random().unwrap();
    let settings = TcpSettings {
        deadline: Duration::from_secs(30),
        message_bytes_max: MESSAGE_BYTES_MAX,
        queue_bytes_max: 2 * MESSAGE_BYTES_MAX,
    };
    thread::scope(|scope| {
        let joining: Vec<_> = listeners
            .iter()
            .zip(0..)
            .map(|(listener, me)| {
                let cluster = Cluster {
                    me: NodeId(me),
                    addresses: addresses.clone(),
                    secret: secret.clone(),
                    layout: [0; 4],
                    join_within: Duration::from_secs(30),
                };
                scope.spawn(move || join(&cluster, settings, listener))
            })
            .collect();
        joining.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

pub(crate) fn local(nodes: u16) -> Vec<Box<dyn Transport>> {
    Local::mesh(nodes).into_iter().map(|node| Box::new(node) as _).collect()
}

/// Runs `program` on each node, and returns the results.
pub(crate) fn on_nodes<T: Send>(
    transports: Vec<Box<dyn Transport>>,
    scheme: Scheme,
    detection: Detection,
    program: impl Fn(Dsm) -> T + Sync,
) -> Vec<T> {
    let layout = layout(transports.len() as u16, scheme);
    let (layout, program) = (&layout, &program);
    thread::scope(|scope| {
        let running: Vec<_> = transports
            .into_iter()
            .zip(0..)
            .map(|(transport, me)| {
                scope.spawn(move || {
                    let dsm = Dsm::inside(NodeId(me), layout.clone(), Some(detection), transport);
                    program(dsm.unwrap())
                })
            })
            .collect();
        running.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

/// All combinations of transport, scheme and detection.
pub(crate) fn everywhere<T: Send>(
    test: &str,
    nodes: u16,
    program: impl Fn(Dsm) -> T + Sync,
    check: impl Fn(Vec<T>),
) {
    for detection in permitted(test) {
        for scheme in [Scheme::LogAtManager, Scheme::LogAtLastHolder] {
            check(on_nodes(local(nodes), scheme, detection, &program));
        }
        check(on_nodes(tcp(nodes), Scheme::LogAtManager, detection, &program));
        check(on_nodes(shm(nodes), Scheme::LogAtManager, detection, &program));
    }
}
