//! The header and the library agree: a C program that uses every function, linked with the shared
//! and with the static library.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kyocho_tst_c as _; // has the libraries built

/// The folder of the built libraries: the one of this program.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles the C program, links it with `link`, and runs it.
fn program_runs(name: &str, link: &[&str]) {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(package("include"))
        .arg(package("tests/program.c"))
        .args(["-o", program.to_str().unwrap(), "-L", libraries().to_str().unwrap()])
        .args(link);
    succeed(&mut cc);
    let output = succeed(Command::new(&program).env("LD_LIBRARY_PATH", libraries()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
}

#[test]
fn a_c_program_runs_with_the_shared_library() {
    program_runs("with_shared", &["-lkyocho_tst_c", "-lpthread"]);
}

#[test]
fn a_c_program_runs_with_the_static_library() {
    program_runs("with_static", &["-l:libkyocho_tst_c.a", "-lpthread", "-ldl", "-lm"]);
}

#[test]
fn the_header_declares_what_the_library_exports_and_no_more() {
    let header = std::fs::read_to_string(package("include/tst.h")).unwrap();
    let declarations = header.lines().filter_map(|line| line.strip_prefix("int "));
    let declared: BTreeSet<String> = declarations
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name.to_owned()))
        .collect();
    let library = libraries().join("libkyocho_tst_c.so");
    let output = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let symbols = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.starts_with("tst_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, exported);
    assert!(declared.len() >= 20, "only {} functions", declared.len());
}
