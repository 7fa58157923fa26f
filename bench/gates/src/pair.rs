//! Two processes: this one calls, the other one serves.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kyocho_sys::scheduling::{CpuSet, set_affinity};
use kyocho_sys::task::ThreadId;

/// A server in another process, killed when dropped.
pub struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts a server of `system` on `cpu` for requests of `size` bytes, and waits until it is
    /// ready.
    pub fn start(system: &str, cpu: usize, size: usize) -> Self {
        let folder = std::env::temp_dir().join(format!("kyocho-gates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory for the socket");
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["serve", system])
            .arg(folder.join("gate"))
            .args([cpu.to_string(), size.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it was asked for");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{system} does not serve");
        Self { child, folder }
    }

    /// Where it listens.
    pub fn path(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _code = self.child.wait();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// Confines this process, which has one kernel thread so far, to `cpu`.
pub fn stay_on(cpu: usize) {
    set_affinity(ThreadId::current(), &CpuSet::single(cpu)).expect("a CPU this process may use");
}

/// Tells the parent process that this server is ready.
pub fn ready() {
    println!("ready");
}
