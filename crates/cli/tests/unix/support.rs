//! Shared code of the tests of `kyocho unix`.
#![allow(dead_code, reason = "no test file uses all of it")]

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// `kyocho unix` with these words. Options come first, up to a `--`, which is added if it is
/// missing.
pub(crate) fn inside(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.arg("unix");
    if !words.contains(&"--") {
        command.arg("--");
    }
    command.args(words);
    command
}

/// Runs the command. Returns its exit code, and standard output followed by standard error.
pub(crate) fn output_of(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// Runs `script` with `shell` natively and inside, each in a folder of its own. Both outputs must
/// be equal. The script must succeed natively, because a script that fails at once would print the
/// same inside.
pub(crate) fn same_inside(shell: &[&str], script: &str) {
    let runs = [false, true].map(|within| {
        let folder = Folder::new();
        let mut command = if within { inside(&[]) } else { Command::new(shell[0]) };
        command.args(if within { shell } else { &shell[1..] });
        command.args(["-c", script]).current_dir(folder.path()).stdin(Stdio::null());
        output_of(&mut command)
    });
    let (status, text) = &runs[0];
    assert!(*status == Some(0) && !text.is_empty(), "outside: {status:?}: {text}");
    assert!(!text.contains("Traceback (most recent call last)"), "outside: {text}");
    assert_eq!(runs[1], runs[0]);
}

/// Whether this host permits an instance. Otherwise the test is reported as skipped, with the
/// reason.
pub(crate) fn is_permitted(test: &str) -> bool {
    const NO_INSTANCE: i32 = 125;
    static TRIED: LazyLock<(Option<i32>, String)> =
        LazyLock::new(|| output_of(&mut inside(&["true"])));
    let (status, text) = &*TRIED;
    if *status == Some(NO_INSTANCE) {
        kyocho_sys::skip::skip(test, text.trim());
    }
    *status != Some(NO_INSTANCE)
}

/// Whether `program` is installed. Otherwise the test is reported as skipped.
pub(crate) fn is_installed(test: &str, program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).exists());
    if !found {
        kyocho_sys::skip::skip(test, &format!("{program} is not installed"));
    }
    found
}

/// A folder of one test, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("kyocho-unix-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
