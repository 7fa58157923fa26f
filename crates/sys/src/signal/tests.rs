//! Handlers run where and when they should.
#![expect(unsafe_code, reason = "installs handlers")]

use core::ffi::c_void;

use super::{
    Action, AllBlocked, AlternateStack, Delivery, Handler, HandlerOptions, Info, Signal, install,
    preserving_errno, restore, send, set_delivery,
};
use crate::error::Errno;
use crate::prim::atomic::{AtomicUsize, Ordering};
use crate::task::ThreadId;

/// Installs `handler` for one test. Each test uses its own signal, since handlers belong to the
/// process.
fn handle(signal: Signal, handler: Handler, manner: HandlerOptions) -> Action {
    // SAFETY: the handlers below access atomics only.
    unsafe { install(signal, handler, manner) }.unwrap()
}

#[test]
fn a_blocked_signal_arrives_when_it_is_unblocked() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_: i32, _: *mut Info, _: *mut c_void) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    let signal = Signal::realtime(0);
    let before = handle(signal, count, HandlerOptions::default());
    assert_eq!(before.handler(), None);
    assert_eq!(set_delivery(signal, Delivery::Block), Ok(Delivery::Unblock));
    send(ThreadId::current(), signal).unwrap();
    send(ThreadId::current(), signal).unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    assert_eq!(set_delivery(signal, Delivery::Unblock), Ok(Delivery::Block));
    assert_eq!(COUNT.load(Ordering::Relaxed), 2, "real-time signals are queued");
    // SAFETY: the action was "default".
    let ours = unsafe { restore(signal, &before) }.unwrap();
    assert_eq!(ours.handler(), Some(count as *const () as usize));
}

#[test]
fn a_handler_runs_on_the_alternate_stack_while_it_lives() {
    static LOCAL: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn note(_: i32, _: *mut Info, _: *mut c_void) {
        let local = 0_u8;
        LOCAL.store(&raw const local as usize, Ordering::Relaxed);
    }
    let signal = Signal::realtime(1);
    handle(signal, note, HandlerOptions { on_alternate_stack: true, ..HandlerOptions::default() });
    let stack = AlternateStack::install(64 * 1024).unwrap();
    let start = stack._memory.base();
    let range = start..start + stack._memory.bytes();
    send(ThreadId::current(), signal).unwrap();
    assert!(range.contains(&LOCAL.load(Ordering::Relaxed)));
    drop(stack);
    send(ThreadId::current(), signal).unwrap();
    assert!(!range.contains(&LOCAL.load(Ordering::Relaxed)));
}

#[test]
fn a_reentrant_handler_is_interrupted_by_its_own_signal() {
    static DEPTH: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn nest(_: i32, _: *mut Info, _: *mut c_void) {
        if DEPTH.fetch_add(1, Ordering::Relaxed) < 3 {
            send(ThreadId::current(), Signal::realtime(2)).unwrap();
            // If the signal were blocked, the next level would come after this line.
            DEPTH.fetch_add(100, Ordering::Relaxed);
        }
    }
    handle(
        Signal::realtime(2),
        nest,
        HandlerOptions { reentrant: true, ..HandlerOptions::default() },
    );
    send(ThreadId::current(), Signal::realtime(2)).unwrap();
    assert_eq!(DEPTH.load(Ordering::Relaxed), 4 + 300);
}

#[test]
fn forwarding_calls_the_handler_that_was_there_before() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn first(signal: i32, _: *mut Info, _: *mut c_void) {
        SEEN.fetch_add(signal as usize, Ordering::Relaxed);
    }
    unsafe extern "C" fn unused(_: i32, _: *mut Info, _: *mut c_void) {}
    let signal = Signal::realtime(3);
    handle(signal, first, HandlerOptions::default());
    let before = handle(signal, unused, HandlerOptions::default());
    // SAFETY: `first` uses the number only.
    unsafe { before.forward(signal, core::ptr::null_mut(), core::ptr::null_mut()) };
    assert_eq!(SEEN.load(Ordering::Relaxed), signal.number() as usize);
}

#[test]
fn errno_survives_a_body_that_changes_it() {
    let set = |number| {
        // SAFETY: the address of this thread's own `errno`.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { errno.write(number) };
    };
    set(77);
    preserving_errno(|| set(5));
    assert_eq!(Errno::last(), Errno::new(77));
}

#[test]
fn impossible_signals_are_errors() {
    unsafe extern "C" fn unused(_: i32, _: *mut Info, _: *mut c_void) {}
    // SAFETY: the kernel refuses the call.
    let answer = unsafe { install(Signal(libc::SIGKILL), unused, HandlerOptions::default()) };
    assert_eq!(answer.err(), Some(Errno::INVAL));
    let absent = ThreadId::new(i32::MAX as u32);
    assert_eq!(send(absent, Signal::URG), Err(Errno::SRCH));
}

#[test]
fn no_signal_arrives_while_all_are_blocked() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_: i32, _: *mut Info, _: *mut c_void) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    let signals = [Signal::realtime(7), Signal::realtime(8)];
    for signal in signals {
        handle(signal, count, HandlerOptions::default());
    }
    let outer = AllBlocked::new();
    for signal in signals {
        send(ThreadId::current(), signal).unwrap();
    }
    drop(AllBlocked::new());
    assert_eq!(
        COUNT.load(Ordering::Relaxed),
        0,
        "dropping the inner one must restore the outer one's mask"
    );
    drop(outer);
    assert_eq!(COUNT.load(Ordering::Relaxed), 2);
}

#[test]
fn a_handler_that_is_alone_holds_back_other_signals() {
    static DEPTH: AtomicUsize = AtomicUsize::new(0);
    static DEEPEST: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn nest(number: i32, _: *mut Info, _: *mut c_void) {
        let depth = DEPTH.fetch_add(1, Ordering::Relaxed) + 1;
        DEEPEST.fetch_max(depth, Ordering::Relaxed);
        if number == Signal::realtime(3).number() {
            send(ThreadId::current(), Signal::realtime(4)).unwrap();
        }
        DEPTH.fetch_sub(1, Ordering::Relaxed);
    }
    let manner = HandlerOptions { alone: true, ..HandlerOptions::default() };
    handle(Signal::realtime(3), nest, manner);
    handle(Signal::realtime(4), nest, manner);
    send(ThreadId::current(), Signal::realtime(3)).unwrap();
    assert_eq!(DEEPEST.load(Ordering::Relaxed), 1);
}
