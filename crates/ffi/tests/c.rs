//! Programs in C and C++, compiled against the header as strictly as compilers go, linked statically and dynamically from an
//! installed tree, and run. The tests in `tests/c` check themselves; the examples are judged by what they print.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs, thread};

use kyocho_sys::skip::skip;
// Cargo builds the libraries only for who uses the crate.
use kyocho_ffi as _;

/// Longer than any program here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

fn have(command: &str) -> bool {
    let found = Command::new(command).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// A folder of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("kyocho-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// Installs the libraries that were built with this test under `prefix`.
fn install(prefix: &Path) {
    let libraries = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    run(Command::new(root().join("scripts/install")).arg(prefix).arg(libraries));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Static,
    Dynamic,
}

/// What the compiler is to be told, from pkg-config where it is installed.
fn flags(prefix: &Path, linkage: Linkage) -> Vec<String> {
    if have("pkg-config") && linkage == Linkage::Dynamic {
        let mut ask = Command::new("pkg-config");
        ask.args(["--cflags", "--libs", "kyocho"]);
        ask.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        let answer = String::from_utf8(run(&mut ask).stdout).unwrap();
        return answer.split_whitespace().map(str::to_owned).collect();
    }
    let include = format!("-I{}", prefix.join("include").display());
    let library = match linkage {
        Linkage::Static => vec![prefix.join("lib/libkyocho.a").display().to_string()],
        Linkage::Dynamic => vec![format!("-L{}", prefix.join("lib").display()), "-lkyocho".into()],
    };
    let system = ["-lgcc_s", "-lpthread", "-ldl", "-lm"].map(str::to_owned);
    [include].into_iter().chain(library).chain(system).collect()
}

/// Compiles `source` with `compiler`, runs the program, and returns what it printed.
fn compile_and_run(compiler: &[&str], source: &Path, prefix: &Path, linkage: Linkage) -> String {
    let program = prefix.join("program");
    let mut compile = Command::new(compiler[0]);
    compile.args(&compiler[1..]).args(STRICT).arg(source).arg("-o").arg(&program);
    run(compile.args(flags(prefix, linkage)).arg("-lpthread"));
    let child = Command::new(&program)
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let (done, over) = std::sync::mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if over.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _gone = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watchdog.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {linkage:?}: {}\n{said}", source.display(), output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_in_c_get_what_the_header_promises() {
    if !have("gcc") {
        return skip("programs_in_c_get_what_the_header_promises", "gcc is not installed");
    }
    let scratch = Scratch::new("c");
    install(&scratch.0);
    let programs = [
        ("crates/ffi/tests/c/threads.c", "threads: as promised\n"),
        ("crates/ffi/tests/c/objects.c", "objects: as promised\n"),
        ("crates/ffi/tests/c/channels.c", "channels: as promised\n"),
        ("crates/ffi/tests/c/gates.c", "gates: as promised\n"),
        ("examples/c/gate.c", "the sum of 1 to 100 is 5050\n"),
        ("examples/c/sieve.c", "125 primes up to 700, the largest 691\n"),
        ("examples/c/producer_consumer.c", "100 items, sum 950\n"),
    ];
    for (source, printed) in programs {
        for linkage in [Linkage::Static, Linkage::Dynamic] {
            let source = root().join(source);
            let output = compile_and_run(&["gcc", "-std=c99"], &source, &scratch.0, linkage);
            assert_eq!(output, printed);
        }
    }
}

#[test]
fn header_compiles_alone_in_every_language_it_is_for() {
    if !have("gcc") || !have("g++") {
        return skip(
            "header_compiles_alone_in_every_language_it_is_for",
            "gcc or g++ is not installed",
        );
    }
    let scratch = Scratch::new("header");
    let source = scratch.0.join("alone.c");
    fs::write(&source, "#include <kyocho.h>\nint main(void) { return kyocho_self() != 0; }\n")
        .unwrap();
    let include = format!("-I{}", root().join("crates/ffi/include").display());
    let compilers = [["gcc", "-std=c99", "-xc"], ["gcc", "-std=c17", "-xc"]];
    let plus = [["g++", "-std=c++11", "-xc++"], ["g++", "-std=c++20", "-xc++"]];
    for [compiler, language, kind] in compilers.into_iter().chain(plus) {
        let mut compile = Command::new(compiler);
        compile.args([language, kind, "-fsyntax-only", &include]).args(STRICT);
        run(compile.arg(&source));
    }
}

#[test]
fn objects_are_used_from_cpp() {
    if !have("g++") {
        return skip("objects_are_used_from_cpp", "g++ is not installed");
    }
    let scratch = Scratch::new("cpp");
    install(&scratch.0);
    let source = root().join("crates/ffi/tests/c/lambda.cpp");
    let output = compile_and_run(&["g++", "-std=c++11"], &source, &scratch.0, Linkage::Dynamic);
    assert_eq!(output, "5050\n");
}
