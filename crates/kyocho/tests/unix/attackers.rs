//! The attackers of `attackers.c`, compiled once for all tests of a file.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// The program; its first argument names the attack.
pub(crate) fn attackers() -> &'static str {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        // Beside the test's own program, whose file name has a hash: no other test file has it.
        let own = std::env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        let program =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("attackers-of-{name}"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unix/attackers.c");
        let new = program.with_extension(std::process::id().to_string());
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-w", "-pthread", "-o"]).arg(&new).arg(source);
        assert!(compiler.status().unwrap().success());
        // Whoever runs the old one keeps it.
        std::fs::rename(&new, &program).unwrap();
        program
    });
    PROGRAM.to_str().unwrap()
}
