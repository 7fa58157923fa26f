//! Threads of one node that meet at a barrier, where one of them fails.

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::{Arc, mpsc};

use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::prim::thread;
use kyocho_sys::two_views::TwoViews;

use super::Core;
use crate::address::NodeId;
use crate::layout::Layout;
use crate::layout::Scheme;
use crate::message::BarrierKind;
use crate::node::Node;
use crate::page::WORDS_A_PAGE;
use crate::runtime::meeting::Request;
use crate::transport::{Local, Transport};
use crate::watch::{Detection, Watch};

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);
const CROSS: Request = Request::Barrier(BarrierKind::Ordinary);

/// A node of a cluster of two. Two of its threads meet at barriers.
fn core_of_two(network: Local) -> Core {
    let (nodes, words_a_page, scheme) = (2, WORDS_A_PAGE as u32, Scheme::LogAtManager);
    let regions = vec![NodeId(0)].into();
    let layout = Layout { nodes, regions, words_a_page, locks: 1, scheme };
    let views = Arc::new(TwoViews::new(PAGE_BYTES, None).expect("there is memory for a page"));
    let watch = Watch::new(&views, Detection::Protect).expect("every host permits it");
    let core = Core::new(Node::new(NodeId(0), layout), watch, Box::new(network));
    core.expect(2);
    core
}

#[test]
fn threads_that_wait_for_one_that_panics_at_a_barrier_get_an_error() {
    let mut mesh = Local::mesh(2);
    let (peer, network) = (mesh.pop().expect("two"), mesh.pop().expect("two"));
    let core = Arc::new(core_of_two(network));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..2 {
        let (core, sender) = (core.clone(), sender.clone());
        let meet = move || {
            let met = catch_unwind(AssertUnwindSafe(|| {
                core.meet(CROSS, |_| panic!("the one that crosses for both"))
            }));
            sender.send(met.ok()).expect("the test waits");
        };
        drop(thread::spawn(meet));
    }
    let mut came: Vec<_> = (0..2).map(|_| receiver.recv_timeout(WATCHDOG)).collect();
    came.sort_by_key(|came| matches!(came, Ok(None)));
    assert!(matches!(came[..], [Ok(Some(Err(_))), Ok(None)]), "{came:?}");
    let arrivals = peer.receive(WATCHDOG);
    assert_eq!(arrivals.len(), 1, "the other node is sender as well: {arrivals:?}");
}
