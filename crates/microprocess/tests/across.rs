//! Priorities across processes: a process that is outranked on a CPU yields it. But none
//! starves, and none waits for a dead process.
//!
//! Each test starts this test program again, as other processes, all on one CPU.
#![expect(unsafe_code, reason = "signals processes")]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs};

use kyocho_microprocess::{Builder, Priority, Reach, Reflection, Runtime, report, statistics};

use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::task::ThreadId;

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// Set for a process that a test starts. The process answers each line on its standard input with a
/// line.
const ROLE: &str = "KYOCHO_ACROSS_LEVEL";

/// A process with one virtual processor that spins at one level.
struct Spinner {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Rounds that take many time slices, some 50 ms. In that time the host lets every process run that
/// wants to.
const MUCH: u64 = 10_000_000;
/// The longest time for which a process yields its CPU in tests in which it must not starve. Many
/// times as long as [`MUCH`] takes, also on a slow and busy machine.
const CPU_YIELD_MAX_MS: u64 = 1_000;

/// What a spinner has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    rounds: u64,
    yielded: u64,
}

/// A directory in which the processes of one test meet. One test at a time, since all use the same
/// CPU.
struct Meeting {
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Meeting {
    fn new(name: &str) -> Self {
        use std::os::unix::fs::DirBuilderExt;
        let path = env::temp_dir().join(format!("kyocho-across-{}-{name}", std::process::id()));
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self { path, _alone: alone }
    }

    fn file(&self) -> PathBuf {
        self.path.join("priorities-1")
    }

    fn spinner(&self, level: u8, cpu_yield_max_ms: u64) -> Spinner {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "a_spinner", "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{level} {cpu_yield_max_ms}"))
            .env("KYOCHO_DIR", &self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut spinner = Spinner { child, ask, answers };
        spinner.counted();
        spinner
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).unwrap();
    }
}

impl Spinner {
    fn counted(&mut self) -> Counted {
        self.ask.write_all(b"?\n").unwrap();
        let mut line = String::new();
        // The test harness of the other process prints lines as well.
        while !line.starts_with("counted ") {
            line.clear();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "the spinner has ended");
        }
        let mut numbers = line.split_whitespace().skip(1).map(|word| word.parse().unwrap());
        Counted { rounds: numbers.next().unwrap(), yielded: numbers.next().unwrap() }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: passes numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Waits until it does nothing while `urgent` does much: then it has yielded its CPU.
    fn await_yield(&mut self, urgent: &mut Self) {
        loop {
            let before = self.counted();
            urgent.await_rounds(MUCH);
            if self.counted().rounds == before.rounds {
                return;
            }
        }
    }

    /// Waits until it has yielded its CPU and runs again, which it must to answer.
    fn await_having_yielded(&mut self) {
        while self.counted().yielded == 0 {}
    }

    /// Waits until it has done this many more rounds.
    fn await_rounds(&mut self, rounds: u64) {
        let before = self.counted();
        while self.counted().rounds < before.rounds + rounds {}
    }

