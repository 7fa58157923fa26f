//! C programs, compiled once for all tests of a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// The program of `NAME.c`, compiled with additional options.
pub(crate) fn compiled(name: &'static str, options: &'static [&'static str]) -> &'static str {
    type Made = BTreeMap<(&'static str, &'static [&'static str]), &'static str>;
    static MADE: Mutex<Made> = Mutex::new(BTreeMap::new());
    MADE.lock().unwrap().entry((name, options)).or_insert_with(|| make(name, options))
}

fn make(name: &str, options: &[&str]) -> &'static str {
    // Beside the test program, whose file name contains a hash, so that other test files do not use
    // it.
    let own = std::env::current_exe().unwrap();
    let test = own.file_name().unwrap().to_str().unwrap();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}{}-of-{test}", options.concat()));
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/unix/{name}.c"));
    let new = program.with_extension(std::process::id().to_string());
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-pthread"]).args(options).arg("-o").arg(&new).arg(source);
    assert!(compiler.status().unwrap().success());
    // A process that runs the old program keeps it.
    std::fs::rename(&new, &program).unwrap();
    program.into_os_string().into_string().unwrap().leak()
}
