//! `kyocho unix --personality freebsd`: unmodified static programs that Go builds for FreeBSD.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use support::{Folder, inside, is_permitted, output_of};

/// The path of Go, if it is installed.
fn go() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let installed = PathBuf::from("/usr/local/go/bin");
    let all = std::env::split_paths(&folders).chain([installed]).map(|folder| folder.join("go"));
    all.filter(|go| go.exists()).find(|go| {
        // A Go that cannot build for FreeBSD is of no use.
        let known = Command::new(go).args(["tool", "dist", "list"]).output();
        known.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("freebsd/amd64"))
    })
}

/// The program of `freebsd.go`, built once. `None` without Go.
fn program() -> Option<&'static Path> {
    static BUILT: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let go = go()?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (program, cache) = (folder.join("freebsd-parts"), folder.join("go-build"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unix/freebsd.go");
        let mut build = Command::new(go);
        build.args(["build", "-trimpath", "-o"]).arg(&program).arg(source);
        build.envs([("GOOS", "freebsd"), ("GOARCH", "amd64"), ("CGO_ENABLED", "0")]);
        build.envs([("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")]);
        build.env("GOCACHE", cache).env("GOPATH", folder.join("go"));
        assert!(build.status().unwrap().success());
        Some(program)
    });
    BUILT.as_deref()
}

/// Runs part `words` of the program in a folder of its own. Returns exit code and output, or `None`
/// if it cannot be run here.
fn run(test: &str, options: &[&str], words: &[&str]) -> Option<(Option<i32>, String)> {
    if !is_permitted(test) {
        return None;
    }
    let Some(program) = program() else {
        kyocho_sys::skip::skip(test, "go is not installed");
        return None;
    };
    let folder = Folder::new();
    let options = [&["--personality", "freebsd", "--missing"], options, &["--"]].concat();
    let mut command = inside(&options);
    command.arg(program).args(words).current_dir(folder.path());
    Some(output_of(&mut command))
}

/// The same, for a part that must succeed.
fn succeeds(test: &str, words: &[&str], expected: &str) {
    if let Some(result) = run(test, &[], words) {
        assert_eq!(result, (Some(0), expected.to_owned()));
    }
}

#[test]
fn a_program_learns_that_it_is_on_freebsd() {
    let test = "a_program_learns_that_it_is_on_freebsd";
    succeeds(test, &["hello", "a", "b"], "hello freebsd FreeBSD [a b] freebsd-parts true true\n");
}

#[test]
fn files_are_made_listed_copied_renamed_and_removed() {
    let expected = "201 19900 -rw-r----- 77 true\n199 xxend\nbelow/moved true 7\n1000000005000 below\n\
        open nothing: no such file or directory true\nopen moved: file exists true\n\
        remove ../../folder: directory not empty\ntrue\n";
    succeeds("files_are_made_listed_copied_renamed_and_removed", &["files"], expected);
}

#[test]
fn goroutines_run_while_the_collector_does() {
    succeeds("goroutines_run_while_the_collector_does", &["goroutines"], "3200 12800 true\n");
}

#[test]
fn signals_are_handled_ignored_and_fatal() {
    if let Some((status, text)) = run("signals_are_handled_ignored_and_fatal", &[], &["signals"]) {
        const INTERRUPTED: i32 = 128 + 2;
        let expected = "terminated, user defined signal 1\nruntime error: invalid memory address or nil pointer dereference\n";
        assert_eq!((status, text.as_str()), (Some(INTERRUPTED), expected));
    }
}

#[test]
fn a_crash_is_reported_by_the_program_itself() {
    if let Some((status, text)) = run("a_crash_is_reported_by_the_program_itself", &[], &["crash"])
    {
        assert_eq!(status, Some(2));
        let first = "panic: runtime error: invalid memory address or nil pointer dereference\n\
            [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x";
        assert!(text.starts_with(first) && text.contains("main.crash()"), "{text}");
    }
}

#[test]
fn a_server_on_kqueue_answers_a_hundred_clients() {
    succeeds(
        "a_server_on_kqueue_answers_a_hundred_clients",
        &["echo"],
        "600 true true packet true\n",
    );
}

