//! A thread that panics in the middle of a step ends its node. A copy of the process, made by
//! `fork`, is no node.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]
#![expect(unsafe_code, reason = "forks")]

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::Write;
use std::panic::catch_unwind;
use std::sync::{Arc, mpsc};
use std::thread;

use kyocho_dsm::transport::{Arrival, Local, Traffic, Transport, Waiter};
use kyocho_dsm::watch::WORDS_A_PAGE;
use kyocho_dsm::{
    BarrierKind, Dsm, DsmError, Error, Layout, LockId, Mode, NodeId, Placement, Scheme,
};

/// Connections that panic at the next message, once `next` is set.
#[derive(Debug)]
struct Panicking {
    next: Arc<AtomicBool>,
    inner: Local,
}

impl Transport for Panicking {
    fn send(&self, to: NodeId, message: &[u8]) {
        assert!(!self.next.swap(false, Ordering::AcqRel), "in the middle of a step");
        self.inner.send(to, message);
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

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.inner.traffic_with(peer)
    }
}

/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Ends the process of a test that hangs; dropping it stops that.
struct Watchdog(Option<mpsc::Sender<()>>);

impl Watchdog {
    fn start(test: &'static str) -> Self {
        let (running, ended) = mpsc::channel();
        thread::spawn(move || {
            if ended.recv_timeout(WATCHDOG) == Err(mpsc::RecvTimeoutError::Timeout) {
                // `eprintln` would be captured by the test harness.
                let _told = std::io::stderr().write_all(format!("{test}: it hangs\n").as_bytes());
                std::process::exit(1);
            }
        });
        Self(Some(running))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// Two nodes in this process. Node 0 manages locks 0 and 2, node 1 locks 1 and 3.
fn nodes(next: &Arc<AtomicBool>, program: impl Fn(Dsm) + Sync) {
    let regions = (0..4).map(|page| NodeId(page % 2)).collect::<Vec<_>>().into();
    let (words_a_page, scheme) = (WORDS_A_PAGE as u32, Scheme::LogAtManager);
    let layout = &Layout { nodes: 2, regions, words_a_page, locks: 4, scheme };
    let program = &program;
    thread::scope(|scope| {
        for (inner, me) in Local::mesh(2).into_iter().zip(0..) {
            let next = if me == 1 { next.clone() } else { Arc::default() };
            scope.spawn(move || {
                let transport = Box::new(Panicking { next, inner });
                program(Dsm::inside(NodeId(me), layout.clone(), None, transport).unwrap());
            });
        }
    });
}

#[test]
fn a_panic_in_the_middle_of_a_step_ends_the_node_for_all() {
    let _watchdog = Watchdog::start("a_panic_in_the_middle_of_a_step_ends_the_node_for_all");
    let (next, held) = (Arc::new(AtomicBool::new(false)), &AtomicBool::new(false));
    let wait_until_held = || {
        while !held.load(Ordering::Acquire) {
            thread::park_timeout(Duration::from_millis(1));
        }
    };
    nodes(&next, |mut dsm| {
        if dsm.rank() == 0 {
            dsm.acquire(LockId(2), Mode::Exclusive).unwrap();
            held.store(true, Ordering::Release);
            let ended = dsm.barrier(BarrierKind::Ordinary);
            let lost = matches!(ended, Err(Error::Protocol(DsmError::PeerLost(NodeId(1), _))));
            assert!(lost, "{ended:?}");
            return;
        }
        let mut slots = dsm.thread_slots(3).into_iter();
        let (panics, waits, comes) =
            (slots.next().unwrap(), slots.next().unwrap(), slots.next().unwrap());
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                wait_until_held();
                waits.take()?.acquire(LockId(2), Mode::Exclusive)
            });
            let panicked = scope.spawn(|| {
                wait_until_held();
                let mut member = panics.take().unwrap();
                next.store(true, Ordering::Release);
                catch_unwind(AssertUnwindSafe(|| member.acquire(LockId(0), Mode::Exclusive)))
                    .is_err()
            });
            let panicked = panicked.join().unwrap();
            let comes = scope.spawn(|| comes.take()?.acquire(LockId(1), Mode::Exclusive));
            let waited = waits.join();
            // One of the two sent the message that panicked.
            assert!(panicked || waited.is_err());
            if let Ok(waited) = waited {
                assert!(matches!(waited, Err(Error::Host(_))), "{waited:?}");
            }
            let came = comes.join().unwrap();
            assert!(matches!(came, Err(Error::Host(_))), "{came:?}");
        });
    });
}

/// Runs `act` in a copy of this process. Returns its exit code, or 128 plus the number of the
/// signal that ended it.
fn in_copy(act: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `act` alone and ends; no lock that it takes is held by another thread,
    // as a node refuses a copy before it takes one.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number. The signal ends a copy that hangs.
        unsafe { libc::alarm(WATCHDOG.as_secs() as libc::c_uint) };
        let code = act();
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: our own child, and our own word.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

#[test]
fn a_copy_of_a_process_is_no_node() {
    nodes(&Arc::default(), |mut dsm| {
        let numbers = dsm.allocate::<u32>(8, Placement::On(NodeId(0))).unwrap();
        if dsm.rank() == 1 {
            dsm.cells(&numbers)[0].set(7);
            let written = in_copy(|| {
                dsm.cells(&numbers)[1].set(8);
                0
            });
            assert_eq!(written, 128 + libc::SIGSEGV, "a write that no node would notice");
            let called = in_copy(|| {
                i32::from(!matches!(dsm.barrier(BarrierKind::Ordinary), Err(Error::Host(_))))
            });
            assert_eq!(called, 0, "a call in a copy is refused");
        }
        dsm.barrier(BarrierKind::Ordinary).unwrap();
        let seen = dsm.cells(&numbers)[..2].iter().map(core::cell::Cell::get).collect::<Vec<_>>();
        assert_eq!(seen, [7, 0]);
        if dsm.rank() == 1 {
            let mut dsm = Some(dsm);
            let dropped = in_copy(|| {
                drop(dsm.take());
                0
            });
            assert_eq!(dropped, 0, "the end of a copy");
            dsm.unwrap().leave().unwrap();
        } else {
            dsm.leave().unwrap();
        }
    });
}
