//! Two processes in a test: this program once more, as the other side.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::{env, fs};

/// Which part the other process plays, and where to meet.
pub(crate) const ROLE: &str = "KYOCHO_GATE_ROLE";
pub(crate) const PLACE: &str = "KYOCHO_GATE_PLACE";

/// A directory for a socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct Meeting {
    folder: PathBuf,
}

impl Meeting {
    pub(crate) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("kyocho-gate-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Starts this program's test `entry` in another process, in `role`; returns once it says `ready`.
    pub(crate) fn start(&self, entry: &str, role: &str) -> Other {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", entry, "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(PLACE, self.place())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the other process has ended");
        }
        // Kept open, so that what it prints later goes somewhere.
        core::mem::forget(lines);
        Other { child, _input: input }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Another process, killed when dropped; it ends by itself once its standard input does.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) child: Child,
    _input: ChildStdin,
}

impl Drop for Other {
    fn drop(&mut self) {
        // Ended already: as well.
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

/// The part this process plays, if it is the other one.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((env::var(ROLE).ok()?, env::var_os(PLACE)?.into()))
}

/// Says that this process is ready, and waits until the one that started it lets go.
pub(crate) fn stay() {
    println!("\nready");
    let mut rest = String::new();
    let _end = std::io::stdin().lock().read_line(&mut rest);
}
