//! Signals as messages: each arrives where it is wanted, and afterwards everything is as before. In
//! a separate program, since the action of a signal belongs to the process.
#![expect(unsafe_code, reason = "sends signals to the process, and reads their actions")]
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_microprocess::signals::{self, Signal};
use kyocho_microprocess::{Runtime, select, spawn, yield_now};
use kyocho_sys::signal::send;
use kyocho_sys::task::ThreadId;

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// One test at a time: they share the process's signals.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn on(virtual_processors: usize) -> Runtime {
    Runtime::builder().virtual_processors(virtual_processors).build()
}

/// Sends `signal` to this process, as `kill` does. Any of its threads may receive it, perhaps with
/// a delay.
fn raise(signal: Signal) {
    let process = i32::try_from(std::process::id()).unwrap();
    // SAFETY: passes numbers.
    assert_eq!(unsafe { libc::kill(process, signal.number()) }, 0);
}

/// Sends `signal` to the calling kernel thread, which handles it before this returns.
fn raise_here(signal: Signal) {
    send(ThreadId::current(), signal).unwrap();
}

/// The action of `signal`: the address of a handler, or one of libc's constants.
fn action(signal: Signal) -> usize {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the C library writes one structure.
    let answer =
        unsafe { libc::sigaction(signal.number(), core::ptr::null(), action.as_mut_ptr()) };
    assert_eq!(answer, 0);
    // SAFETY: all zero is a valid value, and it was overwritten.
    unsafe { action.assume_init() }.sa_sigaction
}

#[test]
fn each_signal_arrives_by_its_name() {
    let _alone = alone();
    under_watchdog("each signal", || {
        for virtual_processors in [1, 2] {
            let main = || {
                let wanted = [Signal::USR1, Signal::USR2, Signal::INT, Signal::TERM, Signal::HUP];
                let signals = signals::channel(wanted).unwrap();
                let arrives = |signal| {
                    raise(signal);
                    signals.recv() == Ok(signal)
                };
                assert!(wanted.into_iter().cycle().take(100).all(arrives));
            };
            on(virtual_processors).run(main).unwrap();
        }
    });
}

#[test]
fn every_receiver_of_a_signal_gets_it_and_others_do_not() {
    let _alone = alone();
    under_watchdog("everybody", || {
        let main = || {
            let one = signals::channel([Signal::USR1]).unwrap();
            let both = signals::channel([Signal::USR1, Signal::USR2]).unwrap();
            raise(Signal::USR1);
            assert_eq!((one.recv(), both.recv()), (Ok(Signal::USR1), Ok(Signal::USR1)));
            raise(Signal::USR2);
            assert_eq!(both.recv(), Ok(Signal::USR2));
            assert!(one.try_recv().is_err());
            let picked = select! { recv(one) -> _ => 1, default => 0 };
            assert_eq!(picked, 0);
            raise(Signal::USR1);
            let picked = select! { recv(one) -> signal => signal.unwrap() };
            assert_eq!(picked, Signal::USR1);
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn end_of_the_last_receiver_restores_the_previous_action() {
    let _alone = alone();
    under_watchdog("restoring", || {
        // SAFETY: ignoring a signal is always sound.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert_eq!(action(Signal::USR1), libc::SIG_DFL);
        let left = on(1).run(|| {
            let one = signals::channel([Signal::USR1, Signal::USR2]).unwrap();
            let other = signals::channel([Signal::USR1]).unwrap();
            assert!(action(Signal::USR1) > 1 && action(Signal::USR2) > 1);
            drop(one);
            assert_eq!(action(Signal::USR2), libc::SIG_IGN);
            raise_here(Signal::USR2);
            assert!(action(Signal::USR1) > 1);
            raise(Signal::USR1);
            assert_eq!(other.recv(), Ok(Signal::USR1));
            other
        });
        // Its runtime has stopped. It still replaces the default action of the signal, which would
        // end the process.
        raise_here(Signal::USR1);
        drop(left);
        assert_eq!(action(Signal::USR1), libc::SIG_DFL);
    });
}

#[test]
fn signals_that_cannot_be_messages_are_refused_by_name() {
    let _alone = alone();
    under_watchdog("refused", || {
        let main = || {
            for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGURG] {
                let signal = Signal::new(number).unwrap();
                let error = signals::channel([Signal::USR1, signal]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(&number.to_string()), "{error}");
            }
            assert_eq!(action(Signal::USR1), libc::SIG_DFL);
            assert_eq!(Signal::new(0), None);
            assert_eq!(Signal::new(65), None);
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn places_are_bounded_and_used_again() {
    let _alone = alone();
    under_watchdog("places", || {
        let main = || {
            for _ in 0..3 {
                let all: Vec<_> =
                    (0..32).map(|_| signals::channel([Signal::USR1]).unwrap()).collect();
                let error = signals::channel([Signal::USR1]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
                raise(Signal::USR1);
                assert!(all.iter().all(|signals| signals.recv() == Ok(Signal::USR1)));
            }
            // A new owner of a place gets its own signals, even if the former owner's forwarding
            // microprocess still runs.
            for _ in 0..200 {
                let signals = signals::channel([Signal::USR2]).unwrap();
                raise(Signal::USR2);
                assert_eq!(signals.recv(), Ok(Signal::USR2));
            }
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn storm_loses_no_last_signal_and_disturbs_no_other_microprocess() {
    let _alone = alone();
    under_watchdog("storm", || {
        for virtual_processors in [1, 2] {
            let main = || {
                let signals = signals::channel([Signal::USR1, Signal::USR2]).unwrap();
                let shared = Arc::new((AtomicU32::new(0), AtomicBool::new(false)));
                let workers: Vec<_> = (0..4).map(|_| spawn(worker(&shared))).collect();
                let storm = std::thread::spawn(raise_storm);
                let seen = signals.iter().take_while(|signal| *signal == Signal::USR1).count();
                assert!((1..=STORM).contains(&seen));
                storm.join().unwrap();
                shared.1.store(true, Ordering::Relaxed);
                let sum: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
                assert_eq!(sum, shared.0.load(Ordering::Relaxed));
            };
            on(virtual_processors).run(main).unwrap();
        }
    });
}

const STORM: usize = 20_000;

fn raise_storm() {
    (0..STORM).for_each(|_| raise(Signal::USR1));
    raise(Signal::USR2);
}

/// Takes turns with others until the end; returns the number of its turns.
fn worker(shared: &Arc<(AtomicU32, AtomicBool)>) -> impl FnOnce() -> u32 + use<> {
    let shared = Arc::clone(shared);
    move || {
        let (turns, over) = &*shared;
        let mut mine = 0;
        while !over.load(Ordering::Relaxed) {
            turns.fetch_add(1, Ordering::Relaxed);
            mine += 1;
            yield_now();
        }
        mine
    }
}
