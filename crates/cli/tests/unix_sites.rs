//! Library functions that are rewritten under `kyocho unix` return the same results as before.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use support::{inside, is_permitted, output_of};

/// The output of `numbers.c`, with these options of the command and of the compiler.
fn numbers(options: &[&str], made: &'static [&'static str]) -> String {
    let (status, text) =
        output_of(&mut inside(&[options, &["--", compiled("numbers", made)]].concat()));
    assert_eq!(status, Some(0), "{options:?} {made:?}: {text}");
    text
}

/// Covers threads, forks, children that share their parent's memory, and forks in a handler at
/// every instruction.
#[test]
fn each_process_gets_its_own_number() {
    if !is_permitted("each_process_gets_its_own_number") {
        return;
    }
    for made in [&[] as &[&str], &["-static"]] {
        assert_eq!(numbers(&[], made), "rewritten\nheld\n", "{made:?}");
        // With `--processes`, making a process or thread is a served call.
        assert_eq!(numbers(&["--processes", "64"], made), "rewritten\nheld\n", "{made:?}");
    }
}

/// With `--trace`, all calls are made, so that they can be listed.
#[test]
fn a_trace_hides_no_call() {
    if !is_permitted("a_trace_hides_no_call") {
        return;
    }
    let text = numbers(&["--trace"], &[]);
    assert!(!text.contains("rewritten"), "{text}");
    assert!(text.lines().any(|line| line.contains("[local] getpid(")), "{text}");
    assert!(text.lines().any(|line| line.contains("[local] getuid(")), "{text}");
}

/// `fstat` of an open file is a native call.
#[test]
fn an_open_file_is_asked_about_without_the_server() {
    if !is_permitted("an_open_file_is_asked_about_without_the_server") {
        return;
    }
    let (status, text) = output_of(&mut inside(&["--", compiled("attackers", &[]), "sites"]));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
    let script = "for i in 1 2 3 4 5 6 7 8 9; do set -- \"$@\" /etc/passwd /etc/hostname; done; /bin/cat \"$@\" > /dev/null";
    let (status, text) = output_of(&mut inside(&["--trace", "--", "sh", "-c", script]));
    assert_eq!(status, Some(0));
    let count = |marks: &[&str]| {
        text.lines().filter(|line| marks.iter().all(|mark| line.contains(mark))).count()
    };
    assert!(count(&["[local] fstat("]) >= 18, "{text}");
    assert_eq!(count(&["[server] newfstatat(", ", \"\", "]), 0, "{text}");
}
