//! The host suspends a taker in the middle of taking. Threads that return from the kernel wait for
//! the outcome, and no microprocess is lost.
#![expect(unsafe_code, reason = "sleeps in the kernel by raw system calls")]

use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread;
use kyocho_sys::scheduling::{Class, CpuSet, class, set_affinity, set_class};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

use crate::processor::kernel_thread::ANY_CPU;
use crate::processor::sentinel::nomination;
use crate::processor::vp::Vp;
use crate::protocol::pause::pause;
use crate::report;
use crate::runtime::control::tests::watchdog::under_watchdog;
use crate::schedule::{attend, mask};
use crate::{Detection, Runtime};
use crate::{scope, statistics, yield_now};

/// How often a taker is to be suspended.
const TIMES: usize = 3;
/// If a claim is older than this while another thread has the taker's CPU, the taker was suspended.
/// A check takes some microseconds.
const SUSPENDED_NS: u64 = 100_000;
/// How long the CPU is then occupied: longer than the sleeper sleeps.
const HOGGED_NS: u64 = 400_000;
const SLEEP_NS: i64 = 50_000;

/// Takes the CPU of `vp` from all time-sharing threads again and again. If that suspends a taker of
/// `vp`, keeps the CPU for a while.
fn hog(vp: &'static Vp, hits: &AtomicUsize, stop: &AtomicBool) {
    let me = ThreadId::current();
    let mut nap_ns = 0;
    while !stop.load(Ordering::SeqCst) {
        // It moves with its virtual processor, as the sentinel does.
        set_affinity(me, &CpuSet::single(vp.cpu())).unwrap();
        nap_ns = (nap_ns + 7_001) % 130_000;
        pause(20_000 + nap_ns);
        let begin_ns = monotonic_ns();
        while vp.holder().is_claimed() && monotonic_ns() - begin_ns < SUSPENDED_NS {}
        if monotonic_ns() - begin_ns >= SUSPENDED_NS && vp.holder().is_claimed() {
            hits.fetch_add(1, Ordering::SeqCst);
            while monotonic_ns() - begin_ns < HOGGED_NS {}
        }
    }
}

fn raw_sleep() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: SLEEP_NS };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Runs a sleeper and its neighbour on `vp`, beside the hog. Ends when the hog has hit often
/// enough, both have continued, and the virtual processor was taken from the sleeper.
fn sleep_beside(hits: &AtomicUsize) {
    let [slept, turns] = [(); 2].map(|()| AtomicUsize::new(0));
    let has_gone_on = |count: &AtomicUsize| count.load(Ordering::SeqCst) > 0;
    let is_over = || {
        let all_went_on = has_gone_on(&slept) && has_gone_on(&turns);
        hits.load(Ordering::SeqCst) >= TIMES && all_went_on && statistics().blocked > 0
    };
    scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                raw_sleep();
                slept.fetch_add(1, Ordering::SeqCst);
                // Its virtual processor may be lost, or a taker may be about to take it.
                yield_now();
            }
        });
        scope.spawn(|| {
            while !is_over() {
                turns.fetch_add(1, Ordering::SeqCst);
                yield_now();
            }
        });
    });
}

#[test]
fn suspended_taker_loses_no_microprocess() {
    const NAME: &str = "suspended_taker_loses_no_microprocess";
    let may = || set_class(ThreadId::current(), Class::Fifo(50));
    if let Err(why) = thread::spawn(may).join().unwrap() {
        return skip(NAME, &format!("real time is not permitted: {why}"));
    }
    let runtime = Runtime::builder().virtual_processors(1).detection(Detection::Sentinel).build();
    let run = || {
        let section = mask();
        let vp = section.vp;
        section.leave();
        if report().detection != Detection::Sentinel || vp.cpu() == ANY_CPU {
            return skip(NAME, "no sentinel, or none on the CPU of its virtual processor");
        }
        let hits: &'static AtomicUsize = Box::leak(Box::default());
        let stopped: &'static AtomicBool = Box::leak(Box::default());
        let hogs = thread::spawn(move || {
            set_class(ThreadId::current(), Class::Fifo(50)).unwrap();
            hog(vp, hits, stopped);
        });
        sleep_beside(hits);
        stopped.store(true, Ordering::SeqCst);
        hogs.join().unwrap();
        let counted = statistics();
        assert_eq!(
            counted.blocked, counted.unblocked,
            "every microprocess that lost its virtual processor returned: {counted:?}"
        );
    };
    under_watchdog(NAME, || runtime.run(run).unwrap());
}

