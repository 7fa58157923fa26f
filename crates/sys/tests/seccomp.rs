//! Answers to callers that wait at a filter, by threads that signals interrupt all the time: none is lost, and nobody who waits is taken for gone.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(unsafe_code, reason = "a handler, and system calls that nobody else makes")]

use core::ffi::c_void;
use core::time::Duration;
use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use kyocho_sys::poll::{self, Interest};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::thread::{self, scope};
use kyocho_sys::seccomp::{Inherited, Instruction, Listener, Notification, listen};
use kyocho_sys::signal::{self, Info, Manner, Signal};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

/// What is asked; nobody else here does.
const ASKED: libc::c_long = libc::SYS_personality;
const CALLS: usize = 20_000;
const CALLERS: usize = 4;
const SERVERS: usize = 2;
const ANSWER: i64 = 42;
/// The argument of who wants a descriptor.
const WANTS: u64 = 1;

/// Sends `ASKED` to the listener.
fn filter() -> [Instruction; 4] {
    let plain = |code: u32, k: u32| Instruction { code: code as u16, jt: 0, jf: 0, k };
    let mut test = plain(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, ASKED as u32);
    test.jf = 1;
    [
        plain(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        test,
        plain(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF),
        plain(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}

unsafe extern "C" fn nothing(_: i32, _: *mut Info, _: *mut c_void) {}

fn serve(listener: &Listener, asked: Notification, file: &File) {
    let waits = listener.waits(asked.id);
    let answer = match asked.arguments[0] {
        WANTS => listener.give(asked.id, file.as_fd(), Inherited::No),
        _ => Ok(ANSWER),
    };
    let answered = listener.answer(asked.id, answer);
    if !waits || answer.is_err() || answered.is_err() {
        // Its caller would wait for ever, and the test for that.
        eprintln!("{asked:?}: waits {waits}, is given {answer:?}, answered {answered:?}");
        std::process::exit(1);
    }
}

fn call(argument: u64) -> i64 {
    // SAFETY: takes a number, and is answered by `serve`.
    unsafe { libc::syscall(ASKED, argument) }
}

fn ask() {
    for _ in 0..CALLS / CALLERS {
        assert_eq!(call(0), ANSWER);
        let number = i32::try_from(call(WANTS)).unwrap();
        assert!(number > 2, "no descriptor: {number}, {}", std::io::Error::last_os_error());
        // SAFETY: it was made for us.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

#[test]
fn signals_lose_no_answer() {
    let interruption = Signal::realtime(3);
    // SAFETY: the handler does nothing.
    unsafe { signal::install(interruption, nothing, Manner::default()) }.unwrap();
    let file = File::open("/dev/null").unwrap();
    let (done, number) = (AtomicBool::new(false), AtomicU32::new(0));
    let servers = [const { AtomicU32::new(0) }; SERVERS];
    scope(|threads| {
        let (done, number, servers, file) = (&done, &number, &servers, &file);
        threads.spawn(move || {
            // For this thread, and those that it starts.
            let listener = listen(&filter());
            number.store(listener.map_or(u32::MAX, |number| number as u32), Ordering::SeqCst);
            if listener.is_ok() {
                scope(|callers| {
                    for _ in 0..CALLERS {
                        callers.spawn(ask);
                    }
                });
            }
            done.store(true, Ordering::SeqCst);
        });
        while number.load(Ordering::SeqCst) == 0 {
            core::hint::spin_loop();
        }
        let Ok(listener) = i32::try_from(number.load(Ordering::SeqCst)) else {
            return skip("signals_lose_no_answer", "filters with a listener are refused");
        };
        // SAFETY: it was made for us.
        let listener = Listener::new(unsafe { OwnedFd::from_raw_fd(listener) });
        scope(|threads| {
            for me in servers {
                let listener = &listener;
                threads.spawn(move || {
                    me.store(ThreadId::current().number(), Ordering::SeqCst);
                    while !done.load(Ordering::SeqCst) {
                        let soon = Some(Duration::from_millis(1));
                        let ready = poll::wait([(listener.as_fd(), Interest::Read)], soon);
                        // Another one may have taken it, or a signal have come.
                        if ready == Ok(true)
                            && let Ok(asked) = listener.receive()
                        {
                            serve(listener, asked, file);
                        }
                    }
                    me.store(0, Ordering::SeqCst);
                });
            }
            threads.spawn(|| {
                while !done.load(Ordering::SeqCst)
                    || servers.iter().any(|server| server.load(Ordering::SeqCst) != 0)
                {
                    for server in servers {
                        let number = server.load(Ordering::SeqCst);
                        if number != 0 {
                            let _ = signal::send(ThreadId::new(number), interruption);
                        }
                    }
                    // What waits for a caller to take a descriptor is to come to an end now and then.
                    thread::sleep(Duration::from_micros(10));
                }
            });
        });
    });
}
