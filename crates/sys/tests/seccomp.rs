//! Answers to callers that wait at a filter, sent by threads that signals interrupt constantly:
//! none is lost, and no waiting caller is considered gone.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(unsafe_code, reason = "a handler, and system calls that no other code makes")]
#![expect(
    clippy::disallowed_methods,
    reason = "signals are sent at a pace; no condition is awaited"
)]
#![expect(clippy::print_stderr, reason = "the report of a run that would never end")]

use core::ffi::c_void;
use core::time::Duration;
use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};

use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::thread::{self, scope};
use kyocho_sys::seccomp::{Inherited, Instruction, Listener, Notification, listen};
use kyocho_sys::signal::{self, HandlerOptions, Info, Signal};
use kyocho_sys::skip::skip;
use kyocho_sys::task::ThreadId;

/// The system call under test. No other code here makes it.
const ASKED: libc::c_long = libc::SYS_personality;
const CALLS: usize = 20_000;
const CALLERS: usize = 4;
const SERVERS: usize = 2;
const ANSWER: i64 = 42;
/// The argument that requests a descriptor.
const WANTS: u64 = 1;

/// Passes `ASKED` to the listener.
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

/// The answers of one run.
struct Run {
    file: File,
    listener: Listener,
    /// The callers have ended.
    done: AtomicBool,
    /// Numbers of the serving threads; 0 for one that does not run.
    servers: [AtomicU32; SERVERS],
}

impl Run {
    fn answer(&self, asked: Notification) {
        let waits = self.listener.waits(asked.id);
        let answer = match asked.arguments[0] {
            WANTS => self.listener.give(asked.id, self.file.as_fd(), Inherited::No),
            _ => Ok(ANSWER),
        };
        let answered = self.listener.answer(asked.id, answer);
        if !waits || answer.is_err() || answered.is_err() {
            // The caller would wait for ever, and so would the test.
            eprintln!("{asked:?}: waits {waits}, is given {answer:?}, answered {answered:?}");
            std::process::exit(1);
        }
    }

    fn serve(&self, me: &AtomicU32) {
        me.store(ThreadId::current().number(), Ordering::SeqCst);
        while !self.done.load(Ordering::SeqCst) {
            let soon = Some(Duration::from_millis(1));
            let ready = poll::wait([(self.listener.as_fd(), Interest::Read)], soon);
            // Another thread may have taken it, or a signal may have come.
            if ready == Ok(true)
                && let Ok(asked) = self.listener.receive()
            {
                self.answer(asked);
            }
        }
        me.store(0, Ordering::SeqCst);
    }

    fn interrupt(&self, interruption: Signal) {
        let numbers = || self.servers.iter().map(|server| server.load(Ordering::SeqCst));
        while !self.done.load(Ordering::SeqCst) || numbers().any(|number| number != 0) {
            for number in numbers().filter(|&number| number != 0) {
                let _ = signal::send(ThreadId::new(number), interruption);
            }
            // A call that waits until its caller takes a descriptor must complete now and then.
            thread::sleep(Duration::from_micros(10));
        }
    }
}

fn call(argument: u64) -> i64 {
    // SAFETY: takes a number, and is answered by `Run::answer`.
    unsafe { libc::syscall(ASKED, argument) }
}

fn ask() {
    for _ in 0..CALLS / CALLERS {
        assert_eq!(call(0), ANSWER);
        let number = i32::try_from(call(WANTS)).unwrap();
        assert!(number > 2, "no descriptor: {number}, {}", std::io::Error::last_os_error());
        // SAFETY: created for this thread, and owned by nothing else.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

/// Passes the listener on, and starts threads that call.
fn call_all(to: &Sender<Result<i32, Errno>>) {
    // For this thread, and those that it starts.
    let listener = listen(&filter());
    to.send(listener).unwrap();
    if listener.is_ok() {
        scope(|callers| (0..CALLERS).for_each(|_| drop(callers.spawn(ask))));
    }
}

#[test]
fn signals_lose_no_answer() {
    let interruption = Signal::realtime(3);
    // SAFETY: the handler does nothing.
    unsafe { signal::install(interruption, nothing, HandlerOptions::default()) }.unwrap();
    let (to, from) = channel();
    let callers = thread::spawn(move || call_all(&to));
    let Ok(listener) = from.recv().unwrap() else {
        return skip("signals_lose_no_answer", "filters with a listener are refused");
    };
    let run = Run {
        file: File::open("/dev/null").unwrap(),
        // SAFETY: created for this thread, and owned by nothing else.
        listener: Listener::new(unsafe { OwnedFd::from_raw_fd(listener) }),
        done: AtomicBool::new(false),
        servers: [const { AtomicU32::new(0) }; SERVERS],
    };
    scope(|threads| {
        let run = &run;
        for me in &run.servers {
            threads.spawn(move || run.serve(me));
        }
        threads.spawn(|| run.interrupt(interruption));
        let outcome = callers.join();
        run.done.store(true, Ordering::SeqCst);
        outcome.unwrap();
    });
}