/// Claims `vp`, whose holder does not sleep, again and again.
fn claim_until(stop: &AtomicBool, vp: &'static Vp) {
    let holder = vp.holder();
    while !stop.load(Ordering::Relaxed) {
        assert!(holder.take(vp, || None::<()>).is_none(), "it does not sleep");
    }
}

/// A taker may have read the mask of a holder just before that masked events. Its claim comes then in
/// the middle of a section, and is withdrawn.
#[test]
fn holder_that_serves_events_waits_for_the_outcome_of_a_claim() {
    const SERVED: usize = 300_000;
    let runtime = Runtime::builder().virtual_processors(1).detection(Detection::Off).build();
    let run = || {
        let section = mask();
        let vp = section.vp;
        section.leave();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| claim_until(&stop, vp));
            (0..SERVED).for_each(|_| attend());
            stop.store(true, Ordering::Relaxed);
        });
    };
    under_watchdog("claims beside served events", || runtime.run(run).unwrap());
}

/// How often a virtual processor was taken, and how often by a thread of the lowest class.
static TAKERS: AtomicUsize = AtomicUsize::new(0);
static IDLE_TAKERS: AtomicUsize = AtomicUsize::new(0);

/// Records the class of the calling thread, which takes a virtual processor.
pub(super) fn note_taker() {
    TAKERS.fetch_add(1, Ordering::SeqCst);
    if class(ThreadId::current()) == Ok(Some(Class::Idle)) {
        IDLE_TAKERS.fetch_add(1, Ordering::SeqCst);
    }
}

/// The host may suspend a thread of the lowest class between its claim and the end of the claim;
/// other threads would then wait.
#[test]
fn no_thread_of_the_lowest_class_takes_a_virtual_processor() {
    const NAME: &str = "no_thread_of_the_lowest_class_takes_a_virtual_processor";
    let runtime = Runtime::builder().virtual_processors(1).detection(Detection::Sentinel).build();
    let run = || {
        let section = mask();
        let vp = section.vp;
        section.leave();
        let sentinel = || vp.sentinel.id().and_then(|id| class(id).ok()).flatten();
        while sentinel().is_none() {
            yield_now();
        }
        if sentinel() != Some(Class::Idle) {
            return skip(NAME, "no sentinel of the lowest class");
        }
        let (before, nominations) = (TAKERS.load(Ordering::SeqCst), AtomicUsize::new(0));
        let is_over = || nominations.load(Ordering::SeqCst) >= TIMES;
        let doze = || {
            while !is_over() {
                raw_sleep();
                yield_now();
            }
        };
        let count = || {
            let outcome = &vp.sentinel.nomination;
            while !is_over() {
                let taken = outcome.load(Ordering::SeqCst) == nomination::TAKEN;
                nominations.fetch_add(usize::from(taken), Ordering::SeqCst);
                yield_now();
            }
        };
        scope(|scope| {
            scope.spawn(doze);
            scope.spawn(count);
        });
        assert!(TAKERS.load(Ordering::SeqCst) > before, "the virtual processor was taken");
    };
    under_watchdog(NAME, || runtime.run(run).unwrap());
    assert_eq!(IDLE_TAKERS.load(Ordering::SeqCst), 0, "taken by a thread of the lowest class");
}
