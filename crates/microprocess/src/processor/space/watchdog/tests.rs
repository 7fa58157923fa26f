//! Processes that misbehave, each in one of the ways of §3.4, and what happens to them.
#![expect(unsafe_code, reason = "blocks a signal; asks the host about a thread")]

use std::env;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, Output};

use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::{Class, class};
use kyocho_sys::sleep;
use kyocho_sys::task::ThreadId;

use super::OnUnanswered;
use crate::schedule::mask;
use crate::scheduler::{Arrival, Entry, Event, EventKind, RoundRobin, Scheduler, Slice};
use crate::statistics;
use crate::{Builder, Priority, Runtime};

/// Tells the process that a test starts how to misbehave.
const HOW: &str = "KYOCHO_MISBEHAVES";
/// Much longer than it takes the watchdog to act.
const GIVE_UP_NS: u64 = 60_000_000_000;

/// Runs this test program again, to misbehave.
fn misbehave(how: &str) -> Output {
    let (_crate, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::a_misbehaving_process");
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(HOW, how)
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The body of the other process. As a test it does nothing.
#[test]
fn a_misbehaving_process() {
    let Ok(how) = env::var(HOW) else { return };
    let (cause, action) = how.split_once(' ').unwrap();
    let action = match action {
        "demote" => OnUnanswered::Demote,
        "end" => OnUnanswered::End,
        _ => OnUnanswered::Report,
    };
    let builder = Runtime::builder().virtual_processors(1).on_unanswered(action);
    let builder = match cause {
        "greedy" => builder.cpu_percent_max(20),
        "blocked" => builder.scheduler(|_| Box::new(Unresponsive(RoundRobin::new()))),
        _ => builder,
    };
    let body: fn() = match cause {
        "masked" => keep_masked,
        "locked" => keep_standard_error,
        "full" => fill_standard_error,
        "preempted" => block_preemption,
        "blocked" => sleep_in_the_kernel,
        _ => be_greedy,
    };
    let run = || Builder::new().name("rogue").spawn(body).unwrap().join().unwrap();
    builder.build().run(run).unwrap();
}

/// Spins until the host has put the calling thread into the idle class, or for a long time.
fn spin_until_demoted() {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while monotonic_ns() < end_ns && class(ThreadId::current()) != Ok(Some(Class::Idle)) {}
    assert!(monotonic_ns() < end_ns, "the watchdog did not act");
}

fn keep_masked() {
    let section = mask();
    spin_until_demoted();
    section.leave();
}

/// Keeps events masked until the process is ended. After a long time it ends the process itself,
/// without a report.
fn keep_masked_for_good() -> ! {
    let _section = mask();
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while monotonic_ns() < end_ns {}
    process::exit(1);
}

/// Keeps events masked, and the lock of std's standard error.
fn keep_standard_error() {
    let _lock = io::stderr().lock();
    keep_masked_for_good();
}

/// Keeps events masked while standard error is a full pipe that is not read.
fn fill_standard_error() {
    let (_reader, mut writer) = io::pipe().unwrap();
    let writer_number = writer.as_raw_fd();
    // SAFETY: changes a flag of a pipe of this function.
    unsafe { libc::fcntl(writer_number, libc::F_SETFL, libc::O_NONBLOCK) };
    while writer.write(b"x").is_ok() {}
    // SAFETY: as above.
    unsafe { libc::fcntl(writer_number, libc::F_SETFL, 0) };
    // SAFETY: replaces standard error by the pipe; this process does not need it.
    unsafe { libc::dup2(writer_number, libc::STDERR_FILENO) };
    keep_masked_for_good();
}

fn block_preemption() {
    // SAFETY: a set of signals is a bit set, so all zero is a valid value.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: writes one set.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGURG) };
    // SAFETY: reads one set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut()) };
    spin_until_demoted();
}

/// A user scheduler that does not return from an upcall.
struct Unresponsive(RoundRobin);

impl Scheduler for Unresponsive {
    fn name(&self) -> &'static str {
        "unresponsive"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, now_ns: u64) {
        self.0.enqueue(entry, arrival, now_ns);
    }

    fn pick(&mut self, now_ns: u64) -> Option<Entry> {
        self.0.pick(now_ns)
    }

    fn remove(&mut self, entry: Entry) {
        self.0.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.0.best()
    }

    fn preempts(&self, running: Entry, slice: Slice, now_ns: u64) -> bool {
        self.0.preempts(running, slice, now_ns)
    }

    fn event(&mut self, event: &Event, _now_ns: u64) {
        if event.kind == EventKind::Blocked {
            spin_until_demoted();
        }
    }
}

fn sleep_in_the_kernel() {
    let before = statistics().blocked;
    while statistics().blocked == before {
        let soon_ns = monotonic_ns() + 1_000_000;
        // If a signal ends the sleep, it sleeps again.
        let _again = sleep::until(soon_ns);
    }
}

/// Uses all CPU time it gets, until it was made to yield its CPU.
fn be_greedy() {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while statistics().cpu_yields == 0 {
        assert!(monotonic_ns() < end_ns, "the process was not stopped");
    }
}

#[test]
fn a_process_that_keeps_events_masked_is_ended_by_name() {
    let output = misbehave("masked end");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let told = told(&output);
    assert!(told.contains("rogue) keeps events masked; the process ends"), "{told}");
}

#[test]
fn watchdog_ends_a_process_that_holds_the_lock_of_standard_error() {
    let output = misbehave("locked end");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let told = told(&output);
    assert!(told.contains("rogue) keeps events masked; the process ends"), "{told}");
}

#[test]
fn watchdog_does_not_wait_for_a_full_standard_error() {
    let output = misbehave("full end");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
}

#[test]
fn a_thread_that_keeps_events_masked_is_demoted() {
    let output = misbehave("masked demote");
    assert!(output.status.success(), "{output:?}");
    assert!(told(&output).contains("rogue) keeps events masked; it is demoted"));
}

#[test]
fn a_process_that_does_not_yield_after_preempted_is_ended_by_name() {
    let output = misbehave("preempted end");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    assert!(told(&output).contains("rogue) does not yield after Preempted"), "{output:?}");
}

#[test]
fn a_process_that_does_not_answer_blocked_is_ended() {
    let output = misbehave("blocked end");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let told = told(&output);
    assert!(told.contains("virtual processor 0 does not answer Blocked"), "{told}");
}

#[test]
fn a_process_that_does_not_answer_blocked_is_demoted() {
    let output = misbehave("blocked demote");
    assert!(output.status.success(), "{output:?}");
    let told = told(&output);
    assert!(told.contains("nothing is dispatched; it is demoted"), "{told}");
}

#[test]
fn process_over_its_share_of_cpu_time_has_yielded() {
    let output = misbehave("greedy report");
    assert!(output.status.success(), "{output:?}");
    assert!(!told(&output).contains("kyocho:"), "{output:?}");
}
