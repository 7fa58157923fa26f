//! The installed libraries, and programs compiled against them.
#![allow(dead_code, reason = "each test uses a part of it")]

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::{env, fs, thread};

// Cargo builds the libraries only if the crate is used.
use kyocho_ffi as _;

/// Longer than any program here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    output
}

pub(crate) fn have(command: &str) -> bool {
    let found = Command::new(command).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// A folder for this test, removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
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
pub(crate) fn install(prefix: &Path) {
    let libraries = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    run(Command::new(root().join("scripts/install")).arg(prefix).arg(libraries));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// The static archive, in a program that loads the C library.
    Archive,
    /// A fully static program.
    Static,
    /// The same, position-independent.
    StaticPie,
    Dynamic,
}

impl Linkage {
    /// Compiler options besides the libraries.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Archive | Self::Dynamic => &[],
            Self::Static => &["-static"],
            Self::StaticPie => &["-static-pie"],
        }
    }

    /// Whether programs can be linked in this way here: C libraries need not exist as archives.
    pub(crate) fn is_possible(self, scratch: &Path) -> bool {
        let source = scratch.join("empty.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let mut compile = Command::new("gcc");
        compile.args(self.options()).arg(&source).arg("-o").arg(scratch.join("empty"));
        compile.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

/// Compiler flags, from pkg-config if it is installed.
fn flags(prefix: &Path, linkage: Linkage) -> Vec<String> {
    if have("pkg-config") && linkage != Linkage::Archive {
        let mut ask = Command::new("pkg-config");
        if linkage != Linkage::Dynamic {
            ask.arg("--static");
        }
        ask.args(["--cflags", "--libs", "kyocho"]);
        ask.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        let answer = String::from_utf8(run(&mut ask).stdout).unwrap();
        return answer.split_whitespace().map(str::to_owned).collect();
    }
    let include = format!("-I{}", prefix.join("include").display());
    let library = match linkage {
        Linkage::Archive => vec![prefix.join("lib/libkyocho.a").display().to_string()],
        _ => vec![format!("-L{}", prefix.join("lib").display()), "-lkyocho".into()],
    };
    let system = ["-lpthread", "-ldl", "-lm"].map(str::to_owned);
    [include].into_iter().chain(library).chain(system).collect()
}

/// Compiles `source` with `compiler`. Returns the path of the program.
pub(crate) fn compile(
    compiler: &[&str],
    source: &Path,
    prefix: &Path,
    linkage: Linkage,
) -> PathBuf {
    let program = prefix.join("program");
    let mut compile = Command::new(compiler[0]);
    compile.args(&compiler[1..]).args(linkage.options()).args(STRICT).arg(source);
    compile.arg("-o").arg(&program);
    run(compile.args(flags(prefix, linkage)).arg("-lpthread"));
    program
}

/// Output of `command` with the libraries under `prefix`. Kills it if it takes too long.
pub(crate) fn output_of(command: &mut Command, prefix: &Path) -> Output {
    let child = command
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let (done, over) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if over.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _gone = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watchdog.join().unwrap();
    output
}
