//! Timers signal the thread they were created for.
#![expect(unsafe_code, reason = "installs handlers")]

use core::ffi::c_void;

use super::{Timer, TimerClock};
use crate::clock::monotonic_ns;
use crate::error::Errno;
use crate::prim::atomic::{AtomicUsize, Ordering};
use crate::signal::{HandlerOptions, Info, Signal, install};
use crate::task::ThreadId;

#[test]
fn a_periodic_timer_signals_its_thread_until_stopped() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static THREAD: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn note(_: i32, _: *mut Info, _: *mut c_void) {
        THREAD.store(ThreadId::current().number() as usize, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Release);
    }
    // SAFETY: the handler accesses atomics only.
    unsafe { install(Signal::realtime(4), note, HandlerOptions::default()) }.unwrap();
    let me = ThreadId::current();
    for measure in [TimerClock::Monotonic, TimerClock::ThreadCpu] {
        let timer = Timer::new(me, Signal::realtime(4), measure).unwrap();
        timer.set_period(200_000).unwrap();
        let start = COUNT.load(Ordering::Acquire);
        while COUNT.load(Ordering::Acquire) < start + 5 {
            core::hint::spin_loop();
        }
        timer.set_period(0).unwrap();
    }
    assert_eq!(THREAD.load(Ordering::Relaxed), me.number() as usize);
    let once = Timer::new(me, Signal::realtime(4), TimerClock::Monotonic).unwrap();
    let (before, at_ns) = (COUNT.load(Ordering::Acquire), monotonic_ns() + 1_000_000);
    once.set_once_at(at_ns).unwrap();
    while COUNT.load(Ordering::Acquire) == before {
        core::hint::spin_loop();
    }
    assert!(monotonic_ns() >= at_ns);
}

#[test]
fn timer_for_a_missing_thread_is_an_error() {
    let absent = ThreadId::new(i32::MAX as u32);
    let answer = Timer::new(absent, Signal::realtime(4), TimerClock::Monotonic);
    assert_eq!(answer.err(), Some(Errno::INVAL));
}
