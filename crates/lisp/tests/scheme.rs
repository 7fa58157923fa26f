//! Runs the Scheme programs of `tests/scheme`: conformance to R7RS, section by section. Each
//! program counts its failures, reports them, and exits with 1 if there are any.
#![expect(clippy::disallowed_methods, reason = "a watchdog sleeps on a kernel thread of its own")]

use core::time::Duration;
use kyocho_lisp::system::{Options, System};
use kyocho_sys::prim::thread;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A program that hangs is an error. All programs together take seconds.
const WATCHDOG_SECONDS: u64 = 300;

/// In the order of the report's sections.
const PROGRAMS: &[&str] = &[
    "expressions",
    "macros",
    "definitions",
    "equivalence",
    "numbers",
    "complex",
    "lists",
    "lists-long",
    "characters",
    "strings",
    "vectors",
    "control",
    "delimited",
    "exceptions",
    "errors",
    "ports",
    "system",
    "r5rs",
    "conformance",
    "srfi-syntax",
    "srfi-1",
    "threads",
    "gates",
    "dsm",
    "mailbox",
    "policies",
    "json",
    "unix",
    "sockets",
    "tls",
    "hash-tables",
    "srfi-13",
    "srfi-14",
    "srfi-27",
    "srfi-41",
    "srfi-64",
    "srfi-115",
    "srfi-124",
    "srfi-125",
    "weak-tables",
    "guardians",
    "srfi-128",
    "srfi-133",
    "srfi-158",
    "srfi-170",
    "kyocho-numbers",
    "kyocho-lists",
    "kyocho-vectors",
    "kyocho-strings",
    "kyocho-control",
    "kyocho-threads",
    "select",
    "kyocho-tools",
];

/// The programs in a folder, by name.
fn programs_in(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the programs are there");
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    paths.filter_map(stem).filter(|stem| stem != "harness").collect()
}

#[test]
fn every_section_of_the_report_holds() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(WATCHDOG_SECONDS));
        eprintln!("the watchdog ends the programs");
        std::process::exit(3);
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheme");
    assert_eq!(programs_in(&folder), BTreeSet::from_iter(PROGRAMS.iter().map(ToString::to_string)));
    let mut system = System::boot(Options::default(), &mut |_| {}).unwrap();
    let mut failed = Vec::new();
    for program in PROGRAMS {
        println!("{program}:");
        let outcome = system.run_file(&folder.join(format!("{program}.scm")));
        if let Some(report) = &outcome.report {
            println!("{report}");
        }
        if outcome.exit_code != 0 {
            failed.push(*program);
        }
    }
    assert!(failed.is_empty(), "these sections do not hold: {failed:?}");
}
