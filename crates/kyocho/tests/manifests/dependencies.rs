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
    tree_of("kyocho", features)
}

/// The names of all crates that are built with `package` when a program chooses `features`.
fn tree_of(package: &str, features: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "-p", package, "--edges", "normal,build"]);
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
    assert_none(&tree("control,net"), &["kyocho-gate", "kyocho-gate-macros", "postcard"]);
}

/// Libraries that only features of the crate `kyocho-microprocess` need, by feature.
const OF_FEATURES: [(&str, &[&str]); 4] = [
    ("io", &["io-uring"]),
    ("net", &["io-uring", "socket2"]),
    ("trace", &["serde", "serde_json", "tracing"]),
    ("control", &["serde", "serde_json", "tracing"]),
];

#[test]
fn a_user_of_threads_builds_what_the_chosen_features_need() {
    let own = ["kyocho-arch", "kyocho-microprocess", "kyocho-sys", "kyocho-tst", "libc"];
    let none = tree_of("kyocho-microprocess", "");
    assert_eq!(none, own.map(str::to_owned).into(), "without features");
    for (feature, libraries) in OF_FEATURES {
        let chosen = tree_of("kyocho-microprocess", feature);
        let all: BTreeSet<_> = OF_FEATURES.iter().flat_map(|(_, libraries)| *libraries).collect();
        for library in all {
            let needed = libraries.contains(library);
            assert_eq!(chosen.contains(*library), needed, "{library} with feature {feature}");
        }
    }
}

#[test]
fn the_library_passes_the_features_of_threads_on() {
    for (feature, libraries) in [("microprocess", &[][..])].into_iter().chain(OF_FEATURES) {
        let expected = tree_of("kyocho-microprocess", feature.trim_start_matches("microprocess"));
        let mut chosen = tree(feature);
        assert!(chosen.remove("kyocho"), "the tree is this crate's");
        assert_eq!(chosen, expected, "with feature {feature}, which needs {libraries:?}");
    }
}

#[test]
fn a_user_of_locks_builds_no_threads() {
    assert_none(&tree("tst"), &["kyocho-microprocess", "io-uring", "serde_json", "tracing"]);
}
