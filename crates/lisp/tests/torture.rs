//! Runs the Scheme programs of `tests/scheme` under torture: with a collection at every taking of
//! memory, at every second one, or whenever a thread is outside Lisp. Freed memory is overwritten.
//! A value used by the machine, the primitives or the services that is not a root leads to a wrong
//! result, a hang or a crash here.
#![expect(clippy::disallowed_methods, reason = "a watchdog sleeps on a kernel thread of its own")]

use core::time::Duration;
use kyocho_lisp::system::{CellCache, Options, System, Torture};
use kyocho_sys::prim::thread;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A program that hangs is an error. All programs together take two minutes.
const WATCHDOG_SECONDS: u64 = 900;

/// With a collection at every taking, a loop that allocates and calls primitives collects in each
/// iteration. Programs with loops of a hundred thousand iterations would take minutes. They run
/// only with a collection at every second taking, on two virtual processors.
const LONG: &[&str] = &[
    "delimited",
    "equivalence",
    "exceptions",
    "expressions",
    "hash-tables",
    "kyocho-lists",
    "lists",
    "ports",
    "select",
    "vectors",
];

/// Programs for libraries written in Scheme only, which are long and test nothing below Scheme that
/// the others do not test. And lists that every collection would have to mark.
const LEFT_OUT: &[&str] = &[
    "json",
    "lists-long",
    "mailbox",
    "srfi-13",
    "srfi-14",
    "srfi-27",
    "srfi-41",
    "srfi-64",
    "srfi-115",
    "srfi-158",
];

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheme");
    let entries = std::fs::read_dir(folder).expect("the programs are there");
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let is_program = |path: &PathBuf| !path.ends_with("harness.scm") && !is_in(LEFT_OUT, path);
    let mut programs: Vec<_> = paths.filter(is_program).collect();
    programs.sort();
    programs
}

fn is_in(names: &[&str], program: &Path) -> bool {
    program.file_stem().is_some_and(|stem| names.iter().any(|&name| stem == name))
}

/// The programs that fail under this torture, and why.
fn failures(torture: Torture, cells: CellCache, virtual_processors: usize) -> Vec<String> {
    let options = Options {
        cell_cache: cells,
        virtual_processors: Some(virtual_processors),
        torture: Some(torture),
        ..Options::default()
    };
    let runs_long = torture.every > 1 && virtual_processors > 1;
    failures_with(&options, |program| runs_long || !is_in(LONG, program))
}

fn failures_with(options: &Options, is_run: impl Fn(&Path) -> bool) -> Vec<String> {
    // One at a time, because all programs that share memory are one node for the whole process.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut system = System::boot(options.clone(), &mut |_| {}).expect("the system boots");
    let mut failed = Vec::new();
    for program in programs().into_iter().filter(|program| is_run(program)) {
        let outcome = system.run_file(&program);
        if outcome.exit_code != 0 {
            let report = outcome.report.map(|report| report.to_string()).unwrap_or_default();
            let (torture, cells) = (options.torture, options.cell_cache);
            failed.push(format!("{} with {torture:?}, {cells:?}: {report}", program.display()));
        }
    }
    failed
}

fn watch() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(WATCHDOG_SECONDS));
        let _written = std::io::stderr().write_all(b"the watchdog ends the programs\n");
        std::process::exit(3);
    });
}

/// Collections run only when threads go outside Lisp, but each time. Values that a thread uses
/// after it has returned are lost unless they are roots.
#[test]
fn no_object_is_lost_when_a_collection_runs_each_time_a_thread_is_outside() {
    watch();
    for virtual_processors in [1, 2] {
        let options = Options {
            cell_cache: CellCache::Fixed(64),
            virtual_processors: Some(virtual_processors),
            torture: Some(Torture { every: 1 << 40, phase: 0, concurrent: false }),
            torture_outside: 1,
            ..Options::default()
        };
        let failed = failures_with(&options, |_| true);
        assert!(failed.is_empty(), "these programs fail: {failed:#?}");
    }
}

#[test]
fn no_object_is_lost_when_every_allocation_collects() {
    watch();
    // On one virtual processor cells are requested by message; on two the caller takes them.
    // Collections stop the world throughout, or mark concurrently all the time.
    for (every, phase, concurrent, cells, virtual_processors) in [
        (1, 0, false, CellCache::Off, 1),
        (1, 0, false, CellCache::Fixed(16), 2),
        (2, 0, false, CellCache::Fixed(64), 1),
        (2, 1, false, CellCache::Fixed(64), 2),
        (2, 0, true, CellCache::Fixed(64), 1),
        (2, 0, true, CellCache::Fixed(16), 2),
    ] {
        let failed = failures(Torture { every, phase, concurrent }, cells, virtual_processors);
        assert!(failed.is_empty(), "these programs fail: {failed:#?}");
    }
}
