//! What a user of this library builds: cargo is asked for its tree of dependencies.

use std::collections::BTreeSet;
use std::process::Command;

/// Crates of the command: command line, terminal, SSH, notebooks.
const COMMAND_ONLY: [&str; 10] = [
    "clap",
    "crossterm",
    "kyocho-cli",
    "ratatui",
    "russh",
    "rustyline",
    "signal-hook",
    "tokio",
    "toml",
    "zeromq",
];

/// The names of all crates that are built with this one when a program chooses `features`.
fn tree(features: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "-p", "kyocho", "--edges", "normal,build"]);
    cargo.args(["--prefix", "none", "--format", "{p}"]).args(["--no-default-features"]);
    cargo.args(["--features", features]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names of crates");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn assert_none(tree: &BTreeSet<String>, unwanted: &[&str]) {
    assert!(tree.contains("kyocho"), "the tree is this crate's: {tree:?}");
    let found: Vec<_> = unwanted.iter().filter(|name| tree.contains(**name)).collect();
    assert!(found.is_empty(), "the library builds {found:?}");
}

#[test]
fn the_library_builds_nothing_of_the_command() {
    let all = tree("full");
    for name in ["kyocho-lisp", "kyocho-unix", "kyocho-dsm", "kyocho-gate", "kyocho-pagetable"] {
        assert!(all.contains(name), "`full` has all modules, {name} too: {all:?}");
    }
    assert_none(&all, &COMMAND_ONLY);
}

#[test]
fn a_user_of_threads_gates_and_locks_builds_no_other_module() {
    let others = ["kyocho-lisp", "kyocho-unix", "kyocho-freebsd", "kyocho-dsm", "kyocho-pagetable"];
    let chosen = tree("default");
    for name in ["kyocho-microprocess", "kyocho-gate", "kyocho-tst"] {
        assert!(chosen.contains(name), "by default there are threads, gates and locks: {chosen:?}");
    }
    assert_none(&chosen, &others);
    assert_none(&chosen, &["num-bigint", "rustls", "inferno"]);
}

#[test]
fn a_user_of_threads_builds_no_gates() {
    assert_none(&tree("microprocess"), &["kyocho-gate", "kyocho-gate-macros", "postcard"]);
}

#[test]
fn a_user_of_locks_builds_no_threads() {
    assert_none(&tree("tst"), &["kyocho-microprocess", "io-uring", "serde_json", "tracing"]);
}
