//! A `kyocho serve` for tests of its listeners.

use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends a test that hangs.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(120);

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) lines: BufReader<std::process::ChildStdout>,
    pub(crate) folder: PathBuf,
    /// Receives the notices for the service manager.
    notified: UnixDatagram,
    /// The state folder, which a later server of the same test may use.
    pub(crate) state: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }
}

impl Server {
    /// Starts a server with this configuration, and waits until it has reported that it is ready.
    pub(crate) fn start(name: &str, config: Option<&str>, listen: &[&str]) -> Self {
        Self::start_in(name, config, listen, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn start_in(
        name: &str,
        config: Option<&str>,
        listen: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        Self::start_by(command, name, config, listen, variables)
    }

    /// The same, but `command` starts `kyocho`, with its arguments added.
    pub(crate) fn start_by(
        mut command: Command,
        name: &str,
        config: Option<&str>,
        listen: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-state"));
        // Left over from an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the test's folder can be made");
        let notified = UnixDatagram::bind(folder.join("notify")).unwrap();
        notified.set_read_timeout(Some(WATCHDOG)).unwrap();
        command.arg("serve").arg("--listen").arg(format!("unix:{}/s", folder.display()));
        if let Some(text) = config {
            std::fs::write(folder.join("config"), text).unwrap();
            command.arg("--config").arg(folder.join("config"));
        }
        for place in listen {
            command.args(["--listen", place]);
        }
        command.env("NOTIFY_SOCKET", folder.join("notify")).env("XDG_STATE_HOME", &state);
        command.envs(variables.iter().copied());
        command.stdout(Stdio::piped());
        let mut process = command.spawn().expect("the command runs");
        let lines = BufReader::new(process.stdout.take().unwrap());
        let server = Self { process, lines, folder, notified, state };
        while server.notification() != "READY=1" {}
        server
    }

    /// The next notice for the service manager.
    pub(crate) fn notification(&self) -> String {
        let mut message = [0; 128];
        let length = self.notified.recv(&mut message).expect("the server says how it is");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let number = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &number]).status().unwrap().success());
    }

    /// Reads the server's lines up to one that contains `part`.
    pub(crate) fn await_line(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it says {part} before it ends");
        }
        line
    }
}
