//! Programs in C and in PARMACS macros. They are compiled against an installed tree, linked
//! statically and dynamically, and run as nodes. They check themselves; the tests check what they
//! print.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs};

use kyocho_dsm::launch::variable;
use kyocho_dsm::transport::Secret;
use kyocho_dsm_c as _; // has the libraries built
use kyocho_sys::descriptor::{Inheritance, set_inheritance};
use kyocho_sys::skip::skip;

/// Longer than any program takes.
const WATCHDOG_SECONDS: &str = "120";
const STRICT: [&str; 7] =
    ["-pthread", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn have(command: &str) -> bool {
    let found = Command::new(command).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

/// An installed tree of this test, removed at the end.
struct Prefix(PathBuf);

impl Prefix {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("kyocho-dsm-{name}-{}", std::process::id()));
        let libraries = env::current_exe().unwrap().parent().unwrap().to_path_buf();
        succeed(Command::new(root().join("scripts/install")).arg(&path).arg(libraries));
        Self(path)
    }

    /// Expands the PARMACS macros in a file of `tests/c`.
    fn expand(&self, name: &str) -> PathBuf {
        self.expand_with(&[], name)
    }

    /// The same with options of m4.
    fn expand_with(&self, options: &[&str], name: &str) -> PathBuf {
        let mut m4 = Command::new("m4");
        m4.args(options).arg(self.0.join("share/kyocho/parmacs.m4"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
        let expanded = self.0.join(name).with_extension("c");
        fs::write(&expanded, succeed(m4.arg(source)).stdout).unwrap();
        expanded
    }

    /// Links a program with the shared library according to pkg-config, or with the static one.
    fn compile(&self, source: &Path, linkage: Linkage) -> PathBuf {
        let program = self.0.join(source.file_stem().unwrap());
        let mut cc = Command::new("cc");
        cc.args(STRICT).arg("-D_DEFAULT_SOURCE").arg("-I").arg(self.0.join("include"));
        cc.arg(source).arg("-o").arg(&program);
        match linkage {
            Linkage::Static => cc.arg(self.0.join("lib/libkyocho-dsm.a")).args(STATIC_NEEDS),
            Linkage::Dynamic => cc.arg("-L").arg(self.0.join("lib")).arg("-lkyocho-dsm"),
        };
        succeed(cc.arg("-lm"));
        program
    }

    /// Runs so many nodes of a program. Returns their exit codes and their output, in the order of
    /// ranks.
    fn run(
        &self,
        program: &Path,
        nodes: u16,
        arguments: &[&str],
    ) -> (Vec<Option<i32>>, [String; 2]) {
        let running = self.start(program, nodes, arguments);
        let ended: Vec<_> =
            running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let all = |part: fn(&Output) -> &[u8]| {
            ended.iter().map(|output| String::from_utf8_lossy(part(output)).into_owned()).collect()
        };
        let codes = ended.iter().map(|output| output.status.code()).collect();
        (codes, [all(|output| &output.stdout), all(|output| &output.stderr)])
    }

    /// The output of so many nodes of a program, all of which must succeed.
    fn said(&self, program: &Path, nodes: u16, arguments: &[&str]) -> String {
        let (codes, [said, errors]) = self.run(program, nodes, arguments);
        assert_eq!(codes, vec![Some(0); nodes.into()], "{nodes} nodes: {errors}");
        said
    }

    fn start(&self, program: &Path, nodes: u16, arguments: &[&str]) -> Vec<Child> {
        let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners: Vec<_> = (0..nodes).map(bind).collect();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let addresses: Vec<_> = listeners.iter().map(address).collect();
        let secret = Secret::random().unwrap().to_hex();
        let start = |(listener, rank): (&TcpListener, u16)| {
            set_inheritance(listener.as_fd(), Inheritance::Inherited).unwrap();
            // A lost signal makes the test fail instead of hang.
            let mut node = Command::new("timeout");
            node.arg(WATCHDOG_SECONDS)
                .arg(program)
                .args(arguments)
                .env("LD_LIBRARY_PATH", self.0.join("lib"))
                .env(variable::RANK, rank.to_string())
                .env(variable::NODES, addresses.join(","))
                .env(variable::SECRET, &secret)
                .env(variable::LISTENER, listener.as_raw_fd().to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let child = node.spawn().unwrap();
            set_inheritance(listener.as_fd(), Inheritance::Closed).unwrap();
            child
        };
        listeners.iter().zip(0..).map(start).collect()
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy, Debug)]
enum Linkage {
    Static,
    Dynamic,
}

const STATIC_NEEDS: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

#[test]
fn a_c_program_gets_what_the_header_promises() {
    if !have("cc") {
        return skip("a_c_program_gets_what_the_header_promises", "cc is not installed");
    }
    let prefix = Prefix::new("calls");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/calls.c");
    for linkage in [Linkage::Static, Linkage::Dynamic] {
        let program = prefix.compile(&source, linkage);
        for nodes in [1, 3] {
            let said = prefix.said(&program, nodes, &[]);
            assert_eq!(said, "as promised\n".repeat(nodes.into()), "{linkage:?}");
        }
    }
}

#[test]
fn threads_of_a_node_have_slots() {
    if !have("cc") {
        return skip("threads_of_a_node_have_slots", "cc is not installed");
    }
    let prefix = Prefix::new("slots");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/slots.c");
    let program = prefix.compile(&source, Linkage::Dynamic);
    for nodes in [1, 3] {
        let said = prefix.said(&program, nodes, &[]);
        assert_eq!(said, "as promised\n".repeat(nodes.into()));
    }
}

#[test]
fn the_example_adds_up() {
    if !have("cc") {
        return skip("the_example_adds_up", "cc is not installed");
    }
    let prefix = Prefix::new("example");
    let program = prefix.compile(&root().join("examples/c/shared_sum.c"), Linkage::Dynamic);
    assert_eq!(prefix.said(&program, 4, &[]), "4 nodes, sum 10\n");
}

#[test]
fn writes_before_a_flag_are_visible_after_the_wait() {
    let test = "writes_before_a_flag_are_visible_after_the_wait";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("relay");
    let program = prefix.compile(&prefix.expand("relay.C"), Linkage::Dynamic);
    for nodes in [1_u16, 2, 4] {
        let said = prefix.said(&program, nodes, &[&nodes.to_string()]);
        // 1,000 items, four rounds of all processes.
        assert_eq!(said, format!("sum {}, 0 wrong\n", 4000 * nodes));
    }
}

#[test]
fn locks_hand_on_all_that_was_written_where_a_program_wants_release_consistency() {
    let test = "locks_hand_on_all_that_was_written_where_a_program_wants_release_consistency";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("queue");
    let source = prefix.expand_with(&["-DRELEASE_CONSISTENCY"], "queue.C");
    let program = prefix.compile(&source, Linkage::Dynamic);
    for nodes in [1_u16, 2, 4] {
        let said = prefix.said(&program, nodes, &[&nodes.to_string()]);
        assert_eq!(said, "last 60, 0 wrong\n");
    }
}

#[test]
fn processes_wait_on_condition_variables_for_each_other() {
    let test = "processes_wait_on_condition_variables_for_each_other";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("buffer");
    let program = prefix.compile(&prefix.expand("buffer.C"), Linkage::Dynamic);
    for nodes in [2_u16, 4] {
        let said = prefix.said(&program, nodes, &[&nodes.to_string()]);
        // 1 to 200 of each producer.
        assert_eq!(said, format!("sum {}, 0 left\n", 20_100 * u32::from(nodes) / 2));
    }
}

#[test]
fn a_program_in_parmacs_macros_computes_what_one_process_does() {
    let test = "a_program_in_parmacs_macros_computes_what_one_process_does";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("parmacs");
    let program = prefix.compile(&prefix.expand("particles.C"), Linkage::Dynamic);
    let alone = prefix.said(&program, 1, &["1"]);
    let results = |said: &str| said.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(alone.lines().next(), Some("4000 particles, 1 processes"));
    let said = prefix.said(&program, 3, &["3"]);
    // One process prints, except for what each prints while it works.
    assert_eq!(said.matches("at work").count(), 3, "{said}");
    let said: String = said
        .lines()
        .filter(|line| !line.contains("at work"))
        .map(|line| format!("{line}\n"))
        .collect();
    let alone: String = alone
        .lines()
        .filter(|line| !line.contains("at work"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(said.lines().next(), Some("4000 particles, 3 processes"));
    assert_eq!(results(&said), results(&alone));
}

#[test]
fn what_all_nodes_say_before_the_work_begins_is_heard_once() {
    let test = "what_all_nodes_say_before_the_work_begins_is_heard_once";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("first");
    let program = prefix.compile(&prefix.expand("first.C"), Linkage::Dynamic);
    for nodes in [1_u16, 3] {
        let said = prefix.said(&program, nodes, &[&nodes.to_string()]);
        for line in ["first", "second", "third", "last"] {
            assert_eq!(said.matches(line).count(), 1, "{line}, {nodes} nodes: {said}");
        }
        assert_eq!(said.matches("at work").count(), usize::from(nodes), "{said}");
    }
}

#[test]
fn mistakes_of_a_program_in_parmacs_macros_end_it_by_name() {
    let test = "mistakes_of_a_program_in_parmacs_macros_end_it_by_name";
    if !have("cc") || !have("m4") {
        return skip(test, "cc or m4 is not installed");
    }
    let prefix = Prefix::new("mistakes");
    let program = prefix.compile(&prefix.expand("mistakes.C"), Linkage::Dynamic);
    for (mistake, nodes, expected) in [
        ("lock", 1, "node 0: the lock was not initialised: use LOCKINIT first"),
        ("memory", 1, "node 0: G_MALLOC of 1099511627776 bytes: "),
        ("barrier", 2, "a barrier for 5 processes, but 2 nodes run"),
        ("unlock", 2, "lock 1 is not held: acquire it first"),
        (
            "many",
            2,
            "node 0: the program creates 2 processes beside the first, and runs on 2 nodes",
        ),
        ("few", 2, "the program has created 0 processes beside the first, and runs on 2 nodes"),
        ("early", 1, "node 0: the program has not started: use MAIN_INITENV first"),
        (
            "flag",
            1,
            "node 0: a process waits for a flag, but no other process exists yet that could set it",
        ),
    ] {
        let (codes, [_, errors]) = prefix.run(&program, nodes, &[mistake]);
        assert!(codes.iter().all(|code| *code == Some(75)), "{mistake}: {codes:?} {errors}");
        assert!(errors.contains(expected), "{mistake}: {errors}");
    }
}