#[test]
fn programs_start_programs_of_freebsd() {
    let expected = "hello freebsd FreeBSD [from a child] freebsd-parts true true\n280000\nexit status 42\n\
        signal: terminated\nfork/exec /nothing/there: no such file or directory\n\
        fork/exec /bin/sh: exec format error\n16\n";
    succeeds("programs_start_programs_of_freebsd", &["execute"], expected);
}

#[test]
fn time_disks_and_terminals_are_reported_as_on_freebsd() {
    let expected = "1 7 true 1 no such file or directory\ntrue true 1 true no such file or directory\n\
        errno 0 errno 0 true 0 true\ninappropriate ioctl for device | bad address | bad address\n\
        19 <nil>\n";
    succeeds("time_disks_and_terminals_are_reported_as_on_freebsd", &["system"], expected);
}

#[test]
fn bad_addresses_are_errors_and_what_is_not_there_is_named() {
    let expected = "bad address | bad address | function not implemented\n\
        kyocho unix: calls that are not there: pdfork (1)\n";
    succeeds("bad_addresses_are_errors_and_what_is_not_there_is_named", &["bad"], expected);
}

#[test]
fn the_trace_shows_calls_of_freebsd_and_what_becomes_of_them() {
    let test = "the_trace_shows_calls_of_freebsd_and_what_becomes_of_them";
    if let Some((status, text)) = run(test, &["--trace"], &["status", "0"]) {
        assert_eq!(status, Some(0));
        for line in ["[freebsd] thr_new(", "[local] clone(", "[freebsd] exit("] {
            assert!(text.contains(line), "{line} is not in: {text}");
        }
        let counted = |line: &str| line.contains("freebsd  sigaction");
        assert!(text.lines().any(counted), "{text}");
    }
}

#[test]
fn programs_of_the_other_system_are_refused_by_name() {
    let test = "programs_of_the_other_system_are_refused_by_name";
    let Some((status, text)) = run(test, &[], &["status", "0"]) else { return };
    assert_eq!((status, text.as_str()), (Some(0), ""));
    let freebsd = program().unwrap().to_str().unwrap();
    let expected = format!(
        "{freebsd}: cannot execute: a FreeBSD program; run it with --personality freebsd\n"
    );
    assert_eq!(output_of(&mut inside(&[freebsd])), (Some(126), expected));
    let mut linux = inside(&["--personality", "freebsd", "--", "true"]);
    let expected =
        "true: cannot execute: no FreeBSD program; run it without --personality freebsd\n";
    assert_eq!(output_of(&mut linux), (Some(126), expected.to_owned()));
}

#[test]
fn a_hostile_program_gains_nothing_from_the_library_in_its_process() {
    if !is_permitted("a_hostile_program_gains_nothing_from_the_library_in_its_process") {
        return;
    }
    let folder = Folder::new();
    let program = folder.path().join("hostile");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unix/freebsd_hostile.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-static", "-nostdlib", "-fno-stack-protector", "-fno-pie", "-no-pie"]);
    assert!(compiler.arg("-o").arg(&program).arg(source).status().unwrap().success());
    // A C compiler of Linux marks its programs as Linux's.
    const SYSTEM: usize = 7;
    const FREEBSD: u8 = 9;
    let mut bytes = std::fs::read(&program).unwrap();
    bytes[SYSTEM] = FREEBSD;
    std::fs::write(&program, bytes).unwrap();
    let root = folder.path().to_str().unwrap();
    let mut command =
        inside(&["--root", root, "--personality", "freebsd", "--missing", "--", "/hostile"]);
    let expected = "mprotect -1\nmunmap -1\nmmap -1\ntrapped -78\ngate 1\nopenat -2\nescape -2\nkill -3\n\
        ptrace -38\nexecve -2\nscribbled 1\n\
        kyocho unix: calls that are not there: ptrace (1), lio_listio (1)\n";
    assert_eq!(output_of(&mut command), (Some(7), expected.to_owned()));
}
