//! What the compiler reports for mistakes in `select!`.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::io::Write;
use std::process::{Command, Stdio};

use kyocho_sys::skip::skip;

/// Only the macro: mistakes are found before any name is resolved.
fn source_of_macro() -> &'static str {
    let file = include_str!("../src/wait/select.rs");
    let start = file.find("#[macro_export]").unwrap();
    let end = start + file[start..].find("\n}\n").unwrap();
    &file[start..end + 2]
}

/// What the compiler reports for a program with `arms` in a `select!`.
fn said_of(arms: &str) -> String {
    let mut compiler = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let program = format!("{}\npub fn wait() {{ select! {{ {arms} }} }}\n", source_of_macro());
    compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    assert!(!output.status.success(), "{arms}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn mistakes_in_arms_are_reported_in_terms_of_the_macro() {
    if Command::new("rustc").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("mistakes_in_arms_are_reported_in_terms_of_the_macro", "there is no rustc");
    }
    let receives = "an arm that receives is `recv(RECEIVER) -> PATTERN => BODY`";
    let sends = "an arm that sends is `send(SENDER, MESSAGE) -> PATTERN => BODY`";
    let begins = "an arm begins with `recv(...)`, `send(...)` or `default`";
    let default = "`default => BODY` or `default(TIMEOUT) => BODY` comes last";
    let mistakes = [
        ("receive(a) -> x => (),", begins),
        ("recv(a) => (),", receives),
        ("recv(a) -> x = (),", receives),
        ("recv(a) -> x => { 1 } recieve(b) -> y => (),", begins),
        ("recv(a) -> x => 1, send(b) -> y => (),", sends),
        ("default => 1, recv(a) -> x => 2", default),
        ("default 5 => 1", default),
    ];
    for (arms, expected) in mistakes {
        let said = said_of(arms);
        assert!(said.contains(expected), "{arms}: {said}");
        assert!(!said.contains("recursion limit"), "{arms}: {said}");
    }
}
