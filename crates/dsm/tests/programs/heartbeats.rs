//! Heartbeats are sent while a step of the node takes long.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use kyocho_dsm::transport::{Arrival, Traffic, Transport, Waiter};
use kyocho_dsm::watch::Detection;
use kyocho_dsm::{BarrierKind, Scheme};

use crate::nodes::{local, on_nodes};

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Connections where the next message waits for heartbeats, once `is_slow` is set. A step of the
/// node waits with it.
#[derive(Debug)]
struct Slow {
    heartbeats: AtomicUsize,
    is_slow: Arc<AtomicBool>,
    inner: Box<dyn Transport>,
}

impl Transport for Slow {
    fn send(&self, to: kyocho_dsm::NodeId, message: &[u8]) {
        if self.is_slow.swap(false, Ordering::AcqRel) {
            let (before, until) = (self.heartbeats.load(Ordering::Acquire), Instant::now());
            while self.heartbeats.load(Ordering::Acquire) < before + 3 {
                assert!(until.elapsed() < WATCHDOG, "a step keeps heartbeats from going out");
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        self.inner.send(to, message);
    }

    fn send_heartbeats(&self) -> Option<Duration> {
        self.heartbeats.fetch_add(1, Ordering::AcqRel);
        Some(Duration::from_millis(1))
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        self.inner.wait(waiter, timeout)
    }

    fn take(&self) -> Vec<Arrival> {
        self.inner.take()
    }

    fn rouse(&self) {
        self.inner.rouse();
    }

    fn leave(&self) {
        self.inner.leave();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }

    fn traffic_with(&self, peer: kyocho_dsm::NodeId) -> Traffic {
        self.inner.traffic_with(peer)
    }
}

#[test]
fn a_node_whose_step_takes_long_sends_heartbeats() {
    let is_slow = &Arc::new(AtomicBool::new(false));
    let slow = |inner| {
        let (heartbeats, is_slow) = (AtomicUsize::new(0), is_slow.clone());
        Box::new(Slow { heartbeats, is_slow, inner }) as Box<dyn Transport>
    };
    let transports = local(2).into_iter().map(slow).collect();
    let came = on_nodes(transports, Scheme::LogAtManager, Detection::Protect, |mut dsm| {
        dsm.barrier(BarrierKind::Ordinary)?;
        is_slow.store(true, Ordering::Release);
        dsm.barrier(BarrierKind::Ordinary)?;
        dsm.leave()
    });
    came.into_iter().for_each(Result::unwrap);
}
