//! C programs under analysis tools: the tools report nothing for correct programs, and find the
//! error in a wrong one.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::path::Path;
use std::process::{Command, Output};

use kyocho_sys::skip::skip;

#[path = "support/installed.rs"]
mod installed;
use installed::{Linkage, Scratch, compile, have, install, output_of, root};

/// Programs of this folder and of the examples, with their output.
const CORRECT: [(&str, &str); 5] = [
    ("crates/ffi/tests/c/race.c", "added up\n"),
    ("examples/c/producer_consumer.c", "100 items, sum 950\n"),
    ("examples/c/sieve.c", "125 primes up to 700, the largest 691\n"),
    ("crates/ffi/tests/c/objects.c", "objects: as promised\n"),
    ("crates/ffi/tests/c/channels.c", "channels: as promised\n"),
];

/// Compiles each of `programs` with `compiler`, runs it with `run`, and asserts that the tool
/// reports nothing.
fn assert_no_reports(
    programs: &[(&str, &str)],
    compiler: &[&str],
    prefix: &Path,
    run: impl Fn(&Path) -> Command,
) {
    for &(source, printed) in programs {
        let program = compile(compiler, &root().join(source), prefix, Linkage::Dynamic);
        let output = output_of(&mut run(&program), prefix);
        let said = said(&output);
        assert!(output.status.success(), "{source}: {}\n{said}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{source}");
        assert_eq!(said, "", "{source}");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether programs that `gcc` compiles with `option` run here.
fn has_sanitizer(scratch: &Path, option: &str) -> bool {
    let source = scratch.join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = scratch.join("empty");
    let mut compile = Command::new("gcc");
    compile.arg(option).arg(&source).arg("-o").arg(&program);
    compile.output().is_ok_and(|output| output.status.success())
        && output_of(&mut Command::new(program), scratch).status.success()
}

#[test]
fn thread_sanitizer_finds_the_race_and_no_false_one() {
    let name = "thread_sanitizer_finds_the_race_and_no_false_one";
    let scratch = Scratch::new("tsan");
    if !has_sanitizer(&scratch.0, "-fsanitize=thread") {
        return skip(name, "gcc makes no programs with ThreadSanitizer that run here");
    }
    install(&scratch.0);
    let compiler = ["gcc", "-std=c99", "-g", "-fsanitize=thread"];
    assert_no_reports(&CORRECT, &compiler, &scratch.0, |program| Command::new(program));
    let source = root().join("crates/ffi/tests/c/race.c");
    let program = compile(&compiler, &source, &scratch.0, Linkage::Dynamic);
    let output = output_of(Command::new(program).arg("without a lock"), &scratch.0);
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("data race") && said.contains("race.c:12"), "{said}");
}

#[test]
fn address_sanitizer_finds_no_error_and_no_leak() {
    let name = "address_sanitizer_finds_no_error_and_no_leak";
    let scratch = Scratch::new("asan");
    if !has_sanitizer(&scratch.0, "-fsanitize=address") {
        return skip(name, "gcc makes no programs with AddressSanitizer that run here");
    }
    install(&scratch.0);
    let compiler = ["gcc", "-std=c99", "-g", "-fsanitize=address"];
    // Only programs that leave no microprocess behind: the tool does not search the stack of one
    // for references.
    assert_no_reports(&CORRECT[..3], &compiler, &scratch.0, |program| {
        let mut command = Command::new(program);
        command.env("ASAN_OPTIONS", "detect_stack_use_after_return=0:detect_leaks=1");
        command
    });
}

#[test]
fn valgrind_finds_no_error() {
    if !have("valgrind") || !have("gcc") {
        return skip("valgrind_finds_no_error", "valgrind or gcc is not installed");
    }
    let scratch = Scratch::new("valgrind");
    install(&scratch.0);
    let source = root().join("examples/c/sieve.c");
    let program = compile(&["gcc", "-std=c99", "-g"], &source, &scratch.0, Linkage::Dynamic);
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9"]).arg(program).arg("100");
    let output = output_of(&mut command, &scratch.0);
    let said = said(&output);
    // Valgrind reports a system call that it does not know in this form.
    let errors = said.lines().filter(|line| line.starts_with("==")).count();
    assert_eq!(errors, 0, "{said}");
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "25 primes up to 100, the largest 97\n");
}
