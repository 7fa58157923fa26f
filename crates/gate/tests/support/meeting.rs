//! Tests of two processes: the test program starts itself again as the other side.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::{env, fs};

/// Environment variables that tell the other process its role and the path of the socket.
pub(crate) const ROLE: &str = "KYOCHO_GATE_ROLE";
pub(crate) const SOCKET: &str = "KYOCHO_GATE_SOCKET";

/// A directory for a socket, removed when dropped.
#[derive(Debug)]
pub(crate) struct SocketFolder {
    folder: PathBuf,
}

impl SocketFolder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("kyocho-gate-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Starts this program's test `entry` in another process with `role`. Returns once it prints
    /// `ready`.
    pub(crate) fn start(&self, entry: &str, role: &str) -> OtherProcess {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", entry, "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(SOCKET, self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(
                lines.read_line(&mut line).unwrap() > 0,
                "the other process ended before it was ready"
            );
        }
        // The pipe stays open, so that later output of the other process does not fail.
        core::mem::forget(lines);
        OtherProcess { child, _input: input }
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Another process, killed when dropped. It ends by itself when its standard input is closed.
#[derive(Debug)]
pub(crate) struct OtherProcess {
    pub(crate) child: Child,
    _input: ChildStdin,
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Fails if the process has ended, which is as good.
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

/// Role and socket path of this process, if another one started it.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((env::var(ROLE).ok()?, env::var_os(SOCKET)?.into()))
}

/// Prints `ready` and waits until the parent process closes the standard input.
pub(crate) fn stay() {
    println!("\nready");
    let mut rest = String::new();
    let _end = std::io::stdin().lock().read_line(&mut rest);
}