    /// Waits until it has made progress.
    fn await_progress(&mut self) {
        let before = self.counted().rounds;
        while self.counted().rounds == before {}
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Confines the calling process, which has one thread so far, to its first CPU, and makes it end
/// with its parent.
fn confine() {
    let me = ThreadId::current();
    let first = affinity(me).unwrap().iter().next().unwrap();
    set_affinity(me, &CpuSet::single(first)).unwrap();
    // SAFETY: passes numbers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }, 0);
}

/// The body of the other process. As a test it does nothing.
#[test]
fn a_spinner() {
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    static YIELDED: AtomicU64 = AtomicU64::new(0);
    let Ok(role) = env::var(ROLE) else { return };
    let mut numbers = role.split_whitespace().map(|word| word.parse::<u64>().unwrap());
    let (level, cpu_yield_max_ms) = (numbers.next().unwrap() as u8, numbers.next().unwrap());
    confine();
    std::thread::spawn(|| {
        for _question in std::io::stdin().lines() {
            let (rounds, yielded) =
                (ROUNDS.load(Ordering::Relaxed), YIELDED.load(Ordering::Relaxed));
            let answer = writeln!(std::io::stdout(), "\ncounted {rounds} {yielded}");
            if answer.is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    // Tests cooperation alone: a host that knew the priorities would starve the other process, too.
    let runtime = Runtime::builder()
        .virtual_processors(1)
        .reflection(Reflection::Off)
        .cpu_yield_max(Duration::from_millis(cpu_yield_max_ms))
        .build();
    let spin = || loop {
        for _ in 0..100_000 {
            ROUNDS.fetch_add(1, Ordering::Relaxed);
        }
        YIELDED.store(statistics().cpu_yields, Ordering::Relaxed);
    };
    let priority = Priority::new(level).unwrap();
    let ended = runtime.run(|| {
        assert_eq!(report().priorities, Reach::Processes);
        let spinner = Builder::new().priority(priority).spawn(spin).unwrap();
        spinner.join().unwrap();
    });
    unreachable!("a spinner spins: {ended:?}");
}

/// Longer than a test may take.
const FOR_EVER_MS: u64 = 1_000_000;

#[test]
fn the_outranked_process_yields_and_the_urgent_one_never_does() {
    let meeting = Meeting::new("outranked");
    under_watchdog("outranked", || {
        let mut urgent = meeting.spinner(40, FOR_EVER_MS);
        let mut other = meeting.spinner(20, FOR_EVER_MS);
        other.await_yield(&mut urgent);
        assert_eq!(urgent.counted().yielded, 0);
        drop(urgent);
        other.await_having_yielded();
    });
}

#[test]
fn equal_processes_share_and_none_yields_its_core() {
    let meeting = Meeting::new("equals");
    under_watchdog("equals", || {
        let (mut one, mut another) =
            (meeting.spinner(20, FOR_EVER_MS), meeting.spinner(20, FOR_EVER_MS));
        let mut share = || {
            one.await_progress();
            another.await_progress();
            (one.counted().yielded, another.counted().yielded)
        };
        // While they begin, the first microprocess of one runs at the normal level and may outrank
        // the other.
        let before = share();
        let after = (0..20).map(|_| share()).last();
        assert_eq!(after, Some(before));
    });
}

#[test]
fn outranked_process_continues_when_the_urgent_one_has_ended() {
    let meeting = Meeting::new("ended");
    under_watchdog("ended", || {
        let mut urgent = meeting.spinner(40, FOR_EVER_MS);
        let mut other = meeting.spinner(20, FOR_EVER_MS);
        other.await_yield(&mut urgent);
        drop(urgent);
        other.await_having_yielded();
        // Its entry is free again, and is reused.
        let mut urgent = meeting.spinner(50, FOR_EVER_MS);
        other.await_yield(&mut urgent);
    });
}

#[test]
fn a_stopped_process_is_not_waited_for() {
    let meeting = Meeting::new("stopped");
    under_watchdog("stopped", || {
        let mut urgent = meeting.spinner(40, FOR_EVER_MS);
        let mut other = meeting.spinner(20, FOR_EVER_MS);
        other.await_yield(&mut urgent);
        urgent.signal(libc::SIGSTOP);
        other.await_progress();
        urgent.signal(libc::SIGCONT);
        urgent.await_rounds(MUCH);
        drop(urgent);
        other.await_having_yielded();
    });
}

#[test]
fn no_outranked_process_starves() {
    let meeting = Meeting::new("starve");
    under_watchdog("starve", || {
        let mut urgent = meeting.spinner(63, FOR_EVER_MS);
        let mut other = meeting.spinner(0, CPU_YIELD_MAX_MS);
        for _ in 0..3 {
            other.await_yield(&mut urgent);
            other.await_progress();
        }
        other.await_having_yielded();
        assert_eq!(urgent.counted().yielded, 0);
    });
}

#[test]
fn shortened_shared_file_ends_no_process() {
    let meeting = Meeting::new("short");
    under_watchdog("short", || {
        let (mut one, mut another) =
            (meeting.spinner(20, FOR_EVER_MS), meeting.spinner(40, FOR_EVER_MS));
        one.await_yield(&mut another);
        let file = fs::OpenOptions::new().write(true).open(meeting.file()).unwrap();
        file.set_len(0).unwrap();
        // Neither outranks the other any more: each counts as alone.
        one.await_rounds(MUCH);
        another.await_rounds(MUCH);
        // A later process finds the file too short, and extends it.
        let mut third = meeting.spinner(30, FOR_EVER_MS);
        third.await_rounds(MUCH);
        one.await_progress();
    });
}

#[test]
fn removed_shared_file_is_still_shared_by_processes_that_map_it() {
    let meeting = Meeting::new("unlinked");
    under_watchdog("unlinked", || {
        let mut urgent = meeting.spinner(40, FOR_EVER_MS);
        let mut other = meeting.spinner(20, FOR_EVER_MS);
        other.await_yield(&mut urgent);
        fs::remove_file(meeting.file()).unwrap();
        other.await_yield(&mut urgent);
        drop(urgent);
        other.await_having_yielded();
        meeting.spinner(20, FOR_EVER_MS).await_progress();
    });
}

#[test]
fn garbage_in_the_shared_file_stops_no_process() {
    let meeting = Meeting::new("garbage");
    under_watchdog("garbage", || {
        let mut one = meeting.spinner(20, 50);
        one.await_progress();
        let path = meeting.file();
        let bytes = fs::metadata(&path).unwrap().len();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for byte in [0xff_u8, 0x01, 0x20, 0x80, 0x00] {
            use std::io::Seek;
            file.rewind().unwrap();
            file.write_all(&vec![byte; bytes as usize]).unwrap();
            one.await_progress();
        }
        let mut another = meeting.spinner(40, 50);
        another.await_progress();
        one.await_progress();
    });
}
