//! Watching threads that run, sleep and end.

use super::{
    Asleep, InKernel, State, StateReader, SystemCallReader, ThreadId, parse_position, parse_state,
    parse_system_call,
};
use crate::error::Errno;
use crate::futex;
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::prim::thread::{scope, spawn, yield_now};

#[test]
fn state_is_the_letter_after_the_last_parenthesis() {
    assert_eq!(parse_state(b"12 (name) R 1 2"), State::Running);
    assert_eq!(parse_state(b"12 (a) S (b) D 1 2"), State::Uninterruptible);
    assert_eq!(parse_state(b"12 (x) Z"), State::Dead);
    assert_eq!(parse_state(b"12 (x) t 1"), State::Stopped);
    assert_eq!(parse_state(b"12 (x) I 1"), State::Other(b'I'));
    assert_eq!(parse_state(b"12 (x"), State::Other(0));
    assert_eq!(parse_state(b"12 (x)"), State::Other(0));
}

#[test]
fn system_call_is_a_number_a_minus_or_a_word() {
    assert_eq!(parse_system_call(b"running\n"), InKernel::Running);
    assert_eq!(parse_system_call(b"202 0x1 0x2 0x3\n"), InKernel::SystemCall(202));
    assert_eq!(parse_system_call(b"-1 0x7ff 0x400\n"), InKernel::Elsewhere);
    assert_eq!(parse_system_call(b""), InKernel::Dead);
    parse_system_call(b"99999999999999999999 0x1");
}

#[test]
fn a_position_is_the_last_two_words() {
    let position = Some(Asleep { sp: 0x7ff0, pc: 0x40a });
    assert_eq!(parse_position(b"35 0x1 0x2 0x3 0x4 0x5 0x6 0x7ff0 0x40a\n"), position);
    assert_eq!(parse_position(b"-1 0x7ff0 0x40a\n"), position);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(parse_position(b"15 0x1 0x2 0x3 0x4 0x5 0x6 0x7ff0 0x40a\n"), None, "rt_sigreturn");
    for nowhere in [&b"running\n"[..], b"", b"0x1", b"35 x 0x40a", b"35 0xg 0x1"] {
        assert_eq!(parse_position(nowhere), None);
    }
}

#[test]
fn a_thread_is_seen_running_sleeping_and_gone() {
    let (number, go) = (AtomicU32::new(0), AtomicU32::new(0));
    scope(|threads| {
        let thread = threads.spawn(|| {
            number.store(ThreadId::current().number(), Ordering::Release);
            while go.load(Ordering::Acquire) == 0 {
                yield_now();
            }
            while go.load(Ordering::Acquire) == 1 {
                futex::wait(&go, 1, None);
            }
        });
        while number.load(Ordering::Acquire) == 0 {
            yield_now();
        }
        let id = ThreadId::new(number.load(Ordering::Acquire));
        let state = StateReader::open(id).unwrap();
        let call = SystemCallReader::open(id).unwrap();
        assert_eq!(state.read(), Ok(State::Running));
        go.store(1, Ordering::Release);
        let futex_call = InKernel::SystemCall(libc::SYS_futex as u32);
        while (state.read(), call.read()) != (Ok(State::Sleeping), Ok(futex_call)) {
            yield_now();
        }
        go.store(2, Ordering::Release);
        futex::wake(&go, 1);
        thread.join().unwrap();
        // `join` returns shortly before the host has removed the thread.
        while state.read() != Ok(State::Dead) {
            yield_now();
        }
        assert!(matches!(call.read(), Ok(InKernel::Dead)));
    });
}

#[test]
fn a_thread_that_does_not_exist_cannot_be_watched() {
    let absent = ThreadId::new(i32::MAX as u32);
    assert_eq!(StateReader::open(absent).err(), Some(Errno::new(libc::ENOENT)));
}

#[test]
fn a_thread_exists_until_it_has_ended() {
    assert!(ThreadId::current().exists());
    let other = spawn(ThreadId::current).join().unwrap();
    // The kernel wakes a joiner shortly before the number is free.
    let watchdog = crate::clock::monotonic_ns() + 30_000_000_000;
    while other.exists() {
        assert!(crate::clock::monotonic_ns() < watchdog, "an ended thread still exists");
        yield_now();
    }
}
